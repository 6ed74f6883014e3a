"""``LearnerEngine``: the arrays of a learner, and the kernels that act on them.

A :class:`~driftsack.Learner` validates its arguments and takes its lock. The engine changes budgets, arms, seasons and
the policy's state, in normalised and grid units. No other part of a learner accesses the table of its decisions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.checks import LARGEST_OUTCOME, STATISTICAL, Safe, frozen
from driftsack.core.decision import read_only
from driftsack.core.errors import (
    InfeasibleError,
    OutOfRangeError,
    SettingError,
    TooLargeError,
)
from driftsack.core.problem import Problem
from driftsack.game import steps
from driftsack.game.amounts import MOST_UNITS, in_units_of_problem, share_of, whole_units
from driftsack.game.desk import FORFEITED, FREE, PENDING, new_desk, with_capacity
from driftsack.game.expected_costs import held_units
from driftsack.game.ledger import (
    Ledger,
    add_cost,
    amounts_of,
    budget_units,
    exponents_of,
    is_broken,
    open_ledger,
    set_spending,
)
from driftsack.game.listed_costs import LARGEST_FACTOR, UNLISTED, ListedCosts
from driftsack.game.protocol import STUCK, find_kernel, refuse_redefined
from driftsack.game.records import new_terms, set_rate
from driftsack.game.state_growth import grow
from driftsack.game.state_tree import solve_stuck
from driftsack.policies.learner.kernels import LearnerKernels
from driftsack.policies.learner.missing import new_usual_values, note_values
from driftsack.policies.policy import Policy

MOST_AWAITED: Final = 2**22  # decisions without an outcome
MOST_FORFEITED: Final = 10_000  # forfeited decisions that may still be told


@dataclass
class PastSeason:
    """The budgets of an earlier season, to which its pending decisions are charged."""

    ledger: Ledger
    rollover: float
    settle: Any = None
    pay: Any = None


class AwaitedDecision(NamedTuple):
    """A decision that is not settled."""

    number: int  # of its round
    arm: int
    epoch: int
    mix: Floats  # (m,)
    prices: Floats  # (d,) normalised
    reserved: Floats  # (d,) in the problem's units; NaN where the maximum cost is not known
    context: Floats  # (n,)
    must: bool


class SettledDecision(NamedTuple):
    """A decision that was told or cancelled."""

    epoch: int
    kind: int  # TOLD or CANCELLED
    outcome: Floats  # (1 + d,) reward and costs, in the problem's units


class LearnerEngine:
    """State, ledger, terms, desk and randomness of a learner.

    Args:
        safe: Whether no budget may be overspent, and how much pending decisions reserve.
        rng: The learner's random generator.
        cost_unit: (d,) the costs that are normalised to 1; None for ``cost_max``, from which it differs if arms with
            larger costs were added.
    """

    def __init__(
        self, policy: Policy, problem: Problem, safe: Safe, rng: Generator, cost_unit: Floats | None = None
    ) -> None:
        policy.refuse_floors(problem)
        self.policy, self.problem, self.safe, self.rng = policy, problem, safe, rng
        self.admits = bool(safe)  # whether budgets close arms, for the kernels
        inner = inner_problem(problem, cost_unit)
        self.state = policy.new_state(inner)
        for name in ("choose", "learn"):
            find_kernel(type(self.state), name)  # raises if it does not fit
        refuse_redefined(self.state)
        self.ledger = open_ledger(inner)
        self.terms = new_terms(inner)
        self.terms.costs.on[0] = safe == STATISTICAL
        self.desk = new_desk(inner, inner.arms, ceiling_of(policy))
        self.offered: Bools = np.arange(inner.arms) < problem.arms
        self.worst: Ints = np.full_like(self.terms.worst, -1)
        self._set_worst(range(problem.arms))
        self.cost_limit: list[float] = problem.cost_limit.tolist()
        self.past: dict[int, PastSeason] = {}
        self.usual = new_usual_values(problem)
        self.lp_rescues = 0
        self.altered = False  # whether the terms are those of a single request
        # Whether a request needs no time, no context and no caps.
        self.plain = problem.period is None and not problem.features and (problem.bounded or not safe)
        self.check_fallback(problem.horizon, self.ledger.granted)
        self.restore_terms()
        self.kernels = LearnerKernels(self.state, self.pin)
        self.pin()

    def pin(self) -> None:
        """Pin the kernels to the arrays; necessary whenever an array was replaced."""
        fixed = (self.state, self.ledger, self.terms, self.desk)
        self._begin, self._settle, self._pay = self.kernels.pin(fixed, self.rng)
        for season in self.past.values():
            past = (self.state, season.ledger, self.terms, self.desk)
            season.settle, season.pay = self.kernels.pin_settlement(past)

    def restore_terms(self) -> None:
        """Offer every arm that is not retired, at its maximum cost."""
        self.terms.offered[:] = self.offered
        self.terms.worst[:] = self.worst
        self.terms.must[0] = False
        self.terms.prices.given[0] = False
        self.terms.prices.listed[:] = UNLISTED
        self.altered = False

    def most_amounts(self, worst: Ints) -> Floats:
        """(m + 1, d) the reservation for each arm and, last, for ``SKIP``; NaN where the maximum cost is unknown."""
        rows = [amounts_of(self.ledger, np.maximum(column, 0)) for column in worst.T]
        amounts = np.where(worst.T < 0, np.nan, rows)
        return frozen(np.vstack([amounts, np.zeros(worst.shape[0])]))

    # The table of decisions

    @property
    def begun(self) -> int:
        """The number of rounds that have begun."""
        return int(self.desk.begun[0])

    @property
    def last(self) -> int:
        """The last round; negative if there is none."""
        return int(self.desk.last[0])

    @property
    def done(self) -> bool:
        """Whether no round can begin: the horizon is reached or a budget is exceeded."""
        return bool(0 <= self.last <= self.begun or self.kernels.call(is_broken, self.ledger))

    def count(self, status: int) -> int:
        """Return the number of decisions with a status."""
        return int(np.count_nonzero(self.desk.awaited.status == status))

    def slots_by_round(self) -> dict[int, int]:
        """Return the slot of each decision that is not settled, by the number of its round."""
        awaited = self.desk.awaited
        used = np.flatnonzero(awaited.status != FREE)
        return dict(zip(awaited.number[used].tolist(), used.tolist(), strict=True))

    def slots_with(self, status: int) -> Ints:
        """(k,) the slots of decisions with a status, oldest first."""
        return self._oldest_first(self.desk.awaited.status == status)

    def overdue(self, rounds: int | None, before: float) -> Ints:
        """(k,) the slots of pending decisions, oldest first, that are older than some rounds or than a time."""
        awaited = self.desk.awaited
        late = awaited.at < before if rounds is None else self.begun - awaited.number > rounds  # NaN is never late
        return self._oldest_first(late & (awaited.status == PENDING))

    def _oldest_first(self, chosen: Bools) -> Ints:
        slots = np.flatnonzero(chosen)
        return slots[np.argsort(self.desk.awaited.number[slots])]

    def number_in(self, slot: int) -> int:
        """Return the number of the round of the decision in a slot."""
        return int(self.desk.awaited.number[slot])

    def awaited_in(self, slot: int) -> AwaitedDecision:
        """Return the decision in a slot."""
        awaited = self.desk.awaited
        return AwaitedDecision(
            number=int(awaited.number[slot]),
            arm=int(awaited.arm[slot]),
            epoch=int(awaited.epoch[slot]),
            mix=read_only(awaited.mixes[slot, : self.problem.arms].copy()),
            prices=awaited.prices[slot],
            reserved=self.reserved_in(slot),
            context=read_only(awaited.contexts[slot].copy()),
            must=bool(awaited.must[slot]),
        )

    def reserved_in(self, slot: int) -> Floats:
        """(d,) the reservation of the decision in a slot, in the problem's units; NaN where it is not known."""
        units = self.desk.awaited.reserved[slot]
        amounts = amounts_of(self.ledger, np.maximum(units, 0))
        return read_only(np.where(units < 0, np.nan, amounts))  # type: ignore[no-any-return]

    def arms_and_epochs(self, slots: Ints) -> tuple[Ints, Ints]:
        """(k,) the arms and (k,) the epochs of decisions."""
        return self.desk.awaited.arm[slots], self.desk.awaited.epoch[slots]

    def settled(self, number: int) -> SettledDecision | None:
        """Return the settled decision of a round; None if it is not among the latest."""
        settled = self.desk.settled
        rows = np.flatnonzero(settled.number == number)
        if not rows.size:
            return None
        row = rows[0]
        return SettledDecision(int(settled.epoch[row]), int(settled.kind[row]), settled.outcome[row])

    def awaited_seasons(self) -> set[int]:
        """Return the seasons of the decisions that are not settled."""
        awaited = self.desk.awaited
        return set(awaited.season[awaited.status != FREE].tolist())

    # Rounds

    def make_room(self, count: int = 1) -> None:
        """Grow the table until it has ``count`` free slots."""
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
        arm: int = self._begin(self.admits, at, rounds)
        if arm == STUCK:
            self._solve()
            arm = self._begin(self.admits, at, rounds)
        return arm

    def _solve(self) -> None:
        """Solve the programs with HiGHS for which the simplex method failed."""
        self.lp_rescues += solve_stuck(self.state)
        warnings.warn(f"the step LP of round {self.begun + 1} was solved by HiGHS.", RuntimeWarning, stacklevel=5)

    def begin_many(self, batch: steps.AskedBatch, first: int, stop: int, at: float, rounds: float) -> int:
        """Begin the rounds of a part of a batch; see :func:`driftsack.game.steps.begin_many`."""
        fixed, filled = (self.state, self.ledger, self.terms, self.desk, self.rng, batch), first
        while True:
            filled = int(
                self.kernels.run_many(steps.begin_many, stop - filled, *fixed, filled, stop, self.admits, at, rounds)
            )
            if filled == stop or batch.arms[filled] != STUCK:
                return filled
            self._solve()

    def settle(self, slot: int, reward: float, told: bool) -> int:
        """Settle a decision whose costs are in ``desk.given``; see :func:`driftsack.game.steps.settle`."""
        if not self.past or self.desk.awaited.season[slot] == self.desk.season[0]:
            status: int = self._settle(slot, reward, told)
            return status
        status = self._charge_past(slot, self._season_of(slot).settle, reward, told)
        self._drop_past()
        return status

    def pay(self, slot: int) -> int:
        """Charge the costs in ``desk.given`` of a decision without a reward; see :mod:`driftsack.game.parts`."""
        if self.any_in_past(slot):
            return self._charge_past(slot, self._season_of(slot).pay)
        status: int = self._pay(slot)
        return status

    def earn(self, slot: int, reward: float) -> None:
        """Store the reward of a decision whose costs have not arrived."""
        self.desk.awaited.reward[slot] = reward

    def told_in(self, slot: int) -> tuple[float, Floats]:
        """Return the told reward and (d,) costs of the decision in a slot; NaN for those that were not told."""
        return self.desk.awaited.reward.item(slot), self.desk.awaited.costs[slot]

    def parts_of(self, slots: Ints) -> tuple[Floats, Floats]:
        """(n,) the told rewards and (n, d) costs of decisions; NaN for those that were not told."""
        return self.desk.awaited.reward[slots], self.desk.awaited.costs[slots]

    def any_in_past(self, slots: int | Ints) -> bool:
        """Whether decisions belong to an earlier season, so that settling them changes two ledgers."""
        return bool((self.desk.awaited.season[slots] != self.desk.season[0]).any())

    def settle_many(self, slots: Ints, rewards: Floats, costs: Floats) -> None:
        """Settle decisions; raise before anything is changed if an amount is too large."""
        # The sums must not overflow in any order of the decisions.
        ledger = self.ledger
        ledgers = [ledger, *(season.ledger for season in self.past.values())]
        held = np.max([np.add(one.charged, one.reserved, dtype=np.float64) for one in ledgers], axis=0)
        kept = np.maximum(self.desk.awaited.reserved[slots], 0)
        largest = np.maximum(costs * ledger.fine / ledger.coarse - kept, 0.0).sum(axis=0) + held
        if (largest > MOST_UNITS).any():
            raise OutOfRangeError(
                "costs must be amounts that the ledger can hold; are they in other units than the budget?"
            )
        # Decisions of the present season are settled by one kernel.
        if not self.any_in_past(slots):
            self.kernels.run_many(
                steps.settle_many, slots.size, self.state, ledger, self.terms, self.desk, slots, rewards, costs
            )
            return
        for slot, reward, row in zip(slots.tolist(), rewards.tolist(), costs, strict=True):
            self.desk.given[:] = row
            now = self.desk.awaited.season[slot] == self.desk.season[0]
            if now:
                self._settle(slot, reward, True)
            else:
                self._charge_past(slot, self._season_of(slot).settle, reward, True)
        self._drop_past()

    def _season_of(self, slot: int) -> PastSeason:
        """Return the earlier season that a decision belongs to."""
        return self.past[int(self.desk.awaited.season[slot])]

    def _charge_past(self, slot: int, charge: Callable[..., int], *arguments: Any) -> int:
        """Charge a decision to its season; the rollover share of the unused reservation moves to the present season."""
        season, reserved = self._season_of(slot), np.maximum(self.desk.awaited.reserved[slot], 0)
        before = free_units(season.ledger)
        status = charge(slot, *arguments)
        if status <= steps.OVERRAN:
            unused = np.clip(free_units(season.ledger) - before, 0, reserved)
            moved = np.minimum(share_of(unused, season.rollover), MOST_UNITS - self.ledger.granted)
            season.ledger.granted[:] -= moved
            self._add(moved)
        return status

    def _drop_past(self) -> None:
        """Forget earlier seasons all of whose decisions are settled."""
        awaited = self.desk.awaited
        for number in list(self.past):
            if not ((awaited.season == number) & (awaited.status != FREE)).any():
                del self.past[number]

    def forfeit(self, slots: Ints) -> bool:
        """Charge the reservations of pending decisions; return whether older forfeited ones were forgotten.

        Raises:
            SettingError: Nothing is reserved for one of them; then none is forfeited.
        """
        awaited = self.desk.awaited
        slots, forgot = slots[awaited.status[slots] == PENDING], False
        if (awaited.reserved[slots[np.isnan(awaited.costs[slots, 0])]] < 0).any():
            raise SettingError(
                "forfeit charges the maximum cost of an arm, which is not known; set cost_max, pass caps to ask, or "
                "cancel the decision with the costs that you assume."
            )
        for slot in slots.tolist():
            number = int(awaited.season[slot])
            ledger = self.ledger if number == self.desk.season[0] else self.past[number].ledger
            self.kernels.call(steps.forfeit, ledger, self.terms, self.desk, slot)
            lost = np.flatnonzero(awaited.status == FORFEITED)
            if lost.size > MOST_FORFEITED:
                self.kernels.call(steps.release_slot, awaited, int(lost[np.argmin(awaited.number[lost])]))
                self._drop_past()
                forgot = True
        return forgot

    # Budgets and the horizon

    def units(self, amounts: Floats) -> Ints:
        """(d,) amounts in grid units, rounded down as budgets are."""
        pairs = zip(amounts.tolist(), exponents_of(self.ledger), strict=True)
        return np.array([budget_units(amount, k) for amount, k in pairs], dtype=np.int64)

    def granted_amounts(self, units: Ints) -> Floats:
        """(d,) parts of the budgets, in the problem's units; infinite for a resource without a budget."""
        return np.where(np.isinf(self.problem.budget), np.inf, amounts_of(self.ledger, units))

    def grant(self, amounts: Floats) -> None:
        """Add to the budgets."""
        self._add(self.units(amounts))
        self.set_rate()

    def charge(self, amounts: Floats) -> None:
        """Add spending outside the learner; what exceeds the free budget is counted."""
        pairs = zip(amounts.tolist(), exponents_of(self.ledger), strict=True)
        units = np.array([whole_units(amount, k, up=True) for amount, k in pairs], dtype=np.int64)
        ledger = self.ledger
        self._check_sum(ledger.charged + ledger.reserved, units, "spending and reservations")
        free = ledger.granted - ledger.charged - self.held()
        self.desk.overruns.outside[:] += np.maximum(units - np.maximum(free, 0), 0)
        for j in range(units.size):
            self.kernels.call(add_cost, ledger, j, int(units[j]), amounts[j] / ledger.cost_max[j])
        self.set_rate()

    def held(self) -> Ints:
        """(d,) the reservations of pending decisions of this season, in grid units."""
        terms, ledger = self.terms, self.ledger
        resources = range(ledger.granted.size)
        return np.array([self.kernels.call(held_units, terms.costs, ledger, terms.unpaid, j) for j in resources])

    def _add(self, units: Ints) -> None:
        """Add amounts in grid units to the budgets."""
        self._check_sum(self.ledger.granted, units)
        self.ledger.granted[:] += units
        self.ledger.budget[:] = self.ledger.granted / self.ledger.per_cost

    def _check_sum(self, budget: Ints, units: Ints, what: str = "budgets") -> None:
        """Raise if a sum would be larger than a ledger can hold."""
        if (units > MOST_UNITS - budget).any():
            most = amounts_of(self.ledger, np.full(units.size, MOST_UNITS))
            raise OutOfRangeError(f"{what} may grow up to {most}; use smaller amounts, or renew without rollover.")

    def renew(self, amounts: Floats, rollover: float) -> None:
        """Begin a season with new budgets, plus a share of the remaining old ones."""
        old = self.ledger
        moved = np.where(np.isinf(amounts), 0, share_of(free_units(old), rollover))
        self._check_sum(self.units(amounts), moved)
        new = old._replace(**{name: getattr(old, name).copy() for name in ("budget", "spent", "granted", "charged")})
        new = new._replace(reserved=np.zeros_like(old.reserved))
        new.granted[:] = self.units(amounts)
        for j in range(new.granted.size):
            self.kernels.call(set_spending, new, j, 0)
        season = PastSeason(old._replace(granted=old.granted - moved), rollover)
        self.past = {**self.past, int(self.desk.season[0]): season}
        self.ledger = new
        self._add(moved)
        self.desk.season[0] += 1
        for counts in (self.terms.pending, self.terms.unpaid, self.terms.costs.owed):
            counts[:] = 0  # decisions of earlier seasons are charged to their own budgets
        for sums in (self.terms.floors.gained, self.terms.floors.counted):
            sums[:] = 0.0  # each season has to reach the floors
        self._drop_past()
        self.pin()

    def set_rounds_left(self, rounds: float) -> None:
        """Set the expected number of remaining rounds."""
        self.terms.end[0] = self.desk.clock[0] + rounds

    def expect(self, rounds: int) -> None:
        """Set the exact number of remaining rounds."""
        self.desk.last[0] = self.begun + rounds
        self.set_rounds_left(float(rounds))

    def set_rate(self) -> None:
        """Spread the remaining budgets evenly over the remaining rounds."""
        self.kernels.call(set_rate, self.terms, self.ledger, int(self.desk.clock[0]))

    def check_fallback(self, rounds: int, units: Ints) -> None:
        """Raise if amounts, in grid units, cannot pay for the fallback arm in so many rounds."""
        problem = self.problem
        if problem.fallback is None or not self.safe:
            return
        if not problem.bounded:
            raise SettingError("safe=True with a fallback reserves its maximum cost, which is not known; set cost_max.")
        if problem.guessed:
            return
        needed = [worst * rounds for worst in self.terms.fallback_worst.tolist()]
        for j, (most, available) in enumerate(zip(needed, units.tolist(), strict=True)):
            if most <= available:
                continue
            amount, given = (in_units_of_problem(n, exponents_of(self.ledger)[j]) for n in (most, available))
            raise InfeasibleError(
                f"answering {rounds:,} requests by {problem.arm_names[problem.fallback]!r} may cost {amount:.15g} of "
                f"{problem.resource_names[j]!r}, got a budget of {given:.15g}; a budget of {amount:.15g} suffices, or "
                "a smaller cost_max of that arm, or fewer rounds."
            )

    # Arms

    def offer(self, arm: int, offered: bool) -> None:
        """Retire an arm or offer it again."""
        self.offered[arm] = offered
        self.restore_terms()

    def add_arm(self, problem: Problem) -> None:
        """Offer one more arm, the last of the new problem, in a free slot or in a larger state."""
        arm = problem.arms - 1
        unit, most = self.desk.cost_unit, problem.cost_max_by_arm[:, arm]
        if self.policy.bounded and problem.bounded and (most > unit).any():
            raise SettingError(
                f"{type(self.policy).__name__} learns costs of up to {unit}, the cost_max that it was started with, "
                f"got an arm that may cost {most}; start it with a larger cost_max, or use Adaptive, which needs none."
            )
        if problem.arms > self.offered.size:
            self._grow(problem)
        self.problem, self.cost_limit = problem, problem.cost_limit.tolist()
        self._set_worst([arm])
        self.offer(arm, offered=True)

    def _set_worst(self, arms: Iterable[int]) -> None:
        """Set the maximum costs of arms; the reservations stay unknown if the problem has no ``cost_max``."""
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
        # Copy the terms of the arms that exist already.
        grown, old = new_terms(inner), self.terms
        count = old.offered.size
        for name in ("offered", "open"):
            getattr(grown, name)[:] = False
            getattr(grown, name)[:count] = getattr(old, name)
        for name in ("cost_most", "worst"):
            getattr(grown, name)[:, :count] = getattr(old, name)
        grown.pending[:count] = old.pending
        grown.unpaid[:count] = old.unpaid
        grow(grown.costs, old.costs)
        grown.version[0] = old.version[0] + 1
        # Keep the terms that do not depend on the number of arms.
        self.terms = grown._replace(
            rate=old.rate,
            end=old.end,
            skip_cost=old.skip_cost,
            fallback=old.fallback,
            fallback_worst=old.fallback_worst,
            delay=old.delay,
            must_share=old.must_share,
            floors=old.floors,
            prices=_more_prices(grown.prices, old.prices, count),
        )
        # Extend the engine's own arrays and the desk, and pin the kernels to them.
        self.offered = np.append(self.offered, False)
        self.worst = np.column_stack([self.worst, np.full(self.worst.shape[0], -1)])
        self.desk = with_capacity(self.desk, self.desk.awaited.status.size, inner.arms)
        self.state = state
        self.pin()

    def announce(self, arm: int, factors: Floats) -> None:
        """Multiply the expected costs of an arm."""
        self.policy.announce(self.state, arm, factors)
        prices = self.terms.prices
        prices.usual[:, arm] = np.clip(prices.usual[:, arm] * factors, 1.0 / LARGEST_FACTOR, LARGEST_FACTOR)
        prices.active[0] = True

    # The past

    def teach(self, arms: Ints, probabilities: Floats, rewards: Floats, costs: Floats, contexts: Floats) -> None:
        """Let the policy learn past outcomes, oldest first."""
        fixed = (self.state, self.ledger, self.terms, self.desk, self.rng)
        teach = self.kernels.pin_later(steps.teach_round, fixed, (int, float, float))
        for arm, probability, reward, row, context in zip(
            arms.tolist(), probabilities.tolist(), rewards.tolist(), costs, contexts, strict=True
        ):
            self.desk.given[:] = row
            self.terms.context[:] = context
            note_values(self.usual, self.problem.encoder, context)
            if teach(arm, probability, reward) == STUCK:
                self._solve()
                teach(arm, probability, reward)


def _more_prices(new: ListedCosts, old: ListedCosts, count: int) -> ListedCosts:
    """Return the record of price lists with room for more arms."""
    for name in ("listed", "factors", "usual", "lists", "reference"):
        getattr(new, name)[:, :count] = getattr(old, name)
    return old._replace(**{name: getattr(new, name) for name in ("listed", "factors", "usual", "lists", "reference")})


def free_units(ledger: Ledger) -> Ints:
    """(d,) the budgets that are neither spent nor reserved, in grid units; 0 where a budget is exceeded."""
    free: Ints = np.maximum(ledger.granted - ledger.charged - ledger.reserved, 0)
    return free


def inner_problem(problem: Problem, cost_unit: Floats | None) -> Problem:
    """Return the problem of the policy's state: one arm for each slot, and costs in the learner's unit."""
    if problem.slots == problem.arms and problem.arm_cost_max is None and cost_unit is None:
        return problem
    most = problem.cost_max if cost_unit is None else tuple(cost_unit.tolist())
    names = problem.arm_names if problem.slots == problem.arms else None
    changes: dict[str, Any] = {"arms": problem.slots, "arm_names": names, "cost_max": most, "arm_cost_max": None}
    return replace(problem, **changes)


def ceiling_of(policy: Policy) -> float:
    """Return the largest normalised outcome that a policy may learn from."""
    return 1.0 if policy.bounded else LARGEST_OUTCOME
