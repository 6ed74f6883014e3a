"""The value of a budget: the optima of an instance, the prices of its resources, and the effect of 10% more or less."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.benchmarks import fixed_distribution, lp_dynamic, single_step
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.measures.drift_kind import Optima

BUDGET_STEP: Final = 0.1
PRECISION: Final = 1e-7  # of the optimum: smaller changes of it are those of the solver, and count as 0


class BestPlan(NamedTuple):
    """The optimum of one instance and the value of its budgets, in the problem's units."""

    best: float  # LP-Dynamic, the best plan
    prices: Floats  # (d,) reward for one more unit of each resource
    less: Floats  # (d,) change of the optimum with 10% less of each resource
    more: Floats  # (d,) change of the optimum with 10% more of each resource


class BudgetValue(NamedTuple):
    """Optima of one instance and the value of its budgets, in the problem's units."""

    best: float  # LP-Dynamic, the best plan
    even: float  # the best policy that spends the same in every round
    fixed: float  # the best fixed mix
    prices: Floats  # (d,) reward for one more unit of each resource
    less: Floats  # (d,) change of the optimum with 10% less of each resource
    more: Floats  # (d,) change of the optimum with 10% more of each resource

    @property
    def optima(self) -> Optima:
        """The three optima that tell the kinds of drift apart."""
        return Optima(self.best, self.even, self.fixed)

    @property
    def timing(self) -> float:
        """Share of the optimum that only planning when to spend can gain."""
        return self.optima.timing

    @property
    def tracking(self) -> float:
        """Share of the optimum that only tracking the changes can gain."""
        return self.optima.tracking

    def to_dict(self) -> dict[str, Any]:
        """Return the values as plain data."""
        plain = {name: part.tolist() if isinstance(part, np.ndarray) else part for name, part in self._asdict().items()}
        return {**plain, "timing": self.timing, "tracking": self.tracking}


def budget_value(instance: Instance) -> BudgetValue:
    """Compute the optima, the prices and the value of 10% of each budget.

    >>> import driftsack as ds
    >>> value = budget_value(ds.instances.example_3(alpha=0.5))
    >>> round(value.timing, 2), value.less.round().tolist()
    (0.15, [-125.0, -125.0])
    """
    found = best_plan(instance)
    even, fixed = single_step(instance).value, fixed_distribution(instance).value
    return BudgetValue(found.best, even, fixed, found.prices, found.less, found.more)


def best_plan(instance: Instance) -> BestPlan:
    """Compute the optimum, the prices and the value of 10% of each budget."""
    best = lp_dynamic(instance)
    factors = (1 - BUDGET_STEP, 1 + BUDGET_STEP)
    scaled = [
        [lp_dynamic(_with_scaled_budget(instance, j, factor)).value for factor in factors]
        for j in range(instance.resources)
    ]
    changes = np.array(scaled) - best.value
    changes[np.abs(changes) <= PRECISION * best.value] = 0.0
    prices = np.zeros(instance.resources) if best.prices is None else best.prices
    unit = np.maximum(instance.problem.budget, instance.problem.cost_max)
    return BestPlan(
        best=best.value,
        prices=np.where(prices * unit > PRECISION * best.value, prices, 0.0),
        less=np.minimum(changes[:, 0], 0.0),
        more=np.maximum(changes[:, 1], 0.0),
    )


def _with_scaled_budget(instance: Instance, j: int, factor: float) -> Instance:
    """Return the instance with the budget of resource j multiplied by ``factor``."""
    budget = np.array(instance.problem.budget)
    budget[j] *= factor
    return _with_budget(instance, budget)


def with_last_cost(instance: Instance) -> Instance:
    """Return the instance with budgets that are larger by the largest cost of a round.

    A policy plays until a budget is exceeded, so it may use up to one cost more than the budget. No policy earns more
    on average than the optimum of this instance.
    """
    return _with_budget(instance, np.add(instance.problem.budget, instance.problem.cost_max))


def _with_budget(instance: Instance, budget: Floats) -> Instance:
    problem = replace(instance.problem, budget=tuple(budget.tolist()))
    return Instance(problem, instance.rewards, instance.costs, instance.phase, instance.noise)
