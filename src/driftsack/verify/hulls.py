r"""Claim 1 of the section on W^min: whether minimisers of :math:`\sum_t \|\mu_t - \mu\|` lie in the points' hull.

*As printed*, "must lie": false in the plane already. For (0, 0) and (1, 0) in :math:`L_\infty` every (x, y) with
:math:`|y| \le \min(x, 1 - x)` is a minimiser.

*Does some minimiser?* In one and two dimensions yes: a classical fact about Fermat points, which holds for every norm
of the plane (Wendell and Hurter 1973) and is searched for counterexamples here. From three on no:

- rewards, :math:`L_\infty`: for the unit vectors of :math:`\mathbf{R}^3` the point (1/2, 1/2, 1/2) has the sum 3/2,
  while in the hull coordinates add up to 1 and each distance is at least :math:`1 - x_i`: the sum is at least 2;
- costs, one arm, :math:`L_1`: for the same three points the origin has the sum 3, while a point of the hull has
  distance :math:`2 (1 - x_i)` to the i-th, in sum 4.

So W^min may be smaller than anything that the hull offers; the pairwise repair needs no hull.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from driftsack.core.arrays import Floats
from driftsack.verify.statement import CORRECTED, FAILS, Effort, Finding, Statement


def least_sum(points: Floats, in_hull: bool) -> float:
    r"""The least :math:`\sum_t \|p_t - x\|_\infty` over all x, or over the hull of the points (n, m): a linear program.

    >>> least_sum(np.eye(3), in_hull=False), least_sum(np.eye(3), in_hull=True)
    (1.5, 2.0)
    """
    count, size = points.shape
    # Variables: x (m), one distance a point (n), and weights of the hull (n).
    objective = np.concatenate([np.zeros(size), np.ones(count), np.zeros(count)])
    rows, limits = [], []
    for t, point in enumerate(points):
        for i in range(size):
            for sign in (1.0, -1.0):
                row = np.zeros(objective.size)
                row[i], row[size + t] = sign, -1.0
                rows.append(row)
                limits.append(sign * point[i])
    equal = np.zeros((size + 1, objective.size))
    equal[:size, :size], equal[:size, size + count :] = np.eye(size), -points.T
    equal[size, size + count :] = 1.0
    same = {"A_eq": equal, "b_eq": np.append(np.zeros(size), 1.0)} if in_hull else {}
    answer = linprog(
        objective,
        A_ub=np.array(rows),
        b_ub=np.array(limits),
        bounds=[(None, None)] * size + [(0, None)] * (2 * count),
        **same,
    )
    return round(float(answer.fun), 9)


def distance_sum(points: Floats, centre: Floats, order: float) -> float:
    """The sum of the distances to a centre."""
    return float(np.linalg.norm(points - centre, ord=order, axis=1).sum())


def claim_1(effort: Effort, planted: bool) -> Finding:
    """Counterexamples with certificates in three dimensions; none found in the plane. Planted: the claim for R³."""
    rng, three = effort.rng(41), np.eye(3)
    pair = np.array([[0.0, 0.0], [1.0, 0.0]])
    printed = distance_sum(pair, np.array([0.5, 0.25]), np.inf) - least_sum(pair, in_hull=True)  # 0, outside the hull
    rewards = least_sum(three, in_hull=True) - distance_sum(three, np.full(3, 0.5), np.inf)
    costs = 4.0 - distance_sum(three, np.zeros(3), 1.0)
    gaps = []
    for _ in range(effort.of(60, 1_000)):
        points = np.round(rng.random((int(rng.integers(2, 7)), 3 if planted else 2)) * 4) / 4
        gaps.append(least_sum(points, in_hull=True) - least_sum(points, in_hull=False))
    worst = max(gaps)
    right = abs(printed) < 1e-9 and rewards > 0.49 and costs > 0.99 and worst < 1e-6  # noqa: PLR2004
    note = (
        f"the hull is worse by {rewards:.2f} (rewards, R³) and {costs:.2f} (costs, R³); in the plane some minimiser "
        f"lies in it, worst gap {worst:.1e}"
    )
    return Finding(CORRECTED if right else FAILS, len(gaps), -worst, note)


STATEMENTS = (Statement("claim-1", "Appendix C.2, Claim 1", "minimisers of W lie in the hull", CORRECTED, claim_1),)
