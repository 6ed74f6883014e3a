"""OPT, OPT' and W: closed forms, naive programs, certificates that notice faults, and Proposition 2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from driftsack import oco
from driftsack.core import extras
from driftsack.core.arrays import Floats
from driftsack.core.errors import InfeasibleError, MissingExtraError, SettingError, TooLargeError
from driftsack.oco.convex_programs import ConstraintRows, row_expression, solve
from driftsack.oco.optimum import lower_bound
from driftsack.oco.optional_packages import cvxpy
from driftsack.oco.variation import trust_region

cp = cvxpy()
DOMAINS: dict[str, oco.Domain] = {
    "box": oco.Box(-1, 1, size=3),
    "simplex": oco.ScaledSimplex(3),
    "capped simplex": oco.CappedSimplex([0.5, 0.6, 0.7]),
    "ball": oco.Ball([0.2, 0.0, -0.1], radius=0.8),
    "orthant": oco.Orthant(3, bound=1.5),
    "polytope": oco.Polytope([[-1, 0, 0], [0, -1, 0], [0, 0, -1], [1, 2, 1]], [0, 0, 0, 1]),
}


def random_problem(domain: oco.Domain, seed: int, horizon: int = 40, norms: bool = True) -> oco.ConvexProblem:
    """All families, every round strictly feasible at the domain's centre, rounds that repeat and rounds that do not."""
    rng = np.random.default_rng(seed)
    n, c = domain.dimension, domain.centre
    roots = rng.normal(size=(3, 1, n, n))
    losses = oco.Quadratic(
        roots @ np.swapaxes(roots, 2, 3) / n, rng.normal(size=(3, n)), 0.1, rng.integers(0, 3, horizon)
    )
    steep = rng.normal(size=(5, 2, n))
    linear = oco.Linear(steep, -steep @ c - rng.uniform(0.05, 0.3, (5, 2)), rng.integers(0, 5, horizon))
    bowls = rng.normal(size=(4, 1, n, n))
    bowls = bowls @ np.swapaxes(bowls, 2, 3) / n
    levels = -0.5 * np.einsum("i,kij,j->k", c, bowls[:, 0], c) - rng.uniform(0.05, 0.3, 4)
    bowl = oco.Quadratic(bowls, np.zeros((4, n)), levels, rng.integers(0, 4, horizon))
    centres = rng.normal(size=(horizon, n))
    radii = np.linalg.norm(centres - c, axis=1) + rng.uniform(0.05, 0.3, horizon)
    near = [oco.Norm(centres, radii[:, None])] if norms else []
    return oco.ConvexProblem(losses, [linear, bowl, *near], domain)


def naive(problem: oco.ConvexProblem, every_round: bool) -> float:
    """The program written out round by round in cvxpy."""
    x = cp.Variable(problem.dimension)
    losses: Any = problem.losses
    total = sum(row_expression(losses, int(k), 0, x) for k in losses.phase)
    rows = []
    for family in problem.constraints:
        for i in range(family.count):
            parts = [row_expression(family, int(k), i, x) for k in family.phase]
            rows += [part <= 0 for part in parts] if every_round else [sum(parts) <= 0]
    program = cp.Problem(cp.Minimize(total), rows + problem.domain.program(x))
    program.solve(solver="CLARABEL")
    return float(program.value)


@pytest.mark.parametrize("name", DOMAINS)
def test_optima_equal_naive_programs_and_are_certified(name: str) -> None:
    problem = random_problem(DOMAINS[name], seed=1)
    for every_round, solver in ((False, oco.static_optimum), (True, oco.restricted_optimum)):
        best = solver(problem)
        assert best.value == pytest.approx(naive(problem, every_round), abs=2e-5)
        assert best.gap < 1e-6
        assert best.violation == 0.0
        assert np.abs(problem.domain.project(best.point) - best.point).max() <= 1e-12
        assert best.slater > 0.0
        assert best.strictly_feasible


@pytest.mark.parametrize("name", DOMAINS)
def test_proposition_2_on_random_instances(name: str) -> None:
    """0 ≤ OPT' − OPT ≤ q̄W up to the gaps of both certificates, with an upper bound of W where W is not exact."""
    differ = False
    for seed in range(4):
        problem = random_problem(DOMAINS[name], seed=seed, horizon=25)
        static, restricted = oco.static_optimum(problem), oco.restricted_optimum(problem)
        variation = oco.global_variation(problem)
        q_bar = max(static.prices.max(), restricted.prices.max())
        between = restricted.value - static.value
        assert -static.gap - 1e-9 <= between <= q_bar * variation.value + restricted.gap + 1e-9
        assert variation.lower <= variation.value
        differ |= between > 1e-3
    assert differ  # on some instance, so that the upper bound is tested


@pytest.mark.parametrize("horizon", [10, 1_000, 1_001, 100_000])
@pytest.mark.parametrize(("reward", "budget", "shift"), [(1.0, 0.5, 0.1), (2.0, 0.3, 0.05), (0.5, 0.9, 0.9)])
def test_the_lower_bound_equals_its_closed_forms(horizon: int, reward: float, budget: float, shift: float) -> None:
    problem = oco.instances.proposition_2(horizon, reward, budget, shift)
    forms = oco.instances.proposition_2_forms(horizon, reward, budget, shift)
    static, restricted = oco.static_optimum(problem), oco.restricted_optimum(problem)
    variation = oco.global_variation(problem)
    assert static.value == pytest.approx(forms.optimum, rel=1e-8)
    assert restricted.value == pytest.approx(forms.restricted, rel=1e-8)
    assert variation.value == pytest.approx(forms.variation, rel=1e-8)
    assert variation.exact
    assert oco.q_bar(problem) == pytest.approx(forms.q_bar, rel=1e-8)
    assert max(static.gap, restricted.gap) <= 1e-8 * horizon
    share = (forms.restricted - forms.optimum) / (forms.q_bar * forms.variation)
    assert share >= 0.1  # Ω(q̄W): at least b / 2(2b + Δ), which is 1/4 for small Δ


def test_certificates_notice_faults() -> None:
    """A wrong price or point opens the gap, and a violated constraint shows as a violation."""
    problem = random_problem(DOMAINS["box"], seed=2)
    rows = ConstraintRows(problem, every_round=False)
    solution = solve(rows)
    best = oco.static_optimum(problem)
    assert best.value - lower_bound(problem, rows, solution) < 1e-6
    assert solution.weights.max() > 0.01
    wrong_prices = solution._replace(weights=0.9 * solution.weights)
    wrong_point = solution._replace(point=0.9 * solution.point)
    assert best.value - lower_bound(problem, rows, wrong_prices) > 1e-4
    assert best.value - lower_bound(problem, rows, wrong_point) > 1e-4
    uphill = rows.evaluate(solution.point)[1][int(solution.weights.argmax())]
    assert rows.values(best.point).max() <= 0.0 < rows.values(best.point + 0.01 * uphill).max()


def test_restricted_rows_are_found_among_many() -> None:
    """Rows are added as they are needed; in the end none of 30,000 distinct rounds is violated."""
    problem = oco.instances.periodic(horizon=30_000)
    best = oco.restricted_optimum(problem)
    values, _ = problem.constraints[0].table(best.point)
    assert values.max() <= 0.0
    assert best.gap < 1e-9 * problem.horizon
    assert 1 <= (best.prices > 1e-6 * best.prices.max()).sum() <= 100  # few rounds bind, and they carry the whole price


@pytest.mark.parametrize("name", DOMAINS)
def test_callables_by_the_numerical_fallback(name: str) -> None:
    problem = random_problem(DOMAINS[name], seed=3, horizon=12, norms=False)

    def wrapped(family: Any) -> oco.Callables:
        return oco.Callables(
            lambda t, x: family.evaluate(t, x)[0], lambda t, x: family.evaluate(t, x)[1], 12, 3, count=family.count
        )

    called = oco.ConvexProblem(wrapped(problem.losses), [wrapped(f) for f in problem.constraints], problem.domain)
    for solver in (oco.static_optimum, oco.restricted_optimum):
        numerical, exact = solver(called), solver(problem)
        assert numerical.method == "SLSQP"
        assert numerical.value == pytest.approx(exact.value, abs=1e-4)
        assert -1e-9 <= numerical.gap < 1e-4
        assert numerical.violation == 0.0
    with pytest.raises(SettingError, match="sup norms of callables cannot be computed"):
        oco.global_variation(called)


def test_infeasible_and_barely_feasible_problems_are_reported() -> None:
    def one(level: float) -> oco.ConvexProblem:
        phase = np.zeros(10, dtype=int)
        return oco.ConvexProblem(
            oco.Linear([[-1.0]], phase=phase), oco.Linear([[1.0]], [[level]], phase), oco.Box(0, 1)
        )

    with pytest.raises(InfeasibleError, match=r"still violates one by 0\.25 per round"):
        oco.static_optimum(one(0.25))
    with pytest.raises(InfeasibleError, match="in every round"):
        oco.restricted_optimum(one(0.25))
    edge = oco.static_optimum(one(0.0))  # only x = 0 is feasible: the optimum exists, but Slater's condition fails
    assert not edge.strictly_feasible
    assert "Slater's condition fails" in repr(edge)
    assert edge.value == pytest.approx(0.0, abs=1e-6)
    assert np.isfinite(oco.VirtualQueue().play(one(0.25)).violation).all()  # the algorithm still runs


def test_too_large_problems_and_missing_packages_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    many = oco.Callables(lambda *_: 0.0, lambda *_: [0.0], 5_000, 1)
    with pytest.raises(TooLargeError, match="at most 1000 rounds, got 5000"):
        oco.restricted_optimum(oco.ConvexProblem(many, many, oco.Box(0, 1)))

    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"driftsack\[oco\]"):
        oco.static_optimum(oco.instances.proposition_2(10))
    assert oco.VirtualQueue().play(oco.instances.proposition_2(10)).trials == 1  # plays need no extra


def grid(domain: oco.Domain, count: int = 41) -> Floats:
    """Many points of a domain of two variables, including its boundary."""
    axis = np.linspace(-1.5, 1.5, count)
    return np.array([domain.project(point) for point in np.array(np.meshgrid(axis, axis)).reshape(2, -1).T])


@pytest.mark.parametrize(
    "domain",
    [oco.Box(-1, 1, size=2), oco.ScaledSimplex(2), oco.Ball([0.1, -0.2], radius=1.0)],
    ids=lambda d: type(d).__name__,
)
@pytest.mark.parametrize("kind", ["linear", "quadratic", "diagonal"])
def test_sup_norms_are_exact(domain: oco.Domain, kind: str) -> None:
    """The value is at least the maximum over a grid of points, and at most 1% larger."""
    rng = np.random.default_rng(5)
    roots = rng.normal(size=(6, 2, 2, 2))
    matrices = roots @ np.swapaxes(roots, 2, 3)
    if kind == "diagonal":
        matrices = matrices * np.eye(2)
    vectors, constants = rng.normal(size=(6, 2, 2)), rng.normal(size=(6, 2))
    phase = rng.integers(0, 6, 50)
    family: Any = (
        oco.Linear(vectors, constants, phase)
        if kind == "linear"
        else oco.Quadratic(matrices, vectors, constants, phase)
    )
    problem = oco.ConvexProblem(oco.Linear(np.zeros((50, 2))), family, domain)
    variation = oco.global_variation(problem)
    values = np.array([family.table(x)[0] for x in grid(domain)])  # (points, K, m)
    apart = np.abs(values - np.einsum("k,pkm->pm", family.weights, values)[:, None]).max(axis=0)
    brute = 50 * (family.weights @ apart).sum()
    assert variation.exact
    assert brute <= variation.value * (1 + 1e-12)
    assert variation.value <= brute * 1.01


def test_the_hard_case_of_the_trust_region() -> None:
    """The gradient is orthogonal to the lowest eigenvector, so the minimum lies on the boundary along it."""
    assert trust_region(np.diag([-2.0, 1.0]), np.zeros(2), 3.0) == pytest.approx(-9.0)
    assert trust_region(np.diag([-2.0, 1.0]), np.array([0.0, 1.0]), 3.0) == pytest.approx(-9.0 - 1 / 6)
    assert trust_region(np.diag([2.0, 1.0]), np.array([1.0, 0.0]), 3.0) == pytest.approx(-0.25)


def test_where_sup_norms_are_only_bounded_the_label_says_so() -> None:
    rng = np.random.default_rng(6)
    near = oco.Norm(rng.normal(size=(5, 2)), 1.0)
    one_centre = oco.Norm(np.zeros((5, 2)), rng.random((5, 1)))
    losses = oco.Linear(np.zeros((5, 2)))
    variation = oco.global_variation(oco.ConvexProblem(losses, near, oco.Box(-1, 1, size=2)))
    assert variation.label == "upper bound: Norm over Box"
    assert variation.bounded == ("Norm over Box",)
    assert not variation.exact
    values = np.array([near.table(x)[0][:, 0] for x in grid(oco.Box(-1, 1, size=2))])
    brute = np.abs(values - values.mean(axis=1, keepdims=True)).max(axis=0).sum()
    assert variation.lower <= brute * (1 + 1e-9)
    assert brute <= variation.value
    assert oco.global_variation(oco.ConvexProblem(losses, one_centre, oco.Box(-1, 1, size=2))).exact
    roots = rng.normal(size=(4, 1, 9, 9))
    bowls = oco.Quadratic(roots @ np.swapaxes(roots, 2, 3), rng.normal(size=(4, 9)))
    wide = oco.global_variation(oco.ConvexProblem(oco.Linear(np.zeros((4, 9))), bowls, oco.Box(-1, 1, size=9)))
    assert wide.label == "upper bound: Quadratic over Box"
    assert 0.0 < wide.lower < wide.value
