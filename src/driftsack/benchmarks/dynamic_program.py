r"""OPT_DP: expected reward of the best adaptive policy that knows all distributions, under the hard stop rule.

Backward induction over rounds and remaining budgets s on a grid,

.. math:: V_t(s) = \max\Bigl\{ V_{t+1}(s), \;
          \max_i \sum_c P_t(c \mid i) \, 1\{c \le s\} \bigl(\mu_{t,i} + V_{t+1}(s - c)\bigr) \Bigr\}, \quad V_{T+1} = 0:

a round whose cost exceeds the remaining budget of a resource earns nothing and ends the game. The value is exact. Costs
must lie on a grid: Bernoulli costs are 0 or ``cost_max``; deterministic costs must be fractions with a common
denominator of at most 10,000. The computation takes T m S :math:`2^d` operations and two tables of S states, where S is
the product of the budgets in grid steps.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from driftsack.benchmarks.benchmark import Benchmark, check_instance
from driftsack.core.arrays import Floats, Ints
from driftsack.core.errors import SettingError, TooLargeError
from driftsack.core.instance import Instance
from driftsack.numerics.compiled import kernel

MOST_RESOURCES: Final = 2
ROUNDING: Final = 1e-12  # relative tolerance of a budget in grid steps
LARGEST_DENOMINATOR: Final = 10_000  # of the grid of deterministic costs
DEFAULT_MEMORY: Final = 2**31  # bytes
NO_COST, FIRST_ONLY, SECOND_ONLY, BOTH = range(4)  # patterns: bit j is set if resource j is used


@kernel
def backward_step(
    rewards: Floats, probability: Floats, steps: Ints, later: Floats, now: Floats, rows: int, columns: int
) -> None:
    """Compute the values of one round from the values of the next round.

    Args:
        rewards: (m,) mean rewards of the round.
        probability: (m, 4) probability of each pattern of used resources.
        steps: (m, 2) cost of each resource in grid steps, if it is used.
        later: (rows, columns) values of the next round by remaining budgets.
        now: (rows, columns) output: values of this round.
        rows: Number of grid points of the first resource.
        columns: Number of grid points of the second resource.
    """
    for a in range(rows):
        for b in range(columns):
            best = later[a, b]
            for i in range(rewards.size):
                expected = 0.0
                for pattern in range(4):
                    p = probability[i, pattern]
                    left_a = a - steps[i, 0] * (pattern & 1)
                    left_b = b - steps[i, 1] * (pattern >> 1)
                    if p > 0.0 and left_a >= 0 and left_b >= 0:
                        expected += p * (rewards[i] + later[left_a, left_b])
                best = max(best, expected)
            now[a, b] = best


def dynamic_program(instance: Instance, memory: int = DEFAULT_MEMORY) -> Benchmark:
    """Compute OPT_DP exactly, by dynamic programming.

    Args:
        instance: The instance, with at most 2 resources and noise ``"bernoulli"`` or ``"deterministic"``.
        memory: The maximum size of the tables in bytes.

    Returns:
        The benchmark, without prices and plan.

    Raises:
        SettingError: If there are more than 2 resources, or if costs do not lie on a grid.
        TooLargeError: If the tables would need more than ``memory`` bytes.

    >>> import driftsack as ds
    >>> world = ds.Instance.stationary([0.5, 1.0], [[0.5, 1.0]], horizon=3, budget=2.0, noise="deterministic")
    >>> dynamic_program(world).value
    2.0
    """
    check_instance(instance, "dynamic_program")
    # Check the size of the two tables.
    rows, columns, cost_patterns = budget_grid(instance)
    needed = 2 * 8 * rows * columns
    if needed > memory:
        raise TooLargeError(
            f"the dynamic program needs {needed:,} bytes for two tables of {rows:,} x {columns:,} states, but "
            f"{memory:,} are allowed; shorten the horizon, round the costs to a coarser grid, or pass memory={needed}."
        )
    # Backward induction from the last round.
    rewards = instance.unit_rewards
    later, now = np.zeros((rows, columns)), np.zeros((rows, columns))
    for t in range(instance.horizon - 1, -1, -1):
        row = instance.phase[t]
        probability, steps = cost_patterns[row]
        backward_step(rewards[row], probability, steps, later, now, rows, columns)
        later, now = now, later
    return Benchmark("OPT_DP", float(later[-1, -1]) * instance.problem.reward_max, 0.0, passes=instance.horizon)


class BudgetGrid(NamedTuple):
    """The grid of remaining budgets."""

    rows: int  # grid points of the first resource
    columns: int  # grid points of the second resource; 1 if there is none
    # For each distinct row of the instance, the probabilities (m, 4) of the patterns of used resources and the cost (m,
    # 2) of each resource in grid steps, if it is used.
    patterns: list[tuple[Floats, Ints]]


def budget_grid(instance: Instance) -> BudgetGrid:
    """Return the grid of remaining budgets; ``SettingError`` for over 2 resources or costs that lie on no grid."""
    if instance.resources > MOST_RESOURCES:
        raise SettingError(
            f"the dynamic program takes at most {MOST_RESOURCES} resources, got {instance.resources}; its table grows "
            "with the product of the budgets. LP-Dynamic with budgets larger by the costs of one round is an upper "
            "bound of OPT_DP for any number of resources."
        )
    grid, cost_patterns = _grid(instance)
    # The budgets in grid steps, at most what the horizon can use.
    levels = [
        math.floor(budget * steps * (1 + ROUNDING))
        for budget, steps in zip(instance.problem.unit_budget, grid, strict=True)
    ]
    reach = [min(level, instance.horizon * steps) for level, steps in zip(levels, grid, strict=True)]
    rows, columns = [*(level + 1 for level in reach), 1][:2]
    return BudgetGrid(rows, columns, cost_patterns)


def _grid(instance: Instance) -> tuple[list[int], list[tuple[Floats, Ints]]]:
    """Return the grid steps per unit of each resource, and the cost patterns of each row."""
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
    """Return the smallest number of grid steps per unit that puts every cost on the grid."""
    fractions = [Fraction(float(cost)).limit_denominator(LARGEST_DENOMINATOR) for cost in np.unique(costs)]
    steps = math.lcm(*(fraction.denominator for fraction in fractions))
    error = max(abs(float(fraction) - cost) for fraction, cost in zip(fractions, np.unique(costs), strict=True))
    if steps > LARGEST_DENOMINATOR or error > 1e-12:
        raise SettingError(
            f"deterministic costs must be fractions with a common denominator of at most {LARGEST_DENOMINATOR:,}, "
            f"got {np.unique(costs)[:5]}...; round them first."
        )
    return steps


def _bernoulli(costs: Floats) -> tuple[Floats, Ints]:
    """Return the probabilities (m, 4) of the cost patterns, and the costs (m, 2), one step each."""
    first = costs[0]
    second = costs[1] if len(costs) > 1 else np.zeros(first.size)
    probability = np.zeros((first.size, 4))
    probability[:, NO_COST] = (1 - first) * (1 - second)
    probability[:, FIRST_ONLY] = first * (1 - second)
    probability[:, SECOND_ONLY] = (1 - first) * second
    probability[:, BOTH] = first * second
    return probability, np.ones((first.size, 2), dtype=np.int64)


def _deterministic(costs: Floats, grid: list[int]) -> tuple[Floats, Ints]:
    """Return one pattern with probability 1, and its costs (m, 2) in grid steps."""
    steps = np.zeros((costs.shape[1], 2), dtype=np.int64)
    for j, unit in enumerate(grid):
        steps[:, j] = np.rint(costs[j] * unit)
    probability = np.zeros((costs.shape[1], 4))
    probability[:, BOTH] = 1.0
    return probability, steps
