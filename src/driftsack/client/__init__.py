"""``Client``: ``ask`` and ``tell`` as with a learner, for a campaign of a service that several processes share.

Each call is retried with the same idempotency key until it is answered or ``patience`` seconds have passed, so a lost
response never causes a second decision. ``offline`` selects the behaviour while the service cannot be reached:

- ``"closed"``: raise :class:`ServiceUnavailableError`. Nothing is spent.
- ``"open"``: use the default arm without a decision. Nothing is reserved, so a budget may be overspent.
- ``"stock"``: use one of a few decisions that were made in advance and whose worst case is reserved. The budgets hold;
  outcomes are kept and told when the service is back.
"""

from driftsack.client.async_client import AsyncClient
from driftsack.client.campaigns import open_campaign, read_accounts, read_campaign
from driftsack.client.client import Client
from driftsack.client.messages import (
    ExchangeAnswer,
    OutcomeRefusedWarning,
    RemoteDecision,
    RemoteOutcome,
    ServiceError,
    ServiceUnavailableError,
    amount_text,
)

__all__ = [
    "AsyncClient",
    "Client",
    "ExchangeAnswer",
    "OutcomeRefusedWarning",
    "RemoteDecision",
    "RemoteOutcome",
    "ServiceError",
    "ServiceUnavailableError",
    "amount_text",
    "open_campaign",
    "read_accounts",
    "read_campaign",
]
