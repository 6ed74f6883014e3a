r"""The global variation of the constraints, :math:`W = \sum_t \sum_j \sup_{x \in X} |g_{t,j}(x) - \bar g_j(x)|`.

The difference h between a round and the mean is linear, quadratic (not convex) or a difference of norms:

- *linear*: the sup norm is the larger of the minimum and the maximum over X in absolute value, exact on every domain;
- *quadratic*: over a ball it is a trust-region problem, solved exactly by its secular equation; over a box with
  diagonal matrices it separates into entries; over boxes and simplices with few variables faces are enumerated: a
  maximum lies in the relative interior of some face, where h is stationary along the face, so one linear system per
  face finds it;
- *norm*: exact if only the radii change; otherwise bounded by :math:`|\|x - c\| - \|x - c'\|| \le \|c - c'\|`.

In all other cases the value is an upper bound, as the label says, and ``lower`` is the largest |h| at sampled points
of X. All sums are over distinct rows, weighted by their rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import of_type
from driftsack.core.errors import SettingError
from driftsack.oco.domains import Ball, Box, Domain
from driftsack.oco.families import LINEAR, NORM, Table
from driftsack.oco.problem import ConvexProblem
from driftsack.oco.simplex_domains import ScaledSimplex

MAX_FACES: Final = 3**7  # faces of a box or simplex to enumerate
SAMPLES: Final = 64  # points at which the lower bound is evaluated
FAR: Final = 1e3  # distance of the random points that are projected to sample points
MAX_PAIRED_NORMS: Final = 4_000  # distinct norms with all pairwise distances computed
MAX_SAMPLED_NORMS: Final = 10**7  # norms evaluated for the lower bound
BISECTIONS: Final = 200
LOW, HIGH, FREE = range(3)  # where an entry is on a face of a box


@dataclass(frozen=True, eq=False)
class GlobalVariation:
    """The global variation W of a problem's constraints.

    Attributes:
        value: W, or an upper bound of it.
        lower: A lower bound of W; equal to ``value`` if that is exact.
        each: (d,) the contribution of each constraint to ``value``.
        bounded: The families of functions whose sup norms are only bounded, such as ``"Norm over Box"``.
    """

    value: float
    lower: float
    each: Floats
    bounded: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether every sup norm is exact."""
        return not self.bounded

    @property
    def label(self) -> str:
        """``"exact"``, or which sup norms are only bounded."""
        return "exact" if self.exact else f"upper bound: {', '.join(self.bounded)}"


def global_variation(problem: ConvexProblem) -> GlobalVariation:
    """Compute the global variation W of a problem's constraints.

    Args:
        problem: The problem, with functions given by arrays. With noise, W is that of the means.

    Returns:
        W, or bounds of it, and the contribution of each constraint.

    Raises:
        SettingError: If the functions are callables.

    >>> from driftsack.oco import instances
    >>> moves = global_variation(instances.proposition_2(horizon=1_000, shift=0.1))
    >>> round(moves.value, 9), moves.label
    (50.0, 'exact')
    """
    of_type(problem, ConvexProblem, "problem")
    if not problem.tabled:
        raise SettingError(
            "the sup norms of callables cannot be computed; give the constraints as Linear, Quadratic or Norm."
        )
    upper, lower, bounded = [], [], []
    for family in problem.constraints:
        for i in range(family.count):
            above, below, exact = sup_norms(family, i, problem.domain)
            upper.append(problem.horizon * float(family.weights @ above))
            lower.append(problem.horizon * float(family.weights @ below))
            bounded += [] if exact else [f"{type(family).__name__} over {type(problem.domain).__name__}"]
    return GlobalVariation(sum(upper), sum(lower), np.array(upper), tuple(dict.fromkeys(bounded)))


def sup_norms(family: Table, i: int, domain: Domain) -> tuple[Floats, Floats, bool]:
    """(K,) upper and lower bounds of the sup norms of function i minus its mean, and whether they are exact."""
    rows, weights = family.rows, family.weights
    constants = rows.constants[:, i] - weights @ rows.constants[:, i]
    vectors = rows.vectors[:, i] - weights @ rows.vectors[:, i]
    if rows.kind == NORM:
        return distance_sup_norms(family, i, domain, constants)
    if rows.kind == LINEAR or len(rows.matrices) == 1:  # a shared matrix cancels in the difference from the mean
        exact = linear_sup_norms(vectors, constants, domain)
        return exact, exact, True
    matrices = rows.matrices[:, i] - np.tensordot(weights, rows.matrices[:, i], axes=1)
    return quadratic_sup_norms(matrices, vectors, constants, domain)


def linear_sup_norms(vectors: Floats, constants: Floats, domain: Domain) -> Floats:
    """(K,) the largest |a·x + b| over the domain."""
    sup: Floats = np.maximum(np.abs(domain.least(vectors) + constants), np.abs(domain.most(vectors) + constants))
    return sup


def quadratic_sup_norms(
    matrices: Floats, vectors: Floats, constants: Floats, domain: Domain
) -> tuple[Floats, Floats, bool]:
    """(K,) upper and lower bounds of the largest |½xᵀDx + a·x + b| over the domain, and whether they are exact."""
    highest, negated_lowest = (quadratic_maxima(s * matrices, s * vectors, domain) for s in (1.0, -1.0))
    if highest is not None and negated_lowest is not None:
        exact = np.maximum(np.abs(highest + constants), np.abs(constants - negated_lowest))
        return exact, exact, True
    reach = float(np.abs(np.stack([domain.least(s * np.eye(domain.dimension)) for s in (1.0, -1.0)])).max(axis=0).max())
    curvature = 0.5 * np.abs(np.linalg.eigvalsh(matrices)).max(axis=1) * domain.dimension * reach**2
    upper = linear_sup_norms(vectors, constants, domain) + curvature
    points = sample_points(domain)
    values = 0.5 * np.einsum("pi,kij,pj->kp", points, matrices, points) + vectors @ points.T + constants[:, None]
    return upper, np.abs(values).max(axis=1), False


def quadratic_maxima(matrices: Floats, vectors: Floats, domain: Domain) -> Floats | None:
    """(K,) the largest value of ½xᵀDx + a·x over the domain; None if no exact method applies."""
    n = domain.dimension
    if isinstance(domain, Ball):
        gradients = vectors + matrices @ domain.middle
        at_centre = 0.5 * np.einsum("i,kij,j->k", domain.middle, matrices, domain.middle) + vectors @ domain.middle
        lowest = np.array([trust_region(-m, -v, domain.radius) for m, v in zip(matrices, gradients, strict=True)])
        highest: Floats = at_centre - lowest
        return highest
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    if isinstance(domain, Box) and not (matrices - diagonal[:, :, None] * np.eye(n)).any():
        return separable_maxima(diagonal, vectors, domain.low, domain.high)
    if isinstance(domain, Box) and 3**n <= MAX_FACES:
        return maxima_over_faces(matrices, vectors, box_faces(domain))
    if isinstance(domain, ScaledSimplex) and 2**n <= MAX_FACES:
        return maxima_over_faces(matrices, vectors, simplex_faces(domain))
    return None


def separable_maxima(curvature: Floats, slope: Floats, low: Floats, high: Floats) -> Floats:
    """(K,) the largest Σ ½dx² + ax over a box: each entry is at a bound or at its stationary point."""
    stationary = np.divide(-slope, curvature, out=np.broadcast_to(low, slope.shape).copy(), where=curvature != 0.0)
    ends = [np.broadcast_to(end, slope.shape) for end in (low, high)]
    candidates = np.stack([*ends, np.clip(stationary, low, high)])
    best: Floats = (0.5 * curvature * candidates**2 + slope * candidates).max(axis=0).sum(axis=1)
    return best


class Face(NamedTuple):
    """A face of a polytope."""

    point: Floats  # (n,) a point of the face
    basis: Floats  # (n, k) directions that span it


def box_faces(domain: Box) -> list[Face]:
    """All faces of a box: each entry is at its lower bound, at its upper bound, or free."""
    eye, faces = np.eye(domain.dimension), []
    for choice in product((LOW, HIGH, FREE), repeat=domain.dimension):
        sides = np.array(choice)
        middle = 0.5 * (domain.low + domain.high)
        point = np.where(sides == LOW, domain.low, np.where(sides == HIGH, domain.high, middle))
        faces.append(Face(point, eye[:, sides == FREE]))
    return faces


def simplex_faces(domain: ScaledSimplex) -> list[Face]:
    """All faces of a simplex, one for each non-empty set of entries that may be positive."""
    n, faces = domain.size, []
    for positive in product((False, True), repeat=n):
        support = np.flatnonzero(positive)
        if support.size:
            basis = np.zeros((n, support.size - 1))
            basis[support[1:], np.arange(support.size - 1)] = 1.0
            basis[support[0]] = -1.0
            faces.append(Face(np.where(positive, domain.total / support.size, 0.0), basis))
    return faces


def maxima_over_faces(matrices: Floats, vectors: Floats, faces: list[Face]) -> Floats:
    """(K,) the largest value at the stationary points of all faces; vertices are faces of dimension 0.

    A face along which the matrix is singular is skipped: a maximum in its interior is also attained on a smaller face.
    A stationary point outside its face is skipped too.
    """
    lows = np.min([point for point, basis in faces if not basis.size], axis=0)
    highs = np.max([point for point, basis in faces if not basis.size], axis=0)
    best = np.full(len(matrices), -np.inf)
    for point, basis in faces:
        x = np.broadcast_to(point, vectors.shape)
        if basis.size:
            inner = basis.T @ matrices @ basis
            slope = (vectors + matrices @ point) @ basis
            regular = np.abs(np.linalg.eigvalsh(inner)).min(axis=1) > 1e-12 * (1.0 + np.abs(inner).max(axis=(1, 2)))
            steps = np.zeros_like(slope)
            steps[regular] = np.linalg.solve(inner[regular], -slope[regular][:, :, None])[:, :, 0]
            x = point + steps @ basis.T
        inside = ((x >= lows - 1e-12) & (x <= highs + 1e-12)).all(axis=1)
        values = 0.5 * np.einsum("ki,kij,kj->k", x, matrices, x) + (vectors * x).sum(axis=1)
        best = np.where(inside, np.maximum(best, values), best)
    return best


def trust_region(matrix: Floats, vector: Floats, radius: float) -> float:
    r"""The minimum of ½zᵀDz + a·z over ‖z‖ ≤ r.

    The minimiser is :math:`z = -(D + \lambda I)^{-1} a` with :math:`D + \lambda I \succeq 0` and either
    :math:`\lambda = 0` in the interior or ‖z‖ = r; in the basis of D's eigenvectors λ is found by bisection. In the
    hard case (a is orthogonal to the lowest eigenvector) z is extended to the boundary along that eigenvector.
    """
    eigenvalues, basis = np.linalg.eigh(matrix)
    slope = basis.T @ vector
    floor = max(0.0, -float(eigenvalues[0]))

    def at(shift: float) -> Floats:
        shifted = eigenvalues + shift
        regular = np.abs(shifted) > 1e-14 * (1.0 + np.abs(eigenvalues).max())
        return np.divide(-slope, shifted, out=np.zeros_like(slope), where=regular)

    z = at(floor)
    along_lowest = np.abs(slope[np.abs(eigenvalues + floor) <= 1e-14 * (1.0 + np.abs(eigenvalues).max())])
    if np.linalg.norm(z) <= radius and not (along_lowest > 1e-14 * (1.0 + np.abs(slope).max())).any():
        z[0] += (
            np.sqrt(max(radius**2 - float(z @ z), 0.0)) if floor > 0.0 else 0.0
        )  # the hard case, or an interior minimum
    else:
        low, high = floor, floor + float(np.linalg.norm(slope)) / max(radius, 1e-300) + 1.0
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if np.linalg.norm(at(middle)) > radius else (low, middle)
        z = at(high)
    return float(0.5 * (eigenvalues * z * z).sum() + slope @ z)


def distance_sup_norms(family: Table, i: int, domain: Domain, constants: Floats) -> tuple[Floats, Floats, bool]:
    """The bounds for norms: exact if all have one centre, otherwise from the distances between the centres."""
    centres, weights = family.rows.vectors[:, i], family.weights
    used = weights > 0.0
    if (centres[used] == centres[used][0]).all():
        return np.abs(constants), np.abs(constants), True
    if len(centres) <= MAX_PAIRED_NORMS:
        distances = np.array([weights @ np.linalg.norm(centres - centre, axis=1) for centre in centres])
    else:
        from_mean = np.linalg.norm(centres - weights @ centres, axis=1)
        distances = from_mean + weights @ from_mean
    points = sample_points(domain)
    lower = np.zeros(len(centres))
    if len(centres) * len(points) < MAX_SAMPLED_NORMS:
        norms = np.linalg.norm(points[:, None, :] - centres[None], axis=2)
        lower = np.abs(norms - (norms @ weights)[:, None] + constants).max(axis=0)
    return np.abs(constants) + distances, lower, False


def sample_points(domain: Domain) -> Floats:
    """(p, n) points of the domain: the centre, and boundary points in random directions."""
    rng = np.random.default_rng(0)
    far = FAR * rng.normal(size=(SAMPLES, domain.dimension))
    return np.array([domain.centre, *(domain.project(point) for point in far)])
