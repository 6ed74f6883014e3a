"""``Book``: all that a campaign remembers besides its learner, in a form that snapshots keep."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from driftsack.game.amounts import MOST_UNITS
from driftsack.policies.engine import share_of
from driftsack.service.journal import Delta

REMEMBERED: Final = 4096
"""Settled decisions, and other writes, of which a repetition is recognised."""
FORGOTTEN: Final = 1024
"""How many of them are forgotten at once."""


class Account(msgspec.Struct, array_like=True):
    """The budgets of one season, in grid units of each resource.

    Attributes:
        granted: (d,) the budgets.
        reserved: (d,) reservations of pending decisions.
        spent: (d,) the spending.
        overrun: (d,) what was spent beyond reservations.
        rollover: The share of what is left that went to the next season.
    """

    granted: list[int]
    reserved: list[int]
    spent: list[int]
    overrun: list[int]
    rollover: float = 0.0

    def copy(self) -> Account:
        """The same amounts in other lists."""
        return Account([*self.granted], [*self.reserved], [*self.spent], [*self.overrun], self.rollover)

    def free(self, resource: int) -> int:
        """What may still be reserved of a resource."""
        return self.granted[resource] - self.spent[resource] - self.reserved[resource]


class Record(msgspec.Struct, array_like=True):
    """A decision.

    Attributes:
        arm: The arm, or -1 for a skipped request.
        probability: The probability of the arm.
        reserved: (d,) what was reserved for it, in grid units.
        until: The tick at which its lease ends.
        lease: The length of its lease, in seconds.
        season: The season that it belongs to.
        round: The learner's round.
        key: The idempotency key of its request.
        kind: What became of it.
        late: Whether its outcome arrived after its lease had ended.
        reward: What it earned.
        costs: (d,) what it cost, if that is known.
    """

    arm: int
    probability: float
    reserved: list[int]
    until: int
    lease: int
    season: int
    round: int
    key: str
    kind: str = "pending"
    late: bool = False
    reward: float | None = None
    costs: list[float] = []


class Write(msgspec.Struct, array_like=True):
    """The answer to a write with an idempotency key.

    Attributes:
        digest: The digest of its body.
        answer: The answer, encoded; empty for a decision, and for its outcome.
        number: The decision that was asked for, or whose outcome was told; 0 for other writes.
        told: Whether the outcome of the decision was told, or the decision cancelled.
    """

    digest: bytes
    answer: bytes = b""
    number: int = 0
    told: bool = False


class Seen(msgspec.Struct, array_like=True):
    """What the user's own rule did in one request.

    Attributes:
        arm: The arm that it chose.
        reward: What that earned.
        costs: (d,) what it cost.
        probability: With which probability the arm was chosen; None if that is not known.
        at: When, in milliseconds since 1970.
    """

    arm: int
    reward: float
    costs: list[float]
    probability: float | None
    at: int


class Book(msgspec.Struct, eq=False):
    """What a campaign remembers.

    Books are equal if they say the same of decisions and budgets. Which repetitions they recognise may differ, because
    snapshots of earlier releases know fewer keys.

    Attributes:
        state: ``watching``, ``active``, ``paused``, ``draining`` or ``closed``.
        seq: The number of events.
        number: The number of decisions.
        at: The time of the latest event, in milliseconds.
        tick: The tick of the latest event.
        season: The present season.
        following: When the next season begins, in milliseconds; None for never.
        accounts: The budgets of each season that is not over or still has decisions that may be told.
        open: Decisions that are pending or expired, by number, oldest first.
        settled: The latest settled decisions, by number.
        keys: Writes by idempotency key.
        writes: The keys of frequent writes other than decisions and their outcomes, oldest first.
        changes: The keys of grants and other changes by operators, which are rare, oldest first.
        tellers: The keys of outcomes and cancellations, by decision; they are remembered as long as the decision.
        retired: The arms that are not offered.
        pending: The number of pending decisions.
        told: The number of outcomes.
        expired: The number of decisions that expired.
        overruns: The number of decisions that cost more than was reserved.
        divergences: Decisions that a replay would have made otherwise.
        reward: The sum of rewards.
        observed: The number of observations.
        unlearnt: The latest observations, which were not learnt yet.
    """

    accounts: dict[int, Account]
    state: str = "active"
    seq: int = 0
    number: int = 0
    at: int = 0
    tick: int = 0
    season: int = 0
    following: int | None = None
    open: dict[int, Record] = {}
    settled: dict[int, Record] = {}
    keys: dict[str, Write] = {}
    writes: list[str] = []
    retired: list[int] = []
    pending: int = 0
    told: int = 0
    expired: int = 0
    overruns: int = 0
    divergences: int = 0
    reward: float = 0.0
    observed: int = 0
    unlearnt: list[Seen] = []
    tellers: dict[int, str] = {}
    changes: list[str] = []

    def __eq__(self, other: object) -> bool:
        """Whether another book says the same of decisions and budgets."""
        if not isinstance(other, Book):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in COMPARED)

    __hash__ = None  # type: ignore[assignment]

    @property
    def account(self) -> Account:
        """The budgets of the present season."""
        return self.accounts[self.season]

    def reserve(self, units: list[int]) -> None:
        """Reserve for a decision of the present season."""
        reserved = self.account.reserved
        for j, amount in enumerate(units):
            reserved[j] += amount

    def charge(self, record: Record, units: list[int]) -> bool:
        """Replace what was reserved for a decision, or charged when it expired, by what it cost.

        Args:
            record: The decision.
            units: (d,) its costs in grid units.

        Returns:
            Whether it cost more than was reserved.
        """
        account, overran = self.accounts[record.season], False
        before = [account.free(j) for j in range(len(units))] if record.season != self.season else None
        for j, (kept, cost) in enumerate(zip(record.reserved, units, strict=True)):
            if record.kind == "pending":
                account.reserved[j] -= kept
            else:
                account.spent[j] -= kept
            account.spent[j] += cost
            if cost > kept:
                overran = True
                account.overrun[j] += cost - kept
        if before is not None:
            self._roll_over(account, record, before)
        return overran

    def _roll_over(self, past: Account, record: Record, before: list[int]) -> None:
        """Move what became free when a decision of a past season was settled, at that season's share."""
        gained = [max(past.free(j), 0) - max(free, 0) for j, free in enumerate(before)]
        pairs = zip(record.reserved, gained, strict=True)
        unused = np.array([min(max(amount, 0), kept) for kept, amount in pairs], dtype=np.int64)
        for j, share in enumerate(share_of(unused, past.rollover).tolist()):
            moved = min(share, MOST_UNITS - self.account.granted[j])
            past.granted[j] -= moved
            self.account.granted[j] += moved

    def forfeit(self, record: Record) -> None:
        """Charge what was reserved for a pending decision."""
        account = self.accounts[record.season]
        for j, kept in enumerate(record.reserved):
            account.reserved[j] -= kept
            account.spent[j] += kept

    def begin_season(self, budget: list[int], rollover: float) -> None:
        """Open the budgets of a new season."""
        old = self.account
        free = np.array([max(old.free(j), 0) for j in range(len(budget))], dtype=np.int64)
        moved = share_of(free, rollover).tolist()
        old.granted = [granted - amount for granted, amount in zip(old.granted, moved, strict=True)]
        old.rollover = rollover
        zeros = [0] * len(budget)
        granted = [amount + more for amount, more in zip(budget, moved, strict=True)]
        self.season += 1
        self.accounts[self.season] = Account(granted, [*zeros], [*zeros], [*zeros])

    def forget_seasons(self) -> None:
        """Drop the budgets of past seasons without decisions that may still be told."""
        if len(self.accounts) > 1:
            used = {record.season for record in self.open.values()} | {self.season}
            self.accounts = {season: account for season, account in self.accounts.items() if season in used}

    def settle(self, number: int, record: Record) -> None:
        """Move a decision to those that are settled."""
        self.open.pop(number, None)
        self.settled[number] = record
        if len(self.settled) >= REMEMBERED + FORGOTTEN:
            for oldest in list(self.settled)[:FORGOTTEN]:  # many at once: the first entry of a dict is slow to find
                self.keys.pop(self.settled.pop(oldest).key, None)
                self.keys.pop(self.tellers.pop(oldest, ""), None)

    def remember(self, key: str, write: Write, frequent: bool = True) -> None:
        """Remember the answer to a write; frequent ones do not displace others."""
        if not key:
            return
        self.keys[key] = write
        if write.told:
            self.tellers[write.number] = key
        elif not write.number:
            kept = self.writes if frequent else self.changes
            kept.append(key)
            if len(kept) >= REMEMBERED + FORGOTTEN:
                for oldest in kept[:FORGOTTEN]:
                    self.keys.pop(oldest, None)
                del kept[:FORGOTTEN]


COMPARED: Final = tuple(name for name in Book.__struct_fields__ if name not in ("keys", "writes", "changes", "tellers"))


def deltas(before: dict[int, Account], after: dict[int, Account]) -> tuple[Delta, ...]:
    """By how much budgets moved.

    Args:
        before: The accounts as they were committed.
        after: The accounts now.

    Returns:
        The changes, without those that are zero.
    """
    found = []
    for season, account in after.items():
        old = before.get(season)
        for j in range(len(account.granted)):
            now = (account.granted[j], account.reserved[j], account.spent[j], account.overrun[j])
            if old is None:
                found.append(Delta(season, j, True, *now))
                continue
            was = (old.granted[j], old.reserved[j], old.spent[j], old.overrun[j])
            if now != was:
                moved = tuple(new - past for new, past in zip(now, was, strict=True))
                found.append(Delta(season, j, False, *moved))
    return tuple(found)
