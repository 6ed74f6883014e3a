"""What a budget is worth in a world, and whether drift moves what to play (V-type) or when to spend (W-type).

Three optima tell the two apart: LP-Dynamic (``best``) may spend when it likes and change its mix in every round; even
allocation (``even``) may change its mix but spends the same in every round; the best fixed mix (``fixed``) never
changes until a budget is gone. ``timing`` = (best - even) / best is what only planning can win; ``tracking`` = (even -
fixed) / best is what only following the changes can.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.benchmarks import fixed_distribution, lp_dynamic, single_step
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem

SMALL: Final = 0.02  # of the optimum; below it drift does not matter for a budget
BUDGET_STEP: Final = 0.1
STILL: Final = "still"  # no drift was found
HARMLESS: Final = "harmless"  # drift was found, and one fixed mix does almost as well as anything
WHICH: Final = "which"  # V-type: what to play moves
WHEN: Final = "when"  # W-type: when to spend moves


class Worth(NamedTuple):
    """Optima of one world, in people's units."""

    best: float
    even: float
    fixed: float
    prices: Floats  # (d,) reward for one more unit of each resource
    less: Floats  # (d,) change of the optimum with 10% less of each resource
    more: Floats  # (d,) the same with 10% more

    @property
    def timing(self) -> float:
        """Share of the optimum that only planning when to spend can win."""
        return (self.best - self.even) / self.best if self.best > 0 else 0.0

    @property
    def tracking(self) -> float:
        """Share of the optimum that only following the changes can win."""
        return (self.even - self.fixed) / self.best if self.best > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        plain = {name: part.tolist() if isinstance(part, np.ndarray) else part for name, part in self._asdict().items()}
        return {**plain, "timing": self.timing, "tracking": self.tracking}


def worth(world: Instance) -> Worth:
    """Solve for the optima, the prices and what 10% of each budget is worth.

    >>> import driftsack as ds
    >>> found = worth(ds.instances.example_3(alpha=0.5))
    >>> round(found.timing, 2), found.less.round().tolist()
    (0.15, [-125.0, -125.0])
    """
    best = lp_dynamic(world)
    factors = (1 - BUDGET_STEP, 1 + BUDGET_STEP)
    others = [[lp_dynamic(_with_budget(world, j, factor)).value for factor in factors] for j in range(world.resources)]
    changes = np.array(others) - best.value
    prices = np.zeros(world.resources) if best.prices is None else best.prices
    return Worth(
        best=best.value,
        even=single_step(world).value,
        fixed=fixed_distribution(world).value,
        prices=prices,
        less=np.minimum(changes[:, 0], 0.0),
        more=np.maximum(changes[:, 1], 0.0),
    )


def _with_budget(world: Instance, j: int, factor: float) -> Instance:
    """The same world with another budget of resource j."""
    told = world.problem
    budget = np.array(told.budget)
    budget[j] *= factor
    problem = Problem(told.horizon, told.arms, budget, told.reward_max, told.cost_max)
    return Instance(problem, world.rewards, world.costs, world.phase, world.noise)


def kind_of_drift(found: bool, value: Worth) -> str:
    """``still``, ``harmless``, ``which`` (V-type) or ``when`` (W-type)."""
    if not found:
        return STILL
    if max(value.timing, value.tracking) < SMALL:
        return HARMLESS
    return WHEN if value.timing >= value.tracking else WHICH
