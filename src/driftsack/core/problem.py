"""``Problem``: what a learner knows before the first round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats
from driftsack.core.checks import above_zero, vector, whole
from driftsack.core.errors import NamesError, NegativeBudgetError, OutOfRangeError
from driftsack.core.names import Amounts, by_name, checked_names, default_arm_names, default_resource_names


@dataclass(frozen=True, init=False, repr=False)
class Problem:
    """Horizon, arms, budgets and units.

    Rewards and costs are given in natural units. Internally they are normalised to [0, 1] by ``reward_max`` and
    ``cost_max``. Arms and resources may have names: pass ``arms`` as a list of names and ``budget`` as a mapping from
    names to numbers. What has names is matched by name, whatever its order: costs that are told, logs, forecasts.

    Attributes:
        horizon: The number T of rounds.
        arms: The number m of arms; pass their names to name them.
        budget: The budget of each of d resources; one number for a single resource. Pass a mapping to name them.
        reward_max: The most that one round can earn.
        cost_max: The most that one round can use of each resource, in the order of ``budget`` or by name; one number
            for all of them.
        arm_names: The names of the arms, ``"0"``, ``"1"``, ... if they were given none. As an argument, the names for a
            number of ``arms``.
        resource_names: The names of the resources, ``"cost_0"``, ``"cost_1"``, ... if they were given none. As an
            argument, the names for a ``budget`` in order.

    Raises:
        NamesError: Names are repeated or empty, or ``cost_max`` has other names than ``budget``.
        NegativeBudgetError: A budget is below 0.
        OutOfRangeError: The horizon, the number of arms, ``reward_max`` or ``cost_max`` is not positive.
        ShapeError: There are not as many maxima as budgets.

    >>> problem = Problem(horizon=10_000, arms=3, budget=[500, 800], cost_max=[1, 0.5])
    >>> problem.resources, problem.rate
    (2, array([0.05, 0.16]))
    >>> named = Problem(horizon=20_000, arms=["small", "large"], budget={"usd": 200, "seconds": 50_000})
    >>> named.arms, named.arm_names, named.resource_names, named.budget
    (2, ('small', 'large'), ('usd', 'seconds'), (200.0, 50000.0))
    """

    horizon: int
    arms: int
    budget: tuple[float, ...]
    reward_max: float
    cost_max: tuple[float, ...]
    arm_names: tuple[str, ...]
    resource_names: tuple[str, ...]

    def __init__(
        self,
        horizon: int,
        arms: int | Sequence[str] | npt.NDArray[np.str_],
        budget: Amounts,
        reward_max: float = 1.0,
        cost_max: Amounts = 1.0,
        arm_names: Sequence[str] | None = None,
        resource_names: Sequence[str] | None = None,
    ) -> None:
        count, arm_labels = _count_and_names(arms, arm_names)
        if isinstance(budget, Mapping):
            resource_names = checked_names(budget if resource_names is None else resource_names, "budget")
            budget = by_name(budget, resource_names, "budget")
        amounts = vector(budget, "budget")
        if amounts.size == 0:
            raise OutOfRangeError("budget must have at least one resource, got none.")
        if (amounts < 0).any():
            raise NegativeBudgetError(f"budget must be 0 or more, got {amounts.min():g}.")
        if resource_names is None:
            resource_labels = default_resource_names(amounts.size)
        else:
            resource_labels = checked_names(resource_names, "resource_names", amounts.size)
        most = vector(by_name(cost_max, resource_labels, "cost_max"), "cost_max", amounts.size)
        if (most <= 0).any():
            raise OutOfRangeError(f"cost_max must be above 0, got {most.min():g}.")
        gain = above_zero(reward_max, "reward_max")
        values = {
            "horizon": whole(horizon, "horizon", at_least=1),
            "arms": count,
            "budget": tuple(amounts.tolist()),
            "reward_max": gain,
            "cost_max": tuple(most.tolist()),
            "arm_names": arm_labels,
            "resource_names": resource_labels,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """Show names where they were given, in the form in which they may be passed."""
        budget, cost_max = (
            dict(zip(self.resource_names, amounts, strict=True)) if self.named_resources else amounts
            for amounts in (self.budget, self.cost_max)
        )
        arms = list(self.arm_names) if self.named_arms else self.arms
        return (
            f"Problem(horizon={self.horizon!r}, arms={arms!r}, budget={budget!r}, reward_max={self.reward_max!r}, "
            f"cost_max={cost_max!r})"
        )

    @property
    def named_arms(self) -> bool:
        """Whether the arms were given names."""
        return self.arm_names != default_arm_names(self.arms)

    @property
    def named_resources(self) -> bool:
        """Whether the resources were given names."""
        return self.resource_names != default_resource_names(self.resources)

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
        """Return plain numbers and names from which ``Problem(**problem.to_dict())`` builds an equal problem.

        Returns:
            The arguments of the constructor; names only where they were given.
        """
        names = {"arm_names": list(self.arm_names)} if self.named_arms else {}
        names |= {"resource_names": list(self.resource_names)} if self.named_resources else {}
        return {
            "horizon": self.horizon,
            "arms": self.arms,
            "budget": list(self.budget),
            "reward_max": self.reward_max,
            "cost_max": list(self.cost_max),
            **names,
        }


def _count_and_names(arms: Any, arm_names: Any) -> tuple[int, tuple[str, ...]]:
    """Return the number of arms and their names, from a number or from names."""
    if isinstance(arms, Iterable) and getattr(arms, "ndim", None) != 0:
        names = checked_names(arms, "arms")
        if arm_names is not None and checked_names(arm_names, "arm_names") != names:
            raise NamesError(f"arm_names must be omitted or the same as the names in arms, got {arm_names!r:.80}.")
        return len(names), names
    count = whole(arms, "arms", at_least=1)
    return count, default_arm_names(count) if arm_names is None else checked_names(arm_names, "arm_names", count)
