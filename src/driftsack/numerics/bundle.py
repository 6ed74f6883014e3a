r"""Minimise a sum of convex functions over a box with a cutting-plane (bundle) method, to a certified gap.

.. math:: \min_{0 \le z \le u} \; F(z) = a^\top z + \sum_{g=1}^{G} f_g(z), \qquad z \in \mathbb{R}^p,

where each :math:`f_g` is convex and F is non-negative. One call of the oracle, a *pass* over the data, returns the
value and a subgradient of every :math:`f_g` at a point. The master program, a linear program over all cuts seen so
far (HiGHS, warm-started), returns a lower bound, a point at which it is attained, and multipliers :math:`\lambda` of
the cuts.

Two techniques keep the number of passes small. *Disaggregation*: one cut for each of G groups is tighter than one cut
for their sum. *In-out separation* (Ben-Ameur and Neto 2007): most passes are made halfway between the best point known
and the master program's solution. This is safe: if a pass does not improve F, convexity along that line implies that
the new cuts exclude the master program's solution.

The lower bound is computed from the multipliers and the cuts by weak duality, so it holds despite the rounding errors
of the solver:

.. math:: F(z) \ge \sum \lambda_{g,i} (v_{g,i} - s_{g,i}^\top z_i) + \min_{0 \le z \le u} (a + \sum \lambda s)^\top z .

Products use NumPy sums instead of BLAS, whose last bits depend on the processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.extras import require

Oracle = Callable[[Floats, Floats, Floats], None]
"""``oracle(point, values, slopes)`` writes every group's value (G,) and subgradient (G, p) at a point (p,)."""

HALFWAY: Final = 0.5
FULL_STEP_EVERY: Final = 4  # every fourth pass is made at the master program's solution, which can be exact
VIOLATION_TOLERANCE: Final = 1e-12


class CutWeight(NamedTuple):
    """The share of one cut in the lower bound."""

    group: int  # the group g that the cut belongs to
    visit: int  # the pass in which the cut was found, from 0
    share: float  # the cut's multiplier. The shares of a group sum to 1


class Minimum(NamedTuple):
    """The best point found, with a proof of how good it is."""

    point: Floats  # (p,) the best point
    upper: float  # F(point)
    lower: float  # a lower bound of F over the box
    weights: list[CutWeight]  # the cuts with a positive share in the lower bound
    visits: Floats  # (passes, p) the points at which the oracle was called

    @property
    def passes(self) -> int:
        """The number of calls of the oracle."""
        return len(self.visits)


def minimise(
    oracle: Oracle, start: Floats, high: Floats, linear: Floats, groups: int, tolerance: float, most_passes: int
) -> Minimum:
    """Minimise F until ``upper - lower <= tolerance * upper``, or until ``most_passes`` passes have been made.

    Args:
        oracle: Writes every group's value and subgradient at a point; see :data:`Oracle`.
        start: (p,) the point of the first pass.
        high: (p,) upper bounds u of the box.
        linear: (p,) the linear part a.
        groups: The number G of groups.
        tolerance: The relative gap at which to stop.
        most_passes: The maximum number of passes.

    Returns:
        The best point with its bounds. If the passes run out first, the bounds are valid but further apart.

    >>> def distance(point, values, slopes):             # |z - 1| + |z - 4| + |z - 5|, one group each
    ...     difference = point[0] - np.array([1.0, 4.0, 5.0])
    ...     values[:], slopes[:, 0] = np.abs(difference), np.sign(difference)
    >>> minimum = minimise(distance, np.zeros(1), np.array([10.0]), np.zeros(1), 3, 1e-9, 100)
    >>> minimum.point, minimum.upper, minimum.lower
    (array([4.]), 4.0, 4.0)
    """
    master = _MasterProgram(high, linear, groups)
    values, slopes = np.zeros(groups), np.zeros((groups, high.size))
    visits: list[Floats] = []
    point, best, upper, lower = start, start, np.inf, 0.0
    while True:
        # Evaluate F and its cuts at the current point.
        visits.append(point)
        oracle(point, values, slopes)
        value = float((linear * point).sum() + values.sum())
        if value < upper:
            best, upper = point, value
        # Solve the master program over all cuts for a lower bound and a proposal.
        master.add(point, values, slopes, len(visits) - 1)
        proposal, bound = master.solve()
        lower = max(lower, bound)
        if upper - lower <= tolerance * upper or len(visits) >= most_passes:
            return Minimum(best, upper, lower, master.weights(), np.array(visits))
        # Next point: halfway between the best point and the proposal, now and then the proposal itself.
        full_step = len(visits) % FULL_STEP_EVERY == 0
        point = proposal if full_step else HALFWAY * best + (1 - HALFWAY) * proposal


class _MasterProgram:
    """The linear program over the cuts: min a z + sum theta_g, theta_g >= v + s (z - z_i), 0 <= z <= u."""

    def __init__(self, high: Floats, linear: Floats, groups: int) -> None:
        require("highspy")
        from driftsack.numerics.highs import new_highs

        self.high, self.linear, self.groups = high, linear, groups
        self.group: list[int] = []  # group of each cut
        self.visit: list[int] = []  # pass of each cut
        self.offsets: list[float] = []  # v - s z_i of each cut
        self.slopes: list[Floats] = []  # s of each cut
        self.thetas = np.full(groups, -np.inf)  # at the last solution
        self.point = np.zeros(high.size)
        self.shares = np.zeros(0)
        self.infinity = float("inf")
        self.solver = new_highs()
        for cost, end in zip(linear, high, strict=True):
            self.solver.addCol(cost, 0.0, end, 0, [], [])
        for _ in range(groups):
            self.solver.addCol(1.0, -self.infinity, self.infinity, 0, [], [])

    def add(self, point: Floats, values: Floats, slopes: Floats, visit: int) -> None:
        """Add the cuts of a pass which the last solution violates."""
        offsets = values - (slopes * point).sum(axis=1)
        cut_values = offsets + (slopes * self.point).sum(axis=1)
        size = point.size
        for g in np.flatnonzero(cut_values > self.thetas + VIOLATION_TOLERANCE):
            used = np.flatnonzero(slopes[g])
            columns = np.append(used, size + g).astype(np.int32)
            entries = np.append(-slopes[g, used], 1.0)
            self.solver.addRow(offsets[g], self.infinity, columns.size, columns, entries)
            self.group.append(int(g))
            self.visit.append(visit)
            self.offsets.append(float(offsets[g]))
            self.slopes.append(slopes[g].copy())

    def solve(self) -> tuple[Floats, float]:
        """Solve the program; return its solution and the lower bound that its multipliers prove."""
        self.solver.run()
        solution = self.solver.getSolution()
        self.point = np.clip(np.array(solution.col_value[: self.high.size]), 0.0, self.high)
        self.thetas = np.array(solution.col_value[self.high.size :])
        # Normalise the multipliers of each group to sum to 1, which makes them dual feasible.
        shares = np.maximum(np.array(solution.row_dual), 0.0)
        totals = np.bincount(self.group, weights=shares, minlength=self.groups)
        if (totals <= 0).any():
            return self.point, 0.0  # the multipliers prove no bound in this pass
        self.shares = shares / totals[self.group]
        # The lower bound by weak duality (see the module's docstring).
        gradient = self.linear + (self.shares[:, None] * np.array(self.slopes)).sum(axis=0)
        bound = (self.shares * np.array(self.offsets)).sum() + (np.minimum(gradient, 0.0) * self.high).sum()
        return self.point, float(bound)

    def weights(self) -> list[CutWeight]:
        """Return the cuts with a positive share in the last bound."""
        rows = np.flatnonzero(self.shares)
        return [CutWeight(self.group[r], self.visit[r], float(self.shares[r])) for r in rows]
