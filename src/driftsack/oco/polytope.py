r"""``Polytope``: all x with :math:`Ax \le b`; its projection is a quadratic program.

.. math:: \arg\min_{Ax \le b} \tfrac12 \|x - p\|_2^2

Its dual is a non-negative least-squares problem, which an active-set method solves in finitely many steps. (An
interior-point solver such as Clarabel is accurate to about 1e-9 in the squared distance, which is 1e-5 in the point:
not enough here.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import floats, frozen
from driftsack.core.errors import EmptyDomainError, UnboundedDomainError
from driftsack.core.extras import require
from driftsack.oco.domains import Domain, Halfspaces
from driftsack.oco.region import NOT_COMPILED, Region

# Status codes of scipy.optimize.linprog
INFEASIBLE: Final = 2
UNBOUNDED: Final = 3


@dataclass(frozen=True, eq=False)
class Polytope(Domain):
    """All x with ``matrix @ x <= limits``; the set must be bounded and not empty.

    Learners on a polytope are not compiled and solve one quadratic program per round. Prefer another domain where
    possible.

    Attributes:
        matrix: (k, n) one row per condition.
        limits: (k,) the right-hand sides.
        inner: (n,) the centre of the largest ball inside, computed.
        depth: The radius of that ball, computed.

    >>> corner = Polytope([[1, 1], [-1, 0], [0, -1]], [1, 0, 0])
    >>> corner.project([2.0, 1.0]).round(12).tolist()
    [1.0, 0.0]
    """

    matrix: Any
    limits: Any
    inner: Floats = field(init=False, repr=False)
    depth: float = field(init=False)

    def __post_init__(self) -> None:
        matrix = frozen(floats(self.matrix, "matrix", (None, None)))
        object.__setattr__(self, "matrix", matrix)
        object.__setattr__(self, "limits", frozen(floats(self.limits, "limits", (len(matrix),))))
        ball = self._solve(np.append(np.zeros(matrix.shape[1]), -1.0), ball=True)
        if ball.status == INFEASIBLE:
            raise EmptyDomainError("the domain is empty: no x satisfies matrix @ x <= limits; loosen a limit.")
        object.__setattr__(self, "inner", frozen(ball.x[:-1] if ball.success else np.zeros(matrix.shape[1])))
        object.__setattr__(self, "depth", float(ball.x[-1]) if ball.success else np.inf)
        directions = np.vstack([np.eye(matrix.shape[1]), -np.eye(matrix.shape[1])])
        if not ball.success or any(self._solve(direction).status == UNBOUNDED for direction in directions):
            raise UnboundedDomainError(
                "the domain matrix @ x <= limits must be bounded, but is not; add rows that bound it."
            )

    def _solve(self, objective: Floats, ball: bool = False) -> Any:
        """Minimise a linear function over the domain, or over the balls (centre, radius) inside it."""
        require("scipy")
        from scipy.optimize import linprog

        rows = self.matrix
        if ball:
            rows = np.hstack([rows, np.linalg.norm(rows, axis=1, keepdims=True)])
        free = [(None, None)] * self.matrix.shape[1] + [(0.0, None)] * ball
        return linprog(objective, A_ub=rows, b_ub=self.limits, bounds=free, method="highs")

    @property
    def region(self) -> Region:
        """A region without a compiled projection."""
        return Region(NOT_COMPILED, self.inner, self.inner, 0.0)

    @property
    def centre(self) -> Floats:
        """(n,) the centre of the largest ball inside."""
        return np.array(self.inner)

    def least(self, vectors: Floats) -> Floats:
        """Compute the minimum of linear functions, with one linear program each."""
        return np.array([self._solve(row).fun for row in vectors])

    @property
    def halfspaces(self) -> Halfspaces:
        """The conditions as they were given."""
        return Halfspaces(self.matrix, self.limits, 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the name, the matrix and the limits as plain data."""
        return {"domain": "Polytope", "matrix": self.matrix.tolist(), "limits": self.limits.tolist()}

    def excess(self, point: Floats) -> float:
        """Compute by how much a point violates the conditions.

        Args:
            point: (n,) the point.

        Returns:
            The largest violation of a condition; 0 inside.
        """
        return float(max((self.matrix @ point - self.limits).max(), 0.0))

    def move_inside(self, point: Floats) -> None:
        """Project a point onto the domain, in place."""
        if self.excess(point) == 0.0:
            return
        binding = self._binding(point)
        rows = self.matrix[binding]
        multipliers = np.linalg.lstsq(rows @ rows.T, rows @ point - self.limits[binding], rcond=None)[0]
        point -= rows.T @ multipliers

    def _binding(self, point: Floats) -> Any:
        r"""(k,) which rows bind at the nearest point: those with a positive multiplier.

        With z = x - p the program is :math:`\min \|z\|` subject to :math:`-Az \ge h`, h = Ap - b. Up to a factor, its
        multipliers are the u of :math:`\min_{u \ge 0} \|(-A, h)^\top u - e_{n+1}\|`, which the method solves exactly
        (Lawson and Hanson 1974, chapter 23).
        """
        require("scipy")
        from scipy.optimize import nnls

        excess = self.matrix @ point - self.limits
        target = np.append(np.zeros(point.size), 1.0)
        weights, _ = nnls(np.vstack([-self.matrix.T, excess / np.abs(excess).max()]), target)
        return weights > 0.0
