"""``Learner``: a policy started on a problem. Ask for a decision, act on it, and tell the outcome."""

from __future__ import annotations

import math
import os
import secrets
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from itertools import repeat
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.checks import flag, share, whole
from driftsack.core.decision import SKIP, Decision, Decisions, read_only
from driftsack.core.encoder import Context
from driftsack.core.errors import (
    BudgetExhaustedError,
    FileFormatError,
    HorizonReachedError,
    OutOfRangeError,
    ReentrantCallError,
    SettingError,
    UnknownDecisionError,
)
from driftsack.core.file_format import atomic_write, check_target, read_bytes
from driftsack.core.locks import HeldFile, has_taken, hold, thread_lock
from driftsack.core.names import Amounts, ArmAmounts
from driftsack.core.problem import Problem
from driftsack.core.seeding import Seed, generator
from driftsack.game import steps
from driftsack.game.desk import CANCELLED, FORFEITED, PENDING, TOLD
from driftsack.game.ledger import amounts_of, is_broken
from driftsack.game.units import checked_outcome
from driftsack.policies import learner_file, out_of_range, requests
from driftsack.policies.engine import Engine
from driftsack.policies.out_of_range import Overruns, RangeWarnings, largest_learnt, overruns_of
from driftsack.policies.policy import Policy
from driftsack.policies.register import Register
from driftsack.policies.requests import Clock, PastOutcomes

MOST_FORFEITED: Final = 10_000  # decisions that may still be told after they were forfeited
PLAIN: Final = {float, int}
UNTIMED: Final = (math.nan, math.nan)  # a request without a time, for which as many rounds are expected as before
Costs = npt.ArrayLike | Mapping[str, float]


class Learner:
    """Ask and tell in the problem's units; safe to share between threads and to save in a signal handler.

    Each ``ask`` begins a round, whether or not the outcomes of earlier rounds have arrived: feedback may arrive late
    and out of order, and counts for the round it belongs to. A ``SKIP`` needs no ``tell``.

    A signal handler may save a learner at any time, also while the thread that it interrupts asks or tells. A child of
    ``fork`` has a copy of the learner, with a budget of its own. ``copy.deepcopy`` and ``pickle`` make such copies.

    Attributes:
        policy: The policy that was started.
        safe: Whether an arm may be chosen only if every budget covers the most that it may cost, and what is reserved
            for all pending decisions. If no cost exceeds what was reserved for it, no budget is ever overspent.

    >>> from driftsack.core import Problem
    >>> from driftsack.policies import NaiveUCB
    >>> learner = NaiveUCB().start(Problem(horizon=100, arms=3, budget=[20, 30]), seed=0)
    >>> decision = learner.ask()
    >>> learner.tell(decision, reward=0.7, costs=[0.5, 0.25])
    >>> learner.round, learner.remaining
    (1, array([19.5 , 29.75]))

    With names:

    >>> named = Problem(horizon=100, arms=["small", "large"], budget={"usd": 20, "seconds": 30})
    >>> learner = NaiveUCB().start(named, seed=0)
    >>> decision = learner.ask()
    >>> decision.arm, decision.name
    (0, 'small')
    >>> learner.tell(decision, reward=0.7, costs={"usd": 0.5, "seconds": 0.25})
    >>> learner
    Learner(NaiveUCB(...), round 1 of 100, remaining [usd 19.5, seconds 29.75])
    """

    def __init__(self, policy: Policy, problem: Problem, seed: Seed = 0, safe: bool = False) -> None:
        """Start a policy; ``policy.start(problem)`` is the usual way.

        Args:
            policy: The policy.
            problem: The problem.
            seed: Seed of the learner's own randomness.
            safe: See the class.
        """
        engine = Engine(policy, problem, flag(safe, "safe"), generator(seed))
        self._prepare(engine, Clock(problem), lineage=secrets.token_hex(8))

    def _prepare(self, engine: Engine, clock: Clock, lineage: str) -> None:
        """Set all that a learner consists of, and what it does not share with its copies."""
        self.policy, self.safe = engine.policy, engine.safe
        self._engine, self._clock = engine, clock
        self._lock = thread_lock()  # kernels release the GIL, and two threads must not use one state at once
        self._busy = False  # whether the thread that has the lock is changing the learner
        self._file: HeldFile | None = None  # the lock of the file that the learner was loaded from or first saved to
        self._altered = False  # whether the terms are those of a single request
        self._kept: bytes | None = None  # the learner as it was before a change of several steps
        self._warnings = RangeWarnings()
        self._register = Register(engine, lineage)

    @property
    def problem(self) -> Problem:
        """The problem that the policy was started on, with the arms that were added since."""
        return self._engine.problem

    @property
    def round(self) -> int:
        """The number of rounds that have begun: 0 before the first ``ask``."""
        return int(self._engine.desk.begun[0])

    @property
    def budget(self) -> Floats:
        """(d,) the budgets of this season, with everything that was granted."""
        return amounts_of(self._engine.ledger, self._engine.ledger.granted)

    @property
    def remaining(self) -> Floats:
        """(d,) the remaining budget of each resource; negative if it was exceeded. Reservations are included."""
        ledger = self._engine.ledger
        return amounts_of(ledger, ledger.granted - ledger.charged)

    @property
    def reserved(self) -> Floats:
        """(d,) what is reserved for pending decisions of this season."""
        return amounts_of(self._engine.ledger, self._engine.ledger.reserved)

    @property
    def rounds_left(self) -> float:
        """The number of rounds that are expected from now on."""
        return max(float(self._engine.terms.end[0] - self._engine.desk.clock[0]), 0.0)

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The decisions whose outcome has not arrived, oldest first; a loaded learner has them too."""
        with self._lock:
            return self._register.waiting(PENDING)

    @property
    def forfeited(self) -> tuple[Decision, ...]:
        """The decisions that were forfeited and may still be told, oldest first."""
        with self._lock:
            return self._register.waiting(FORFEITED)

    @property
    def overruns(self) -> Overruns:
        """Costs above what was reserved, rewards out of range, and costs above what the policy can learn."""
        return overruns_of(self._engine)

    @property
    def open_arms(self) -> tuple[str, ...]:
        """The names of the arms that are not retired."""
        return tuple(
            name for name, offered in zip(self.problem.arm_names, self._engine.offered, strict=False) if offered
        )

    @property
    def done(self) -> bool:
        """Whether ``ask`` would raise: the horizon is reached or a budget is exceeded."""
        last = int(self._engine.desk.last[0])
        return 0 <= last <= self.round or is_broken(self._engine.ledger)

    def __repr__(self) -> str:
        problem = self.problem
        names = [f"{name} " if problem.named_resources else "" for name in problem.resource_names]
        left = ", ".join(f"{name}{amount:g}" for name, amount in zip(names, self.remaining, strict=True))
        waiting = np.count_nonzero(self._engine.desk.awaited.status == PENDING)
        last = int(self._engine.desk.last[0])
        horizon = f"of {last}" if last >= 0 else f"of about {self.round + self.rounds_left:.0f}"
        pending = f", {waiting} pending" if waiting else ""
        return f"Learner({self.policy}, round {self.round} {horizon}, remaining [{left}]{pending})"

    @property
    def state(self) -> Any:
        """The state of the policy, for inspection; do not modify it, because kernels use it."""
        return self._engine.state

    @property
    def fallbacks(self) -> int:
        """The number of step LPs solved by HiGHS because the built-in simplex could not certify its solution."""
        return self._engine.fallbacks

    @contextmanager
    def _changing(self, method: str) -> Iterator[Engine]:
        """Take the lock for a call that changes the learner; refuse a signal handler that interrupted such a call."""
        nested = has_taken(self._lock)
        with self._lock:
            self._refuse(nested, method)
            try:
                self._busy = True
                yield self._engine
            except BaseException:
                self._register.find_slots()
                raise
            finally:
                self._busy = False

    @contextmanager
    def _changing_wholly(self, method: str) -> Iterator[Engine]:
        """Make a rare change of several steps wholly or not at all: until it is complete, the learner is as it was."""
        with self._changing(method) as engine, self._all_or_nothing():
            yield engine

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Undo the change if it is interrupted, and let a signal handler save the learner as it was before."""
        before = self.to_bytes()
        try:
            self._kept = before
            yield
        except BaseException:
            self._restore(before)
            raise
        finally:
            self._kept = None

    def _restore(self, data: bytes) -> None:
        """Become the learner that was saved, and keep the epoch, since its decisions stay valid."""
        epoch = int(self._engine.desk.epoch[0])
        snapshot = learner_file.decode(data, "the learner before the change")
        self._engine, self._clock = snapshot.engine, snapshot.clock
        self._engine.desk.epoch[0] = epoch
        self._register.engine = self._engine
        self._altered = False

    def _refuse(self, nested: bool, method: str) -> None:
        """Raise if a signal handler calls a method that would change what the interrupted call is changing."""
        if nested and self._busy:
            raise ReentrantCallError(
                f"{method} was called by a signal handler that interrupted a call of this learner; a handler may "
                "save the learner, or set a flag after which the interrupted code continues."
            )

    def ask(
        self,
        open: Collection[str] | Collection[int] | Bools | None = None,  # noqa: A002
        caps: ArmAmounts | None = None,
        at: float | datetime | None = None,
        context: Context | None = None,
    ) -> Decision:
        """Begin the next round and choose an arm or to skip.

        Args:
            open: The arms that this request may use: their names or numbers, or a mask (m,). None for all.
            caps: The most that this request may cost, by resource, or by resource and arm. Resources that are left out
                keep their ``cost_max``.
            at: The time of the request, a ``datetime`` or in seconds; needed if the problem has a ``period``.
            context: (n,) the features of the request, if the problem has some: numbers in order, or by name. A policy
                that does not use them ignores them.

        Returns:
            The decision. Pass it to ``tell`` or ``cancel`` later, unless it is to skip.

        Raises:
            HorizonReachedError: All rounds have begun.
            BudgetExhaustedError: A budget is exceeded.
            SettingError: The learner is safe, and the most that an arm may cost is not known; or the policy needs a
                context and there is none.
            NamesError: The context has other names than the features.
            ShapeError: The context is not one number for each feature.
        """
        nested = has_taken(self._lock)
        with self._lock:
            self._refuse(nested, "ask")
            try:
                self._busy = True
                seconds, rounds = self._open_request(open, caps, at, context)
                return self._made(self._engine.begin(seconds, rounds))
            except BaseException:
                self._register.find_slots()
                raise
            finally:
                self._busy = False

    def admissible(
        self,
        open: Sequence[str] | Sequence[int] | Bools | None = None,  # noqa: A002
        caps: ArmAmounts | None = None,
    ) -> Bools:
        """Return which arms :meth:`ask` could choose now; with ``safe``, those that every budget covers.

        Args:
            open: The arms that the request may use, as in :meth:`ask`.
            caps: The most that it may cost, as in :meth:`ask`.

        Returns:
            (m,) whether each arm could be chosen.
        """
        with self._changing("admissible") as engine:
            self._altered = False
            return requests.admissible(engine, open, caps)

    def _open_request(self, open: Any, caps: Any, at: Any, context: Any) -> tuple[float, float]:  # noqa: A002
        """Set the terms of a request; return its time and the rounds that are expected from it on, NaN if as before."""
        if self._register.process != os.getpid():
            self._register.begin_life()
        engine, problem = self._engine, self._engine.problem
        if self._altered:
            engine.restore_terms()
            self._altered = False
        if open is not None or caps is not None:
            self._altered = True
            requests.set_request(engine, open, caps)
        if self.safe and not (problem.bounded or caps is not None):
            requests.refuse_unbounded(problem)
        if context is not None or problem.features:
            requests.set_features(engine, context)
        if at is None and problem.period is None:
            return UNTIMED
        if at is not None and self.done:  # the round cannot begin, so it is not an arrival
            return UNTIMED
        return self._clock.advance(at)

    def _made(self, arm: int) -> Decision:
        """The decision that the engine just made; raises if it made none."""
        if arm < SKIP:
            self._raise_refusal(arm)
        engine = self._engine
        context = read_only(engine.terms.context.copy()) if engine.problem.features else None
        return self._register.made(arm, None if self._altered else engine.most[arm], context)

    def _raise_refusal(self, code: int) -> None:
        """Raise the error of a round that could not begin."""
        if code == steps.HORIZON:
            raise HorizonReachedError(
                f"the problem has {int(self._engine.desk.last[0])} rounds and all have begun; begin a new season with "
                "renew, extend this one with revise, or start a new learner."
            )
        if code == steps.EXHAUSTED:
            raise BudgetExhaustedError(
                f"a budget is exceeded (remaining: {self.remaining}), so round {self.round + 1} cannot begin; "
                "stop here, add to it with grant, or start with safe=True so that no budget is exceeded."
            )
        raise OutOfRangeError(
            f"choose of {self.policy} must return an arm in [0, {self._engine.offered.size - 1}] or SKIP (-1), and "
            f"STUCK (-2) at most once; in round {self.round + 1} it returned {int(self._engine.desk.slot[0])}."
        )

    def ask_many(
        self,
        count: int,
        open: Sequence[str] | Sequence[int] | Bools | None = None,  # noqa: A002
        caps: ArmAmounts | None = None,
        at: float | datetime | None = None,
        contexts: npt.ArrayLike | Sequence[Mapping[str, Any]] | None = None,
    ) -> Decisions:
        """Begin several rounds at once; the decisions are those of as many calls of :meth:`ask`.

        If the problem has a ``period``, each round is an arrival of its own.

        Args:
            count: The number of rounds.
            open: The arms that each request may use, as in :meth:`ask`.
            caps: The most that each request may cost, as in :meth:`ask`.
            at: The time of these requests, as in :meth:`ask`.
            contexts: The features of each request: (count, n) numbers, or one mapping for each.

        Returns:
            The decisions; fewer if the horizon or a budget ends.

        Raises:
            HorizonReachedError: All rounds have begun.
            BudgetExhaustedError: A budget is exceeded.
        """
        number = whole(count, "count", at_least=1)
        features = requests.contexts_of(self.policy, self.problem, number, contexts)
        register, problem = self._register, self.problem
        with self._changing("ask_many") as engine:
            seconds, rounds_left = self._open_request(open, caps, at, features[0] if problem.features else None)
            batch = steps.new_batch(features, engine.desk.mix.size, problem.resources)
            before = int(engine.desk.begun[0])
            filled = self._begin_batch(batch, at, seconds, rounds_left)
            if filled == 0:
                self._raise_refusal(int(batch.arms[0]))
            rounds = np.arange(before + 1, before + 1 + filled)
            kept = batch.slots[:filled] >= 0
            register.slots.update(zip(rounds[kept].tolist(), batch.slots[:filled][kept].tolist(), strict=True))
            mixes, prices = batch.mixes[:filled, : problem.arms], batch.prices[:filled] * register.price_unit
            arms = batch.arms[:filled]
            reserved = (engine.most_amounts(engine.terms.worst) if self._altered else engine.most)[arms]
            for part in (rounds, arms, mixes, prices, reserved, features):
                read_only(part)
            given = features[:filled] if problem.features else None
            return Decisions(rounds, arms, mixes, prices, reserved, problem.arm_names, register.source, given)

    def _begin_batch(self, batch: steps.Batch, at: Any, seconds: float, rounds_left: float) -> int:
        """Begin the rounds of a batch, together as long as the same number of rounds is expected from each on."""
        size, filled = batch.arms.size, 0
        self._engine.make_room(size)
        while True:
            stop = filled + 1 + self._clock.repeat(seconds, size - filled - 1)
            filled = self._engine.begin_many(batch, filled, stop, seconds, rounds_left)
            if filled < stop or filled == size:
                return filled
            seconds, rounds_left = self._clock.advance(at)

    def tell(self, decision: Decision, reward: float, costs: Costs) -> None:
        """Report the outcome of a decision, in any order. The same call again changes nothing.

        The latest 512 decisions that were settled are remembered for this; an older one raises ``AlreadyToldError``.
        A cost above what was reserved is charged in full and counted in :attr:`overruns`. Rewards out of range are
        clipped when they are learnt, and so are costs above ``cost_max``, or above 1 if it was omitted, by policies
        that need costs in [0, 1]. The first of each kind gives an ``OverrunWarning``.

        Args:
            decision: What ``ask`` returned.
            reward: The reward in the problem's units.
            costs: (d,) what was used of each resource, 0 or more, in the order of the budget or by name; one number for
                a single resource.

        Raises:
            AlreadyToldError: The decision was settled before, with another outcome.
            UnknownDecisionError: This learner did not make the decision.
            OutcomeError: A skipped round is given a reward or a cost.
            OutOfRangeError: A cost is negative.
            ShapeError: The costs are not one number per resource.
            NamesError: The costs have other names than the resources.
            NotFiniteError: The reward or a cost is NaN or infinite.
        """
        gain, uses = self._outcome(reward, costs)
        nested = has_taken(self._lock)
        with self._lock:
            self._refuse(nested, "tell")
            self._settle(decision, gain, uses, told=True)

    def _outcome(self, reward: float, costs: Any) -> tuple[float, Any]:
        """The outcome in the problem's units; the usual types are checked by the kernel."""
        if type(reward) is float or type(reward) is int:
            if type(costs) is dict and len(costs) == self.problem.resources:
                try:
                    costs = [costs[name] for name in self.problem.resource_names]
                except KeyError:
                    return checked_outcome(self.problem, reward, costs)
            if type(costs) is list and len(costs) == self.problem.resources and set(map(type, costs)) <= PLAIN:
                return reward, costs
        return checked_outcome(self.problem, reward, costs)

    def _settle(self, decision: Decision, reward: float, costs: Any, told: bool) -> None:
        """Settle a decision once."""
        register, number = self._register, getattr(decision, "round", -1)
        slot = register.slots.get(number)
        if slot is None or register.issued.get(number) is not decision:
            slot = register.slot_of(decision, reward, costs, TOLD if told else CANCELLED)
            if slot is None:
                return
        try:
            self._busy = True
            given = self._engine.desk.given
            for j, cost in enumerate(costs):  # a list of few numbers, which NumPy would make an array of first
                given[j] = cost
            if self._engine.past and self._engine.any_in_past(slot):
                with self._all_or_nothing():
                    status = self._engine.settle(slot, float(reward), told)
            else:
                status = self._engine.settle(slot, float(reward), told)
            if status > steps.OVERRAN:
                self._raise_invalid(reward, costs)
            register.slots.pop(number, None)
            register.issued.pop(number, None)
        except OverflowError:  # a whole number that no float can hold; nothing has changed
            self._raise_invalid(reward, costs)
        except BaseException:
            self._register.find_slots()
            raise
        finally:
            self._busy = False
        if status != steps.SETTLED:
            which = f"round {decision.round}"
            self._warnings.outcome(self._engine, which, reward if told else 0.0, costs, stacklevel=3)

    def _raise_invalid(self, reward: Any, costs: Any) -> None:
        """Raise the error of an outcome that could not be settled."""
        checked_outcome(self.problem, reward, costs)
        raise OutOfRangeError(
            f"costs must be amounts that the ledger can hold, got {costs}; are they in other units than the budget?"
        )

    def tell_many(
        self,
        decisions: Decisions,
        rewards: npt.ArrayLike,
        costs: npt.ArrayLike | Mapping[str, npt.ArrayLike] | Sequence[Mapping[str, float]],
    ) -> None:
        """Report the outcomes of several decisions, as as many calls of :meth:`tell` would; all of them or none.

        The same call again changes nothing as long as all of its decisions are among the latest 512 that were settled,
        which are remembered to compare them. A batch of more decisions is remembered in part: if it may have to be
        repeated, tell it in parts of up to 512.

        Args:
            decisions: What :meth:`ask_many` returned, or some of them (``decisions[mask]``); skips are ignored.
            rewards: (n,) the rewards.
            costs: (n, d) the costs, or (n,) for a single resource. By name, either (n,) costs of each resource or one
                mapping for each decision.

        Raises:
            UnknownDecisionError: This learner did not make a decision.
            AlreadyToldError: A decision was settled before, with another outcome or too long ago to compare.
            ShapeError: The arrays do not have one row for each decision.
            NamesError: The costs have other names than the resources.
            OutOfRangeError: A cost is negative.
        """
        if not isinstance(decisions, Decisions):
            raise UnknownDecisionError(f"tell_many needs the Decisions of ask_many, got {decisions!r:.80}.")
        gains, uses = requests.checked_outcomes(self.problem, len(decisions), rewards, costs)
        made = decisions.arms != SKIP
        if not made.all():
            decisions, gains, uses = decisions[made], gains[made], uses[made]
        with self._changing("tell_many") as engine:
            register, rounds = self._register, decisions.rounds.tolist()
            slots = np.fromiter(map(register.slots.get, rounds, repeat(-1)), dtype=np.int64, count=len(rounds))
            register.check_batch(decisions, gains, uses, slots)
            new, before = slots >= 0, out_of_range.total(engine)
            with self._all_or_nothing() if engine.any_in_past(slots[new]) else nullcontext():
                requests.settle_batch(engine, slots[new], gains[new], uses[new])
            for by_round in (register.slots, register.issued):
                if by_round:
                    deque(map(by_round.pop, rounds, repeat(None)), maxlen=0)
        if out_of_range.total(engine) > before:
            reward = float(gains.min() if gains.min() < 0.0 else gains.max())
            which = f"one of the rounds {rounds[0]} to {rounds[-1]}"
            self._warnings.outcome(engine, which, reward, uses.max(axis=0), stacklevel=2)

    def cancel(self, decision: Decision, costs: Costs | None = None) -> None:
        """Cancel a decision whose outcome will never arrive; the policy does not learn from it.

        In safe mode the budgets hold only if the costs are known: a request that was answered has probably been paid
        for. If that is not known, :meth:`forfeit` it instead.

        Args:
            decision: What ``ask`` returned.
            costs: (d,) its costs, if they are known, which are charged, as in :meth:`tell`. Nothing is charged if they
                are omitted.

        Raises:
            AlreadyToldError: The decision was settled before, in another way.
            UnknownDecisionError: This learner did not make the decision.
            OutcomeError: A skipped round is given a cost.
            OutOfRangeError: A cost is negative.
        """
        known = np.zeros(self.problem.resources) if costs is None else costs
        _, uses = checked_outcome(self.problem, 0.0, known)
        nested = has_taken(self._lock)
        with self._lock:
            self._refuse(nested, "cancel")
            self._settle(decision, 0.0, uses, told=False)

    def forfeit(self, decision: Decision) -> None:
        """Charge what was reserved for a decision whose outcome may never arrive; the policy does not learn from it.

        The outcome may still be told, or the decision cancelled: then the difference is given back. A learner remembers
        the latest 10,000 forfeited decisions.

        Args:
            decision: What ``ask`` returned.

        Raises:
            AlreadyToldError: The decision was told or cancelled before.
            UnknownDecisionError: This learner did not make the decision.
            SettingError: Nothing was reserved, because the most that the arm may cost is not known.
        """
        with self._changing("forfeit"):
            if getattr(decision, "arm", None) == SKIP and decision.round not in self._register.slots:
                return
            slot = self._register.slot_of(decision, math.nan, [], FORFEITED)
            if slot is not None:
                self._forfeit(slot)

    def _forfeit(self, slot: int) -> None:
        """Forfeit the decision in a slot, unless that was done."""
        awaited = self._engine.desk.awaited
        if awaited.status[slot] != PENDING:
            return
        self._check_forfeit(np.array([slot]))
        self._engine.forfeit(slot)
        lost = np.flatnonzero(awaited.status == FORFEITED)
        if lost.size > MOST_FORFEITED:
            self._engine.drop(int(lost[np.argmin(awaited.number[lost])]))
            self._register.find_slots()

    def _check_forfeit(self, slots: Ints) -> None:
        """Raise unless something is reserved for all of these decisions."""
        if (self._engine.desk.awaited.reserved[slots] < 0).any():
            raise SettingError(
                "forfeit charges the most that an arm may cost, which is not known; set cost_max, pass caps to ask, or "
                "cancel the decision with the costs that you assume."
            )

    def expire(self, older_than: int | timedelta, at: float | datetime | None = None) -> tuple[Decision, ...]:
        """Forfeit the pending decisions that have waited too long.

        Args:
            older_than: A number of rounds, or a ``timedelta`` if requests were asked with their time.
            at: The present time, with a ``timedelta``; None for the time of the latest request.

        Returns:
            The decisions that were forfeited.

        Raises:
            SettingError: Nothing was reserved for one of them; then none is forfeited.
        """
        with self._changing("expire") as engine:
            awaited = engine.desk.awaited
            if isinstance(older_than, timedelta):
                late = awaited.at < self._clock.now(at) - older_than.total_seconds()  # NaN is never late
            else:
                late = engine.desk.begun[0] - awaited.number > whole(older_than, "older_than", at_least=0)
            slots = np.flatnonzero(late & (awaited.status == PENDING))
            slots = slots[np.argsort(awaited.number[slots])]
            self._check_forfeit(slots)
            found = tuple(self._register.decision(slot) for slot in slots.tolist())
            for slot in slots.tolist():
                self._forfeit(slot)
            return found

    def grant(self, amounts: Amounts | None = None, /, **by_resource: float) -> None:
        """Add to the budgets of this season: ``learner.grant(usd=200)``.

        Args:
            amounts: The amounts in order or by name; one number for a single resource.
            **by_resource: The amounts by name; resources that are left out get nothing.

        Raises:
            NamesError: A resource does not exist.
            OutOfRangeError: An amount is negative.
        """
        added = requests.amounts_to_add(self.problem, amounts, by_resource)
        with self._changing_wholly("grant") as engine:
            engine.grant(added)

    def renew(
        self,
        budget: Amounts | None = None,
        rollover: float = 0.0,
        rounds: int | None = None,
        at: float | datetime | None = None,
        period: timedelta | None = None,
    ) -> None:
        """Begin a new season with new budgets and what was learnt.

        Decisions that are still pending stay with the season that reserved for them: they are charged to its budgets.

        Args:
            budget: The new budgets; None for those of the problem.
            rollover: The share of what is left that is added to the new budgets, from 0 to 1.
            rounds: The number of rounds of the season; None for the problem's horizon.
            at: The time at which the season begins, if the problem has a ``period``; None for the end of the last one.
            period: The length of the season, and of those after it, if the problem has a ``period``; None for that of
                the last one.

        Raises:
            SettingError: The policy follows a plan for one horizon, or there is a ``period`` but none in the problem.
            InfeasibleError: The budgets cannot pay for the fallback arm in every round.
            OutOfRangeError: The season would begin before the latest request, or a budget is too large.
        """
        self._check_open_ended("renew")
        kept = share(rollover, "rollover")
        amounts = requests.new_budget(self.problem, budget)
        count = self.problem.horizon if rounds is None else whole(rounds, "rounds", at_least=1)
        if period is not None and (self.problem.period is None or at is None):
            raise SettingError("a season has a period of its own if the problem has one; pass its beginning as at=....")
        with self._changing_wholly("renew") as engine:
            engine.check_fallback(count, engine.units(amounts))
            start = self._clock.next_start(at)
            engine.renew(amounts, kept)
            if self.problem.period is not None:
                self._clock.renew(start, engine, period, at)
            else:
                self._expect(count)
            engine.set_rate()

    def revise(self, rounds_left: int) -> None:
        """Expect another number of rounds from now on.

        Args:
            rounds_left: The number of rounds that are still to begin.

        Raises:
            SettingError: The problem has a period, so that this number is estimated, or the policy follows a plan for
                one horizon.
            InfeasibleError: The budgets cannot pay for the fallback arm in so many rounds.
        """
        self._check_open_ended("revise")
        if self.problem.period is not None:
            raise SettingError("the rounds left in a period are estimated from the requests so far; ask with at=...")
        count = whole(rounds_left, "rounds_left", at_least=0)
        with self._changing_wholly("revise") as engine:
            ledger = engine.ledger
            engine.check_fallback(count, ledger.granted - ledger.charged - ledger.reserved)
            self._expect(count)
            engine.set_rate()

    def _expect(self, rounds: int) -> None:
        """Set the number of rounds that are still to begin."""
        self._engine.desk.last[0] = self._engine.desk.begun[0] + rounds
        self._engine.set_rounds_left(float(rounds))

    def _check_open_ended(self, method: str) -> None:
        if not self.policy.open_ended:
            raise SettingError(
                f"{method} changes the horizon, but {type(self.policy).__name__} follows a plan for the horizon that "
                "it was started with; use a policy without such a plan, or start a new learner."
            )

    def add_arm(self, name: str, cost_max: Amounts | None = None) -> int:
        """Add an arm; what was learnt about the others is kept.

        Args:
            name: Its name.
            cost_max: The most that it can use of each resource, in order or by name; None for the problem's.

        Returns:
            Its number.

        Raises:
            NamesError: There is an arm of this name.
            SettingError: The policy was started for smaller costs, or for a fixed set of arms.
        """
        with self._changing_wholly("add_arm") as engine:
            problem = requests.with_arm(self.problem, name, cost_max)
            self._check_cost_max(problem)
            engine.add_arm(problem)
            return problem.arms - 1

    def _check_cost_max(self, problem: Problem) -> None:
        """Raise if the last arm may cost more than what the policy treats as a cost of 1."""
        unit = self._engine.desk.cost_unit
        most = problem.cost_max_by_arm[:, -1]
        if self.policy.bounded and problem.bounded and (most > unit).any():
            raise SettingError(
                f"{type(self.policy).__name__} learns costs of up to {unit}, the cost_max that it was started with, "
                f"got an arm that may cost {most}; start it with a larger cost_max, or use Adaptive, which needs none."
            )

    def retire_arm(self, arm: str | int) -> None:
        """Stop to offer an arm; its decisions can still be told, and :meth:`reopen_arm` offers it again.

        Args:
            arm: Its name or number.

        Raises:
            SettingError: It is the fallback, which must stay open.
        """
        number = requests.arm_number(self.problem, arm)
        if number == self.problem.fallback:
            raise SettingError(f"arm {arm!r} is the fallback, which answers every request; it cannot be retired.")
        with self._changing("retire_arm") as engine:
            engine.offer(number, offered=False)

    def reopen_arm(self, arm: str | int) -> None:
        """Offer an arm again that was retired.

        Args:
            arm: Its name or number.
        """
        with self._changing("reopen_arm") as engine:
            engine.offer(requests.arm_number(self.problem, arm), offered=True)

    def announce(self, arm: str | int, cost_factor: Amounts) -> None:
        """Say that an arm's prices change now, so that the policy need not find out.

        Args:
            arm: Its name or number.
            cost_factor: What its costs are multiplied by from now on, in order or by name; one number for all.

        Raises:
            SettingError: The policy cannot use an announcement.
            OutOfRangeError: A factor is not above 0.
        """
        number = requests.arm_number(self.problem, arm)
        factors = requests.factors_of(self.problem, cost_factor)
        with self._changing_wholly("announce") as engine:
            self.policy.announce(engine.state, number, factors)

    def teach(self, log: PastOutcomes, half_life: float | None = None) -> int:
        """Learn from past outcomes, as if the learner had made those pulls; no budget is charged.

        Arms and resources are matched by name. Importance-weighted policies use the propensities of the log.

        Args:
            log: A log, as ``ds.logs.read`` returns it, oldest round first.
            half_life: Rounds of the log after which the share of outcomes that are used halves; None uses all of them.

        Returns:
            The number of outcomes that were used.

        Raises:
            SettingError: The policy follows a forecast.
            NamesError: The log has other arms or resources.
        """
        if not self.policy.teachable:
            raise SettingError(
                f"{type(self.policy).__name__} cannot learn from a log: it follows a forecast, which has no rounds of "
                "the past; use another policy, or put what the log shows into the forecast."
            )
        rows = requests.past_outcomes(self.policy, self.problem, log, half_life)
        costs = rows.costs[rows.arms != SKIP]
        beyond = (costs > largest_learnt(self._engine)).any(axis=1)
        with self._changing_wholly("teach") as engine:
            engine.teach(*rows)
            self._altered = False
            engine.restore_terms()
            engine.desk.overruns.costs[0] += np.count_nonzero(beyond)
        self._warnings.log(self._engine, costs, beyond, stacklevel=2)
        return len(rows.arms)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner to one file; :meth:`load` continues from there, bit for bit.

        The file's permissions are kept and symbolic links are followed. The first file that a learner is saved to is
        held for writing, as by :meth:`load`.

        Args:
            path: The file to write. If writing fails, it keeps its previous content.

        Raises:
            FileInUseError: Another process holds the file for writing.
        """
        check_target(path)
        held = hold(path)
        with self._lock:
            data = self.to_bytes()
            with atomic_write(Path(path)) as stream:
                stream.write(data)
            if self._file is None:
                self._file = held

    def to_bytes(self) -> bytes:
        """Return what :meth:`save` writes; :meth:`from_bytes` reads it.

        Returns:
            The learner as bytes.
        """
        with self._lock:
            return (self._busy and self._kept) or learner_file.encode(self._snapshot())

    def state_hash(self) -> str:
        """Return a digest of everything that decides what the learner does next.

        Learners with equal digests decide the same from now on, if they are told the same.

        Returns:
            The digest, 64 hexadecimal digits.
        """
        with self._lock:
            return learner_file.state_hash(self._snapshot())

    def _snapshot(self) -> learner_file.Snapshot:
        """What the learner consists of; between any two instructions of Python it is whole."""
        return learner_file.Snapshot(self._engine, self._clock, self._register.lineage)

    @classmethod
    def load(cls, path: str | os.PathLike[str], read_only: bool = False) -> Learner:
        """Read a file that :meth:`save` wrote. The policy's class must have been imported.

        The file is held for writing as long as the learner exists: no other process can load it or save to it
        meanwhile, since each would spend the whole budget. A lock beside it, ``FILE.lock``, names the process.

        Args:
            path: The file.
            read_only: Whether to read the file without holding it, to inspect it while another process uses it.

        Returns:
            A learner that continues where the saved one stopped, bit for bit.

        Raises:
            FileFormatError: The file is damaged, of another kind or of another version, or a folder.
            FileInUseError: Another process holds the file for writing.
        """
        held = None if flag(read_only, "read_only") else hold(path)
        learner = cls._restored(learner_file.decode(read_bytes(path, learner_file.KIND), str(path)))
        learner._file = held
        return learner

    @classmethod
    def from_bytes(cls, data: bytes) -> Learner:
        """Read what :meth:`to_bytes` returned. The policy's class must have been imported.

        Args:
            data: The bytes.

        Returns:
            A learner that continues where the other one was, bit for bit.

        Raises:
            FileFormatError: The bytes are damaged, of another kind or of another version.
        """
        return cls._restored(learner_file.decode(data, "the data"))

    @classmethod
    def _restored(cls, snapshot: learner_file.Snapshot) -> Learner:
        """A learner from a snapshot that was checked."""
        learner = cls.__new__(cls)
        learner._prepare(snapshot.engine, snapshot.clock, snapshot.lineage)
        return learner

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle through the format of files, which is checked when it is read."""
        return _unpickled, (type(self), self.policy, self.to_bytes())


def _unpickled(cls: type[Learner], policy: Policy, data: bytes) -> Learner:
    """Restore a learner; ``policy`` is pickled too, so that the module that defines it is imported."""
    learner = cls.from_bytes(data)
    if learner.policy != policy:
        raise FileFormatError(f"the pickled learner must be of {policy}, got {learner.policy}.")
    return learner
