"""``LabelAccounts``: what each label has used of one limit.

A million labels fit into little memory, because an account is a row of integers in one array. An account that has ended
counts as if it were not there. Its row is found by a hand that looks at a few rows at a time, so no request waits until
a million rows have been looked at.
"""

from __future__ import annotations

import sys
from array import array
from typing import Final, NamedTuple

import msgspec
import numpy as np

from driftsack.core.arrays import Ints

UNTIL: Final = 0  # columns of a row: the time at which the account ends, in milliseconds since 1970,
OPEN: Final = 1  # the number of its decisions that may still be told,
RAISED: Final = 2  # the thresholds that were crossed, as a mask,
HEAD: Final = 3  # and then, for each resource, the amounts that are reserved, spent and overrun
SMALLEST: Final = 1024  # rows from which the array is made smaller
Saved = tuple[list[str], bytes]


class HeldAccount(msgspec.Struct, array_like=True, frozen=True):
    """An account that a decision is charged to.

    Attributes:
        limit: The number of the limit.
        label: The label of the request.
        until: The time at which the account ends, in milliseconds since 1970.
    """

    limit: int
    label: str
    until: int


class LabelUsage(NamedTuple):
    """How much of a resource the labels of a limit use.

    Attributes:
        labels: The labels that use most, largest first; what is reserved counts as used.
        accounts: The number of labels.
        exhausted: The number of labels that are exhausted.
    """

    labels: list[str]
    accounts: int
    exhausted: int


class LabelAccounts:
    """The accounts of one limit, in grid units of its resources.

    Args:
        resources: The number of resources that are limited.
        idle: Milliseconds without use after which an account ends; 0 if it ends with its period. An account with
            decisions that may still be told does not end by being idle.
    """

    def __init__(self, resources: int, idle: int = 0) -> None:
        self.resources, self.idle = resources, idle
        self.rows = array("q")
        self._width = HEAD + 3 * resources
        self._names: list[str] = []  # by row; empty for a free row
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._hand = 0

    def __len__(self) -> int:
        """The number of accounts in memory, including those that have ended and were not found yet."""
        return len(self._slots)

    def find(self, label: str, at: int) -> int:
        """Return where the row of an account begins; -1 if there is none at this time."""
        slot = self._slots.get(label)
        if slot is None:
            return -1
        row = slot * self._width
        return row if self._is_live(row, at) else -1

    def place(self, held: HeldAccount) -> int:
        """Return where the row of the account of a decision begins; -1 if the account has ended and was replaced."""
        slot = self._slots.get(held.label)
        if slot is None:
            return -1
        row = slot * self._width
        return row if self.idle or self.rows[row + UNTIL] == held.until else -1

    def use(self, label: str, at: int, until: int) -> int:
        """Return where the row of an account begins; it is opened if there is none, until the given time."""
        row = self.find(label, at)
        if row >= 0:
            self.stay(row, until)
            return row
        row = self._slot(label) * self._width
        self.rows[row : row + self._width] = array("q", [until] + [0] * (self._width - 1))
        return row

    def _slot(self, label: str) -> int:
        """Return the row number of a label; a free or new one if it has none."""
        slot = self._slots.get(label)
        if slot is None:
            if self._free:
                slot = self._free.pop()
                self._names[slot] = label
            else:
                slot = len(self._names)
                self._names.append(label)
                self.rows.extend([0] * self._width)
            self._slots[label] = slot
        return slot

    def _is_live(self, row: int, at: int) -> bool:
        return at < self.rows[row + UNTIL] or (self.idle > 0 and self.rows[row + OPEN] > 0)

    def sweep(self, at: int, count: int) -> None:
        """Look at some rows, and free those of accounts that have ended."""
        for _ in range(min(count, len(self._names))):
            if self._hand >= len(self._names):
                self._hand = 0
                self._shrink()
            slot = self._hand
            self._hand += 1
            if slot < len(self._names) and self._names[slot] and not self._is_live(slot * self._width, at):
                self._forget(self._names[slot], slot)

    def _shrink(self) -> None:
        """Give memory back if most rows are free."""
        if len(self._names) >= SMALLEST and 2 * len(self._free) > len(self._names):
            kept = [slot for slot, name in enumerate(self._names) if name]
            table = np.frombuffer(self.rows, np.int64).reshape(-1, self._width)[kept]
            self._set([self._names[slot] for slot in kept], array("q", table.tobytes()))

    def _set(self, names: list[str], rows: array[int]) -> None:
        self._names, self.rows = names, rows
        self._slots = {name: slot for slot, name in enumerate(names) if name}
        self._free = [slot for slot, name in enumerate(names) if not name]
        self._hand = 0

    def stay(self, row: int, until: int) -> None:
        """Let an account end no earlier than at a time."""
        self.rows[row + UNTIL] = max(self.rows[row + UNTIL], until)

    def set_clock(self, before: int, end: int) -> None:
        """Forget the accounts that had ended before the clock was set back; the others end with the present period.

        Args:
            before: The time before.
            end: The end of the present period; 0 for none.
        """
        for label, slot in self._slots.copy().items():
            row = slot * self._width
            if not self._is_live(row, before):
                self._forget(label, slot)
            elif end:
                self.rows[row + UNTIL] = end

    def _forget(self, label: str, slot: int) -> None:
        """Free the row of an account."""
        del self._slots[label]
        self._names[slot] = ""
        self._free.append(slot)

    def count_open(self, row: int, more: int) -> None:
        """Count the decisions of an account that may still be told."""
        self.rows[row + OPEN] += more

    def move(self, row: int, resource: int, reserved: int, spent: int, overrun: int) -> None:
        """Change the amounts of a resource in a row."""
        first = row + HEAD + resource
        self.rows[first] += reserved
        self.rows[first + self.resources] += spent
        self.rows[first + 2 * self.resources] += overrun

    def until(self, row: int) -> int:
        """The time at which an account ends unless it is used again, in milliseconds since 1970."""
        return self.rows[row + UNTIL]

    def raised(self, row: int) -> int:
        """The thresholds that an account has crossed, as a mask."""
        return self.rows[row + RAISED]

    def set_raised(self, row: int, mask: int) -> None:
        """Note thresholds that an account has crossed."""
        self.rows[row + RAISED] |= mask

    # Readings

    def reserved(self, row: int, resource: int) -> int:
        """The reserved amount of a resource in a row."""
        return self.rows[row + HEAD + resource]

    def spent(self, row: int, resource: int) -> int:
        """The spent amount of a resource in a row."""
        return self.rows[row + HEAD + self.resources + resource]

    def overrun(self, row: int, resource: int) -> int:
        """The amount of a resource that was spent above reservations."""
        return self.rows[row + HEAD + 2 * self.resources + resource]

    def live(self, at: int) -> dict[str, tuple[int, ...]]:
        """Return the rows of all accounts at a time, by label."""
        return {
            label: tuple(self.rows[slot * self._width : (slot + 1) * self._width])
            for label, slot in self._slots.items()
            if self._is_live(slot * self._width, at)
        }

    def usage(self, at: int, resource: int, count: int, full: int) -> LabelUsage:
        """Return how much of a resource the labels use.

        Args:
            at: The time.
            resource: The resource, of those that are limited.
            count: The largest number of labels to return.
            full: Labels that use more than this are exhausted.
        """
        table = np.array(self.rows, dtype=np.int64).reshape(-1, self._width)
        live = table[:, UNTIL] > at
        if self.idle:
            live |= table[:, OPEN] > 0
        slots: Ints = np.flatnonzero(live)
        used = table[slots, HEAD + resource] + table[slots, HEAD + self.resources + resource]
        chosen = slots[np.argsort(-used, kind="stable")[:count]]
        return LabelUsage([self._names[slot] for slot in chosen.tolist()], int(slots.size), int((used > full).sum()))

    # Snapshots

    def save(self) -> Saved:
        """Return the accounts for a snapshot."""
        rows = self.rows
        if sys.byteorder == "big":
            rows = array("q", rows)
            rows.byteswap()
        return self._names, rows.tobytes()

    def restore(self, saved: Saved) -> None:
        """Take the accounts of a snapshot.

        Raises:
            ValueError: The rows do not fit the labels.
        """
        names, rows = saved[0], array("q", saved[1])
        if len(rows) != len(names) * self._width:
            raise ValueError(f"the accounts of {len(names)} labels have {len(rows)} numbers.")
        if sys.byteorder == "big":
            rows.byteswap()
        self._set(names, rows)
