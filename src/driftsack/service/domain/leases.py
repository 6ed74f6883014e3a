"""``Leases``: when the leases of decisions and the late windows after them end."""

from __future__ import annotations

import heapq
from typing import Final

from driftsack.service.domain.book import Book, Record
from driftsack.service.domain.calendar import SECOND

KEPT_ENDS: Final = 1_000  # ends of settled decisions that may stay in the queue


class Leases:
    """A queue of the ends of leases and late windows.

    A decision that is settled or extended leaves its old end in the queue, where it is recognised and skipped.

    Args:
        book: The book with the open decisions.
        late: Seconds after the end of its lease during which an outcome is still accepted.
    """

    def __init__(self, book: Book, late: int) -> None:
        self._book, self._late = book, late * SECOND
        self.rebuild()

    def rebuild(self) -> None:
        """Build the queue from the open decisions."""
        self._ends = [(self.end(record), number) for number, record in self._book.open.items()]
        heapq.heapify(self._ends)

    def end(self, record: Record) -> int:
        """The tick at which a decision expires, or can no longer be told."""
        return record.until if record.kind == "pending" else record.until + self._late

    def next_end(self) -> int | None:
        """The tick at which the next lease or late window ends; None if there is none."""
        return self._ends[0][0] if self._ends else None

    def add(self, number: int, record: Record) -> None:
        """Note when a decision ends; the queue is rebuilt when most of it is out of date."""
        heapq.heappush(self._ends, (self.end(record), number))
        if len(self._ends) > 2 * len(self._book.open) + KEPT_ENDS:
            self.rebuild()

    def take_ended(self, tick: int, most: int) -> tuple[list[int], list[int]]:
        """Remove ends that have passed from the queue.

        Args:
            most: The largest number of decisions to return.

        Returns:
            The decisions whose lease has ended, and those whose late window has.
        """
        expired: list[int] = []
        dropped: list[int] = []
        while self._ends and self._ends[0][0] <= tick and len(expired) + len(dropped) < most:
            end, number = heapq.heappop(self._ends)
            if self._ends and self._ends[0] == (end, number):  # extended to the same end again
                continue
            record = self._book.open.get(number)
            if record is not None and self.end(record) == end:
                (expired if record.kind == "pending" else dropped).append(number)
        return expired, dropped
