"""``LearnerCore``: the parts of a learner, the lock around their changes, its properties, and changes of its budgets.

A call that changes a learner takes its lock (:func:`guarded`). A signal handler runs in the thread that it interrupts,
and the lock is re-entrant, so the handler would find the learner in the middle of a change. It may save the learner,
because between any two instructions the arrays are consistent; every other call is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import Safe, share, whole
from driftsack.core.decision import Decision, Decisions
from driftsack.core.encoder import Context, checked_context
from driftsack.core.errors import ReentrantCallError, SettingError
from driftsack.core.floors import QUALITY
from driftsack.core.locks import HeldFile, has_taken, thread_lock
from driftsack.core.names import Amounts
from driftsack.core.problem import Problem
from driftsack.game import steps
from driftsack.game.desk import CANCELLED, FORFEITED, PENDING, TOLD
from driftsack.game.floors import needed
from driftsack.game.ledger import amounts_of
from driftsack.game.units import checked_outcome
from driftsack.numerics.compiled import interpreted
from driftsack.policies.learner import arguments, batches, out_of_range
from driftsack.policies.learner import file as learner_file
from driftsack.policies.learner.clock import Clock, seconds
from driftsack.policies.learner.engine import LearnerEngine
from driftsack.policies.learner.out_of_range import Overruns, RangeWarnings, overruns_of
from driftsack.policies.learner.register import Register, refuse_other
from driftsack.policies.learner.teaching import PastRounds

AnyCore = TypeVar("AnyCore", bound="LearnerCore")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def guarded(
    method: Callable[Concatenate[AnyCore, Arguments], Result],
) -> Callable[Concatenate[AnyCore, Arguments], Result]:
    """Take the lock for a method that changes the learner; refuse a signal handler that interrupted such a method."""

    @wraps(method)
    def call(self: AnyCore, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        if self._busy and has_taken(self._lock):  # only the thread that holds the lock changes ``_busy``
            raise ReentrantCallError(
                "a signal handler called this learner in the middle of another call of it; a handler may save the "
                "learner, or set a flag after which the interrupted code continues."
            )
        with self._lock:
            try:
                self._busy = True
                return method(self, *args, **kwargs)
            except BaseException:
                self._register.find_slots()
                raise
            finally:
                self._busy = False

    return call


class Budget(NamedTuple):
    """The budget of a resource.

    Attributes:
        granted: The budget of this season.
        spent: What was charged to it.
        reserved: What pending decisions reserve.
        left: What is neither spent nor reserved; negative if the budget was exceeded.
    """

    granted: float
    spent: float
    reserved: float
    left: float


class FloorStatus(NamedTuple):
    """How far a floor is reached.

    Attributes:
        floor: The floor.
        reached: The mean reward, or the share of the arm, over the answered requests of this season whose outcome is
            known; NaN before the first.
        needed: What the remaining requests need on average. The floor cannot be reached any more if it is above every
            mean reward, or above 1 for a share.
        price: The cost of one more unit of reward at the latest decision; NaN for a share, and before it is known.
    """

    floor: float
    reached: float
    needed: float
    price: float


class LearnerCore:
    """The parts of a learner; see :class:`~driftsack.Learner`."""

    def __init__(self, engine: LearnerEngine, clock: Clock, lineage: str) -> None:
        self.policy = engine.policy
        self._engine, self._clock = engine, clock
        self._lock = thread_lock()  # kernels release the GIL, and two threads must not use one state at once
        self._busy = False  # whether the thread that holds the lock is changing the learner
        self._file: HeldFile | None = None  # the lock of the file that the learner was loaded from or first saved to
        self._limits_costs = True
        self._kept: bytes | None = None  # the learner before a change of several steps
        self._warnings = RangeWarnings()
        self._register = Register(engine, lineage)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[LearnerEngine]:
        """Undo a change of several steps if it fails, and save the learner as it was before while it is made."""
        before = learner_file.encode(self._snapshot())
        try:
            self._kept = before
            yield self._engine
        except BaseException:
            self._restore(before)
            raise
        finally:
            self._kept = None

    def _restore(self, data: bytes) -> None:
        """Become the learner that was saved, and keep the epoch, since its decisions stay valid."""
        epoch = self._engine.desk.epoch[0]
        snapshot = learner_file.decode(data, "the learner before the change")
        self._engine, self._clock = snapshot.engine, snapshot.clock
        self._engine.desk.epoch[0] = epoch
        self._register.engine = self._engine

    def to_bytes(self) -> bytes:
        """Return what ``save`` writes; ``from_bytes`` reads it."""
        with self._lock:
            return (self._busy and self._kept) or learner_file.encode(self._snapshot())

    def state_hash(self) -> str:
        """Return a hash, 64 hexadecimal digits, of everything that determines future decisions.

        Learners with equal hashes make the same decisions from now on, if they are told the same.
        """
        with self._lock:
            return learner_file.state_hash(self._snapshot())

    def _snapshot(self) -> learner_file.Snapshot:
        """The parts that determine what the learner does; consistent between any two instructions of Python."""
        return learner_file.Snapshot(self._engine, self._clock, self._register.lineage)

    def encode(self, context: Context) -> Floats:
        """Encode the features of a request as ``ask`` would; nothing is changed.

        Args:
            context: The features, as in ``ask``.

        Returns:
            (n,) the encoded vector, which ``ask`` accepts in place of the features.
        """
        problem = self._engine.problem
        arguments.refuse_features(problem)
        return checked_context(problem.encoder, problem.features, context, self._engine.usual.means)

    def _settle_one(self, decision: Decision, reward: float, costs: Any, told: bool) -> int:
        """Settle a decision once; return 0, or another code of ``game.steps`` if the outcome was out of range."""
        # Find its slot, unless the same call was made before.
        register, engine, number = self._register, self._engine, getattr(decision, "round", -1)
        slot = register.slots.get(number)
        if slot is None or register.issued.get(number) is not decision:
            slot = register.slot_of(decision, reward, costs, TOLD if told else CANCELLED)
            if slot is None:
                return steps.SETTLED
        # Learn, charge and release in one kernel; a decision of an earlier season changes two ledgers.
        try:
            given, gain = engine.desk.given, float(reward)
            for j, cost in enumerate(costs):  # faster than an assignment of a short list
                given[j] = cost
                if cost > engine.cost_limit[j] and self._limits_costs:
                    arguments.refuse_absurd(engine.problem, costs)
            if engine.past and engine.any_in_past(slot):
                with self._all_or_nothing():
                    status = engine.settle(slot, gain, told)
            else:
                status = engine.settle(slot, gain, told)
        except OverflowError:  # an integer that no float can hold; nothing has changed
            status = steps.TOO_LARGE
        if status > steps.OVERRAN:
            if status == steps.DIFFERS:
                checked_outcome(engine.problem, reward, costs)
                refuse_other(number)
            arguments.refuse_outcome(engine.problem, reward, costs)
        register.slots.pop(number, None)
        register.issued.pop(number, None)
        return status

    _settle = guarded(_settle_one)

    def _tell_one_part(self, decision: Decision, reward: float | None, costs: Floats | None) -> int:
        """Tell the reward or the costs of a decision, of which one is None; settle it if the other part was told."""
        engine = self._engine
        slot = self._register.slot_of(decision, reward, costs, TOLD)
        if slot is None:
            return steps.SETTLED
        gain, uses = engine.told_in(slot)
        earned, paid = not math.isnan(gain), not math.isnan(uses[0])
        # If the other part was told before, this one completes the outcome.
        if paid and reward is not None:
            return self._settle_one(decision, reward, uses.tolist(), True)
        if earned and costs is not None:
            return self._settle_one(decision, gain, costs, True)
        # Otherwise this part may have been told before, or it is the first one.
        if earned or paid:  # this part was told before
            if reward not in (None, gain) or not (costs is None or np.array_equal(costs, uses)):
                refuse_other(decision.round)
            return steps.SETTLED
        if reward is not None:
            engine.earn(slot, reward)
            return steps.SETTLED
        if self._limits_costs and bool((np.asarray(costs) > engine.cost_limit).any()):
            arguments.refuse_absurd(engine.problem, costs)
        engine.desk.given[:] = costs
        with self._all_or_nothing() if engine.any_in_past(slot) else nullcontext():
            status = engine.pay(slot)
        if status > steps.OVERRAN:
            arguments.refuse_outcome(engine.problem, 0.0, costs)
        return status

    _tell_part = guarded(_tell_one_part)

    @guarded
    def _tell_parts(self, decisions: Decisions, rewards: Floats | None, costs: Floats | None) -> bool:
        """Tell a part of each outcome, of all of them or none; return whether an outcome was out of range."""
        before = out_of_range.total(self._engine)
        with self._all_or_nothing():
            for k in range(len(decisions)):
                gain, uses = None if rewards is None else float(rewards[k]), None if costs is None else costs[k]
                self._tell_one_part(decisions[k], gain, uses)
        return out_of_range.total(self._engine) > before

    @guarded
    def _settle_batch(self, decisions: Decisions, rewards: Floats, costs: Floats) -> bool:
        """Settle decisions, all of them or none; return whether an outcome was out of range."""
        engine = self._engine
        slots = batches.slots_of(self._register, decisions, rewards, costs)
        new, before = slots >= 0, out_of_range.total(engine)
        absurd = new & (costs > engine.cost_limit).any(axis=1)
        if absurd.any() and self._limits_costs:
            arguments.refuse_absurd(engine.problem, costs[np.flatnonzero(absurd)[0]])
        with self._all_or_nothing() if engine.any_in_past(slots[new]) else nullcontext():
            engine.settle_many(slots[new], rewards[new], costs[new])
        self._register.forget(decisions.rounds.tolist())
        return out_of_range.total(engine) > before

    @guarded
    def _learn(self, rows: PastRounds, clipped: int) -> None:
        """Learn past rounds, of which ``clipped`` have costs that are too large for the policy."""
        with self._all_or_nothing() as engine:
            engine.teach(*rows)
            engine.restore_terms()
            engine.desk.overruns.costs[0] += clipped

    @property
    def problem(self) -> Problem:
        """The problem that the policy was started on, with the arms that were added since."""
        return self._engine.problem

    def accept_all_costs(self) -> None:
        """Accept costs above the problem's ``cost_limit``, for callers that check costs; this is not saved."""
        self._limits_costs = False

    @property
    def round(self) -> int:
        """The number of rounds that have begun: 0 before the first ``ask``."""
        return self._engine.begun

    @property
    def budget(self) -> Floats:
        """(d,) the budgets of this season, including everything that was granted."""
        return self._engine.granted_amounts(self._engine.ledger.granted)

    @property
    def remaining(self) -> Floats:
        """(d,) the remaining budget of each resource, including reservations; negative if it was exceeded."""
        ledger = self._engine.ledger
        return self._engine.granted_amounts(ledger.granted - ledger.charged)

    @property
    def reserved(self) -> Floats:
        """(d,) the amounts that are reserved for pending decisions of this season, without those that were charged.

        The sum of their maximum costs; with ``safe="statistical"`` what they are expected to cost, and a margin.
        """
        return amounts_of(self._engine.ledger, self._engine.held())

    @property
    def budgets(self) -> dict[str, Budget]:
        """The budget of each resource by name, all amounts at one instant, also while other threads ask and tell.

        >>> from driftsack.core import Problem
        >>> from driftsack.policies import UniformRandom
        >>> learner = UniformRandom().start(Problem(10, 2, {"usd": 5}, cost_max={"usd": 1}), seed=0, safe=True)
        >>> _ = learner.ask()
        >>> learner.budgets["usd"]
        Budget(granted=5.0, spent=0.0, reserved=1.0, left=4.0)
        """
        with self._lock:
            ledger, held = self._engine.ledger, self._engine.held()
            free, in_amounts = ledger.granted - ledger.charged - held, self._engine.granted_amounts
            rows = (in_amounts(ledger.granted), *(amounts_of(ledger, row) for row in (ledger.charged, held)))
            columns = zip(*(row.tolist() for row in (*rows, in_amounts(free))), strict=True)
            return {name: Budget(*amounts) for name, amounts in zip(self.problem.resource_names, columns, strict=True)}

    @property
    def floors(self) -> dict[str, FloorStatus]:
        """How far each floor of the problem is reached, by name; empty without floors.

        >>> from driftsack.core import Problem
        >>> from driftsack.policies import Adaptive
        >>> problem = Problem(horizon=100, arms=["small", "large"], minimise="usd", floor=0.75)
        >>> learner = Adaptive().start(problem, seed=0)
        >>> learner.tell(learner.ask(), reward=0.25, costs={"usd": 0.01})
        >>> learner.floors["reward"]._replace(needed=round(learner.floors["reward"].needed, 4))
        FloorStatus(floor=0.75, reached=0.25, needed=0.7551, price=nan)
        """
        with self._lock:
            terms, found = self._engine.terms, {}
            problem, account = self.problem, terms.floors
            price = self._engine.desk.prices[account.minimised] / self._engine.desk.cost_unit[account.minimised]
            for f, (name, floor) in enumerate(problem.floor):
                of_reward = account.arm[f] == QUALITY
                unit = problem.reward_max if of_reward else 1.0
                reached = account.gained[f] / account.counted[f] if account.counted[f] else math.nan
                left = interpreted(needed)(account, f, 0.0, 0.0, max(self.rounds_left, 1.0))
                worth = 1.0 / (price * problem.reward_max) if of_reward and price > 0.0 else math.nan
                found[name] = FloorStatus(floor, float(reached * unit), float(left * unit), float(worth))
            return found

    @property
    def safe(self) -> Safe:
        """Whether budgets close the arms that do not fit: False, True, or ``"statistical"``; see the class."""
        return self._engine.safe

    @property
    def blocked(self) -> int:
        """The number of rounds in which reservations alone closed every arm: the money was there, but reserved.

        Such rounds are skipped. If there are many, pass ``caps`` to :meth:`ask`, tell the costs as soon as they are
        known, or start with ``safe="statistical"``.
        """
        return int(self._engine.desk.blocked[0])

    @property
    def rounds_left(self) -> float:
        """The expected number of remaining rounds."""
        return max(float(self._engine.terms.end[0] - self._engine.desk.clock[0]), 0.0)

    @property
    def period_end(self) -> float | None:
        """The time at which the present period ends, in seconds; None before its first request, or without a period."""
        return self._clock.end

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The decisions whose outcome has not arrived, oldest first; a loaded learner has them too."""
        with self._lock:
            return self._register.waiting(PENDING)

    @property
    def forfeited(self) -> tuple[Decision, ...]:
        """The forfeited decisions that may still be told, oldest first."""
        with self._lock:
            return self._register.waiting(FORFEITED)

    @property
    def overruns(self) -> Overruns:
        """Costs above what was reserved, rewards out of range, and costs above what the policy can learn."""
        return overruns_of(self._engine)

    @property
    def open_arms(self) -> tuple[str, ...]:
        """The names of the arms that are not retired."""
        arms = zip(self.problem.arm_names, self._engine.offered, strict=False)
        return tuple(name for name, offered in arms if offered)

    @property
    def cost_factors(self) -> Floats:
        """(d, m) the factors on the estimated costs of the latest request; 1 unless costs were listed or announced."""
        return self._engine.terms.prices.factors[:, : self.problem.arms].copy()

    @property
    def done(self) -> bool:
        """Whether the horizon is reached or a budget is exceeded; then only ``ask(must=True)`` may succeed."""
        return self._engine.done

    @property
    def state(self) -> Any:
        """The state of the policy, for inspection; do not modify it, because kernels use it."""
        return self._engine.state

    @property
    def lp_rescues(self) -> int:
        """The number of step LPs solved by HiGHS because the built-in simplex could not certify its solution."""
        return self._engine.lp_rescues

    def __repr__(self) -> str:
        problem, last = self.problem, self._engine.last
        names = [f"{name} " if problem.named_resources else "" for name in problem.resource_names]
        left = ", ".join(f"{name}{amount:g}" for name, amount in zip(names, self.remaining, strict=True))
        horizon = f"of {last}" if last >= 0 else f"of about {self.round + self.rounds_left:.0f}"
        waiting = self._engine.count(PENDING)
        pending = f", {waiting} pending" if waiting else ""
        return f"Learner({self.policy}, round {self.round} {horizon}, remaining [{left}]{pending})"

    # Budgets and the horizon

    @guarded
    def grant(self, amounts: Amounts | None = None, /, **by_resource: float) -> None:
        """Add to the budgets of this season: ``learner.grant(usd=200)``.

        Args:
            amounts: The amounts in order or by name; one number for a single resource.
            **by_resource: The amounts by name; resources that are left out get nothing.

        Raises:
            NamesError: A resource does not exist.
            OutOfRangeError: An amount is negative.
        """
        added = arguments.amounts_to_add(self.problem, amounts, by_resource)
        with self._all_or_nothing() as engine:
            engine.grant(added)

    @guarded
    def charge(self, amounts: Amounts | None = None, /, **by_resource: float) -> None:
        """Add spending outside the learner to that of this season: ``learner.charge(usd=3.5)``.

        It is charged exactly and in full, even if a budget is then exceeded. What exceeds the part of a budget that is
        neither spent nor reserved is counted in :attr:`overruns`. The policy learns nothing from it.

        Args:
            amounts: The amounts in order or by name; one number for a single resource.
            **by_resource: The amounts by name; resources that are left out are charged nothing.

        Raises:
            NamesError: A resource does not exist.
            OutOfRangeError: An amount is negative.

        >>> from driftsack.core import Problem
        >>> from driftsack.policies import NaiveUCB
        >>> learner = NaiveUCB().start(Problem(horizon=100, arms=3, budget={"usd": 20}), seed=0)
        >>> learner.charge(usd=3.5)
        >>> learner.remaining
        array([16.5])
        """
        spent = arguments.amounts_to_add(self.problem, amounts, by_resource, "charge")
        with self._all_or_nothing() as engine:
            engine.charge(spent)

    @guarded
    def renew(
        self,
        budget: Amounts | None = None,
        rollover: float = 0.0,
        rounds: int | None = None,
        at: float | datetime | None = None,
        period: timedelta | None = None,
    ) -> None:
        """Begin a new season with new budgets and what was learnt.

        Decisions that are still pending are charged to the budgets of the season in which they were made.

        Args:
            budget: The new budgets; None for those of the problem.
            rollover: The share of the remaining budgets that is added to the new ones, from 0 to 1.
            rounds: The number of rounds of the season; None for the problem's horizon.
            at: The time at which the season begins, if the problem has a ``period``; None for the end of the last one.
            period: The length of the season, and of those after it, if the problem has a ``period``; None for that of
                the last one.

        Raises:
            SettingError: The policy follows a plan for one horizon, or there is a ``period`` but none in the problem.
            InfeasibleError: The budgets cannot pay for the fallback arm in every round.
            OutOfRangeError: The season would begin before the latest request, or a budget is too large.
        """
        arguments.check_open_ended(self.policy, "renew")
        kept = share(rollover, "rollover")
        amounts = arguments.new_budget(self.problem, budget)
        count = self.problem.horizon if rounds is None else whole(rounds, "rounds", at_least=1)
        if period is not None and (self.problem.period is None or at is None):
            raise SettingError("a season has a period of its own if the problem has one; pass its beginning as at=....")
        with self._all_or_nothing() as engine:
            engine.check_fallback(count, engine.units(amounts))
            start = self._clock.next_start(at)
            engine.renew(amounts, kept)
            if self.problem.period is None:
                engine.expect(count)
            elif (left := self._clock.renew(start, period, at)) is not None:
                engine.set_rounds_left(left)
            engine.set_rate()

    @guarded
    def set_clock(self, at: float | datetime, period: timedelta | None = None) -> None:
        """Begin the period again at a time, after requests whose times were wrong; the budgets stay as they are.

        Args:
            at: The right time; it may lie before the latest request.
            period: The length of the period from then on; None for the rest of the current one.

        Raises:
            SettingError: The problem has no period.
        """
        if self.problem.period is None:
            raise SettingError("only problems with a period have a clock; nothing must be set.")
        with self._all_or_nothing() as engine:
            left = self._clock.set_back(seconds(at), period)
            if left is not None:
                engine.set_rounds_left(left)
                engine.set_rate()

    @guarded
    def revise(self, rounds_left: int) -> None:
        """Change the number of remaining rounds.

        Args:
            rounds_left: The number of rounds that are still to begin.

        Raises:
            SettingError: The problem has a period, so that this number is estimated, or the policy follows a plan for
                one horizon.
            InfeasibleError: The budgets cannot pay for the fallback arm in so many rounds.
        """
        arguments.check_open_ended(self.policy, "revise")
        if self.problem.period is not None:
            raise SettingError("the rounds left in a period are estimated from the requests so far; ask with at=...")
        count = whole(rounds_left, "rounds_left", at_least=0)
        with self._all_or_nothing() as engine:
            ledger = engine.ledger
            engine.check_fallback(count, ledger.granted - ledger.charged - ledger.reserved)
            engine.expect(count)
            engine.set_rate()
