"""Dual descent against a twin, its projection against optimality conditions, and that it never overspends."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.errors import OutOfRangeError
from driftsack.numerics.projections import onto_capped_orthant

PROBLEM = ds.Problem(horizon=300, arms=3, budget=[60.0, 90.0])


@settings(max_examples=300)
@given(hnp.arrays(np.float64, st.integers(1, 8), elements=st.floats(-5, 5)), st.floats(0.01, 4))
def test_projection_meets_its_optimality_conditions(point: Floats, cap: float) -> None:
    """The answer is max(point - theta, 0) with theta >= 0, positive only where the cap binds; it is idempotent."""
    q = point.copy()
    onto_capped_orthant(q, cap)
    assert (q >= 0).all()
    assert q.sum() <= cap * (1 + 1e-12)
    positive = q > 0
    theta = (point - q)[positive]
    if theta.size:
        np.testing.assert_allclose(theta, theta[0], atol=1e-12)
        assert theta[0] >= -1e-12
        assert abs(theta[0]) < 1e-12 or q.sum() == pytest.approx(cap, rel=1e-12)
        assert (point[~positive] <= theta[0] + 1e-12).all()
    again = q.copy()
    onto_capped_orthant(again, cap)
    np.testing.assert_allclose(again, q, atol=1e-12)


def twin_distance(step: float) -> float:
    """The largest difference in mixes and prices from a twin with plain weights and a projection by bisection."""
    horizon, rate, actions = PROBLEM.horizon, 0.2, 4
    explore = min(0.6, 2 * math.sqrt(3 * actions * math.log(actions) / (5 * horizon)))
    alpha = 2 * math.sqrt(math.log(actions * horizon * horizon))
    weights, prices = np.ones(actions), np.zeros(2)
    scale = np.array([1.0, 0.2 / 0.3])
    learner, rng = ds.policies.DualDescent().start(PROBLEM, seed=0), np.random.default_rng(1)
    worst = 0.0
    while not learner.done and (learner.remaining >= 1.0).all():
        probabilities = (1 - explore) * weights / weights.sum() + explore / actions
        decision = learner.ask()
        worst = max(
            worst, np.abs(decision.mix - probabilities[:-1]).max(), np.abs(decision.prices - prices * scale).max()
        )
        gain, costs = (0.0, np.zeros(2)) if decision.skipped else (rng.random(), 0.9 * rng.random(2))
        if not decision.skipped:
            learner.tell(decision, gain, costs)
        used = costs * scale
        payoff = (gain - prices @ used + 1 / rate) / (1 + 1 / rate)
        estimates = np.zeros(actions)
        estimates[decision.arm] = payoff / probabilities[decision.arm]
        weights = weights * np.exp(
            explore / (3 * actions) * (estimates + alpha / (probabilities * math.sqrt(actions * horizon)))
        )
        prices = bisect(prices - step / (rate * math.sqrt(horizon)) * (rate - used), 1 / rate)
    assert learner.round > 100
    return worst


def bisect(point: Floats, cap: float) -> Floats:
    low, high = 0.0, float(np.abs(point).max()) + 1.0
    if np.maximum(point, 0).sum() <= cap:
        return np.maximum(point, 0)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(point - middle, 0).sum() > cap else (low, middle)
    return np.maximum(point - high, 0)


def test_equals_the_twin_and_the_twin_detects_a_wrong_step() -> None:
    assert twin_distance(step=1.0) < 1e-9
    assert twin_distance(step=1.3) > 1e-2


def test_never_overspends_without_safe() -> None:
    """Without ``safe``: its own rule skips a round that a budget cannot pay for."""
    for build in (ds.instances.example_1, ds.instances.example_2):
        run = ds.simulate(build(horizon=3_000), ds.policies.DualDescent(), trials=10, seed=0)
        assert not run.overshoot.any()
        assert (run.stopping_time == 3_001).all()


def test_learns_in_a_stationary_environment() -> None:
    """Its share of the optimum grows with the horizon, as sublinear regret must."""
    shares = []
    for horizon in (2_000, 200_000):
        world = ds.Instance.stationary([0.9, 0.3], [[0.5, 0.5]], horizon=horizon, budget=0.3 * horizon)
        run = ds.simulate(world, ds.policies.DualDescent(), trials=10, seed=0)
        shares.append(run.reward.mean() / ds.benchmarks.lp_dynamic(world).value)
    assert shares[1] > shares[0] + 0.05
    assert shares[1] > 0.8


def test_bad_settings() -> None:
    with pytest.raises(OutOfRangeError, match="step must be above 0"):
        ds.policies.DualDescent(step=0.0)
    with pytest.raises(OutOfRangeError, match="delta must be above 0"):
        ds.policies.DualDescent(delta=0.0)
