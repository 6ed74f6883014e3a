"""Recall: find settled decisions that are no longer in memory in the journal.

Decisions are numbered in the order of their events, so a binary search finds the event that made a decision. The event
that settled it usually follows soon after. If there was no outcome, a second binary search finds the end of the late
window, because the clock of leases never goes back.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from driftsack.core.decision import SKIP
from driftsack.service.domain import journal
from driftsack.service.domain.book import Book, Record
from driftsack.service.domain.calendar import SECOND
from driftsack.service.domain.effects import MOST_EXPIRED
from driftsack.service.runtime.snapshots import read_book
from driftsack.service.store.interface import Store

NEAR: Final = 2000
"""The number of events below which the journal is scanned instead of bisected."""
FAR: Final = 50_000
"""The number of events after which a scan continues for the first decision only."""


class Recalled(NamedTuple):
    """Decisions that were looked for.

    Attributes:
        records: The settled decisions by number, without season and round.
        missing: Others that were made, or may have been; decisions whose events were archived are in neither.
    """

    records: dict[int, Record]
    missing: list[int]


def recall_some(store: Store, name: str, numbers: Sequence[int], last: int, late: int) -> Recalled:
    """Find settled decisions.

    Decisions whose events were archived are found only if they were open, or settled lately, at the end of the archive.

    An outcome that arrived long after its decision takes many events to find. After ``FAR`` events, the scan therefore
    continues for the first decision only, at most to the end of its late window, and returns without the others that
    it has not found.

    Args:
        numbers: The numbers of the decisions, in ascending order.
        last: The number of the last event in which to look for the first decision.
        late: Seconds after the end of its lease during which the campaign accepts an outcome.

    Returns:
        The decisions that were found; the first one is among them unless it was never made or was archived.
    """
    base, book = store.base(name), _archived_book(store, name, numbers[0])
    if base is not None and book is not None:
        numbers = [n for n in numbers if n > base.number or n in book.open or n in book.settled]
    found = _found(store, name, _Search(numbers, late * SECOND, book), last) if numbers else {}
    return Recalled(found, [number for number in numbers if number not in found])


def _found(store: Store, name: str, search: _Search, last: int) -> dict[int, Record]:
    """Scan the journal for decisions."""
    first = search.first
    for count, event in enumerate(events_near(store, name, first, last), start=1):
        search.take(event)
        if count == FAR:
            _take_drops(store, name, search, last)
        if search.is_done or (count >= FAR and first in search.settled):
            return search.settled
    search.drop(list(search.waiting))  # to keep to the limit of expired decisions, which old journals do not say
    return search.settled


class _Search:
    """The decisions that are looked for.

    Args:
        numbers: Their numbers, in ascending order.
        late: Milliseconds after the end of its lease during which an outcome is accepted.
        book: The book at the end of the archive, if some of the decisions may have been made before it.

    Attributes:
        first: The first of the decisions.
        waiting: The decisions that were made and not settled up to the present event.
        settled: The decisions that were settled.
    """

    def __init__(self, numbers: Sequence[int], late: int, book: Book | None = None) -> None:
        self._wanted, self.first, self._last, self._late = set(numbers), numbers[0], numbers[-1], late
        self._expired: set[int] = set()  # later decisions that expired and may still be told
        self.waiting: dict[int, Record] = {}
        self.settled: dict[int, Record] = {}
        for records in () if book is None else (book.open, book.settled):
            for number in self._wanted & records.keys():
                self._keep(number, records[number])

    @property
    def is_done(self) -> bool:
        """Whether all decisions were found."""
        return len(self.settled) == len(self._wanted)

    def end(self, number: int) -> int:
        """The tick at which an outcome is no longer accepted."""
        return self.waiting[number].until + self._late

    def take(self, event: Any) -> None:
        """Update the decisions with an event."""
        if isinstance(event, journal.Asked):
            if event.number in self._wanted:
                self._ask(event)
        elif isinstance(event, journal.Expired):
            self._expire(event)
        elif isinstance(event, journal.Dropped):
            self._expired.difference_update(event.numbers)
            self.drop(event.numbers)
        elif isinstance(event, (journal.Told, journal.Cancelled)):
            self._settle(event)
        elif isinstance(event, journal.Extended) and event.number in self.waiting:
            self.waiting[event.number].until = event.until
        elif isinstance(event, journal.Billed) and event.number in self.waiting:
            record = self.waiting[event.number]
            record.costs, record.billed = event.costs, True
        elif isinstance(event, journal.Earned) and event.number in self.waiting:
            self.waiting[event.number].reward = event.reward
        if self.first in self.waiting and event.tick >= self.end(self.first):
            self.drop([self.first])

    def _ask(self, event: journal.Asked) -> None:
        record = Record(
            arm=SKIP if event.arm is None else event.arm,
            probability=event.probability,
            reserved=event.reserved,
            until=event.until,
            lease=(event.until - event.tick) // SECOND,
            season=0,
            round=0,
            key=event.key,
            token=event.token,
            at=event.at,
        )
        if record.arm == SKIP:
            record.kind = "skipped"
        self._keep(event.number, record)

    def _keep(self, number: int, record: Record) -> None:
        (self.waiting if record.kind in ("pending", "expired") else self.settled)[number] = record

    def _expire(self, event: journal.Expired) -> None:
        for number in event.numbers:
            record = self.waiting.get(number)
            if record is not None:
                record.kind, record.until = "expired", min(record.until, event.tick)
            elif number > self._last:
                self._expired.add(number)
        if event.dropped is not None:
            self._expired.difference_update(event.dropped)
            self.drop(event.dropped)
        elif len(self._expired) >= MOST_EXPIRED:  # an old journal: a campaign keeps no more, and drops the oldest
            self.drop([number for number, record in self.waiting.items() if record.kind == "expired"])

    def _settle(self, event: journal.Told | journal.Cancelled) -> None:
        self._expired.discard(event.number)
        record = self.waiting.pop(event.number, None)
        if record is not None:
            record.late = record.kind == "expired"
            record.kind = "told" if isinstance(event, journal.Told) else "cancelled"
            record.reward = event.reward if isinstance(event, journal.Told) else None
            record.costs = event.costs
            self.settled[event.number] = record

    def drop(self, numbers: Sequence[int]) -> None:
        """Settle waiting decisions that can no longer be told."""
        for number in numbers:
            if number in self.waiting:
                self.settled[number] = self.waiting.pop(number)
                self.settled[number].kind = "dropped"


def _take_drops(store: Store, name: str, search: _Search, last: int) -> None:
    """Drop expired decisions whose late windows ended, by the events at the ends of these windows."""
    ends = [search.end(number) for number, record in search.waiting.items() if record.kind == "expired"]
    if not ends:
        return
    after = _bisected(
        store, name, last, lambda events: any(event.tick < min(ends) for event in itertools.islice(events, 1))
    )
    for event in itertools.islice(_events(store, name, after), FAR):
        if isinstance(event, journal.Dropped):
            search.drop(event.numbers)


def events_near(store: Store, name: str, number: int, last: int) -> Iterator[Any]:
    """Iterate over the events from shortly before the one that made a decision to the end of the journal.

    Args:
        last: The number of the last event in which to look for it.
    """
    yield from _events(store, name, _before(store, name, number, last))


def _before(store: Store, name: str, number: int, last: int) -> int:
    """The number of an event in an earlier segment, shortly before the one that made the decision."""

    def is_before(events: Iterator[Any]) -> bool:
        found = next((event for event in events if isinstance(event, journal.Asked)), None)
        return found is not None and found.number <= number

    earlier, later = store.around(name, number)
    return _bisected(store, name, last if later is None else min(later, last), is_before, earlier or 0)


def _bisected(store: Store, name: str, last: int, is_before: Callable[[Iterator[Any]], bool], before: int = 0) -> int:
    """Bisect the journal; ``is_before`` says whether the wanted event comes after the first of the given events."""
    base = store.base(name)
    before, after = max(before, 0 if base is None else base.seq), last
    while after - before > NEAR:
        middle = (before + after) // 2
        if is_before(_events(store, name, middle)):
            before = middle
        else:
            after = middle
    return before


def _archived_book(store: Store, name: str, number: int) -> Book | None:
    """The book at the end of the archive; None if nothing was archived, or only earlier decisions were."""
    base = store.base(name)
    if base is None or number > base.number:
        return None
    snapshot = store.snapshot(name, base.seq)
    return None if snapshot is None else read_book(snapshot)


def _events(store: Store, name: str, after: int) -> Iterator[Any]:
    """Iterate over the events of the segments that begin after an event."""
    for segment in store.segments(name, after):
        yield from journal.decode(segment.body)
