"""Thresholds: when the spending of a budget or of a limit crosses a percentage of it, once in each season or period."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from driftsack.service.domain import journal
from driftsack.service.domain.accounts import HeldAccount
from driftsack.service.domain.state import CampaignState

WHOLE: Final = 100  # percent
CHARGES: Final = (journal.Told, journal.Billed, journal.Cancelled, journal.Expired, journal.Charged)


def mask_of(state: CampaignState, resource: int, percent: int) -> int:
    """Return the bit of a threshold of a resource; 0 if the campaign has no such threshold."""
    if percent not in state.percents:
        return 0
    return 1 << (resource * len(state.percents) + state.percents.index(percent))


def crossed_by(state: CampaignState, event: journal.Event) -> list[journal.Crossed]:
    """Return the thresholds that the charges of an event have crossed."""
    if not isinstance(event, CHARGES):
        return []
    found = list(_of_budgets(state, event))
    numbers = event.numbers if isinstance(event, journal.Expired) else []
    numbers = numbers if isinstance(event, (journal.Expired, journal.Charged)) else [event.number]
    for number in numbers:
        record = state.book.open.get(number) or state.book.settled.get(number)
        for held in () if record is None else record.held:
            found += [each for each in _of_limit(state, event, held) if each not in found]
    return found


def exhausted_for(
    state: CampaignState, event: journal.Event, held: HeldAccount, least: Sequence[int]
) -> list[journal.Crossed]:
    """Return the threshold of 100 percent for each resource of a limit whose spending alone refuses a request.

    Args:
        event: An event with the time of the request.
        held: The account that refuses it.
        least: (d,) the smallest maximum cost of an arm that could serve it, in grid units.
    """
    rule, accounts = state.limits.rules[held.limit], state.limits.accounts[held.limit]
    row = accounts.find(held.label, event.at)
    found = []
    for k, (j, amount) in enumerate(zip(rule.resources, rule.amounts, strict=True)):
        mask = mask_of(state, j, WHOLE)
        if row >= 0 and mask and not accounts.raised(row) & mask and least[j] > amount - accounts.spent(row, k):
            found.append(_crossed(event, WHOLE, j, accounts.spent(row, k), amount, held))
    return found


def _of_budgets(state: CampaignState, event: journal.Event) -> Iterator[journal.Crossed]:
    account = state.book.account
    for j, (spent, granted) in enumerate(zip(account.spent, account.granted, strict=True)):
        for percent in state.percents:
            if _is_crossed(spent, granted, percent) and not state.book.raised & mask_of(state, j, percent):
                yield _crossed(event, percent, j, spent, granted)


def _of_limit(state: CampaignState, event: journal.Event, held: HeldAccount) -> Iterator[journal.Crossed]:
    rule, accounts = state.limits.rules[held.limit], state.limits.accounts[held.limit]
    row = accounts.find(held.label, event.at)
    if row < 0 or row != accounts.place(held):  # its period has ended
        return
    for k, (j, amount) in enumerate(zip(rule.resources, rule.amounts, strict=True)):
        spent = accounts.spent(row, k)
        for percent in state.percents:
            if _is_crossed(spent, amount, percent) and not accounts.raised(row) & mask_of(state, j, percent):
                yield _crossed(event, percent, j, spent, amount, held)


def _is_crossed(spent: int, amount: int, percent: int) -> bool:
    return spent > 0 and WHOLE * spent >= percent * amount


def _crossed(
    event: journal.Event, percent: int, resource: int, spent: int, amount: int, held: HeldAccount | None = None
) -> journal.Crossed:
    crossed = journal.Crossed(
        at=event.at, tick=event.tick, percent=percent, resource=resource, spent=spent, amount=amount
    )
    if held is not None:
        crossed.limit, crossed.label, crossed.until = held.limit, held.label, held.until
    return crossed
