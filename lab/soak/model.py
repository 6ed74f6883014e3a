"""The reference model of a learner: its accounts, arms and rounds, and their comparison with the learner."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.decision import SKIP, Decision, Decisions
from driftsack.core.errors import BudgetExhaustedError, DriftsackError, HorizonReachedError
from driftsack.policies.learner import Learner
from driftsack.policies.uniform_random import UniformRandom
from lab.soak.accounts import Accounts, Units
from lab.soak.worlds import World


class Finding(Exception):  # noqa: N818  (it is not an error of this program)
    """A violation by a learner."""


@dataclass
class SoakCounts:
    """Counts of operations and events, and the findings."""

    kinds: Counter[str] = field(default_factory=Counter)  # operations by kind
    events: Counter[str] = field(default_factory=Counter)  # that happened meanwhile
    errors: Counter[str] = field(default_factory=Counter)  # expected errors by class
    policies: Counter[str] = field(default_factory=Counter)  # learners by policy
    findings: list[str] = field(default_factory=list)

    @property
    def operations(self) -> int:
        """The number of operations."""
        return self.kinds.total()

    def add(self, other: SoakCounts) -> None:
        """Add another tally to this one."""
        for mine, more in zip(
            (self.kinds, self.events, self.errors, self.policies),
            (other.kinds, other.events, other.errors, other.policies),
            strict=True,
        ):
            mine.update(more)
        self.findings += other.findings


@dataclass
class Held:
    """Unsettled decisions of one request."""

    decisions: Decision | Decisions
    arms: Ints  # (n,)
    rounds: Ints  # (n,)
    reserved: Ints  # (n, d) in grid units
    known: Bools  # (d,) whether something was reserved
    season: int
    at: float = math.nan
    forfeited: bool = False

    def part(self, rows: npt.NDArray[Any]) -> Held:
        """Select some of the decisions."""
        assert isinstance(self.decisions, Decisions)
        chosen = self.decisions[rows]
        return Held(chosen, self.arms[rows], self.rounds[rows], self.reserved[rows], self.known, self.season, self.at)


@dataclass
class Arm:
    """An arm of the model."""

    name: str
    cost_max: list[float]
    worst: Units
    offered: bool = True


SAFE_PROMISE: Final = "spending and reservations exceed a budget although no cost exceeded its reservation"


class Model:
    """The state that a learner in some world must have."""

    def __init__(self, world: World) -> None:
        self.world, problem = world, world.problem
        self.bounded, self.safe, self.fallback = problem.bounded, world.safe, problem.fallback
        self.accounts = Accounts(problem.budget, problem.cost_max if problem.bounded else None)
        self.arms = [
            Arm(name, column.tolist(), self.accounts.units(column.tolist(), up=True))
            for name, column in zip(problem.arm_names, problem.cost_max_by_arm.T, strict=True)
        ]
        self.begun = 0
        self.last = problem.horizon if problem.period is None else None
        self.settled = 0
        self.overruns, self.excess = 0, [0] * problem.resources
        self.held: list[Held] = []

    # Expected behaviour

    def reservations(self, caps: Floats | None) -> tuple[Ints, Bools]:
        """(m + 1, d) the reservation for each arm, the last row for SKIP, and (d,) whether it is known."""
        d = len(self.excess)
        worst = np.array([arm.worst if self.bounded else [0] * d for arm in self.arms], dtype=np.int64)
        known = np.full(d, self.bounded)
        if caps is not None:
            limits = np.array(self.accounts.units(np.where(np.isnan(caps), 0.0, caps), up=True))
            given = ~np.isnan(caps)
            worst = np.where(given, np.minimum(worst, limits) if self.bounded else limits, worst)
            known = known | given
        return np.vstack([worst, np.zeros((1, d), dtype=np.int64)]), known

    def refusal(self) -> type[DriftsackError] | None:
        """The error that a new round must raise, or None if it can begin."""
        if self.last is not None and self.begun >= self.last:
            return HorizonReachedError
        books = self.accounts.now
        if any(spent > limit for spent, limit in zip(books.charged, books.granted, strict=True)):
            return BudgetExhaustedError
        return None

    def fits(self, worst: Ints, rounds_after: int, room: Units) -> bool:
        """Whether a safe learner may open an arm."""
        later = [0] * len(room)
        if self.fallback is not None:
            later = self.arms[self.fallback].worst
        return all(int(cost) + rounds_after * more <= left for cost, more, left in zip(worst, later, room, strict=True))

    def lacks_for_fallback(self, rounds: int, room: Units) -> bool:
        """Whether a safe learner could not pay for the fallback arm in so many rounds."""
        if self.fallback is None or not self.safe:
            return False
        return any(rounds * cost > left for cost, left in zip(self.arms[self.fallback].worst, room, strict=True))

    def pending(self, arms: int) -> list[float]:
        """(arms,) the decisions of the present season for each arm that are neither settled nor forfeited."""
        counts = np.zeros(arms)
        for held in self.held:
            if held.season == self.accounts.number and not held.forfeited:
                np.add.at(counts, held.arms[held.arms != SKIP], 1.0)
        return [float(count) for count in counts]

    # Updates

    def begin(self, held: Held) -> None:
        """Record decisions."""
        self.begun += len(held.arms)
        self.accounts.reserve(total(held.reserved))
        if (held.arms != SKIP).any():
            self.held.append(held)

    def settle(self, held: Held, costs: Ints) -> None:
        """Record the costs (n, d) of decisions in grid units; rows of skipped rounds are 0."""
        if held.season == self.accounts.number and not held.forfeited:
            self.accounts.settle(held.season, total(held.reserved), total(costs))
        else:
            for kept, cost in zip(held.reserved.tolist(), costs.tolist(), strict=True):
                self.accounts.settle(held.season, kept, cost, held.forfeited)
        beyond = np.maximum(costs - held.reserved, 0) * held.known
        found = int(beyond.any(axis=1).sum())
        self.overruns += found
        self.excess = [mine + more for mine, more in zip(self.excess, total(beyond), strict=True)]
        self.accounts.seasons[held.season].overran |= found > 0 or not held.known.all()
        self.settled += int((held.arms != SKIP).sum())

    # Comparison

    def check(self, learner: Learner) -> None:
        """Raise a finding unless the learner has exactly the amounts of the model and, if safe, keeps its promise."""
        accounts, books = self.accounts, self.accounts.now
        left = [limit - spent for limit, spent in zip(books.granted, books.charged, strict=True)]
        for name, units in (("budget", books.granted), ("remaining", left), ("reserved", books.reserved)):
            expect(name, getattr(learner, name).tolist(), accounts.amounts(units))
        overruns = learner.overruns
        expect("overruns", overruns.decisions, self.overruns)
        expect("the excess of overruns", overruns.excess.tolist(), accounts.amounts(self.excess))
        expect("round", learner.round, self.begun)
        expect("done", learner.done, self.refusal() is not None)
        if self.safe and not all(season.overran or season.balanced() for season in accounts.seasons):
            raise Finding(f"{SAFE_PROMISE}: {books}")

    def check_choice(self, held: Held, offered: Bools, table: Ints, rounds_left: float, mix: Floats) -> None:
        """Raise a finding if the last decision of a request chose a closed arm, or skipped needlessly."""
        arm, kept = int(held.arms[-1]), held.reserved[-1].tolist()
        room = [left + own for left, own in zip(self.accounts.room(), kept, strict=True)]
        after = math.ceil(rounds_left) if self.last is None else max(self.last - self.begun, 0)
        may = [
            bool(offered[i]) and (not self.safe or self.fits(table[i], 0 if i == self.fallback else after, room))
            for i in range(len(self.arms))
        ]
        if any(mix[i] > 0.0 and not may[i] for i in range(len(may))):
            raise Finding(f"closed arms have probabilities: {mix}, open {may}, room {room}")
        if arm != SKIP and not may[arm]:
            raise Finding(f"arm {arm} was chosen, which must be closed: room {room}, reserved {kept}")
        served = self.fallback is not None and may[self.fallback]
        if arm == SKIP and (served or (isinstance(self.world.policy, UniformRandom) and any(may))):
            raise Finding(f"a round was skipped although arms {may} are open")


def total(rows: Ints) -> Units:
    """(d,) the sums of the columns."""
    sums: Units = rows.sum(axis=0).tolist()
    return sums


def expect(what: str, got: Any, expected: Any) -> None:
    """Raise a finding unless two values are equal."""
    if got != expected:
        raise Finding(f"{what} must be {expected}, got {got}")
