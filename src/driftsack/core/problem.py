"""``Problem``: what a learner knows before the first round."""

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
    """Horizon, arms, budgets and units.

    Rewards and costs are given in natural units. Internally they are normalised to [0, 1] by ``reward_max`` and
    ``cost_max``.

    Attributes:
        horizon: The number T of rounds.
        arms: The number m of arms.
        budget: The budget of each of d resources; one number for a single resource.
        reward_max: The most that one round can earn.
        cost_max: The most that one round can use of each resource; one number for all of them.

    Raises:
        NegativeBudgetError: A budget is below 0.
        OutOfRangeError: The horizon, the number of arms, ``reward_max`` or ``cost_max`` is not positive.
        ShapeError: There are not as many maxima as budgets.

    >>> problem = Problem(horizon=10_000, arms=3, budget=[500, 800], cost_max=[1, 0.5])
    >>> problem.resources, problem.rate
    (2, array([0.05, 0.16]))
    """

    horizon: int
    arms: int
    budget: tuple[float, ...]
    reward_max: float
    cost_max: tuple[float, ...]

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
            raise OutOfRangeError("budget must have at least one resource, got none.")
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
        """(d,) budgets in units of ``cost_max``."""
        amounts: Floats = np.asarray(self.budget) / np.asarray(self.cost_max)
        return amounts

    @property
    def rate(self) -> Floats:
        """(d,) budget per round in units of ``cost_max``, b = B/T."""
        rate: Floats = self.unit_budget / self.horizon
        return rate

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers from which ``Problem(**problem.to_dict())`` builds an equal problem.

        Returns:
            The arguments of the constructor.
        """
        return {
            "horizon": self.horizon,
            "arms": self.arms,
            "budget": list(self.budget),
            "reward_max": self.reward_max,
            "cost_max": list(self.cost_max),
        }
