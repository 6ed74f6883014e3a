"""What became of one decision, in words."""

from __future__ import annotations

from typing import NamedTuple

from driftsack.core.decision import SKIP
from driftsack.service import journal
from driftsack.service.refusals import Refusal
from driftsack.service.store.interface import Store


class Choice(NamedTuple):
    """What was drawn and what became of it.

    Attributes:
        probability: The probability of what was drawn.
        became: What became of the decision, in words.
    """

    probability: float
    became: str


def chosen(store: Store, name: str, number: int) -> Choice:
    """Read what became of a decision from the journal.

    Args:
        store: The store.
        name: The campaign.
        number: The decision.

    Returns:
        What was found.

    Raises:
        Refusal: The campaign made no such decision.
    """
    found: Choice | None = None
    for segment in store.segments(name):
        for event in journal.decode(segment.body):
            if isinstance(event, journal.Asked) and event.number == number:
                became = "skipped by the policy; nothing to tell" if event.arm == SKIP else "waiting for its outcome"
                found = Choice(event.probability, became)
            elif found is not None and number in numbers_of(event):
                return found._replace(became=outcome(event))
    if found is None:
        raise Refusal("unknown-decision", f"the campaign has made no decision {number}.")
    return found


def numbers_of(event: journal.Event) -> list[int]:
    """The decisions that an event settles."""
    if isinstance(event, (journal.Told, journal.Cancelled)):
        return [event.number]
    return event.numbers if isinstance(event, (journal.Dropped, journal.Expired)) else []


def outcome(event: journal.Event) -> str:
    """What an event did to a decision, in words."""
    if isinstance(event, journal.Told):
        return f"told: reward {event.reward:g}, costs {', '.join(f'{cost:g}' for cost in event.costs)}"
    if isinstance(event, journal.Cancelled):
        return f"cancelled at costs {', '.join(f'{cost:g}' for cost in event.costs)}"
    return "its outcome did not come within the lease; the worst case was charged"
