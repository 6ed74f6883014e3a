"""The draw and the outcome of one decision, read from the journal."""

from __future__ import annotations

from typing import NamedTuple

from driftsack.core.decision import SKIP
from driftsack.service.domain import journal
from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections.export import find_row
from driftsack.service.runtime.recall import events_near
from driftsack.service.runtime.recovery import archived
from driftsack.service.store.interface import Store


class Choice(NamedTuple):
    """One decision and its outcome.

    Attributes:
        probability: The probability of the arm that was drawn, or of skipping.
        state: ``"skipped"``, ``"pending"``, ``"told"``, ``"cancelled"`` or ``"lost"``.
        reward: The reward that was told; None if none was.
        costs: (d,) the costs that were told; None if none were.
    """

    probability: float
    state: str
    reward: float | None = None
    costs: list[float] | None = None


def chosen(store: Store, name: str, number: int) -> Choice:
    """Find a decision and its outcome in the journal.

    Args:
        name: The campaign.
        number: The decision.

    Raises:
        Refusal: The campaign made no such decision, or it was archived.
    """
    base, found = store.base(name), None
    if base is not None and number <= base.number:
        raise archived(name, number)
    for event in events_near(store, name, number, find_row(store, name).seq):
        if isinstance(event, journal.Asked) and event.number == number:
            if event.arm == SKIP:
                return Choice(event.probability, "skipped")
            found = Choice(event.probability, "pending")
        elif found is not None and number in numbers_of(event):
            return settled(found, event)
    if found is None:
        raise Refusal("unknown-decision", f"the campaign has made no decision {number}.")
    return found


def numbers_of(event: journal.Event) -> list[int]:
    """Return the decisions that an event settles."""
    if isinstance(event, (journal.Told, journal.Cancelled)):
        return [event.number]
    return event.numbers if isinstance(event, (journal.Dropped, journal.Expired)) else []


def settled(choice: Choice, event: journal.Event) -> Choice:
    """Return a decision with the outcome in an event."""
    if isinstance(event, journal.Told):
        return choice._replace(state="told", reward=event.reward, costs=event.costs)
    if isinstance(event, journal.Cancelled):
        return choice._replace(state="cancelled", costs=event.costs)
    return choice._replace(state="lost")
