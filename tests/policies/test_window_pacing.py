"""Pacing over windows against a twin from its formulas, and against dual descent that never restarts."""

from __future__ import annotations

import math

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import OutOfRangeError
from driftsack.policies import DualDescent, WindowPacing
from driftsack.verify.frontier import CHEAP, WINDOW_RATE, alternating
from tests.policies.test_dual_descent import bisect

PROBLEM = ds.Problem(horizon=300, arms=3, budget=[60.0, 90.0])
WINDOW = 70


def twin_distance(window: int) -> float:
    """The largest difference in mixes and prices from a twin that restarts every ``window`` rounds."""
    rate, actions = 0.2, 4
    explore = min(0.6, 2 * math.sqrt(3 * actions * math.log(actions) / (5 * WINDOW)))
    alpha = 2 * math.sqrt(math.log(actions * WINDOW * 300))
    step = 1 / (rate * math.sqrt(2 * 300 * (WINDOW + 1)))
    weights, prices, scale = np.ones(actions), np.zeros(2), np.array([1.0, 0.2 / 0.3])
    learner, rng, worst = WindowPacing(WINDOW).start(PROBLEM, seed=0), np.random.default_rng(1), 0.0
    while not learner.done and (learner.remaining >= 1.0).all():
        if learner.round % window == 0:
            weights = np.ones(actions)
        probabilities = (1 - explore) * weights / weights.sum() + explore / actions
        decision = learner.ask()
        worst = max(worst, np.abs(decision.mix - probabilities[:-1]).max())
        worst = max(worst, np.abs(decision.prices - prices * scale).max())
        gain, costs = (0.0, np.zeros(2)) if decision.skipped else (rng.random(), 0.9 * rng.random(2))
        if not decision.skipped:
            learner.tell(decision, gain, costs)
        used = costs * scale
        estimates = np.zeros(actions)
        estimates[decision.arm] = (gain - prices @ used + 1 / rate) / (1 + 1 / rate) / probabilities[decision.arm]
        bonus = alpha / (probabilities * math.sqrt(actions * WINDOW))
        weights = weights * np.exp(explore / (3 * actions) * (estimates + bonus))
        prices = bisect(prices - step * (rate - used), 1 / rate)
    assert learner.round > 2 * WINDOW
    return worst


def test_equals_the_twin_and_the_twin_detects_other_windows() -> None:
    assert twin_distance(WINDOW) < 1e-9
    assert twin_distance(WINDOW + 10) > 1e-3


def test_follows_mixes_that_change_with_the_window_where_dual_descent_does_not() -> None:
    world, window = alternating(1_000_000)
    best = WINDOW_RATE / CHEAP * world.horizon
    with_restarts, without = (
        1 - ds.simulate(world, policy, trials=1, seed=0).reward[0] / best
        for policy in (WindowPacing(window), DualDescent())
    )
    assert with_restarts < 0.2
    assert without > 0.4


def told_late(reward: float, cost: float) -> ds.Decision:
    """The decision after the outcome of an earlier window."""
    learner = WindowPacing(window=5).start(ds.Problem(horizon=50, arms=2, budget=[20.0]), seed=0)
    first = learner.ask()
    while first.skipped:
        first = learner.ask()
    for _ in range(7):
        learner.ask()
    learner.tell(first, reward, [cost])
    return learner.ask()


def test_an_outcome_of_an_earlier_window_moves_the_prices_only() -> None:
    low, high, dear = told_late(0.0, 0.5), told_late(1.0, 0.5), told_late(1.0, 1.0)
    assert np.array_equal(low.mix, high.mix)
    assert low.prices[0] == high.prices[0]
    assert dear.prices[0] > high.prices[0]


def test_bad_settings() -> None:
    with pytest.raises(OutOfRangeError, match="step must be above 0"):
        WindowPacing(step=0.0)
    with pytest.raises(OutOfRangeError, match="window"):
        WindowPacing(window=0)
    assert WindowPacing().window_length(ds.Problem(horizon=10_000, arms=2, budget=[10.0])) == 100
