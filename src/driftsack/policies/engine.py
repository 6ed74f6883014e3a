"""``Engine``: the arrays that a learner consists of, and the kernels that act on them.

A :class:`~driftsack.Learner` checks what it is given, takes its lock and numbers its decisions. What happens to
budgets, arms, seasons and the policy's state is here, in normalised and grid units.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.checks import LARGEST_OUTCOME, frozen
from driftsack.core.errors import InfeasibleError, OutOfRangeError, SettingError, TooLargeError
from driftsack.core.problem import Problem
from driftsack.game import steps
from driftsack.game.amounts import MOST_UNITS, in_units_of_problem, whole_units
from driftsack.game.desk import FREE, new_desk, with_capacity
from driftsack.game.ledger import Ledger, amounts_of, exponents_of, open_ledger, set_spending
from driftsack.game.protocol import STUCK, find_kernel
from driftsack.game.records import new_terms, set_rate
from driftsack.game.state_growth import grow
from driftsack.game.state_tree import solve_stuck
from driftsack.numerics.pinned import pin
from driftsack.policies.policy import Policy

MOST_AWAITED: Final = 2**22  # decisions without an outcome


@dataclass
class Season:
    """The budgets of a season that is over, for decisions that were made in it."""

    ledger: Ledger
    rollover: float
    settle: Any = None


class Engine:
    """State, ledger, terms, desk and randomness of a learner.

    Args:
        policy: The policy.
        problem: The problem.
        safe: Whether no budget may be overspent.
        rng: The learner's randomness.
        cost_unit: (d,) the costs that are normalised to 1; None for ``cost_max``, from which it differs if arms with
            larger costs were added.
    """

    def __init__(
        self, policy: Policy, problem: Problem, safe: bool, rng: Generator, cost_unit: Floats | None = None
    ) -> None:
        self.policy, self.problem, self.safe, self.rng = policy, problem, safe, rng
        inner = inner_problem(problem, cost_unit)
        self.state = policy.new_state(inner)
        for name in ("choose", "learn"):
            find_kernel(type(self.state), name)  # raises if it does not fit
        self.ledger = open_ledger(inner)
        self.terms = new_terms(inner)
        self.desk = new_desk(inner, inner.arms, ceiling_of(policy))
        self.offered: Bools = np.arange(inner.arms) < problem.arms
        self.worst: Ints = np.full_like(self.terms.worst, -1)
        self._set_worst(range(problem.arms))
        self.past: dict[int, Season] = {}
        self.fallbacks = 0
        self.check_fallback(problem.horizon, self.ledger.granted)
        self.restore_terms()
        self.pin()

    def pin(self) -> None:
        """Pin the kernels to the arrays; after any of them was replaced."""
        fixed = (self.state, self.ledger, self.terms, self.desk)
        self._begin, self._settle = pin(steps.begin, *fixed, self.rng), pin(steps.settle, *fixed)
        for season in self.past.values():
            season.settle = pin(steps.settle, self.state, season.ledger, self.terms, self.desk)

    def restore_terms(self) -> None:
        """Offer every arm that is not retired, at the most that it may cost."""
        self.terms.offered[:] = self.offered
        self.terms.worst[:] = self.worst

    def most_amounts(self, worst: Ints) -> Floats:
        """(m + 1, d) what is reserved for each arm and, last, for ``SKIP``; NaN where that is not known."""
        rows = [amounts_of(self.ledger, np.maximum(column, 0)) for column in worst.T]
        amounts = np.where(worst.T < 0, np.nan, rows)
        return frozen(np.vstack([amounts, np.zeros(worst.shape[0])]))

    # Decisions

    def make_room(self, count: int = 1) -> None:
        """Make sure that there are free slots for some decisions."""
        awaited = self.desk.awaited
        if awaited.left[0] >= count:
            return
        used = awaited.status.size - int(awaited.left[0])
        if used + count > MOST_AWAITED:
            raise TooLargeError(
                f"at most {MOST_AWAITED:,} decisions may wait for an outcome, got {used + count:,}; tell, cancel or "
                "forfeit some of them first."
            )
        capacity = awaited.status.size
        while capacity < used + count:
            capacity *= 2
        self.desk = with_capacity(self.desk, capacity, self.desk.mix.size)
        self.pin()

    def begin(self, at: float, rounds: float) -> int:
        """Begin a round; see :func:`driftsack.game.steps.begin`."""
        if self.desk.awaited.left[0] == 0:
            self.make_room()
        arm: int = self._begin(self.safe, at, rounds)
        if arm == STUCK:
            self._solve()
            arm = self._begin(self.safe, at, rounds)
        return arm

    def _solve(self) -> None:
        """Let HiGHS solve the programs that the simplex method could not."""
        self.fallbacks += solve_stuck(self.state)
        number = int(self.desk.begun[0]) + 1
        warnings.warn(f"the step LP of round {number} was solved by HiGHS.", RuntimeWarning, stacklevel=4)

    def begin_many(self, batch: steps.Batch, first: int, stop: int, at: float, rounds: float) -> int:
        """Begin the rounds of a part of a batch; return how far it is filled, see :mod:`driftsack.game.steps`."""
        fixed, filled = (self.state, self.ledger, self.terms, self.desk, self.rng, batch), first
        while True:
            filled = int(steps.begin_many(*fixed, filled, stop, self.safe, at, rounds))
            if filled == stop or batch.arms[filled] != STUCK:
                return filled
            self._solve()

    def settle(self, slot: int, reward: float, told: bool) -> int:
        """Settle a decision whose costs are in ``desk.given``; see :func:`driftsack.game.steps.settle`."""
        if not self.past or self.desk.awaited.season[slot] == self.desk.season[0]:
            status: int = self._settle(slot, reward, told)
            return status
        status = self._settle_in_past(slot, reward, told)
        self._drop_past()
        return status

    def any_in_past(self, slots: int | Ints) -> bool:
        """Whether decisions belong to an earlier season, so that settling them changes two ledgers."""
        return bool((self.desk.awaited.season[slots] != self.desk.season[0]).any())

    def settle_each(self, slots: Ints, rewards: Floats, costs: Floats) -> None:
        """Settle decisions of several seasons, whose outcomes have been checked."""
        for slot, reward, row in zip(slots.tolist(), rewards.tolist(), costs, strict=True):
            self.desk.given[:] = row
            now = self.desk.awaited.season[slot] == self.desk.season[0]
            (self._settle if now else self._settle_in_past)(slot, reward, True)
        self._drop_past()

    def _settle_in_past(self, slot: int, reward: float, told: bool) -> int:
        """Charge a decision to the season that reserved for it; what becomes free rolls over like the rest did."""
        awaited = self.desk.awaited
        number, reserved = int(awaited.season[slot]), np.maximum(awaited.reserved[slot], 0)
        season = self.past[number]
        before = free_units(season.ledger)
        status: int = season.settle(slot, reward, told)
        if status <= steps.OVERRAN:
            unused = np.clip(free_units(season.ledger) - before, 0, reserved)
            moved = np.minimum(share_of(unused, season.rollover), MOST_UNITS - self.ledger.granted)
            season.ledger.granted[:] -= moved
            self._add(moved)
        return status

    def _drop_past(self) -> None:
        """Forget seasons without decisions that wait for an outcome."""
        awaited = self.desk.awaited
        for number in list(self.past):
            if not ((awaited.season == number) & (awaited.status != FREE)).any():
                del self.past[number]

    def forfeit(self, slot: int) -> None:
        """Charge what was reserved for a decision."""
        number = int(self.desk.awaited.season[slot])
        ledger = self.ledger if number == self.desk.season[0] else self.past[number].ledger
        steps.forfeit(ledger, self.desk, slot)

    def drop(self, slot: int) -> None:
        """Forget a decision that was forfeited."""
        steps.release_slot(self.desk.awaited, slot)
        self._drop_past()

    # Budgets and the horizon

    def units(self, amounts: Floats) -> Ints:
        """(d,) amounts in grid units, rounded down as budgets are."""
        pairs = zip(amounts.tolist(), exponents_of(self.ledger), strict=True)
        return np.array([whole_units(amount, k, up=False) for amount, k in pairs], dtype=np.int64)

    def grant(self, amounts: Floats) -> None:
        """Add to the budgets."""
        self._add(self.units(amounts))
        self.set_rate()

    def _add(self, units: Ints) -> None:
        """Add grid units to the budgets."""
        self._check_sum(self.ledger.granted, units)
        self.ledger.granted[:] += units
        self.ledger.budget[:] = self.ledger.granted / self.ledger.per_cost

    def _check_sum(self, budget: Ints, units: Ints) -> None:
        """Raise if a budget would be larger than a ledger can hold."""
        if (units > MOST_UNITS - budget).any():
            most = amounts_of(self.ledger, np.full(units.size, MOST_UNITS))
            raise OutOfRangeError(f"budgets may grow up to {most}; use smaller amounts, or renew without rollover.")

    def renew(self, amounts: Floats, rollover: float) -> None:
        """Begin a season with new budgets, plus a share of what is left of the old ones."""
        old = self.ledger
        moved = share_of(free_units(old), rollover)
        self._check_sum(self.units(amounts), moved)
        new = old._replace(**{name: getattr(old, name).copy() for name in ("budget", "spent", "granted", "charged")})
        new = new._replace(reserved=np.zeros_like(old.reserved))
        new.granted[:] = self.units(amounts)
        for j in range(new.granted.size):
            set_spending(new, j, 0)
        season = Season(old._replace(granted=old.granted - moved), rollover)
        self.past = {**self.past, int(self.desk.season[0]): season}
        self.ledger = new
        self._add(moved)
        self.desk.season[0] += 1
        self._drop_past()
        self.pin()

    def set_rounds_left(self, rounds: float) -> None:
        """Expect another number of rounds from now on."""
        self.terms.end[0] = self.desk.clock[0] + rounds

    def set_rate(self) -> None:
        """Spread what is left evenly over the rounds that are left."""
        set_rate(self.terms, self.ledger, int(self.desk.clock[0]))

    def check_fallback(self, rounds: int, units: Ints) -> None:
        """Raise if amounts, in grid units, cannot pay for the fallback arm in so many rounds."""
        problem = self.problem
        if problem.fallback is None or not self.safe:
            return
        if not problem.bounded:
            raise SettingError(
                "safe=True with a fallback keeps in reserve what it may cost, which is not known; set cost_max."
            )
        if problem.guessed:
            return
        needed = [worst * rounds for worst in self.terms.fallback_worst.tolist()]
        for j, (most, available) in enumerate(zip(needed, units.tolist(), strict=True)):
            if most <= available:
                continue
            amount, given = (in_units_of_problem(n, exponents_of(self.ledger)[j]) for n in (most, available))
            raise InfeasibleError(
                f"answering {rounds:,} requests by {problem.arm_names[problem.fallback]!r} may cost {amount:g} of "
                f"{problem.resource_names[j]!r}, got a budget of {given:g}; a budget of {amount:g} would do, or a "
                "smaller cost_max of that arm, or fewer rounds."
            )

    # Arms

    def offer(self, arm: int, offered: bool) -> None:
        """Retire an arm or offer it again."""
        self.offered[arm] = offered
        self.restore_terms()

    def add_arm(self, problem: Problem) -> None:
        """Offer one more arm, the last of the new problem, in a free slot or in a larger state."""
        arm = problem.arms - 1
        if problem.arms > self.offered.size:
            self._grow(problem)
        self.problem = problem
        self._set_worst([arm])
        self.offer(arm, offered=True)

    def _set_worst(self, arms: Iterable[int]) -> None:
        """Set the most that arms may cost; what is reserved for them stays unknown if the problem has no maxima."""
        problem = self.problem
        for arm in arms:
            most = problem.cost_max_by_arm[:, arm]
            self.terms.cost_most[:, arm] = most / self.desk.cost_unit
            if problem.bounded:
                pairs = zip(most.tolist(), exponents_of(self.ledger), strict=True)
                self.worst[:, arm] = [whole_units(amount, k, up=True) for amount, k in pairs]
        if problem.fallback is not None:
            self.terms.fallback_worst[:] = np.maximum(self.worst[:, problem.fallback], 0)
        self.most = self.most_amounts(self.worst)

    def _grow(self, problem: Problem) -> None:
        """Make every array larger by one arm."""
        inner = inner_problem(problem, self.desk.cost_unit)
        state = self.policy.new_state(inner)
        grow(state, self.state)
        grown, old = new_terms(inner), self.terms
        count = old.offered.size
        for name in ("offered", "open"):
            getattr(grown, name)[:] = False
            getattr(grown, name)[:count] = getattr(old, name)
        for name in ("cost_most", "worst"):
            getattr(grown, name)[:, :count] = getattr(old, name)
        grown.version[0] = old.version[0] + 1
        self.terms = grown._replace(
            rate=old.rate,
            end=old.end,
            skip_cost=old.skip_cost,
            fallback=old.fallback,
            fallback_worst=old.fallback_worst,
        )
        self.offered = np.append(self.offered, False)
        self.worst = np.column_stack([self.worst, np.full(self.worst.shape[0], -1)])
        self.desk = with_capacity(self.desk, self.desk.awaited.status.size, inner.arms)
        self.state = state
        self.pin()

    # The past

    def teach(self, arms: Ints, probabilities: Floats, rewards: Floats, costs: Floats, contexts: Floats) -> None:
        """Let the policy learn outcomes of the past, oldest first."""
        teach = pin(steps.teach_round, self.state, self.ledger, self.terms, self.desk, self.rng)
        for arm, probability, reward, row, context in zip(
            arms.tolist(), probabilities.tolist(), rewards.tolist(), costs, contexts, strict=True
        ):
            self.desk.given[:] = row
            self.terms.context[:] = context
            if teach(arm, probability, reward) == STUCK:
                self._solve()
                teach(arm, probability, reward)


def free_units(ledger: Ledger) -> Ints:
    """(d,) what is neither spent nor reserved, in grid units; 0 where more was promised than there is."""
    free: Ints = np.maximum(ledger.granted - ledger.charged - ledger.reserved, 0)
    return free


def share_of(units: Ints, share: float) -> Ints:
    """(d,) a share of amounts in grid units, rounded down; exact, since a rounding error would be money."""
    exact = Fraction(repr(float(share)))  # the decimal number that was written, as for amounts
    return np.array([int(exact * amount) for amount in units.tolist()], dtype=np.int64)


def inner_problem(problem: Problem, cost_unit: Floats | None) -> Problem:
    """The problem that the policy's state is made for: one arm for each slot, and costs in the unit of the learner."""
    if problem.slots == problem.arms and problem.arm_cost_max is None and cost_unit is None:
        return problem
    most = problem.cost_max if cost_unit is None else tuple(cost_unit.tolist())
    names = problem.arm_names if problem.slots == problem.arms else None
    changes: dict[str, Any] = {"arms": problem.slots, "arm_names": names, "cost_max": most, "arm_cost_max": None}
    return replace(problem, **changes)


def ceiling_of(policy: Policy) -> float:
    """The largest normalised outcome that a policy may learn from."""
    return 1.0 if policy.bounded else LARGEST_OUTCOME
