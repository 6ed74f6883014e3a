r"""Sums of distances between rows of means, a pass each, by the norms of the paper.

A row is a matrix (d, m). The matrix norm :math:`\|C\|_1 = \max_i \sum_j |C_{j,i}|` is the largest column sum; for
rewards, d = 1, it is the sup norm, so one kernel serves :math:`W_1` and :math:`W_2`.
"""

from __future__ import annotations

import numpy as np

from driftsack.core.arrays import Floats, Ints, Phase
from driftsack.numerics.compiled import kernel


@kernel
def distance(rows: Floats, k: int, other: Floats, o: int) -> tuple[float, int]:
    """Norm of row ``k`` of ``rows`` less row ``o`` of ``other``, and the arm at which it is attained."""
    worst = 0.0
    where = 0
    for i in range(rows.shape[2]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += abs(rows[k, j, i] - other[o, j, i])
        if total > worst:
            worst, where = total, i
    return worst, where


@kernel
def sum_to_centre(rows: Floats, rounds: Ints, centre: Floats) -> float:
    """Sum over the rounds of the distance to a centre (1, d, m)."""
    total = 0.0
    for k in range(len(rows)):
        total += rounds[k] * distance(rows, k, centre, 0)[0]
    return total


@kernel
def cuts_at_centre(rows: Floats, rounds: Ints, centre: Floats, values: Floats, slopes: Floats) -> None:
    """For each group of rows, the sum of distances to a centre (1, d, m) and its slope (d m) in the centre."""
    groups, total = values.size, len(rows)
    resources, arms = rows.shape[1], rows.shape[2]
    slopes[:] = 0.0
    for g in range(groups):
        values[g] = 0.0
        for k in range(g * total // groups, (g + 1) * total // groups):
            far, i = distance(rows, k, centre, 0)
            values[g] += rounds[k] * far
            for j in range(resources):
                slopes[g, j * arms + i] -= rounds[k] * np.sign(rows[k, j, i] - centre[0, j, i])


@kernel
def local_moves(rewards: Floats, costs: Floats, phase: Phase, per_resource: Floats) -> float:
    """V1, and each resource's V2 into ``per_resource (d,)``: sup norms from one round to the next."""
    first = 0.0
    per_resource[:] = 0.0
    for t in range(phase.size - 1):
        a, b = phase[t], phase[t + 1]
        if a != b:
            worst = 0.0
            for i in range(rewards.shape[1]):
                worst = max(worst, abs(rewards[b, i] - rewards[a, i]))
            first += worst
            for j in range(costs.shape[1]):
                worst = 0.0
                for i in range(costs.shape[2]):
                    worst = max(worst, abs(costs[b, j, i] - costs[a, j, i]))
                per_resource[j] += worst
    return first


@kernel
def sum_over_pairs(rows: Floats, rounds: Ints, first: int, last: int) -> float:
    """Sum over k in [first, last) and l > k of n_k n_l times the distance of the two rows; no table is kept."""
    total = 0.0
    for k in range(first, last):
        inner = 0.0
        for o in range(k + 1, len(rows)):
            inner += rounds[o] * distance(rows, k, rows, o)[0]
        total += rounds[k] * inner
    return total
