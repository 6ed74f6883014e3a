"""``Problem``: what a learner is told before the first round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import above_zero, vector, whole
from driftsack.core.errors import NegativeBudgetError, OutOfRangeError


@dataclass(frozen=True, init=False)
class Problem:
    """Horizon T, m arms, a budget for each of d resources, and the units that people speak.

    ``reward_max`` is the most that one round can earn and ``cost_max`` the most that it can use of each
    resource. The face of the library divides by them once; kernels and theory see [0, 1].

    >>> problem = Problem(horizon=10_000, arms=3, budget=[500, 800], cost_max=[1, 0.5])
    >>> problem.resources, problem.rate
    (2, array([0.05, 0.16]))
    """

    horizon: int
    arms: int
    budget: tuple[float, ...]  # (d,) in people's units
    reward_max: float
    cost_max: tuple[float, ...]  # (d,) in people's units

    def __init__(
        self,
        horizon: int,
        arms: int,
        budget: Sequence[float] | Floats | float,
        reward_max: float = 1.0,
        cost_max: Sequence[float] | Floats | float = 1.0,
    ) -> None:
        amounts = vector(budget, "budget")
        if amounts.size == 0:
            raise OutOfRangeError("budget must name at least one resource, got none.")
        if (amounts < 0).any():
            raise NegativeBudgetError(f"budget must be 0 or more, got {amounts.min():g}.")
        most = vector(cost_max, "cost_max", amounts.size)
        if (most <= 0).any():
            raise OutOfRangeError(f"cost_max must be above 0, got {most.min():g}.")
        gain = above_zero(reward_max, "reward_max")
        values = {
            "horizon": whole(horizon, "horizon", at_least=1),
            "arms": whole(arms, "arms", at_least=1),
            "budget": tuple(amounts.tolist()),
            "reward_max": gain,
            "cost_max": tuple(most.tolist()),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def resources(self) -> int:
        """The number d of budgeted resources."""
        return len(self.budget)

    @property
    def unit_budget(self) -> Floats:
        """(d,) budgets as kernels see them: in units of ``cost_max``."""
        amounts: Floats = np.asarray(self.budget) / np.asarray(self.cost_max)
        return amounts

    @property
    def rate(self) -> Floats:
        """(d,) budget per round as kernels see it, b = B/T."""
        rate: Floats = self.unit_budget / self.horizon
        return rate

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, enough to build an equal problem: ``Problem(**problem.to_dict())``."""
        return {
            "horizon": self.horizon,
            "arms": self.arms,
            "budget": list(self.budget),
            "reward_max": self.reward_max,
            "cost_max": list(self.cost_max),
        }
