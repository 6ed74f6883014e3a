"""``Book``: everything that a campaign remembers besides its learner, in the form that snapshots keep."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from driftsack.game.amounts import MOST_UNITS, share_of
from driftsack.service.domain.accounts import HeldAccount
from driftsack.service.domain.journal import Delta

MOST_CACHED: Final = 4096
"""Settled decisions, and other writes of each kind, in the idempotency cache."""
EVICTED_AT_ONCE: Final = 1024
"""Entries above this number that are evicted together."""


class Account(msgspec.Struct, array_like=True):
    """The budgets of one season, in grid units of each resource.

    Attributes:
        granted: (d,) the budgets.
        reserved: (d,) the reservations of pending decisions.
        spent: (d,) the spending.
        overrun: (d,) the spending above reservations, and the reservations in excess of the budget for requests that
            must be served; the database refuses everything above it.
        rollover: The share of the free budget that was moved to the next season.
    """

    granted: list[int]
    reserved: list[int]
    spent: list[int]
    overrun: list[int]
    rollover: float = 0.0

    def copy(self) -> Account:
        """Return a copy with lists of its own."""
        return Account([*self.granted], [*self.reserved], [*self.spent], [*self.overrun], self.rollover)

    def free(self, resource: int) -> int:
        """The part of a budget that is neither spent nor reserved."""
        return self.granted[resource] - self.spent[resource] - self.reserved[resource]


class Record(msgspec.Struct, array_like=True, eq=False):
    """A decision. The time is not compared, because snapshots of earlier releases do not have it.

    Attributes:
        arm: The number of the arm; -1 for a skipped request.
        reserved: (d,) the reservation in grid units.
        until: The tick at which the lease ends.
        lease: The length of the lease in seconds.
        season: The season that pays for the decision.
        round: The learner's round.
        key: The idempotency key of the request.
        kind: ``pending``, ``expired``, ``told``, ``cancelled``, ``dropped`` or ``skipped``.
        late: Whether the outcome arrived after the lease had ended.
        reward: The reward, if it was told.
        costs: (d,) the costs, if they are known.
        billed: Whether the costs were told, and charged, before the reward.
        token: The secret that settles the decision; empty if it was made by a release without tokens.
        refused: Whether an outcome was refused as absurd.
        at: The time of the decision, in milliseconds since 1970; 0 if it was made by a release that did not keep it.
        held: The accounts of limits that the decision is charged to.
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
    billed: bool = False
    token: str = ""
    refused: bool = False
    at: int = 0
    held: list[HeldAccount] = []

    def __eq__(self, other: object) -> bool:
        """Whether another record says the same about a decision."""
        if not isinstance(other, Record):
            return NotImplemented
        mine, others = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return mine[:TIME] == others[:TIME] and self.held == other.held

    __hash__ = None  # type: ignore[assignment]


TIME: Final = Record.__struct_fields__.index("at")
"""The place of the time among the fields of a record."""


class Write(msgspec.Struct, array_like=True):
    """An entry of the idempotency cache.

    Attributes:
        answer: The encoded answer; empty for a decision or its outcome, whose answers follow from the record.
        number: The decision that was asked for, told or cancelled; 0 for other writes.
        told: Whether the decision was told or cancelled.
    """

    digest: bytes
    answer: bytes = b""
    number: int = 0
    told: bool = False


class Observation(msgspec.Struct, array_like=True):
    """One choice of the user's own rule and its outcome.

    Attributes:
        costs: (d,) the costs.
        probability: The probability with which the rule chose the arm; None if it is not known.
        at: The time in milliseconds since 1970.
        context: The encoded features of the request; None without features.
    """

    arm: int
    reward: float
    costs: list[float]
    probability: float | None
    at: int
    context: bytes | None = None


class Book(msgspec.Struct, eq=False):
    """Everything that a campaign remembers besides its learner.

    Books are equal if their decisions and budgets are. The idempotency cache is not compared, because snapshots of
    earlier releases have fewer keys.

    Attributes:
        state: ``watching``, ``active``, ``paused``, ``draining`` or ``closed``.
        seq: The number of events.
        number: The number of decisions.
        at: The time of the latest event, in milliseconds since 1970.
        tick: The tick of the latest event.
        season: The current season, from 0.
        following: The time at which the next season begins, in milliseconds since 1970; None for never.
        accounts: The budgets by season; past seasons are kept while they have decisions that may still be told.
        open: Pending and expired decisions by number, oldest first.
        settled: The latest settled decisions by number.
        keys: The idempotency cache.
        writes: Keys of frequent writes other than decisions and outcomes, oldest first.
        changes: Keys of grants and other changes by operators, which are rare, oldest first.
        tellers: Keys of outcomes and cancellations by decision; they are kept as long as the decision.
        retired: The numbers of the retired arms.
        pending: The number of pending decisions.
        told: The number of outcomes.
        expired: The number of decisions that have expired, including those that were told later.
        overruns: The number of decisions that cost more than was reserved.
        refused: The number of decisions with an outcome that was refused as absurd.
        divergences: The number of decisions that came out differently in a replay.
        observed: The number of observations.
        unlearnt: The latest observations, from which the learner has not learnt yet.
        format: The format of the journal so far; see ``journal.FORMAT``.
        raised: The thresholds that the budgets of the current season have crossed, as a mask.
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
    unlearnt: list[Observation] = []
    tellers: dict[int, str] = {}
    changes: list[str] = []
    format: int = 0
    refused: int = 0
    raised: int = 0

    def __eq__(self, other: object) -> bool:
        """Whether another book has the same decisions and budgets."""
        if not isinstance(other, Book):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in COMPARED)

    __hash__ = None  # type: ignore[assignment]

    @property
    def account(self) -> Account:
        """The budgets of the current season."""
        return self.accounts[self.season]

    def reserve(self, units: list[int]) -> None:
        """Reserve amounts in the current season; the part that exceeds a budget, for a must, counts as overrun."""
        account = self.account
        for j, amount in enumerate(units):
            account.reserved[j] += amount
            account.overrun[j] += max(-account.free(j) - account.overrun[j], 0)

    def charge(self, record: Record, units: list[int]) -> bool:
        """Replace the reservation of a decision, or its charge if it expired, by its costs in grid units.

        Returns:
            Whether it cost more than was reserved.
        """
        account = self.accounts[record.season]
        before = [account.free(j) for j in range(len(units))] if record.season != self.season else None
        for j, (kept, cost) in enumerate(zip(record.reserved, units, strict=True)):
            if record.kind == "pending":
                account.reserved[j] -= kept
            else:
                account.spent[j] -= kept
            account.spent[j] += cost
            account.overrun[j] += max(cost - kept, 0)
        if before is not None:
            self._roll_over(account, record, before)
        return is_overrun(record.reserved, units)

    def _roll_over(self, past: Account, record: Record, before: list[int]) -> None:
        """Move the rollover share of the amounts that a decision of a past season released to the current season."""
        gained = [max(past.free(j), 0) - max(free, 0) for j, free in enumerate(before)]
        pairs = zip(record.reserved, gained, strict=True)
        unused = np.array([min(max(amount, 0), kept) for kept, amount in pairs], dtype=np.int64)
        for j, share in enumerate(share_of(unused, past.rollover).tolist()):
            moved = min(share, MOST_UNITS - self.account.granted[j])
            past.granted[j] -= moved
            self.account.granted[j] += moved

    def forfeit(self, record: Record) -> None:
        """Charge the reservation of a pending decision, unless its costs were charged."""
        account = self.accounts[record.season]
        for j, kept in enumerate([] if record.billed else record.reserved):
            account.reserved[j] -= kept
            account.spent[j] += kept

    def spend(self, units: list[int]) -> None:
        """Charge amounts to the current season; the part that exceeds the free budget is an overrun."""
        account = self.account
        for j, amount in enumerate(units):
            account.overrun[j] += max(amount - max(account.free(j), 0), 0)
            account.spent[j] += amount

    def begin_season(self, budget: list[int], rollover: float) -> None:
        """Open the budgets of a new season, with a share of the free budgets of the current one."""
        old = self.account
        free = np.array([max(old.free(j), 0) for j in range(len(budget))], dtype=np.int64)
        moved = share_of(free, rollover).tolist()
        old.granted = [granted - amount for granted, amount in zip(old.granted, moved, strict=True)]
        old.rollover = rollover
        zeros = [0] * len(budget)
        granted = [amount + more for amount, more in zip(budget, moved, strict=True)]
        self.season += 1
        self.raised = 0
        self.accounts[self.season] = Account(granted, [*zeros], [*zeros], [*zeros])

    def forget_seasons(self) -> None:
        """Remove past seasons without decisions that may still be told."""
        if len(self.accounts) > 1:
            used = {record.season for record in self.open.values()} | {self.season}
            self.accounts = {season: account for season, account in self.accounts.items() if season in used}

    def settle(self, number: int, record: Record) -> None:
        """Move a decision to the settled ones, and evict the oldest of these."""
        self.open.pop(number, None)
        self.settled[number] = record
        if len(self.settled) >= MOST_CACHED + EVICTED_AT_ONCE:
            for oldest in list(self.settled)[:EVICTED_AT_ONCE]:  # together: finding the first entry of a dict is slow
                self.keys.pop(self.settled.pop(oldest).key, None)
                self.keys.pop(self.tellers.pop(oldest, ""), None)

    def remember(self, key: str, write: Write, frequent: bool = True) -> None:
        """Add a write to the idempotency cache; frequent writes do not evict rare ones."""
        if not key:
            return
        self.keys[key] = write
        if write.told:
            self.tellers[write.number] = key
        elif not write.number:
            kept = self.writes if frequent else self.changes
            kept.append(key)
            if len(kept) >= MOST_CACHED + EVICTED_AT_ONCE:
                for oldest in kept[:EVICTED_AT_ONCE]:
                    self.keys.pop(oldest, None)
                del kept[:EVICTED_AT_ONCE]


def is_overrun(reserved: list[int], units: list[int]) -> bool:
    """Whether costs exceed what was reserved for a decision; both in grid units."""
    return any(cost > kept for kept, cost in zip(reserved, units, strict=True))


COMPARED: Final = tuple(name for name in Book.__struct_fields__ if name not in ("keys", "writes", "changes", "tellers"))


def deltas(before: dict[int, Account], after: dict[int, Account]) -> tuple[Delta, ...]:
    """Return the changes of budgets since the accounts were last committed, without those that are zero."""
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
