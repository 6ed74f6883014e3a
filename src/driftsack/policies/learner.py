"""``Learner``: a policy started on a problem. Ask for a decision, act on it, tell what came of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from driftsack.core import files
from driftsack.core.checks import Floats, floats, number, within
from driftsack.core.decision import SKIP, Decision
from driftsack.core.errors import (
    AlreadyToldError,
    BudgetExhaustedError,
    FileFormatError,
    HorizonReachedError,
    OutcomeError,
    UnknownDecisionError,
)
from driftsack.core.problem import Problem
from driftsack.core.seeding import Seed, generator
from driftsack.numerics.ledger import affordable, broken, charge, open_ledger
from driftsack.policies.policy import STUCK, Policy, choose, from_spec, learn, unstick

_VERSION = 1


class Learner:
    """Ask and tell, in people's units.

    Each ``ask`` begins a round, whether or not earlier rounds were told: feedback may come late and out of
    order, and counts for the round it belongs to. A ``SKIP`` needs no ``tell``. With ``safe=True`` a round is
    skipped unless every budget can bear ``cost_max`` for it and for each decision not yet told, so no budget
    is ever overspent.

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
        self.safe = safe
        self._rng = generator(seed)
        self._state = policy.new_state(problem)
        self._ledger = open_ledger(problem.unit_budget)
        self._round = 0
        self._pending: dict[int, int] = {}  # arm of each round that was asked and not yet told

    @property
    def round(self) -> int:
        """How many rounds have begun: 0 before the first ``ask``, T after the last."""
        return self._round

    @property
    def remaining(self) -> Floats:
        """(d,) what is left of each budget; below zero where the last round overshot it."""
        left: Floats = self._ledger.budget - self._ledger.spent
        left[(left < 0) & (self._ledger.spent <= self._ledger.limit)] = 0.0  # rounding, not overspending
        left *= np.asarray(self.problem.cost_max)
        return left

    @property
    def done(self) -> bool:
        """Whether ``ask`` would refuse: the horizon is reached or a budget is broken."""
        return self._round >= self.problem.horizon or bool(broken(self._ledger))

    def ask(self) -> Decision:
        """Begin the next round and decide what to do in it."""
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
        arm = choose(self._state, self._ledger, self._round, self._rng)
        while arm == STUCK:
            unstick(self._state)
            arm = choose(self._state, self._ledger, self._round, self._rng)
        mix, unit_prices = self.policy.mix_and_prices(self._state)
        mix = mix.copy()
        if self.safe and not affordable(self._ledger, len(self._pending) + 1):
            arm = SKIP
            mix[:] = 0.0
        self._round += 1
        if arm != SKIP:
            self._pending[self._round] = arm
        prices = unit_prices * self.problem.reward_max / np.asarray(self.problem.cost_max)
        return Decision(self._round, arm, mix, prices)

    def tell(self, decision: Decision, reward: float, costs: npt.ArrayLike) -> None:
        """Say what a decision earned and used, in people's units; each decision once, in any order."""
        gain, uses = self._checked(reward, costs)
        if not isinstance(decision, Decision):
            raise UnknownDecisionError(f"tell needs the Decision that ask returned, got {decision!r:.80}.")
        if decision.arm == SKIP:
            if gain != 0.0 or uses.any():
                raise OutcomeError(
                    f"round {decision.round} was skipped: its reward and costs are 0, "
                    f"got reward {reward} and costs {uses}; a SKIP needs no tell."
                )
            return
        if not 1 <= decision.round <= self._round:
            raise UnknownDecisionError(
                f"this learner has begun rounds 1 to {self._round}, got a decision of round {decision.round}; "
                "tell the learner that was asked."
            )
        if decision.round not in self._pending:
            raise AlreadyToldError(
                f"round {decision.round} waits for no outcome: it was told before, or skipped; tell each decision once."
            )
        if self._pending[decision.round] != decision.arm:
            raise UnknownDecisionError(
                f"round {decision.round} was a decision for arm {self._pending[decision.round]}, "
                f"got one for arm {decision.arm}; tell the learner that was asked."
            )
        del self._pending[decision.round]
        charge(self._ledger, uses)
        learn(self._state, decision.round - 1, decision.arm, gain, uses)

    def _checked(self, reward: float, costs: npt.ArrayLike) -> tuple[float, Floats]:
        """Reward and costs as kernels see them, in [0, 1]."""
        gain = np.asarray(number(reward, "reward"))
        uses = floats(np.atleast_1d(costs), "costs", (self.problem.resources,))
        most = np.asarray(self.problem.cost_max)
        within(gain, 0.0, self.problem.reward_max, "reward")
        within(uses, 0.0, most, "costs")
        return float(gain) / self.problem.reward_max, uses / most

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner to one file; :meth:`load` goes on from there, bit for bit."""
        content = {
            "policy": self.policy.to_spec(),
            "problem": self.problem.to_dict(),
            "safe": self.safe,
            "round": self._round,
            "pending": list(self._pending.items()),
            "rng": self._rng.bit_generator.state,
        }
        arrays = dict(_arrays("state", self._state)) | dict(_arrays("ledger", self._ledger))
        files.write(path, "learner", _VERSION, content, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Learner:
        """Read what :meth:`save` wrote. The policy's class must have been imported."""
        content, arrays = files.read(path, "learner", _VERSION)
        try:
            learner = cls(from_spec(content["policy"]), Problem(**content["problem"]), safe=content["safe"])
            learner._round = int(content["round"])
            learner._pending = {int(t): int(arm) for t, arm in content["pending"]}
            learner._rng.bit_generator.state = content["rng"]
            places = dict(_arrays("state", learner._state)) | dict(_arrays("ledger", learner._ledger))
            if places.keys() != arrays.keys():
                raise ValueError(f"expected arrays {sorted(places)}, got {sorted(arrays)}")
            for name, place in places.items():
                if arrays[name].shape != place.shape or arrays[name].dtype != place.dtype:
                    raise ValueError(f"array {name} has another shape or type than this problem needs")
                place[...] = arrays[name]
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"{path} holds a learner that does not fit together: {error}") from error
        return learner


def _arrays(name: str, part: Any) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Every array of a state with a name that says where it sits."""
    if isinstance(part, np.ndarray):
        yield name, part
    elif isinstance(part, tuple) and hasattr(part, "_fields"):
        for field, value in zip(part._fields, part, strict=True):
            yield from _arrays(f"{name}.{field}", value)
