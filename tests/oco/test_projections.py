"""Projections onto every domain: optimality conditions, a twin, degenerate points, and invalid domains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftsack.core.arrays import Floats
from driftsack.core.errors import EmptyDomainError, NotFiniteError, SettingError, UnboundedDomainError
from driftsack.oco import Ball, Box, CappedSimplex, Domain, Orthant, Polytope, ScaledSimplex
from driftsack.oco.domains import from_dict
from driftsack.oco.optional_packages import cvxpy

cp = cvxpy()

PENTAGON = Polytope([[1, 0, 0], [-1, 0, 0], [0, 1, 0.5], [0, -1, 0], [1, 1, 1], [0, 0, -1]], [1, 1, 1, 1, 1.5, 1])
DOMAINS: dict[str, Domain] = {
    "box": Box([-1.0, 0.0, 2.0, 0.5], [1.0, 0.0, 3.0, 4.0]),
    "simplex": ScaledSimplex(5, total=2.0),
    "one entry": ScaledSimplex(1),
    "capped simplex": CappedSimplex([0.2, 1.0, 0.0, 0.7, 0.4], total=1.5),
    "caps that just fit": CappedSimplex([0.25, 0.5, 0.25], total=1.0),
    "ball": Ball([1.0, -2.0, 0.5], radius=1.5),
    "a point": Ball([1.0, 2.0], radius=0.0),
    "orthant": Orthant(4, bound=1.0),
    "polytope": PENTAGON,
}
ENTRIES = st.one_of(
    st.floats(-10, 10), st.sampled_from([0.0, 0.25, 0.5, 1.0, -1.0, 2.0]), st.floats(-1e-9, 1e-9), st.floats(-1e6, 1e6)
)


def points(name: str) -> st.SearchStrategy[Floats]:
    """Points that are random, at kinks, tied, tiny or huge."""
    size = DOMAINS[name].dimension
    return st.lists(ENTRIES, min_size=size, max_size=size).map(np.array)


def largest_violation(domain: Domain, point: Floats, projected: Floats) -> float:
    r"""The violation of :math:`x \in X` and :math:`(p - x)^\top (y - x) \le 0` for all y in X, relative to size."""
    away = point - projected
    size = 1.0 + np.abs(point).max() + np.abs(projected).max()
    reach = float(domain.most(away[None, :])[0]) - float(away @ projected)
    return float(max(outside(domain, projected), reach / (1.0 + np.linalg.norm(away))) / size)


def outside(domain: Domain, x: Floats) -> float:
    """The largest violation of the domain's conditions by x."""
    if isinstance(domain, Box):
        return float(np.maximum(domain.low - x, x - domain.high).max())
    if isinstance(domain, Ball):
        return float(np.linalg.norm(x - domain.middle) - domain.radius)
    if isinstance(domain, Polytope):
        return domain.excess(x)
    if isinstance(domain, Orthant):
        return float(max(-x.min(), x.sum() - domain.bound))
    caps = domain.caps if isinstance(domain, CappedSimplex) else np.inf
    return float(max(-x.min(), (x - caps).max(), abs(x.sum() - domain.total)))  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", DOMAINS)
def test_optimality_conditions_idempotence_and_no_expansion(name: str) -> None:
    domain = DOMAINS[name]
    slack = 1e-12

    @settings(max_examples=60 if name == "polytope" else 400)
    @given(points(name), points(name))
    def check(p: Floats, q: Floats) -> None:
        x, y = domain.project(p), domain.project(q)
        assert largest_violation(domain, p, x) <= slack
        scale = 1.0 + np.abs(p).max() + np.abs(q).max()
        assert np.abs(domain.project(x) - x).max() <= slack * scale
        assert np.linalg.norm(x - y) <= np.linalg.norm(p - q) + slack * scale

    check()


@pytest.mark.parametrize("name", DOMAINS)
def test_against_a_quadratic_program(name: str) -> None:
    """Compared with cvxpy, to Clarabel's accuracy."""
    domain = DOMAINS[name]
    rng = np.random.default_rng(0)
    for _ in range(6):
        p = 2 * rng.normal(size=domain.dimension)
        x = cp.Variable(domain.dimension)
        cp.Problem(cp.Minimize(cp.sum_squares(x - p)), domain.program(x)).solve(solver="CLARABEL")
        assert np.abs(domain.project(p) - x.value).max() < 2e-4  # Clarabel is accurate to about 1e-8 in the square
        assert np.sum((domain.project(p) - p) ** 2) <= np.sum((x.value - p) ** 2) + 1e-6


@pytest.mark.parametrize("name", DOMAINS)
def test_least_value_of_linear_functions(name: str) -> None:
    domain = DOMAINS[name]
    vectors = np.random.default_rng(1).normal(size=(4, domain.dimension))
    for row, least in zip(vectors, domain.least(vectors), strict=True):
        x = cp.Variable(domain.dimension)
        program = cp.Problem(cp.Minimize(row @ x), domain.program(x))
        program.solve(solver="CLARABEL")
        assert least == pytest.approx(program.value, abs=1e-6)
    inside = np.array([domain.project(v) for v in np.random.default_rng(2).normal(size=(50, domain.dimension))])
    assert (inside @ vectors.T >= domain.least(vectors) - 1e-9).all()
    assert outside(domain, domain.centre) <= 1e-12


def test_the_check_notices_a_fault() -> None:
    """The planted faults: a feasible point that is not the nearest, and a point slightly outside."""
    domain = ScaledSimplex(3)
    p = np.array([0.9, -0.2, 0.5])
    assert largest_violation(domain, p, domain.project(p)) <= 1e-12
    assert largest_violation(domain, p, np.array([0.7 + 1e-6, 0.0, 0.3 - 1e-6])) > 1e-9
    assert largest_violation(domain, p, np.array([0.7, 0.0, 0.3 + 1e-6])) > 1e-9


def test_domains_as_plain_data() -> None:
    for domain in DOMAINS.values():
        again = from_dict(domain.to_dict())
        p = np.linspace(-3, 3, domain.dimension)
        assert np.array_equal(again.project(p), domain.project(p))
    with pytest.raises(SettingError, match="domain must be one of"):
        from_dict({"domain": "Sphere"})


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Box([1.0, 0.0], [0.0, 1.0]), EmptyDomainError, "low must be at most high"),
        (lambda: Box(0.0, np.inf, size=2), UnboundedDomainError, "high must be finite"),
        (lambda: Box(0.0, np.nan, size=2), NotFiniteError, "high must be finite, got nan"),
        (lambda: ScaledSimplex(3, total=-1.0), EmptyDomainError, "total must be 0 or more"),
        (lambda: ScaledSimplex(3, total=np.inf), UnboundedDomainError, "total"),
        (lambda: CappedSimplex([0.1, 0.2], total=1.0), EmptyDomainError, "sum of the caps"),
        (lambda: CappedSimplex([np.inf, 0.2]), UnboundedDomainError, "caps"),
        (lambda: Ball([0.0], radius=-1.0), EmptyDomainError, "radius"),
        (lambda: Ball([0.0], radius=np.inf), UnboundedDomainError, "radius"),
        (lambda: Orthant(2, bound=-0.5), EmptyDomainError, "bound"),
        (lambda: Orthant(2, bound=np.inf), UnboundedDomainError, "bound"),
        (lambda: Polytope([[1.0], [-1.0]], [0.0, -1.0]), EmptyDomainError, "loosen a limit"),
        (lambda: Polytope([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0]), UnboundedDomainError, "add rows"),
        (lambda: Polytope([[1.0, 0], [-1.0, 0]], [1.0, 1.0]), UnboundedDomainError, "add rows"),
        (lambda: ScaledSimplex(2).project([np.nan, 0.0]), NotFiniteError, "point must be finite"),
    ],
)
def test_bad_domains_are_refused(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()
