r"""LagrangeCBwK with any regression (Slivkins, Zhou, Sankararaman and Foster 2024), in plain Python.

The primal is SquareCB: with estimates :math:`\hat r, \hat c` of a regression and prices q, the value of an arm is
:math:`v_i = \hat r_i - q^\top \hat c_i / b`, that of skipping 0, and every action but the best has the probability
:math:`1/(m + 1 + \gamma \sqrt t\, (v^* - v_i))`. The dual takes a step after each round,

.. math:: q_j \leftarrow \max\bigl(0,\, q_j + \eta\, (c_j / b_j - 1)\bigr),

also after a skip, which lowers prices; the overshoot is not clipped. The step is not from their paper.

A regression is any object with ``partial_fit(X, y)`` and ``predict(X)``, as scikit-learn has them, or with
``learn_one(x, y)`` and ``predict_one(x)``, as river has them. ``simulate`` accepts this policy; it is not part of the
compiled library, has no file and costs what the regressions cost: a fit of 1 + d and m (1 + d) predictions a round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats
from driftsack.core.checks import above_zero
from driftsack.core.decision import SKIP, Decision
from driftsack.core.encoder import Context, checked_context
from driftsack.core.errors import SettingError
from driftsack.core.problem import Problem
from driftsack.core.seeding import Seed, generator
from driftsack.game.units import checked_outcome


@dataclass(frozen=True)
class LagrangeCBwK:
    """Inverse gap weighting on any regression, with a dual step.

    Attributes:
        regression: Returns a new regression for one outcome of one arm.
        learning_rate: How fast the probabilities of worse arms fall with their gaps.
        step: The step of the dual.

    >>> class Mean:
    ...     total, count = 0.0, 0
    ...     def partial_fit(self, X, y):
    ...         self.total, self.count = self.total + y[0], self.count + 1
    ...     def predict(self, X):
    ...         return [self.total / max(self.count, 1)]
    >>> learner = LagrangeCBwK(Mean).start(Problem(horizon=9, arms=2, budget=3, features=1), seed=0)
    >>> decision = learner.ask(context=[0.5])
    >>> learner.tell(decision, reward=1.0, costs=[0.5])
    >>> learner.prices.round(3).tolist()
    [0.01]
    """

    regression: Callable[[], Any]
    learning_rate: float = 50.0
    step: float = 0.02

    def __post_init__(self) -> None:
        above_zero(self.learning_rate, "learning_rate")
        above_zero(self.step, "step")

    def start(self, problem: Problem, seed: Seed = 0) -> LagrangeLearner:
        """Start a learner.

        Args:
            problem: The problem, with features.
            seed: The seed of its randomness.

        Returns:
            The learner, with ``ask`` and ``tell``.
        """
        if not problem.features:
            raise SettingError("LagrangeCBwK decides by the features of requests; declare Problem(features=...).")
        return LagrangeLearner(self, problem, seed)


class LagrangeLearner:
    """A started ``LagrangeCBwK``; outcomes may arrive late.

    Attributes:
        prices: (d,) the prices, in reward per budget rate.
    """

    def __init__(self, policy: LagrangeCBwK, problem: Problem, seed: Seed) -> None:
        self.policy, self.problem = policy, problem
        self.prices: Floats = np.zeros(problem.resources)
        self._rng = generator(seed)
        self._models = [[policy.regression() for _ in range(1 + problem.resources)] for _ in range(problem.arms)]
        self._pulls = np.zeros(problem.arms)
        self._rate = np.asarray(problem.budget) / problem.horizon
        self._rounds = 0

    def ask(self, context: Context) -> Decision:
        """Begin a round and choose an arm or to skip.

        Args:
            context: The features of the request.

        Returns:
            The decision.
        """
        x = checked_context(self.problem.encoder, self.problem.features, context)
        values = np.append([self._value(arm, x) for arm in range(self.problem.arms)], 0.0)  # the last is SKIP
        chances = np.zeros(values.size)
        if (self._pulls == 0).any():
            chances[np.argmin(self._pulls)] = 1.0
        else:
            best, rate = int(values.argmax()), self.policy.learning_rate * math.sqrt(self._rounds + 1.0)
            chances = 1.0 / (values.size + rate * (values[best] - values))
            chances[best] += 1.0 - chances.sum()
        arm = int(self._rng.choice(values.size, p=chances))
        arm = SKIP if arm == self.problem.arms else arm
        self._rounds += 1
        if arm == SKIP:
            self._move(np.zeros(self.problem.resources))
        else:
            self._pulls[arm] += 1
        name = None if arm == SKIP else self.problem.arm_names[arm]
        return Decision(self._rounds, arm, chances[:-1], self.prices / self._rate, name, context=x)

    def tell(self, decision: Decision, reward: float, costs: npt.ArrayLike | Mapping[str, float]) -> None:
        """Report the outcome of a decision for an arm.

        Args:
            decision: What ``ask`` returned.
            reward: The reward.
            costs: The costs, in order or by name.
        """
        gain, uses = checked_outcome(self.problem, reward, costs)
        if decision.arm == SKIP or decision.context is None:
            return
        outcomes = [gain / self.problem.reward_max, *(uses / self._rate).tolist()]
        for model, value in zip(self._models[decision.arm], outcomes, strict=True):
            _fit(model, decision.context, value)
        self._move(uses / self._rate)

    def _value(self, arm: int, x: Floats) -> float:
        """The reward of an arm less the price of its costs."""
        if self._pulls[arm] == 0:
            return 0.0
        gain, *uses = (_predict(model, x) for model in self._models[arm])
        return float(gain - self.prices @ np.array(uses))

    def _move(self, used: Floats) -> None:
        """The dual step."""
        self.prices = np.maximum(self.prices + self.policy.step * (used - 1.0), 0.0)


def _fit(model: Any, x: Floats, value: float) -> None:
    if hasattr(model, "learn_one"):
        model.learn_one(dict(enumerate(x.tolist())), value)
    else:
        model.partial_fit(x[None], np.array([value]))


def _predict(model: Any, x: Floats) -> float:
    if hasattr(model, "predict_one"):
        return float(model.predict_one(dict(enumerate(x.tolist()))))
    try:
        return float(model.predict(x[None])[0])
    except Exception as error:
        if type(error).__name__ == "NotFittedError":  # its first outcome is still awaited
            return 0.0
        raise
