r"""Check Claim 1 on W^min: whether minimisers of :math:`\sum_t \|\mu_t - \mu\|` lie in the hull of the points.

As printed, every minimiser lies in the hull. This is false already in the plane: for (0, 0) and (1, 0) in
:math:`L_\infty` every (x, y) with :math:`|y| \le \min(x, 1 - x)` is a minimiser.

In one and two dimensions some minimiser lies in the hull, for every norm (Wendell and Hurter 1973); the check searches
for counterexamples. In three and more dimensions there need not be one:

- Rewards, :math:`L_\infty`: for the unit vectors of :math:`\mathbf{R}^3` the point (1/2, 1/2, 1/2) has the sum 3/2,
  while in the hull coordinates add up to 1 and each distance is at least :math:`1 - x_i`, so the sum is at least 2.
- Costs, one arm, :math:`L_1`: for the same three points the origin has the sum 3, while a point of the hull has
  distance :math:`2 (1 - x_i)` to the i-th, in sum 4.

All four sums are computed, those over the hull by linear programs.

So W^min may be smaller than the minimum over the hull. The pairwise repair does not use the hull.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from driftsack.core.arrays import Floats
from driftsack.verify.answers import ZERO
from driftsack.verify.statement import FAILS, FALSE_AS_PRINTED, Case, Effort, Finding, Sides, Statement, judge_sides

SUP, SUM = "sup", "sum"  # the norms of rewards and of the costs of one arm


def least_sum(points: Floats, in_hull: bool, norm: str = SUP) -> float:
    r"""Minimise :math:`\sum_t \|p_t - x\|` over all x, or over the hull of the points (n, m), by an LP.

    The norm is ``"sup"`` or ``"sum"``.

    >>> least_sum(np.eye(3), in_hull=False), least_sum(np.eye(3), in_hull=True)
    (1.5, 2.0)
    >>> least_sum(np.eye(3), in_hull=False, norm="sum"), least_sum(np.eye(3), in_hull=True, norm="sum")
    (3.0, 4.0)
    """
    count, size = points.shape
    distances = count if norm == SUP else count * size  # one per point, or one per point and coordinate
    # Variables: x (m), the distances, and the weights of a convex combination (n).
    objective = np.concatenate([np.zeros(size), np.ones(distances), np.zeros(count)])
    rows, limits = [], []
    for t, point in enumerate(points):
        for i in range(size):
            for sign in (1.0, -1.0):
                row = np.zeros(objective.size)
                row[i], row[size + (t if norm == SUP else t * size + i)] = sign, -1.0
                rows.append(row)
                limits.append(sign * point[i])
    weights = slice(size + distances, None)
    combination = np.zeros((size + 1, objective.size))
    combination[:size, :size], combination[:size, weights] = np.eye(size), -points.T
    combination[size, weights] = 1.0
    equalities = {"A_eq": combination, "b_eq": np.append(np.zeros(size), 1.0)} if in_hull else {}
    solution = linprog(
        objective,
        A_ub=np.array(rows),
        b_ub=np.array(limits),
        bounds=[(None, None)] * size + [(0, None)] * (distances + count),
        **equalities,
    )
    return round(float(solution.fun), 9)


def distance_sum(points: Floats, centre: Floats, order: float) -> float:
    """The sum of the distances to a centre."""
    return float(np.linalg.norm(points - centre, ord=order, axis=1).sum())


def claim_1(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check the counterexamples in three dimensions and search for one in the plane."""
    rng, unit_vectors = effort.rng(41), np.eye(3)
    solve = (lambda *_args, **_options: 0.0) if case is Case.TRIVIAL else least_sum
    pair = np.array([[0.0, 0.0], [1.0, 0.0]])
    outside_hull = np.array([0.5, 0.25])
    printed = distance_sum(pair, outside_hull, np.inf) - solve(pair, in_hull=True)  # 0: it is a minimiser
    rewards, costs = (solve(unit_vectors, True, norm) - solve(unit_vectors, False, norm) for norm in (SUP, SUM))
    planar = []
    for _ in range(effort.pick(60, 1_000)):
        points = np.round(rng.random((int(rng.integers(2, 7)), 2)) * 4) / 4
        norm = SUP if rng.random() < 0.5 else SUM
        planar.append(Sides(solve(points, in_hull=True, norm=norm), solve(points, in_hull=False, norm=norm)))
    worst = max(pair.small - pair.large for pair in planar)
    note = (
        f"the least sum over the hull is larger by {rewards:.2f} (rewards, R³) and {costs:.2f} (costs, R³); in the "
        f"plane some minimiser lies in the hull, worst gap {worst:.1e}"
    )
    found = judge_sides(planar, note, FALSE_AS_PRINTED, factor)
    as_expected = abs(printed) < 1e-9 and rewards > 0.49 and costs > 0.99
    return found if as_expected else found._replace(verdict=FAILS)


STATEMENTS = (
    Statement(
        "claim-1",
        "Appendix C.2, Claim 1",
        "minimisers of W lie in the hull",
        FALSE_AS_PRINTED,
        claim_1,
        ZERO,
        "the least sum over the plane",
    ),
)
