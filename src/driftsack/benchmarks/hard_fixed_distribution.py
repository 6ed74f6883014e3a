r"""OPT_FD under the hard stop rule: expected reward of the best fixed mix, for instances with few rounds.

The expected reward f(x) of a mix x follows from the distribution of the remaining budgets, which is propagated
round by round on the grid of :mod:`driftsack.benchmarks.dynamic_program`. f is a polynomial in x and in general not
concave, so it is maximised by branch and bound over the simplex: by the performance-difference identity,

.. math:: |f(x) - f(y)| \le \|x - y\|_1 \sum_t R_t, \qquad R_t = \sum_{s \ge t} \max_i \mu_{s,i},

since the reward from round t on lies between 0 and :math:`R_t`. A box whose bound does not exceed the
best value known is dropped. The fluid OPT_FD (:mod:`driftsack.benchmarks.fixed_distribution`) plans with expected costs
and is neither an upper nor a lower bound of this value.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np

from driftsack.benchmarks.benchmark import Benchmark, check_instance, relative_gap
from driftsack.benchmarks.dynamic_program import budget_grid
from driftsack.core.arrays import Floats
from driftsack.core.checks import above_zero
from driftsack.core.errors import TooLargeError
from driftsack.core.instance import Instance

MOST_ARMS: Final = 3
MOST_STATES: Final = 10_000  # rounds times grid points
MOST_BOXES: Final = 200_000  # per level of the search


def hard_reward_of_mixes(instance: Instance, mixes: Floats) -> Floats:
    """Compute the exact expected reward of fixed mixes under the hard stop rule.

    Args:
        instance: The instance, with costs on a grid as for ``dynamic_program``.
        mixes: (n, m) the mixes.

    Returns:
        (n,) the expected rewards, in the problem's units.

    >>> import driftsack as ds
    >>> world = ds.Instance.stationary([1.0], [[1.0]], horizon=3, budget=1.0, noise="deterministic")
    >>> hard_reward_of_mixes(world, np.array([[1.0], [0.5]])).tolist()   # the first pull counts, the second ends it
    [1.0, 0.875]
    """
    grid = budget_grid(instance)
    chance = np.zeros((len(mixes), grid.rows, grid.columns))  # P(remaining budgets, game not ended)
    chance[:, -1, -1] = 1.0
    skip = 1.0 - mixes.sum(axis=1)
    total = np.zeros(len(mixes))
    for row in instance.phase:
        probability, steps = grid.patterns[row]
        # Skipping keeps the budgets; each arm and cost pattern moves probability to smaller budgets.
        following = skip[:, None, None] * chance
        for i, pattern in product(range(instance.arms), range(4)):
            p = probability[i, pattern]
            used = int(steps[i, 0] * (pattern & 1)), int(steps[i, 1] * (pattern >> 1))
            if p > 0.0 and used[0] < grid.rows and used[1] < grid.columns:
                moved = p * mixes[:, i, None, None] * chance[:, used[0] :, used[1] :]
                following[:, : grid.rows - used[0], : grid.columns - used[1]] += moved
                total += instance.unit_rewards[row, i] * moved.sum(axis=(1, 2))
        chance = following
    rewards: Floats = total * instance.problem.reward_max
    return rewards


def hard_fixed_distribution(instance: Instance, tolerance: float = 5e-3) -> Benchmark:
    """Compute OPT_FD under the hard stop rule to a certified gap, for at most three arms and a few rounds.

    Args:
        instance: The instance, with costs on a grid as for ``dynamic_program``.
        tolerance: The relative gap at which to stop.

    Returns:
        The benchmark: ``value`` is attained by the mix in ``plan``, and no mix earns more than
        ``value / (1 - gap)``.

    Raises:
        SettingError: If there are more than 2 resources, or if costs do not lie on a grid.
        TooLargeError: If there are too many arms, rounds or grid points.

    >>> import driftsack as ds
    >>> world = ds.Instance.stationary([1.0], [[0.5]], horizon=2, budget=0.0)   # each round costs 0 or 1
    >>> round(hard_fixed_distribution(world).value, 6)                         # 1/2 + 1/4
    0.75
    """
    check_instance(instance, "hard_fixed_distribution")
    above_zero(tolerance, "tolerance")
    grid = budget_grid(instance)
    states = instance.horizon * grid.rows * grid.columns
    if instance.arms > MOST_ARMS or states > MOST_STATES:
        raise TooLargeError(
            f"the exact OPT_FD is for at most {MOST_ARMS} arms and {MOST_STATES:,} rounds times grid points, got "
            f"{instance.arms} arms and {states:,}; use fixed_distribution(instance, trials=...) instead."
        )
    # Start with one box, the unit cube, and the best single arm.
    slope = _slope(instance)
    centres, width = np.full((1, instance.arms), 0.5), 0.5
    single_arms = np.eye(instance.arms)
    values = hard_reward_of_mixes(instance, single_arms)
    best, mix = float(values.max()), single_arms[values.argmax()]
    upper, passes = best, 1
    while len(centres):
        # Evaluate each box at its centre, scaled into the simplex if it lies outside.
        points = centres / np.maximum(centres.sum(axis=1, keepdims=True), 1.0)
        values = hard_reward_of_mixes(instance, points)
        passes += 1
        if values.max() > best:
            best, mix = float(values.max()), points[values.argmax()]
        # Drop the boxes whose Lipschitz bound does not exceed the best value, and split the others.
        bounds = values + slope * (np.abs(centres - points).sum(axis=1) + instance.arms * width)
        open_boxes = bounds > best * (1 + tolerance)
        upper = max(best, float(bounds[open_boxes].max(initial=0.0)))
        if open_boxes.sum() * 2**instance.arms > MOST_BOXES:
            break
        centres, width = _halves(centres[open_boxes], width)
        if not len(centres):
            upper = best * (1 + tolerance)
    gap = relative_gap(upper, best, instance.horizon * instance.problem.reward_max)
    return Benchmark("OPT_FD (hard)", best, gap, None, np.tile(mix, (len(instance.rewards), 1)), passes)


def _slope(instance: Instance) -> float:
    """Return the Lipschitz constant, the sum of R_t over t."""
    largest = instance.unit_rewards.max(axis=1)[instance.phase]
    return float(np.cumsum(largest[::-1]).sum()) * instance.problem.reward_max


def _halves(centres: Floats, width: float) -> tuple[Floats, float]:
    """Split boxes in half along every coordinate, and drop those outside the simplex."""
    arms = centres.shape[1]
    signs = np.array(list(product((-0.5, 0.5), repeat=arms)))
    parts = (centres[:, None, :] + width * signs).reshape(-1, arms)
    width /= 2
    return parts[parts.sum(axis=1) - arms * width < 1.0], width
