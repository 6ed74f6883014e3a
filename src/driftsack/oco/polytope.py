r"""``Polytope``: all x with :math:`Ax \le b`, projected onto by a quadratic program.

.. math:: \arg\min_{Ax \le b} \tfrac12 \|x - p\|_2^2

Its dual is a least-squares problem with non-negative unknowns, which an active-set method solves in finitely many
steps.
(An interior-point solver such as Clarabel ends near 1e-9 of the square, which is 1e-5 of the point: not enough here.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import floats, frozen
from driftsack.core.errors import EmptyDomainError, UnboundedDomainError
from driftsack.oco.domains import Domain, Halfspaces
from driftsack.oco.region import BY_PROGRAM, Region

INFEASIBLE: Final = 2  # SciPy's words for how a linear program ended
UNBOUNDED: Final = 3


@dataclass(frozen=True, eq=False)
class Polytope(Domain):
    """All x with ``matrix @ x <= limits``, matrix (k, n), limits (k,); it must be bounded and have points.

    Learners run on it in Python, one quadratic program a round: use another domain where one fits.

    >>> corner = Polytope([[1, 1], [-1, 0], [0, -1]], [1, 0, 0])
    >>> corner.project([2.0, 1.0]).round(12).tolist()
    [1.0, 0.0]
    """

    matrix: Any
    limits: Any
    inner: Floats = field(init=False, repr=False)  # (n,) the centre of the largest ball inside
    depth: float = field(init=False)  # its radius

    def __post_init__(self) -> None:
        matrix = frozen(floats(self.matrix, "matrix", (None, None)))
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "limits", frozen(floats(self.limits, "limits", (len(matrix),))))
        found = self._solve(np.append(np.zeros(matrix.shape[1]), -1.0), ball=True)
        if found.status == INFEASIBLE:
            raise EmptyDomainError("the domain is empty: no x meets matrix @ x <= limits; loosen a limit.")
        object.__setattr__(self, "inner", frozen(found.x[:-1] if found.success else np.zeros(matrix.shape[1])))
        object.__setattr__(self, "depth", float(found.x[-1]) if found.success else np.inf)
        ends = np.vstack([np.eye(matrix.shape[1]), -np.eye(matrix.shape[1])])
        if not found.success or any(self._solve(way).status == UNBOUNDED for way in ends):
            raise UnboundedDomainError("the domain matrix @ x <= limits reaches to infinity; add rows that bound it.")

    def _solve(self, objective: Floats, ball: bool = False) -> Any:
        """Minimise over the domain, or over the balls (centre, radius) inside."""
        from scipy.optimize import linprog  # noqa: PLC0415  (slow to load)

        rows = self.matrix
        if ball:
            rows = np.hstack([rows, np.linalg.norm(rows, axis=1, keepdims=True)])
        free = [(None, None)] * self.matrix.shape[1] + [(0.0, None)] * ball
        return linprog(objective, A_ub=rows, b_ub=self.limits, bounds=free, method="highs")

    @property
    def region(self) -> Region:
        """For kernels: a domain onto which the caller projects."""
        return Region(BY_PROGRAM, self.inner, self.inner, 0.0)

    @property
    def centre(self) -> Floats:
        """The centre of the largest ball inside."""
        return np.array(self.inner)

    def least(self, vectors: Floats) -> Floats:
        """A linear program for each."""
        return np.array([self._solve(row).fun for row in vectors])

    @property
    def halfspaces(self) -> Halfspaces:
        """Its rows."""
        return Halfspaces(self.matrix, self.limits, 0)

    def to_dict(self) -> dict[str, Any]:
        """Rows and limits."""
        return {"domain": "Polytope", "matrix": self.matrix.tolist(), "limits": self.limits.tolist()}

    def excess(self, point: Floats) -> float:
        """By how much a point breaks the worst row; 0 inside."""
        return float(max((self.matrix @ point - self.limits).max(), 0.0))

    def move_inside(self, point: Floats) -> None:
        """Move ``point`` to the nearest point, in place."""
        if self.excess(point) == 0.0:
            return
        binding = self._binding(point)
        rows = self.matrix[binding]
        lift = np.linalg.lstsq(rows @ rows.T, rows @ point - self.limits[binding], rcond=None)[0]
        point -= rows.T @ lift

    def _binding(self, point: Floats) -> Any:
        r"""(k,) which rows hold the nearest point back: those with a price in the program's dual.

        With z = x - p the program is :math:`\min \|z\|` subject to :math:`-Az \ge h`, h = Ap - b. Its prices are,
        but for a factor, the u of :math:`\min_{u \ge 0} \|(-A, h)^\top u - e_{n+1}\|`, which ends exactly (Lawson
        and Hanson 1974, chapter 23).
        """
        from scipy.optimize import nnls  # noqa: PLC0415  (slow to load)

        over = self.matrix @ point - self.limits
        target = np.append(np.zeros(point.size), 1.0)
        weights, _ = nnls(np.vstack([-self.matrix.T, over / np.abs(over).max()]), target)
        return weights > 0.0
