"""Online convex optimisation: a twin of every algorithm, ask and tell, files, callables, and bad input."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftsack
from driftsack import oco
from driftsack.core.arrays import Floats
from driftsack.core.errors import (
    AlreadyToldError,
    DriftsackError,
    FileFormatError,
    HorizonReachedError,
    NotFiniteError,
    OutOfRangeError,
    SettingError,
    ShapeError,
)
from driftsack.oco.exponential_penalty import bounding_diagonal
from driftsack.oco.families import Family
from tests.support.paths import ROOT

T = 60
ALGORITHMS: list[oco.Algorithm] = [
    oco.VirtualQueue(),
    oco.VirtualQueue(parameters="printed"),
    oco.VirtualQueue(tradeoff=3.0, proximity=20.0),
    oco.DriftPlusPenalty(scale=2.0),
    oco.OnlineGradient(step=0.3),
    oco.PenalisedPrimalDual(step=0.4, beta=0.6, penalty=2.0),
    oco.ExponentialPenalty(gradient=4.0),
    oco.ExponentialPenalty(gradient=2.0, diameter=3.0, anytime=True),
    oco.QuadraticPenalty(strength=0.5, gradient=3.0),
]
TRIANGLE = oco.Polytope([[-1, 0], [0, -1], [1, 1]], [0, 0, 1])


def mixed_problem(domain: oco.Domain, seed: int = 0, noise: float = 0.0) -> oco.ConvexProblem:
    """Quadratic losses, and constraints of all three families, each with its own rows and phase."""
    rng = np.random.default_rng(seed)
    n = domain.dimension
    roots = rng.normal(size=(3, 1, n, n))
    losses = oco.Quadratic(roots @ np.swapaxes(roots, 2, 3) / n, rng.normal(size=(3, n)), 0.1, rng.integers(0, 3, T))
    linear = oco.Linear(rng.normal(size=(5, 2, n)), rng.normal(size=(5, 2)), rng.integers(0, 5, T))
    bowl = oco.Quadratic(np.eye(n), rng.normal(size=(T, n)), -0.5)
    near = oco.Norm(rng.normal(size=(4, n)), 0.5, rng.integers(0, 4, T))
    return oco.ConvexProblem(losses, (linear, bowl, near), domain, noise=noise)


def value_and_gradient(family: Any, t: int, x: Floats) -> list[tuple[float, Floats]]:
    """Round t of a family in plain NumPy, from its definition."""
    rows, k = family.rows, family.phase[t]
    functions = []
    for i in range(family.count):
        vector, constant = rows.vectors[k, i], rows.constants[k, i]
        if isinstance(family, oco.Norm):
            length = np.linalg.norm(x - vector)
            functions.append((length + constant, (x - vector) / length))
        else:
            matrix = (
                rows.matrices[min(k, len(rows.matrices) - 1), i]
                if isinstance(family, oco.Quadratic)
                else 0 * np.eye(x.size)
            )
            functions.append((0.5 * x @ matrix @ x + vector @ x + constant, matrix @ x + vector))
    return functions


def violated(values: Floats, slopes: list[Floats], size: int) -> Floats:
    """The sum of the gradients of the violated constraints."""
    return sum((g for value, g in zip(values[1:], slopes, strict=True) if value > 0), np.zeros(size))


def twin(algorithm: oco.Algorithm, problem: oco.ConvexProblem) -> tuple[Floats, Floats]:
    """Every algorithm from its formulas: decisions (T, n) and values (T, 1 + d)."""
    horizon, d = problem.horizon, problem.count
    x, q, squares, size = problem.domain.centre, np.zeros(d), 0.0, bounding_diagonal(problem.domain)
    points, seen = [], []
    for t in range(1, horizon + 1):
        parts = [
            part for family in (problem.losses, *problem.constraints) for part in value_and_gradient(family, t - 1, x)
        ]
        values, (slope, *slopes) = np.array([v for v, _ in parts]), [g for _, g in parts]
        points.append(x)
        seen.append(values)
        pull = sum((price * g for price, g in zip(q, slopes, strict=True)), np.zeros(x.size))
        if isinstance(algorithm, oco.OnlineGradient):
            after = problem.domain.project(x - algorithm.step / t**0.5 * slope)
        elif isinstance(algorithm, oco.PenalisedPrimalDual):
            eta = algorithm.step * t**-algorithm.beta
            after = problem.domain.project(x - eta * (slope + pull))
            q = np.maximum(0, q + eta * (values[1:] - algorithm.penalty * eta * q))
        elif isinstance(algorithm, oco.ExponentialPenalty):
            size = algorithm.diameter or size
            scale, length = 1 / (2 * algorithm.gradient * size), horizon
            if algorithm.anytime:
                length = 2 ** int(np.log2(t))
                q, squares = (np.zeros(d), 0.0) if length == t else (q, squares)
            rate = 0.5 * length**-0.5
            q = q + scale * np.maximum(values[1:], 0)
            step = scale * (slope + rate * np.exp(rate * q.sum()) * violated(values, slopes, x.size))
            squares += step @ step
            after = problem.domain.project(x - size / (2 * squares) ** 0.5 * step)
        elif isinstance(algorithm, oco.QuadraticPenalty):
            weight = 8 * algorithm.gradient**2 * (1 + np.log(horizon)) / algorithm.strength
            q = q + np.maximum(values[1:], 0)
            step = weight * slope + 2 * q.sum() * violated(values, slopes, x.size)
            after = problem.domain.project(x - step / (weight * algorithm.strength * t))
        else:
            if isinstance(algorithm, oco.VirtualQueue):
                v, alpha = algorithm.numbers(horizon)
            else:
                assert isinstance(algorithm, oco.DriftPlusPenalty)
                v, alpha = algorithm.scale * horizon**0.5, algorithm.scale**2 * horizon
            after = problem.domain.project(x - (v * slope + pull) / (2 * alpha))
            q = np.maximum(0, q + values[1:] + np.array([g @ (after - x) for g in slopes]))
        x = after
    return np.array(points), np.array(seen)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
@pytest.mark.parametrize(
    "domain",
    [oco.Box(-1, 1, size=3), oco.ScaledSimplex(3), oco.Ball([0.0, 0.0, 0.0]), TRIANGLE],
    ids=lambda d: type(d).__name__,
)
def test_equals_the_twin(algorithm: oco.Algorithm, domain: oco.Domain) -> None:
    problem = mixed_problem(domain)
    points, seen = twin(algorithm, problem)
    play = algorithm.play(problem)
    assert play.loss[0] == pytest.approx(seen[:, 0].sum(), rel=1e-9, abs=1e-9)
    assert np.allclose(play.totals[0], seen[:, 1:].sum(axis=0), rtol=1e-9, atol=1e-9)
    assert np.allclose(play.mean_point[0], points.mean(axis=0), rtol=1e-9, atol=1e-9)
    assert np.allclose(play.loss_curve[0], np.cumsum(seen[:, 0]), rtol=1e-9, atol=1e-9)
    assert np.allclose(play.total_curve[0], np.cumsum(seen[:, 1:], axis=0), rtol=1e-9, atol=1e-9)
    assert play.violation[0] == pytest.approx(np.maximum(seen[:, 1:].sum(axis=0), 0).sum(), rel=1e-9, abs=1e-9)
    assert play.hard_violation[0] == pytest.approx(np.maximum(seen[:, 1:], 0).sum(), rel=1e-9, abs=1e-9)


def test_the_twin_detects_a_fault() -> None:
    """The planted fault: another parameter or another algorithm gives another sum."""
    problem = mixed_problem(oco.Box(-1, 1, size=3))
    _, seen = twin(oco.VirtualQueue(), problem)
    for wrong in (oco.VirtualQueue(proximity=T + 1.0), oco.OnlineGradient()):
        assert abs(wrong.play(problem).loss[0] - seen[:, 0].sum()) > 1e-6
    for mistaken, algorithm in (  # another bound on the gradients, or no restarts
        (oco.ExponentialPenalty(gradient=8.0), oco.ExponentialPenalty(gradient=4.0)),
        (oco.ExponentialPenalty(gradient=4.0), oco.ExponentialPenalty(gradient=4.0, anytime=True)),
        (oco.QuadraticPenalty(gradient=6.0), oco.QuadraticPenalty(gradient=3.0)),
    ):
        assert abs(mistaken.play(problem).loss[0] - twin(algorithm, problem)[1][:, 0].sum()) > 1e-6


def test_drift_plus_penalty_takes_the_steps_of_the_virtual_queue() -> None:
    problem = mixed_problem(oco.ScaledSimplex(4))
    assert oco.DriftPlusPenalty().play(problem).loss == oco.VirtualQueue().play(problem).loss


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_ask_and_tell_with_a_file_in_between_is_the_compiled_play(algorithm: oco.Algorithm, tmp_path: Path) -> None:
    problem = mixed_problem(oco.CappedSimplex([0.5, 0.6, 0.7]))
    learner = algorithm.start(problem.domain, problem.horizon, problem.count)
    losses = []
    for t in range(T):
        x = learner.ask()
        values, gradients = problem.evaluate(t, x)
        losses.append(values[0])
        if t % 20 == 7:
            learner.save(tmp_path / "learner.npz")
            learner = oco.OnlineLearner.load(tmp_path / "learner.npz")
            assert learner.round == t
        learner.tell(gradients, values[1:])
    play = algorithm.play(problem)
    assert np.cumsum(losses)[-1] == play.loss[0]
    assert np.array_equal(learner.prices, play.prices[0])
    with pytest.raises(HorizonReachedError, match="all 60 rounds"):
        learner.ask()


def test_callables_play_like_arrays() -> None:
    problem = mixed_problem(oco.Box(-1, 1, size=3))

    def wrapped(family: Family) -> oco.Callables:
        return oco.Callables(
            lambda t, x: family.evaluate(t, x)[0], lambda t, x: family.evaluate(t, x)[1], T, 3, count=family.count
        )

    called = oco.ConvexProblem(
        wrapped(problem.losses), [wrapped(family) for family in problem.constraints], problem.domain
    )
    by_callables, by_arrays = oco.VirtualQueue().play(called), oco.VirtualQueue().play(problem)
    assert np.allclose(by_callables.loss, by_arrays.loss)
    assert np.allclose(by_callables.total_curve, by_arrays.total_curve)


def test_noise_is_independent_and_has_mean_zero() -> None:
    """With noise the totals at a fixed point are unbiased: the mean of 400 trials is within 4.5 standard errors."""
    stationary = oco.Linear([[[0.5, 0.5]]], [[-0.5]], np.zeros(50, dtype=int))
    problem = oco.ConvexProblem(oco.Linear(np.zeros((50, 2))), stationary, oco.Ball([0.5, 0.5], radius=0.0), noise=1.0)
    totals = oco.OnlineGradient().play(problem, trials=400, seed=3).totals[:, 0]
    assert abs(totals.mean()) < 4.5 * totals.std(ddof=1) / 20
    assert totals.std() == pytest.approx((50 * (1 + 0.5) / 3) ** 0.5, rel=0.2)  # ε₀ + (ε₁ + ε₂)/2, variance 1/3 each
    measures = oco.OnlineGradient().play(problem, trials=400, seed=3).expected(0.0)
    assert measures.violation == pytest.approx(np.maximum(totals, 0).mean())  # the mean of positive parts
    assert measures.violation_error == pytest.approx(np.maximum(totals, 0).std(ddof=1) / 20)
    assert measures.regret == 0.0
    again = oco.OnlineGradient().play(problem, trials=2, seed=3).totals[:, 0]
    assert np.array_equal(again, totals[:2])
    box = oco.ConvexProblem(problem.losses, stationary, oco.Box([0.5, 0.5], [0.5, 0.5]), noise=1.0)
    assert np.allclose(oco.VirtualQueue().play(box, trials=2, seed=3).totals[:, 0], totals[:2])


@pytest.mark.parametrize("name", ["iid", "one_switch", "slow_drift", "periodic", "job_scheduling", "proposition_2"])
def test_instances(name: str) -> None:
    problem = getattr(oco.instances, name)(horizon=400)
    play = oco.VirtualQueue().play(problem)
    assert problem.horizon == 400
    assert play.times[-1] == 400
    assert np.isfinite(play.loss).all()
    assert "rounds" in str(play)


def test_job_scheduling_meets_the_demand() -> None:
    """The virtual queue serves nearly all of the demand; gradient descent that ignores the constraints does not."""
    problem = oco.instances.job_scheduling(horizon=24 * 365)
    queue, greedy = oco.VirtualQueue().play(problem), oco.OnlineGradient().play(problem)
    assert greedy.totals[0, 0] > 0.3 * problem.horizon
    assert queue.totals[0, 0] < 0.1 * greedy.totals[0, 0]
    assert greedy.loss[0] < queue.loss[0]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: oco.Linear([[np.nan]]), NotFiniteError, "vectors must be finite"),
        (lambda: oco.Linear([[1.0]], phase=[0, 1]), OutOfRangeError, "phase must lie in"),
        (lambda: oco.Linear([[1.0]], phase=[0.5]), ShapeError, "must be T integers"),
        (lambda: oco.Quadratic(-np.eye(2), [[0.0, 0.0]]), OutOfRangeError, "positive semi-definite"),
        (lambda: oco.Quadratic(np.eye(3), [[0.0, 0.0]]), ShapeError, "matrices must be"),
        (lambda: oco.VirtualQueue(tradeoff="T²"), SettingError, "tradeoff must be one of"),
        (lambda: oco.VirtualQueue(proximity=0), OutOfRangeError, "proximity must be above 0"),
        (lambda: oco.VirtualQueue(parameters="right"), SettingError, "parameters"),
        (lambda: oco.PenalisedPrimalDual(beta=2), OutOfRangeError, "beta"),
        (lambda: oco.ExponentialPenalty(gradient=0), OutOfRangeError, "gradient must be above 0"),
        (lambda: oco.QuadraticPenalty(strength=-1), OutOfRangeError, "strength must be above 0"),
        (lambda: oco.instances.job_scheduling(load=0.9, energy=0.5), OutOfRangeError, "0 < load < energy"),
        (lambda: oco.VirtualQueue().start("box", 3), SettingError, "domain must be a driftsack Domain"),  # type: ignore[arg-type]
        (lambda: oco.ConvexProblem(oco.Linear([[1.0]]), [], oco.Box(0, 1)), SettingError, "constraints must be"),
        (lambda: oco.ConvexProblem(oco.Linear([[1.0]]), oco.Linear([[1.0]] * 2), oco.Box(0, 1)), ShapeError, "rounds"),
        (
            lambda: oco.ConvexProblem(oco.Linear([[1.0]]), oco.Linear([[1.0]]), oco.Box(0, 1, size=2)),
            ShapeError,
            "variables",
        ),
        (
            lambda: oco.ConvexProblem(oco.Linear([[[1.0], [2.0]]]), oco.Linear([[1.0]]), oco.Box(0, 1)),
            ShapeError,
            "one function per round",
        ),
    ],
)
def test_bad_input_is_refused(make: Any, error: type[DriftsackError], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_a_learner_refuses_nan_and_is_unchanged(tmp_path: Path) -> None:
    learner = oco.VirtualQueue().start(oco.ScaledSimplex(2), horizon=10, constraints=1)
    with pytest.raises(AlreadyToldError, match="has not been asked"):
        learner.tell([[1.0, 0.0], [0.0, 1.0]], [0.1])
    before = learner.ask()
    bad: list[tuple[Any, Any]] = [([[np.nan, 0], [0, 1]], [0.1]), ([[1, 0], [0, 1]], [np.inf]), ([[1, 0]], [0.1])]
    for gradients, values in bad:
        with pytest.raises((NotFiniteError, ShapeError)):
            learner.tell(gradients, values)
    assert np.array_equal(learner.ask(), before)
    assert learner.round == 0
    assert "round 0 of 10" in repr(learner)
    (tmp_path / "learner.npz").write_bytes(b"nothing")
    with pytest.raises(FileFormatError):
        oco.OnlineLearner.load(tmp_path / "learner.npz")


def test_callables_that_return_nan_or_another_shape_are_reported_with_their_round() -> None:
    never_binds = oco.Linear(np.zeros((5, 1)), -1.0)
    for value, gradient, error, words in (
        (lambda *_: 0.0, lambda t, _: [np.nan if t == 3 else 0.0], NotFiniteError, "round 4"),
        (lambda *_: [0.0, 1.0], lambda *_: [0.0], ShapeError, "round 1 value must return 1 numbers"),
    ):
        problem = oco.ConvexProblem(oco.Callables(value, gradient, 5, 1), never_binds, oco.Box(0, 1))
        with pytest.raises(error, match=words):
            oco.VirtualQueue().play(problem)


def test_oco_is_imported_lazily() -> None:
    """Importing driftsack does not import driftsack.oco, and a play imports no convex solver."""
    code = (
        "import sys, driftsack as ds; early = 'driftsack.oco' in sys.modules; "
        "ds.oco.VirtualQueue().play(ds.oco.instances.proposition_2(10)); "
        "print(early, [name for name in ('cvxpy', 'clarabel', 'scipy.optimize') if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert output.strip() == "False []"
    with pytest.raises(AttributeError, match="has no attribute 'ocean'"):
        _ = driftsack.ocean


INTERPRETED = """
from tests.oco.test_play import ALGORITHMS, mixed_problem
from driftsack import oco
simplices = oco.ScaledSimplex(3), oco.CappedSimplex([0.5, 0.6, 0.7])
for domain in (oco.Box(-1, 1, size=3), *simplices, oco.Ball([0.0, 0.0, 0.0])):
    print([algorithm.play(mixed_problem(domain, noise=0.2)).totals.tolist() for algorithm in ALGORITHMS])
"""


@pytest.mark.slow
def test_compiled_and_interpreted_agree_bit_for_bit() -> None:
    """With Numba's compiler disabled the same code gives the same numbers."""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", INTERPRETED],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "NUMBA_DISABLE_JIT": off},
            cwd=ROOT,
        ).stdout
        for off in ("0", "1")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 1_000
