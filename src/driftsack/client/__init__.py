"""``Client``: the ``ask`` and ``tell`` of a learner, against a service that several processes share.

Needs nothing but the standard library. Each call is repeated with the same idempotency key until it is answered or the
patience ends, so a lost answer is never a second decision. What to do when the service cannot be reached is the
caller's choice:

- ``offline="closed"``: raise :class:`ServiceUnavailableError`. Nothing is spent.
- ``offline="open"``: use the default arm without a decision. Nothing is reserved, so a budget may be overspent.
- ``offline="stock"``: use one of a few decisions that were asked for in advance, whose worst case is reserved. The
  budgets hold; outcomes are kept and told when the service is back.
"""

from driftsack.client.async_client import AsyncClient
from driftsack.client.client import Client
from driftsack.client.messages import (
    OutcomeRefusedWarning,
    RemoteDecision,
    ServiceError,
    ServiceUnavailableError,
    amount_text,
)

__all__ = [
    "AsyncClient",
    "Client",
    "OutcomeRefusedWarning",
    "RemoteDecision",
    "ServiceError",
    "ServiceUnavailableError",
    "amount_text",
]
