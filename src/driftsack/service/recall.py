"""Recall: what became of a decision that is no longer in memory, from the journal.

Decisions are numbered in the order of their events, so a binary search in the journal finds the event that made the
decision. What became of it follows soon after.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from driftsack.service import journal
from driftsack.service.book import Record
from driftsack.service.store.interface import Store

NEAR: Final = 2000
"""The number of events below which the journal is scanned instead of bisected."""


def recall(store: Store, name: str, number: int, last: int) -> Record | None:
    """Find what became of a decision.

    Args:
        store: The store.
        name: The campaign.
        number: The number of the decision.
        last: The number of the last event to look at.

    Returns:
        The decision as it was settled, without its season and round; None if it was never made.
    """
    record = None
    for event in events_near(store, name, number, last):
        if isinstance(event, journal.Asked) and event.number == number:
            record = Record(
                arm=-1 if event.arm is None else event.arm,
                probability=event.probability,
                reserved=event.reserved,
                until=event.until,
                lease=(event.until - event.tick) // 1000,
                season=0,
                round=0,
                key=event.key,
            )
            if record.arm < 0:
                record.kind = "skipped"
                return record
        elif isinstance(event, (journal.Told, journal.Cancelled)) and event.number == number and record is not None:
            record.late = record.kind == "expired"
            record.kind = "told" if isinstance(event, journal.Told) else "cancelled"
            record.reward = event.reward if isinstance(event, journal.Told) else None
            record.costs = event.costs
            return record
        elif isinstance(event, (journal.Expired, journal.Dropped)) and number in event.numbers and record is not None:
            record.kind = "expired" if isinstance(event, journal.Expired) else "dropped"
            if record.kind == "dropped":
                return record
    if record is not None:  # many expired at once, so that the oldest were dropped
        record.kind = "dropped"
    return record


def events_near(store: Store, name: str, number: int, last: int) -> Iterator[Any]:
    """Iterate over the events from shortly before the one that made a decision to the end of the journal.

    Args:
        store: The store.
        name: The campaign.
        number: The number of the decision.
        last: The number of the last event to look for it.

    Yields:
        The events.
    """
    yield from _events(store, name, _before(store, name, number, last))


def _before(store: Store, name: str, number: int, last: int) -> int:
    """An event before the one that made the decision, in an earlier segment, and not far before it."""
    before, after = 0, last
    while after - before > NEAR:
        middle = (before + after) // 2
        found = next((event for event in _events(store, name, middle) if isinstance(event, journal.Asked)), None)
        if found is not None and found.number <= number:
            before = middle
        else:
            after = middle
    return before


def _events(store: Store, name: str, after: int) -> Iterator[Any]:
    """The events of the segments that begin after an event."""
    for segment in store.segments(name, after):
        yield from journal.decode(segment.body)
