r"""W, how far the constraints move: :math:`W = \sum_t \sum_j \sup_{x \in X} |g_{t,j}(x) - \bar g_j(x)|`.

The difference of a round from the mean, h, is linear, quadratic (not convex) or a difference of norms:

- *linear*: the sup is the larger of two linear programs over X, exact on every domain;
- *quadratic*: over a ball the trust-region problem, exact by its secular equation; over a box with diagonal
curvature, entry by
  entry; over boxes and simplices of few variables, by faces: a largest value lies in the interior of some face,
  where h is stationary along the face, so solving one linear system a face finds it;
- *norm*: exact where only radii move; else :math:`|\|x - c\| - \|x - c'\|| \le \|c - c'\|` bounds it.

Elsewhere the value is an upper bound, labelled as such, and ``lower`` is the largest |h| at points of X that were
tried. All sums are over distinct rows, weighted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import of_type
from driftsack.core.errors import SettingError
from driftsack.oco.domains import Ball, Box, Domain
from driftsack.oco.families import LINEAR, NORM, Table
from driftsack.oco.problem import Problem
from driftsack.oco.simplices import Simplex

FACES: Final = 3**7  # of a box or simplex that are worth looking at one by one
TRIED: Final = 64  # points at which a lower bound is looked for
PAIRS: Final = 4_000  # distinct norms whose distances are all computed
STEPS: Final = 200


@dataclass(frozen=True, eq=False)
class GlobalVariation:
    """W of a problem's constraints."""

    value: float  # W, or an upper bound of it
    lower: float  # W is at least this
    each: Floats  # (d,) the parts of the constraints
    label: str  # "exact", or what is only bounded

    @property
    def exact(self) -> bool:
        """Whether every sup norm is exact."""
        return self.label == "exact"


def global_variation(problem: Problem) -> GlobalVariation:
    """W of the constraints of a problem made of arrays; with noise, of their means.

    >>> from driftsack.oco import instances
    >>> moves = global_variation(instances.proposition_2(horizon=1_000, shift=0.1))
    >>> round(moves.value, 9), moves.label
    (50.0, 'exact')
    """
    of_type(problem, Problem, "problem")
    if not problem.tabled:
        raise SettingError(
            "the sup norms of callables are not known; give the constraints as Linear, Quadratic or Norm."
        )
    upper, lower, labels = [], [], []
    for family in problem.constraints:
        for i in range(family.count):
            above, below, exact = sup_norms(family, i, problem.domain)
            upper.append(problem.horizon * float(family.weights @ above))
            lower.append(problem.horizon * float(family.weights @ below))
            labels += [] if exact else [f"{type(family).__name__} over {type(problem.domain).__name__}"]
    label = f"upper bound: {', '.join(dict.fromkeys(labels))}" if labels else "exact"
    return GlobalVariation(sum(upper), sum(lower), np.array(upper), label)


def sup_norms(family: Table, i: int, domain: Domain) -> tuple[Floats, Floats, bool]:
    """(K,) upper and lower bounds of sup |g_k - mean|, and whether they are equal."""
    rows, weights = family.rows, family.weights
    constants = rows.constants[:, i] - weights @ rows.constants[:, i]
    vectors = rows.vectors[:, i] - weights @ rows.vectors[:, i]
    if rows.kind == NORM:
        return norm_sups(family, i, domain, constants)
    if rows.kind == LINEAR or len(rows.matrices) == 1:  # shared curvature leaves with the mean
        found = np.maximum(np.abs(domain.least(vectors) + constants), np.abs(domain.most(vectors) + constants))
        return found, found, True
    matrices = rows.matrices[:, i] - np.tensordot(weights, rows.matrices[:, i], axes=1)
    return quadratic_sups(matrices, vectors, constants, domain)


def quadratic_sups(matrices: Floats, vectors: Floats, constants: Floats, domain: Domain) -> tuple[Floats, Floats, bool]:
    """The largest |½xᵀDx + a·x + b| over the domain, for each row."""
    highest = exact_most(matrices, vectors, domain)
    if highest is not None:
        lowest = exact_most(-matrices, -vectors, domain)
        assert lowest is not None  # noqa: S101  (the same shapes)
        found = np.maximum(np.abs(highest + constants), np.abs(constants - lowest))
        return found, found, True
    reach = float(np.abs(np.stack([domain.least(s * np.eye(domain.dimension)) for s in (1.0, -1.0)])).max(axis=0).max())
    bend = 0.5 * np.abs(np.linalg.eigvalsh(matrices)).max(axis=1) * domain.dimension * reach**2
    upper = np.maximum(np.abs(domain.least(vectors) + constants), np.abs(domain.most(vectors) + constants)) + bend
    points = tried_points(domain)
    values = 0.5 * np.einsum("pi,kij,pj->kp", points, matrices, points) + vectors @ points.T + constants[:, None]
    return upper, np.abs(values).max(axis=1), False


def exact_most(matrices: Floats, vectors: Floats, domain: Domain) -> Floats | None:
    """(K,) the largest value of ½xᵀDx + a·x over the domain; None where no exact way is known."""
    n = domain.dimension
    if isinstance(domain, Ball):
        slopes = vectors + matrices @ domain.middle
        shift = 0.5 * np.einsum("i,kij,j->k", domain.middle, matrices, domain.middle) + vectors @ domain.middle
        lowest = np.array([trust_region(-m, -v, domain.radius) for m, v in zip(matrices, slopes, strict=True)])
        highest: Floats = shift - lowest
        return highest
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    if isinstance(domain, Box) and not (matrices - diagonal[:, :, None] * np.eye(n)).any():
        return most_by_entry(diagonal, vectors, domain.low, domain.high)
    if isinstance(domain, Box) and 3**n <= FACES:
        return most_over_faces(matrices, vectors, box_faces(domain))
    if isinstance(domain, Simplex) and 2**n <= FACES:
        return most_over_faces(matrices, vectors, simplex_faces(domain))
    return None


def most_by_entry(curvature: Floats, slope: Floats, low: Floats, high: Floats) -> Floats:
    """(K,) the largest Σ ½dx² + ax with each entry between its ends: at an end, or where it is flat."""
    flat = np.divide(-slope, curvature, out=np.broadcast_to(low, slope.shape).copy(), where=curvature != 0.0)
    ends = [np.broadcast_to(end, slope.shape) for end in (low, high)]
    candidates = np.stack([*ends, np.clip(flat, low, high)])
    best: Floats = (0.5 * curvature * candidates**2 + slope * candidates).max(axis=0).sum(axis=1)
    return best


Face = tuple[Floats, Floats]  # a point (n,) and the directions (n, k) of a face


def box_faces(domain: Box) -> list[Face]:
    """Every face of a box: each entry at its low end, at its high end, or free."""
    eye, found = np.eye(domain.dimension), []
    for state in product((0, 1, 2), repeat=domain.dimension):
        sides = np.array(state)
        middle = 0.5 * (domain.low + domain.high)
        found.append((np.where(sides == 0, domain.low, np.where(sides == 1, domain.high, middle)), eye[:, sides == 2]))  # noqa: PLR2004
    return found


def simplex_faces(domain: Simplex) -> list[Face]:
    """Every face of a simplex: the entries that may be above 0."""
    n, found = domain.size, []
    for state in product((False, True), repeat=n):
        support = np.flatnonzero(state)
        if support.size:
            basis = np.zeros((n, support.size - 1))
            basis[support[1:], np.arange(support.size - 1)] = 1.0
            basis[support[0]] = -1.0
            found.append((np.where(state, domain.total / support.size, 0.0), basis))
    return found


def most_over_faces(matrices: Floats, vectors: Floats, faces: list[Face]) -> Floats:
    """(K,) the largest value over the stationary points of all faces; vertices are faces of dimension 0.

    Where the curvature along a face is singular, a largest value inside it also lies on a smaller face: it is
    skipped. So is a stationary point outside of its face.
    """
    lows = np.min([point for point, basis in faces if not basis.size], axis=0)
    highs = np.max([point for point, basis in faces if not basis.size], axis=0)
    best = np.full(len(matrices), -np.inf)
    for point, basis in faces:
        x = np.broadcast_to(point, vectors.shape)
        if basis.size:
            inner = basis.T @ matrices @ basis
            slope = (vectors + matrices @ point) @ basis
            sound = np.abs(np.linalg.eigvalsh(inner)).min(axis=1) > 1e-12 * (1.0 + np.abs(inner).max(axis=(1, 2)))
            steps = np.zeros_like(slope)
            steps[sound] = np.linalg.solve(inner[sound], -slope[sound][:, :, None])[:, :, 0]
            x = point + steps @ basis.T
        inside = ((x >= lows - 1e-12) & (x <= highs + 1e-12)).all(axis=1)
        values = 0.5 * np.einsum("ki,kij,kj->k", x, matrices, x) + (vectors * x).sum(axis=1)
        best = np.where(inside, np.maximum(best, values), best)
    return best


def trust_region(matrix: Floats, vector: Floats, radius: float) -> float:
    r"""The least ½zᵀDz + a·z over ‖z‖ ≤ r, exactly.

    The answer is :math:`z = -(D + \lambda I)^{-1} a` with :math:`D + \lambda I \succeq 0` and either
    :math:`\lambda = 0` inside or ‖z‖ = r; in the basis of D's eigenvectors λ is found by halving. In the hard case
    (a has no part along the lowest eigenvector) z is filled up along it.
    """
    lows, basis = np.linalg.eigh(matrix)
    slope = basis.T @ vector
    floor = max(0.0, -float(lows[0]))

    def at(shift: float) -> Floats:
        gaps = lows + shift
        return np.divide(
            -slope, gaps, out=np.zeros_like(slope), where=np.abs(gaps) > 1e-14 * (1.0 + np.abs(lows).max())
        )

    z = at(floor)
    along = np.abs(slope[np.abs(lows + floor) <= 1e-14 * (1.0 + np.abs(lows).max())])
    if np.linalg.norm(z) <= radius and not (along > 1e-14 * (1.0 + np.abs(slope).max())).any():
        z[0] += np.sqrt(max(radius**2 - float(z @ z), 0.0)) if floor > 0.0 else 0.0  # the hard case; else inside
    else:
        low, high = floor, floor + float(np.linalg.norm(slope)) / max(radius, 1e-300) + 1.0
        for _ in range(STEPS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if np.linalg.norm(at(middle)) > radius else (low, middle)
        z = at(high)
    return float(0.5 * (lows * z * z).sum() + slope @ z)


def norm_sups(family: Table, i: int, domain: Domain, constants: Floats) -> tuple[Floats, Floats, bool]:
    """Differences of norms from their mean: exact if all have one centre, else bounded by the centres' distances."""
    centres, weights = family.rows.vectors[:, i], family.weights
    used = weights > 0.0
    if (centres[used] == centres[used][0]).all():
        return np.abs(constants), np.abs(constants), True
    if len(centres) <= PAIRS:
        apart = np.array([weights @ np.linalg.norm(centres - centre, axis=1) for centre in centres])
    else:
        off = np.linalg.norm(centres - weights @ centres, axis=1)
        apart = off + weights @ off
    points = tried_points(domain)
    lengths = np.linalg.norm(points[:, None, :] - centres[None], axis=2) if len(centres) * len(points) < 10**7 else None
    lower = np.zeros(len(centres))
    if lengths is not None:
        lower = np.abs(lengths - (lengths @ weights)[:, None] + constants).max(axis=0)
    return np.abs(constants) + apart, lower, False


def tried_points(domain: Domain) -> Floats:
    """(p, n) points of the domain: the centre, and the ends in random directions."""
    rng = np.random.default_rng(0)
    far = 1e3 * rng.normal(size=(TRIED, domain.dimension))
    return np.array([domain.centre, *(domain.project(point) for point in far)])
