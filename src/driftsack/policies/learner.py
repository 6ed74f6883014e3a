"""``Learner``: a policy started on a problem. Ask for a decision, act on it, tell what came of it."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core import file_format
from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import flag, floats, vector, within
from driftsack.core.decision import SKIP, Decision
from driftsack.core.errors import (
    AlreadyToldError,
    BudgetExhaustedError,
    FileFormatError,
    HorizonReachedError,
    OutcomeError,
    OutOfRangeError,
    UnknownDecisionError,
)
from driftsack.core.problem import Problem
from driftsack.core.seeding import Seed, generator
from driftsack.game.ledger import affordable, broken, charge, open_ledger, without_rounding
from driftsack.policies.policy import STUCK, Policy, arrays, from_spec, runnable, unstick

_VERSION = 2


class Learner:
    """Ask and tell, in people's units; safe to share between threads.

    Each ``ask`` begins a round, whether or not earlier rounds were told: feedback may come late and out of
    order, and counts for the round it belongs to. A ``SKIP`` needs no ``tell``. With ``safe=True`` a round is
    skipped unless every budget can bear ``cost_max`` for it and for each decision not yet told, so no budget
    is ever overspent; such a learner never exhausts a budget but skips until the horizon.

    >>> from driftsack.core import Problem
    >>> from driftsack.policies import NaiveUCB
    >>> learner = NaiveUCB().start(Problem(horizon=100, arms=3, budget=[20, 30]), seed=0)
    >>> decision = learner.ask()
    >>> learner.tell(decision, reward=0.7, costs=[0.5, 0.25])
    >>> learner.round, learner.remaining
    (1, array([19.5 , 29.75]))
    """

    def __init__(self, policy: Policy, problem: Problem, seed: Seed = 0, safe: bool = False) -> None:
        self.policy = policy
        self.problem = problem
        self.safe = flag(safe, "safe")
        self._lock = threading.Lock()  # kernels release the GIL: two threads must not be in one state
        self._rng = generator(seed)
        self._state = policy.new_state(problem)
        self._choose, self._learn = runnable(self._state, "choose"), runnable(self._state, "learn")
        self._ledger = open_ledger(problem.unit_budget, problem.horizon)
        self._round = 0
        self._fallbacks = 0
        self._pending: dict[int, Decision] = {}  # rounds that were asked and not yet told

    @property
    def round(self) -> int:
        """How many rounds have begun: 0 before the first ``ask``, T after the last."""
        return self._round

    @property
    def remaining(self) -> Floats:
        """(d,) what is left of each budget; below zero where rounds overshot it."""
        left: Floats = self._ledger.budget - without_rounding(self._ledger)
        left *= np.asarray(self.problem.cost_max)
        return left

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The decisions that wait for ``tell``, oldest first; a restored learner has them too."""
        waiting = list(self._pending.values())  # one step for the interpreter, whatever other threads do
        return tuple(sorted(waiting, key=lambda decision: decision.round))

    @property
    def done(self) -> bool:
        """Whether ``ask`` would refuse: the horizon is reached or a budget is broken."""
        return self._round >= self.problem.horizon or bool(broken(self._ledger))

    def __repr__(self) -> str:
        left = ", ".join(f"{amount:g}" for amount in self.remaining)
        waiting = f", {len(self._pending)} pending" if self._pending else ""
        return f"Learner({self.policy}, round {self._round} of {self.problem.horizon}, remaining [{left}]{waiting})"

    @property
    def fallbacks(self) -> int:
        """How many step LPs HiGHS had to solve because ours could not certify its answer."""
        return self._fallbacks

    def ask(self) -> Decision:
        """Begin the next round and decide what to do in it."""
        with self._lock:
            return self._ask()

    def _ask(self) -> Decision:
        if self._round >= self.problem.horizon:
            raise HorizonReachedError(
                f"the problem has {self.problem.horizon} rounds and all have begun; "
                "start a new learner for a new problem."
            )
        if broken(self._ledger):
            raise BudgetExhaustedError(
                f"a budget is broken (remaining: {self.remaining}), so round {self._round + 1} cannot begin; "
                "stop here, or start with safe=True to stop before that."
            )
        mix, unit_prices = np.zeros(self.problem.arms), np.zeros(self.problem.resources)
        arm = self._choose(self._state, self._ledger, self._round, self._rng, mix, unit_prices)
        if arm == STUCK:
            self._fallbacks += unstick(self._state)
            warnings.warn(f"the step LP of round {self._round + 1} was solved by HiGHS.", RuntimeWarning, stacklevel=3)
            arm = self._choose(self._state, self._ledger, self._round, self._rng, mix, unit_prices)
        if not SKIP <= arm < self.problem.arms:
            raise OutOfRangeError(
                f"choose of {self.policy} must return an arm in [0, {self.problem.arms - 1}] or SKIP (-1), and STUCK "
                f"(-2) once at most; in round {self._round + 1} it returned {arm}."
            )
        if self.safe and not affordable(self._ledger, len(self._pending) + 1):
            arm = SKIP
            mix[:] = 0.0
        if arm == SKIP:
            self._learn(self._state, self._round, SKIP, 1.0 - mix.sum(), 0.0, np.zeros(self.problem.resources))
        self._round += 1
        prices = unit_prices * self.problem.reward_max / np.asarray(self.problem.cost_max)
        decision = Decision(self._round, arm, mix, prices)
        if arm != SKIP:
            self._pending[self._round] = decision
        return decision

    def tell(self, decision: Decision, reward: float, costs: npt.ArrayLike) -> None:
        """Say what a decision earned and used, in people's units; each decision once, in any order."""
        gain, uses = self._checked(reward, costs)
        with self._lock:
            own = self._own(decision)
            if own is None:
                if gain != 0.0 or uses.any():
                    raise OutcomeError(
                        f"round {decision.round} was skipped: its reward and costs are 0, "
                        f"got reward {reward} and costs {uses}; a SKIP needs no tell."
                    )
                return
            self._learn(self._state, own.round - 1, own.arm, float(own.mix[own.arm]), gain, uses)
            charge(self._ledger, uses)
            del self._pending[own.round]

    def cancel(self, decision: Decision, costs: npt.ArrayLike | None = None) -> None:
        """Say that a decision's outcome will never come; ``costs``, where known, are charged, and nothing is learnt."""
        _, uses = self._checked(0.0, np.zeros(self.problem.resources) if costs is None else costs)
        with self._lock:
            own = self._own(decision)
            if own is not None:
                charge(self._ledger, uses)
                del self._pending[own.round]

    def _own(self, decision: Decision) -> Decision | None:
        """This learner's decision that waits for its outcome; None for a SKIP; or an error that says why not."""
        if not isinstance(decision, Decision):
            raise UnknownDecisionError(f"tell needs the Decision that ask returned, got {decision!r:.80}.")
        if not 1 <= decision.round <= self._round:
            raise UnknownDecisionError(
                f"this learner has begun rounds 1 to {self._round}, got a decision of round {decision.round}; "
                "tell the learner that was asked."
            )
        own = self._pending.get(decision.round)
        if own is None:
            if decision.arm == SKIP:
                return None
            raise AlreadyToldError(
                f"round {decision.round} waits for no outcome: it was told before, or skipped; tell each decision once."
            )
        if own.arm != decision.arm or not np.array_equal(own.mix, decision.mix):
            raise UnknownDecisionError(
                f"round {decision.round} was a decision for arm {own.arm} by mix {own.mix}, "
                f"got one for arm {decision.arm} by mix {decision.mix}; tell the learner that was asked."
            )
        return own

    def _checked(self, reward: float, costs: npt.ArrayLike) -> tuple[float, Floats]:
        """Reward and costs as kernels see them, in [0, 1]."""
        most = np.asarray(self.problem.cost_max)
        gain = within(
            floats(reward, "reward", ()), 0.0, self.problem.reward_max, "reward", "; clip it or set reward_max"
        )
        single = self.problem.resources == 1 and np.ndim(costs) == 0
        uses = vector(costs, "costs", 1) if single else floats(costs, "costs", (self.problem.resources,))
        uses = within(uses, 0.0, most, "costs", "; clip it or set cost_max, the most that one round may cost")
        return float(gain) / self.problem.reward_max, uses / most

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner to one file; :meth:`load` goes on from there, bit for bit."""
        with self._lock:
            content = {
                "policy": self.policy.to_spec(),
                "problem": self.problem.to_dict(),
                "safe": self.safe,
                "round": self._round,
                "fallbacks": self._fallbacks,
                "rng": self._rng.bit_generator.state,
            }
            waiting = _Pending.of(self.pending, self.problem)
            everything = self._arrays() | arrays(waiting, "pending")
            file_format.write(path, "learner", _VERSION, content, everything)

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Every array that makes up state and ledger."""
        return arrays(self._state, "state") | arrays(self._ledger, "ledger")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Learner:
        """Read what :meth:`save` wrote. The policy's class must have been imported."""
        content, stored = file_format.read(path, "learner", _VERSION)
        try:
            learner = cls(from_spec(content["policy"]), Problem(**content["problem"]), safe=content["safe"])
            learner._round, learner._fallbacks = int(content["round"]), int(content["fallbacks"])
            waiting = _Pending(*(stored.pop(f"pending.{field}") for field in _Pending._fields))
            learner._pending = {d.round: d for d in waiting.decisions()}
            learner._rng.bit_generator.state = content["rng"]
            places = learner._arrays()
            if places.keys() != stored.keys():
                raise ValueError(f"expected arrays {sorted(places)}, got {sorted(stored)}")
            for name, place in places.items():
                if stored[name].shape != place.shape or stored[name].dtype != place.dtype:
                    raise ValueError(f"array {name} has another shape or type than this problem needs")
                place[...] = stored[name]
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"{path} holds a learner that does not fit together: {error}") from error
        return learner


class _Pending(NamedTuple):
    """Decisions that wait, as arrays for a file."""

    rounds: Ints  # (n,)
    arms: Ints  # (n,)
    mixes: Floats  # (n, m)
    prices: Floats  # (n, d)

    @classmethod
    def of(cls, decisions: tuple[Decision, ...], problem: Problem) -> _Pending:
        return cls(
            np.array([d.round for d in decisions], dtype=np.int64),
            np.array([d.arm for d in decisions], dtype=np.int64),
            np.array([d.mix for d in decisions]).reshape(-1, problem.arms),
            np.array([d.prices for d in decisions]).reshape(-1, problem.resources),
        )

    def decisions(self) -> Iterator[Decision]:
        for t, arm, mix, prices in zip(*self, strict=True):
            yield Decision(int(t), int(arm), mix, prices)
