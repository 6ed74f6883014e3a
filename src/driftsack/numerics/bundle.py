r"""Minimise a sum of convex functions over a box, exactly, from few passes over the data.

.. math:: \min_{0 \le z \le u} \; F(z) = a^\top z + \sum_{g=1}^{G} f_g(z), \qquad z \in \mathbb{R}^p,

where each :math:`f_g` is convex and F is not negative. One call of the oracle, a pass, gives the value and a
subgradient of every :math:`f_g` at a point. A linear program over all cuts seen so far (HiGHS, kept warm) gives a
lower bound, a point at which it is attained, and weights :math:`\lambda` on the cuts.

Two things keep the passes few. *Groups*: a cut for each of G groups says more than one for their sum. *In-out
separation* (Ben-Ameur and Neto 2007): most passes are made halfway between the best point known and the program's
point. That is safe: if a pass does not improve F, convexity along that line makes the new cuts exclude that point.

The lower bound is computed from the weights and the cuts by weak duality, so it holds whatever rounding the
solver did:

.. math:: F(z) \ge \sum \lambda_{g,i} (v_{g,i} - s_{g,i}^\top z_i) + \min_{0 \le z \le u} (a + \sum \lambda s)^\top z .
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats

Oracle = Callable[[Floats, Floats, Floats], None]
"""``oracle(point, values, slopes)`` writes every group's value (G,) and subgradient (G, p) at a point (p,)."""

HALFWAY: Final = 0.5
FULL_STEP: Final = (
    4  # every fourth pass is made at the program's own point, which ends exactly where halving only nears
)
VIOLATED: Final = 1e-12


class Weight(NamedTuple):
    """A cut that the lower bound rests on."""

    group: int
    visit: int  # which pass
    share: float  # of its group; the shares of a group sum to 1


class Minimum(NamedTuple):
    """What was found, with its proof."""

    point: Floats  # (p,)
    upper: float  # F(point)
    lower: float  # no point has less
    weights: list[Weight]
    visits: Floats  # (passes, p) where the oracle was asked

    @property
    def passes(self) -> int:
        """How often the oracle was asked."""
        return len(self.visits)


def minimise(
    oracle: Oracle, start: Floats, most: Floats, linear: Floats, groups: int, tolerance: float, most_passes: int
) -> Minimum:
    """Minimise until upper - lower is at most ``tolerance`` times upper, or for ``most_passes`` passes.

    >>> def distance(point, values, slopes):             # |z - 1| + |z - 4| + |z - 5|, a group each
    ...     away = point[0] - np.array([1.0, 4.0, 5.0])
    ...     values[:], slopes[:, 0] = np.abs(away), np.sign(away)
    >>> found = minimise(distance, np.zeros(1), np.array([10.0]), np.zeros(1), 3, 1e-9, 100)
    >>> found.point, found.upper, found.lower
    (array([4.]), 4.0, 4.0)
    """
    master = _Master(most, linear, groups)
    values, slopes = np.zeros(groups), np.zeros((groups, most.size))
    visits: list[Floats] = []
    point, best, upper, lower = start, start, np.inf, 0.0
    while True:
        visits.append(point)
        oracle(point, values, slopes)
        here = float(linear @ point + values.sum())
        if here < upper:
            best, upper = point, here
        master.add(point, values, slopes, len(visits) - 1)
        proposal, bound = master.solve()
        lower = max(lower, bound)
        if upper - lower <= tolerance * upper or len(visits) >= most_passes:
            return Minimum(best, upper, lower, master.weights(), np.array(visits))
        alone = len(visits) % FULL_STEP == 0
        point = proposal if alone else HALFWAY * best + (1 - HALFWAY) * proposal


class _Master:
    """The linear program over the cuts: min a z + sum theta_g, theta_g >= v + s (z - z_i), 0 <= z <= u."""

    def __init__(self, most: Floats, linear: Floats, groups: int) -> None:
        from driftsack.numerics.highs import new_highs  # noqa: PLC0415  (slow to import, rarely needed)

        self.most, self.linear, self.groups = most, linear, groups
        self.owner: list[int] = []  # group of each cut
        self.visit: list[int] = []
        self.offsets: list[float] = []  # v - s z_i
        self.slopes: list[Floats] = []
        self.levels = np.full(groups, -np.inf)  # theta at the last solution
        self.point = np.zeros(most.size)
        self.shares = np.zeros(0)
        self.infinity = float("inf")
        self.solver = new_highs()
        for cost, high in zip(linear, most, strict=True):
            self.solver.addCol(cost, 0.0, high, 0, [], [])
        for _ in range(groups):
            self.solver.addCol(1.0, -self.infinity, self.infinity, 0, [], [])

    def add(self, point: Floats, values: Floats, slopes: Floats, visit: int) -> None:
        """Add the cuts of a pass that the last solution violates."""
        offsets = values - slopes @ point
        promised = offsets + slopes @ self.point
        size = point.size
        for g in np.flatnonzero(promised > self.levels + VIOLATED):
            used = np.flatnonzero(slopes[g])
            columns = np.append(used, size + g).astype(np.int32)
            entries = np.append(-slopes[g, used], 1.0)
            self.solver.addRow(offsets[g], self.infinity, columns.size, columns, entries)
            self.owner.append(int(g))
            self.visit.append(visit)
            self.offsets.append(float(offsets[g]))
            self.slopes.append(slopes[g].copy())

    def solve(self) -> tuple[Floats, float]:
        """The program's point, and the lower bound that its weights prove."""
        self.solver.run()
        answer = self.solver.getSolution()
        self.point = np.clip(np.array(answer.col_value[: self.most.size]), 0.0, self.most)
        self.levels = np.array(answer.col_value[self.most.size :])
        shares = np.maximum(np.array(answer.row_dual), 0.0)
        totals = np.bincount(self.owner, weights=shares, minlength=self.groups)
        if (totals <= 0).any():
            return self.point, 0.0  # no proof this time
        self.shares = shares / totals[self.owner]
        drift = self.linear + self.shares @ np.array(self.slopes)
        return self.point, float(self.shares @ np.array(self.offsets) + np.minimum(drift, 0.0) @ self.most)

    def weights(self) -> list[Weight]:
        """The cuts with a share in the last bound."""
        rows = np.flatnonzero(self.shares)
        return [Weight(self.owner[r], self.visit[r], float(self.shares[r])) for r in rows]
