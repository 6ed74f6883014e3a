r"""OPT_DP: what the best adaptive policy earns that knows all distributions, under the hard stop rule; exactly.

Backward induction over rounds and remaining budgets s on a grid,

.. math:: V_t(s) = \max\Bigl\{ V_{t+1}(s), \;
          \max_i \sum_c P_t(c \mid i) \, 1\{c \le s\} \bigl(\mu_{t,i} + V_{t+1}(s - c)\bigr) \Bigr\}, \quad V_{T+1} = 0:

a round whose cost exceeds what is left of a resource earns nothing and ends the game. Costs must lie on a grid:
Bernoulli ones are 0 or ``cost_max``; deterministic ones must be fractions with a common denominator of at most 10,000.
Cost: T m S :math:`2^d` operations and two tables of S states, S the product of the budgets in grid steps.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from driftsack.benchmarks.result import Benchmark
from driftsack.core.arrays import Floats, Ints
from driftsack.core.errors import SettingError, TooLargeError
from driftsack.core.instance import Instance
from driftsack.numerics.compiled import kernel

MOST_RESOURCES: Final = 2
FINEST: Final = 10_000
DEFAULT_MEMORY: Final = 2**31


@kernel
def step_back(
    rewards: Floats, chance: Floats, steps: Ints, later: Floats, now: Floats, rows: int, columns: int
) -> None:
    """One round of the induction; ``chance (m, 4)`` of each pattern of costs, ``steps (m, 2)`` their size."""
    for a in range(rows):
        for b in range(columns):
            best = later[a, b]
            for i in range(rewards.size):
                worth = 0.0
                for pattern in range(4):
                    p = chance[i, pattern]
                    left_a = a - steps[i, 0] * (pattern & 1)
                    left_b = b - steps[i, 1] * (pattern >> 1)
                    if p > 0.0 and left_a >= 0 and left_b >= 0:
                        worth += p * (rewards[i] + later[left_a, left_b])
                best = max(best, worth)
            now[a, b] = best


def dynamic_program(instance: Instance, memory: int = DEFAULT_MEMORY) -> Benchmark:
    """Compute OPT_DP exactly; refuses what would need more than ``memory`` bytes, and says how much.

    >>> import driftsack as ds
    >>> world = ds.Instance.stationary([0.5, 1.0], [[0.5, 1.0]], horizon=3, budget=2.0, noise="deterministic")
    >>> dynamic_program(world).value
    2.0
    """
    resources = instance.resources
    if resources > MOST_RESOURCES:
        raise SettingError(
            f"the dynamic program takes at most {MOST_RESOURCES} resources, got {resources}; "
            "its table grows with the product of the budgets. Use lp_dynamic, which is never below it."
        )
    grid, chances = _grid(instance)
    levels = [
        math.floor(budget * steps * (1 + 1e-12))
        for budget, steps in zip(instance.problem.unit_budget, grid, strict=True)
    ]
    reach = [min(level, instance.horizon * steps) for level, steps in zip(levels, grid, strict=True)]
    rows, columns = [*(level + 1 for level in reach), 1][:2]
    needed = 2 * 8 * rows * columns
    if needed > memory:
        raise TooLargeError(
            f"the dynamic program needs {needed:,} bytes for two tables of {rows:,} x {columns:,} states, "
            f"{memory:,} are allowed; shorten the horizon, round the costs to a coarser grid, or pass memory={needed}."
        )
    rewards = instance.unit_rewards
    later, now = np.zeros((rows, columns)), np.zeros((rows, columns))
    for t in range(instance.horizon - 1, -1, -1):
        row = instance.phase[t]
        chance, steps = chances[row]
        step_back(rewards[row], chance, steps, later, now, rows, columns)
        later, now = now, later
    return Benchmark("OPT_DP", float(later[-1, -1]) * instance.problem.reward_max, 0.0, passes=instance.horizon)


def _grid(instance: Instance) -> tuple[list[int], list[tuple[Floats, Ints]]]:
    """Grid steps in a unit of each resource; for each row, chances of cost patterns and their sizes in steps."""
    costs = instance.unit_costs
    if instance.noise == "bernoulli":
        return [1] * instance.resources, [_bernoulli(row) for row in costs]
    if instance.noise == "deterministic":
        grid = [_denominator(costs[:, j]) for j in range(instance.resources)]
        return grid, [_deterministic(row, grid) for row in costs]
    raise SettingError(
        f"the dynamic program needs costs on a grid: noise 'bernoulli' or 'deterministic', got {instance.noise!r}."
    )


def _denominator(costs: Floats) -> int:
    """The least number of grid steps in a unit that puts every cost on the grid."""
    fractions = [Fraction(float(cost)).limit_denominator(FINEST) for cost in np.unique(costs)]
    steps = math.lcm(*(fraction.denominator for fraction in fractions))
    off = max(abs(float(fraction) - cost) for fraction, cost in zip(fractions, np.unique(costs), strict=True))
    if steps > FINEST or off > 1e-12:  # noqa: PLR2004
        raise SettingError(
            f"deterministic costs must be fractions with a common denominator of at most {FINEST:,}, "
            f"got {np.unique(costs)[:5]}...; round them first."
        )
    return steps


def _bernoulli(costs: Floats) -> tuple[Floats, Ints]:
    """Chances (m, 4) of which of two resources a round uses, and the use: one step each."""
    first = costs[0]
    second = costs[1] if len(costs) > 1 else np.zeros(first.size)
    chance = np.stack([(1 - first) * (1 - second), first * (1 - second), (1 - first) * second, first * second], axis=1)
    return chance, np.ones((first.size, 2), dtype=np.int64)


def _deterministic(costs: Floats, grid: list[int]) -> tuple[Floats, Ints]:
    """A certain use, in steps of the grid."""
    steps = np.zeros((costs.shape[1], 2), dtype=np.int64)
    for j, unit in enumerate(grid):
        steps[:, j] = np.rint(costs[j] * unit)
    chance = np.zeros((costs.shape[1], 4))
    chance[:, 3] = 1.0
    return chance, steps
