"""What became of one decision, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from driftsack.core.decision import SKIP
from driftsack.service import journal
from driftsack.service.export import find_row
from driftsack.service.recall import events_near
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


def chosen(store: Store, name: str, number: int, resources: Sequence[str]) -> Choice:
    """Read what became of a decision from the journal.

    Args:
        store: The store.
        name: The campaign.
        number: The decision.
        resources: The names of the resources.

    Returns:
        What was found.

    Raises:
        Refusal: The campaign made no such decision.
    """
    found: Choice | None = None
    for event in events_near(store, name, number, find_row(store, name).seq):
        if isinstance(event, journal.Asked) and event.number == number:
            if event.arm == SKIP:
                return Choice(event.probability, "skipped by the policy; nothing to tell")
            found = Choice(event.probability, "waiting for its outcome")
        elif found is not None and number in numbers_of(event):
            return found._replace(became=outcome(event, resources))
    if found is None:
        raise Refusal("unknown-decision", f"the campaign has made no decision {number}.")
    return found


def numbers_of(event: journal.Event) -> list[int]:
    """The decisions that an event settles."""
    if isinstance(event, (journal.Told, journal.Cancelled)):
        return [event.number]
    return event.numbers if isinstance(event, (journal.Dropped, journal.Expired)) else []


def outcome(event: journal.Event, resources: Sequence[str]) -> str:
    """What an event did to a decision, in words."""
    if isinstance(event, journal.Told):
        return f"told: reward {event.reward:g}, costs {in_words(event.costs, resources)}"
    if isinstance(event, journal.Cancelled):
        return f"cancelled at costs {in_words(event.costs, resources)}"
    return "its outcome did not come within the lease; the worst case was charged"


def in_words(costs: Sequence[float], resources: Sequence[str]) -> str:
    """Costs with the names of what they use.

    >>> in_words([0.004, 1.5], ["usd", "seconds"])
    '0.004 usd, 1.5 seconds'
    """
    return ", ".join(f"{cost:g} {name}" for cost, name in zip(costs, resources, strict=True))
