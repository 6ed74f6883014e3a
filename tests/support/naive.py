"""Slow, simple twins of the fast kernels, which recompute everything from scratch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from driftsack.core.arrays import Floats


class Round(NamedTuple):
    """The outcome of one round; arm -1 is SKIP."""

    arm: int
    reward: float
    costs: Floats


def refined_bounds(
    history: list[Round], arms: int, resources: int, horizon: int, windows: tuple[int, int], scale: float = 1.0
) -> tuple[Floats, Floats]:
    """The same as :func:`bounds` with the radii of the paper's last appendix."""

    def width(values: list[float], size: int) -> float:
        gamma, n, mean = math.log(arms * size * horizon**2), len(values), sum(values) / len(values)
        return 2 * (math.sqrt(gamma * mean / n) + gamma / n)

    return bounds_with(width, history, arms, resources, windows, (scale, scale))


def bernstein_bounds(
    history: list[Round],
    arms: int,
    resources: int,
    horizon: int,
    windows: tuple[int, int],
    scale: float = 1.0,
    cost_scale: float | None = None,
) -> tuple[Floats, Floats]:
    """The same as :func:`bounds` with empirical Bernstein radii."""

    def width(values: list[float], size: int) -> float:
        log, n = math.log(12 * arms * size * horizon**3), len(values)
        return math.sqrt(2 * float(np.var(values)) * log / n) + 3 * log / n

    return bounds_with(width, history, arms, resources, windows, (scale, scale if cost_scale is None else cost_scale))


def bounds_with(
    width: Callable[[list[float], int], float],
    history: list[Round],
    arms: int,
    resources: int,
    windows: tuple[int, int],
    scales: tuple[float, float],
) -> tuple[Floats, Floats]:
    """UCB (m,) and LCB (d, m) with radii from the outcomes in the window and one outcome of 0.

    ``width`` is given these outcomes and the number of resources in the logarithm, which is 1 for rewards.
    """
    t = len(history) + 1
    upper, lower = np.zeros(arms), np.zeros((resources, arms))
    for i in range(arms):
        first, second = ([r for r in history[max(0, t - 1 - w) :] if r.arm == i] for w in windows)
        values = [*(r.reward for r in first), 0.0]
        upper[i] = sum(values) / len(values) + scales[0] * width(values, 1)
        for j in range(resources):
            values = [*(float(r.costs[j]) for r in second), 0.0]
            lower[j, i] = sum(values) / len(values) - scales[1] * width(values, resources)
    return upper, lower


def bounds(
    history: list[Round],
    arms: int,
    resources: int,
    horizon: int,
    windows: tuple[int, int],
    scale: float = 1.0,
    cost_scale: float | None = None,
) -> tuple[Floats, Floats]:
    """UCB (m,) and LCB (d, m) of Algorithm 1 before the next round, from the full history."""
    t = len(history) + 1  # the paper's round number
    upper, lower = np.zeros(arms), np.zeros((resources, arms))
    for i in range(arms):
        observed = [history[s - 1] for s in range(max(1, t - windows[0]), t) if history[s - 1].arm == i]
        radius = math.sqrt(2 / (len(observed) + 1) * math.log(12 * arms * horizon**3))
        upper[i] = sum(r.reward for r in observed) / (len(observed) + 1) + scale * radius
        observed = [history[s - 1] for s in range(max(1, t - windows[1]), t) if history[s - 1].arm == i]
        radius = math.sqrt(2 / (len(observed) + 1) * math.log(12 * arms * resources * horizon**3))
        factor = scale if cost_scale is None else cost_scale
        for j in range(resources):
            lower[j, i] = sum(r.costs[j] for r in observed) / (len(observed) + 1) - factor * radius
    return upper, lower


def step_lp_value(rewards: Floats, costs: Floats, rate: Floats) -> Fraction:
    """The exact value of the step LP: the best of all vertices, in rational arithmetic."""
    resources, arms = costs.shape
    rows = resources + 1
    objective = [Fraction(float(x)) for x in rewards] + [Fraction(0)] * rows
    matrix = [[Fraction(float(x)) for x in row] for row in costs] + [[Fraction(1)] * arms]
    for i, row in enumerate(matrix):
        row += [Fraction(int(i == k)) for k in range(rows)]
    rhs = [Fraction(float(b)) for b in rate] + [Fraction(1)]
    best = Fraction(0)  # SKIP is always feasible
    for basis in itertools.combinations(range(arms + rows), rows):
        levels = solve_exactly([[matrix[i][j] for j in basis] for i in range(rows)], rhs)
        if levels is not None and min(levels) >= 0:
            best = max(best, sum((objective[j] * x for j, x in zip(basis, levels, strict=True)), Fraction(0)))
    return best


def solve_exactly(matrix: list[list[Fraction]], rhs: list[Fraction]) -> list[Fraction] | None:
    """Gauss-Jordan over the rationals; None for a singular matrix."""
    size = len(rhs)
    table = [[*row, b] for row, b in zip(matrix, rhs, strict=True)]
    for k in range(size):
        pivot = next((i for i in range(k, size) if table[i][k] != 0), None)
        if pivot is None:
            return None
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [x / table[k][k] for x in table[k]]
        for i in range(size):
            if i != k and table[i][k] != 0:
                table[i] = [x - table[i][k] * y for x, y in zip(table[i], table[k], strict=True)]
    return [row[-1] for row in table]


def trial(
    rewards: Floats, costs: Floats, arms_played: list[int], budget: Floats
) -> tuple[float, int, Floats, list[int]]:
    """Reward, stopping time, spending and pulls of a deterministic trial, by the paper's stop rule.

    ``rewards (T, m)`` and ``costs (T, d, m)`` are the outcomes; ``arms_played`` the arm of each round.
    """
    total, spent, pulls = 0.0, np.zeros(len(budget)), [0] * rewards.shape[1]
    for t, arm in enumerate(arms_played):
        if arm < 0:
            continue
        if (spent + costs[t, :, arm] > budget).any():
            return total, t + 1, spent, pulls
        spent = spent + costs[t, :, arm]
        total += rewards[t, arm]
        pulls[arm] += 1
    return total, len(arms_played) + 1, spent, pulls


def glr_detects(observed: list[float], delta: float, back: int = 1) -> bool:
    """Whether GLR detects a change, computed from all outcomes; ``back=0`` plants a wrong split at each level."""
    n, mean = len(observed), sum(observed) / len(observed)
    if mean <= 0 or mean >= 1:
        return False
    for k in range(n.bit_length()):
        for s in (
            (n // 2**k - back) * 2**k,
            2**k if n >= 2 * 2**k else 0,
        ):  # the second to last multiple, and the first
            if not 1 <= s < n:
                continue
            value = 0.0
            for part in (observed[:s], observed[s:]):
                p = sum(part) / len(part)
                value += len(part) * sum(a * math.log(a / b) for a, b in ((p, mean), (1 - p, 1 - mean)) if a > 1e-15)
            if value >= math.log(3 * n**1.5 / delta):
                return True
    return False
