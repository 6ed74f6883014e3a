"""Replay: apply the events of a segment, and keep the amounts that were recorded with them.

The journal says what happened to the budgets, not how to compute it. Each segment has the changes that were committed
with it; if the rules of this release come to other amounts, the recorded ones win, in the book and in the learner.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from driftsack.service.domain.book import Account
from driftsack.service.domain.campaign import Campaign
from driftsack.service.domain.journal import Delta, JournalError

Amounts = tuple[int, int, int, int]


def apply_events(campaign: Campaign, events: Iterable[Any], deltas: Sequence[Delta]) -> bool:
    """Apply the events of a segment to a campaign.

    Args:
        campaign: The campaign after the previous segment.
        deltas: The changes of the budgets that were committed with them.

    Returns:
        Whether the rules of this release came to other amounts.

    Raises:
        JournalError: The changes are for a season that the events do not begin.
    """
    expected = recorded(campaign.book.accounts, deltas)
    for event in events:
        campaign.apply(event)
    accounts = campaign.book.accounts
    wrong = False
    for (season, resource), amounts in expected.items():
        if season not in accounts:
            raise JournalError(f"the budgets of season {season} were changed, but no event begins it.")
        if _of(accounts[season], resource) != amounts:
            wrong = True
            _set(accounts[season], resource, amounts)
    if wrong:
        campaign.corrections += 1
        campaign.set_learner_account()
    return wrong


def recorded(accounts: dict[int, Account], deltas: Sequence[Delta]) -> dict[tuple[int, int], Amounts]:
    """Return the budgets after changes, by season and resource."""
    found = {(season, j): _of(account, j) for season, account in accounts.items() for j in range(len(account.granted))}
    for delta in deltas:
        before = (0, 0, 0, 0) if delta.new else found.get((delta.season, delta.resource), (0, 0, 0, 0))
        moved = (delta.granted, delta.reserved, delta.spent, delta.overrun)
        granted, reserved, spent, overrun = (a + b for a, b in zip(before, moved, strict=True))
        found[delta.season, delta.resource] = (granted, reserved, spent, overrun)
    return found


def _of(account: Account, resource: int) -> Amounts:
    return (
        account.granted[resource],
        account.reserved[resource],
        account.spent[resource],
        account.overrun[resource],
    )


def _set(account: Account, resource: int, amounts: Amounts) -> None:
    columns = (account.granted, account.reserved, account.spent, account.overrun)
    for column, amount in zip(columns, amounts, strict=True):
        column[resource] = amount
