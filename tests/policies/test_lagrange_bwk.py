"""LagrangeBwK against a twin with plain weights, and its guarantees."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import DriftsackError
from driftsack.numerics.exp3p import new_exp3p, update_probabilities, update_weights

PROBLEM = ds.Problem(horizon=400, arms=3, budget=[120.0, 200.0])


def twin_distance(policy: ds.policies.LagrangeBwK, factor: float, sides: int, dual_rate: float | None = None) -> float:
    """Ask and tell, compared with a twin with plain weights; return the largest difference in mixes and prices."""
    horizon, arms = PROBLEM.horizon, PROBLEM.arms
    actions, budget = arms + 1, 120.0
    explore = min(0.6, 2 * math.sqrt(3 * actions * math.log(actions) / (5 * horizon)))
    alpha = 2 * math.sqrt(math.log(actions * horizon * horizon))
    eta = math.sqrt(math.log(sides) / horizon) if dual_rate is None else dual_rate
    weights = np.full(actions, math.exp(alpha * explore / 3 * math.sqrt(horizon / actions)))
    dual = np.ones(sides)
    rng = np.random.default_rng(1)
    learner = policy.start(PROBLEM, seed=0)
    worst = 0.0
    while not learner.done:
        probabilities = (1 - explore) * weights / weights.sum() + explore / actions
        shares = dual / dual.sum()
        decision = learner.ask()
        scale = budget / np.asarray(PROBLEM.budget)
        worst = max(worst, np.abs(decision.mix - probabilities[:-1]).max())
        worst = max(worst, np.abs(decision.prices - factor * shares[:2] * scale).max())
        gain, costs = (0.0, np.zeros(2)) if decision.skipped else (rng.random(), 0.8 * rng.random(2))
        if not decision.skipped:
            learner.tell(decision, gain, costs)
        used = np.append(costs * scale, budget / horizon)[:sides]
        payoff = (gain + factor * (1 - shares @ used)) / (1 + factor)
        estimates = np.zeros(actions)
        estimates[decision.arm] = payoff / probabilities[decision.arm]  # SKIP is -1: the last action
        weights = weights * np.exp(
            explore / (3 * actions) * (estimates + alpha / (probabilities * math.sqrt(actions * horizon)))
        )
        dual = dual * np.exp(eta * used)
    assert learner.round > 100
    return worst


def test_equals_the_twin() -> None:
    assert twin_distance(ds.policies.LagrangeBwK(benchmark=90.0), 90 / 3 / 120, sides=2) < 1e-9
    assert twin_distance(ds.policies.LagrangeBwK(benchmark=90.0, divide=False), 90 / 120, sides=2) < 1e-9
    assert twin_distance(ds.policies.LagrangeBwK(form="stochastic"), 400 / 120, sides=3) < 1e-9


def test_the_twin_detects_a_wrong_rate() -> None:
    """The planted fault: a dual that learns twice as fast."""
    doubled = 2 * math.sqrt(math.log(2) / PROBLEM.horizon)
    assert twin_distance(ds.policies.LagrangeBwK(benchmark=90.0), 90 / 3 / 120, sides=2, dual_rate=doubled) > 1e-3


def test_late_feedback_uses_the_probability_of_its_own_decision() -> None:
    """The log weights change by the payoff over the probability that the arm had when it was chosen."""
    learner = ds.policies.LagrangeBwK(benchmark=90.0).start(PROBLEM, seed=0)
    first = learner.ask()
    while first.skipped:
        first = learner.ask()
    for _ in range(200):
        later = learner.ask()
        if not later.skipped:
            learner.tell(later, 1.0, [0.0, 0.0])
    state = learner.state
    before, shares, probabilities = (
        state.primal.log_weights.copy(),
        state.shares.copy(),
        state.primal.probabilities.copy(),
    )
    learner.tell(first, 0.6, [0.5, 0.1])
    factor = 90 / 3 / 120
    used = shares @ (np.array([0.5, 0.1]) * [1.0, 0.6])
    payoff = (0.6 + factor * (1 - used)) / (1 + factor)
    step = state.primal.explore / (3 * 4)
    change = state.primal.log_weights - before - step * state.primal.bonus / probabilities
    assert change[first.arm] == pytest.approx(step * payoff / first.mix[first.arm])
    assert change[first.arm] != pytest.approx(step * payoff / probabilities[first.arm], rel=1e-3)


def test_a_guess_is_a_power_of_two_drawn_once() -> None:
    drawn = set()
    for seed in range(40):
        learner = ds.policies.LagrangeBwK().start(PROBLEM, seed=seed)
        learner.ask()
        factor = float(learner.state.factor[0])
        learner.ask()
        assert learner.state.factor[0] == factor
        drawn.add(round(math.log2(factor * 3 * 120)))
    assert drawn == set(range(9))  # 1, 2, ..., 256 <= 400


def test_exp3p_finds_the_best_of_two() -> None:
    """Payoffs 0.8 and 0.2 for 20,000 rounds: the better action is chosen in at least 85% of them."""
    bandit, rng = new_exp3p(2, 20_000, 1 / 20_000), np.random.default_rng(0)
    better = 0
    for _ in range(20_000):
        update_probabilities(bandit)
        action = int(rng.random() >= bandit.probabilities[0])
        better += action == 0
        update_weights(bandit, action, float(bandit.probabilities[action]), float(rng.random() < (0.8, 0.2)[action]))
    assert better > 0.85 * 20_000


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        (ds.instances.example_1, 3_530),
        (ds.instances.example_2, 3_980),
        (partial(ds.instances.example_3, 0.5), 2_236),
        (partial(ds.instances.example_4, 10), 2_655),
    ],
)
def test_near_an_independent_study(example: Any, expected: float) -> None:
    """The study used plain EXP3 (deterministic outcomes, exact OPT_FD over d + 1); results agree within 3%."""
    world = example(noise="deterministic")
    value = ds.benchmarks.fixed_distribution(world).value
    run = ds.simulate(world, ds.policies.LagrangeBwK(benchmark=value), trials=100, seed=0)
    assert run.reward.mean() == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("best_last", [True, False])
def test_competitive_on_adversarial_orders(best_last: bool) -> None:
    """With the exact value it earns OPT_FD / (d + 1), minus a sublinear term; here even without that term."""
    world = ds.instances.adversarial_order(arms=3, resources=2, horizon=20_000, seed=1, best_last=best_last)
    value = ds.benchmarks.fixed_distribution(world).value
    run = ds.simulate(world, ds.policies.LagrangeBwK(benchmark=value), trials=20, seed=0)
    assert run.reward.mean() - 4 * run.summary()["reward_se"] > value / 3


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"form": "zero-sum"}, "form must be one of"),
        ({"benchmark": "best"}, "benchmark must be a number or 'guess'"),
        ({"benchmark": 0.0}, "benchmark must be above 0"),
        ({"delta": -1.0}, "delta must be above 0"),
        ({"divide": 1}, "divide must be True or False"),
    ],
)
def test_bad_settings(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(DriftsackError, match=words):
        ds.policies.LagrangeBwK(**settings)
