r"""Sums of distances between rows of means, in the norms of the paper, each in one pass over the rows.

A row is a matrix (d, m). The matrix norm :math:`\|C\|_1 = \max_i \sum_j |C_{j,i}|` is the largest column sum; for
rewards, d = 1, it is the sup norm, so one kernel serves :math:`W_1` and :math:`W_2`.
"""

from __future__ import annotations

import numpy as np

from driftsack.core.arrays import Floats, Ints, Phase
from driftsack.numerics.compiled import kernel


@kernel
def distance(rows: Floats, k: int, other: Floats, o: int) -> tuple[float, int]:
    """Return the norm of row ``k`` of ``rows`` minus row ``o`` of ``other``, and the arm that attains it."""
    largest = 0.0
    arm = 0
    for i in range(rows.shape[2]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += abs(rows[k, j, i] - other[o, j, i])
        if total > largest:
            largest, arm = total, i
    return largest, arm


@kernel
def sum_to_centre(rows: Floats, rounds: Ints, centre: Floats) -> float:
    """Return the sum over all rounds of the distance to a centre (1, d, m)."""
    total = 0.0
    for k in range(len(rows)):
        total += rounds[k] * distance(rows, k, centre, 0)[0]
    return total


@kernel
def distances_and_subgradients(rows: Floats, rounds: Ints, centre: Floats, values: Floats, slopes: Floats) -> None:
    """Write the sum of distances of each group to a centre (1, d, m), and its subgradient with respect to the centre.

    The distinct ``rows`` (K, d, m) last ``rounds`` (K,) each. A group consists of neighbouring rows; the outputs are
    ``values`` (G,) and ``slopes`` (G, d m).
    """
    groups, total = values.size, len(rows)
    resources, arms = rows.shape[1], rows.shape[2]
    slopes[:] = 0.0
    for g in range(groups):
        values[g] = 0.0
        for k in range(g * total // groups, (g + 1) * total // groups):
            largest, i = distance(rows, k, centre, 0)
            values[g] += rounds[k] * largest
            for j in range(resources):
                slopes[g, j * arms + i] -= rounds[k] * np.sign(rows[k, j, i] - centre[0, j, i])


@kernel
def local_variation(rewards: Floats, costs: Floats, phase: Phase, per_resource: Floats) -> tuple[float, float]:
    """Return V1 and the sum form of V2; write the V2 of each resource to ``per_resource`` (d,)."""
    v1 = 0.0
    v2_sum = 0.0
    per_resource[:] = 0.0
    for t in range(phase.size - 1):
        a, b = phase[t], phase[t + 1]
        if a != b:
            largest = 0.0
            for i in range(rewards.shape[1]):
                largest = max(largest, abs(rewards[b, i] - rewards[a, i]))
            v1 += largest
            of_round = 0.0
            for j in range(costs.shape[1]):
                # Largest change of a cost, by resource and over all resources.
                largest = 0.0
                for i in range(costs.shape[2]):
                    largest = max(largest, abs(costs[b, j, i] - costs[a, j, i]))
                per_resource[j] += largest
                of_round = max(of_round, largest)
            v2_sum += of_round
    return v1, v2_sum


@kernel
def sum_over_pairs(rows: Floats, rounds: Ints, first: int, last: int) -> float:
    """Return the sum over k in [first, last) and l > k of n_k n_l times the distance between rows k and l."""
    total = 0.0
    for k in range(first, last):
        inner = 0.0
        for o in range(k + 1, len(rows)):
            inner += rounds[o] * distance(rows, k, rows, o)[0]
        total += rounds[k] * inner
    return total
