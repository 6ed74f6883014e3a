"""The hand-written baselines against twins that recompute everything from the history in every round."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.errors import OutOfRangeError
from driftsack.policies import EpsilonGreedy, PriceController, RecentMeansLP

PROBLEM = ds.Problem(horizon=150, arms=3, budget=[24.0, 30.0])
History = list[tuple[int, int, Floats]]  # round from 0, arm, outcome (1 + d,), in the order of arrival
Twin = Callable[[History, int, Floats], tuple[Floats, Floats]]


def largest_difference(policy: ds.Policy, twin: Twin) -> float:
    """Ask, and tell up to four rounds late; return the largest difference between the mixes and prices of the two."""
    learner, rng = policy.start(PROBLEM, seed=0), np.random.default_rng(2)
    level = np.array([[0.3, 0.5, 0.1], [0.8, 0.6, 0.5], [0.5, 0.2, 0.4]])  # rewards first, by arm
    history: History = []
    worst = 0.0
    while not learner.done:
        remaining = learner.remaining
        decision = learner.ask()
        mix, prices = twin(history, decision.round - 1, remaining)
        worst = max(worst, float(np.abs(decision.mix - mix).max()), float(np.abs(decision.prices - prices).max()))
        for pending in learner.pending:
            if rng.random() < 0.5 or learner.round - pending.round >= 4:
                outcome = level[pending.arm] * 2 * rng.random(3)
                outcome = np.minimum(outcome, 1.0)
                learner.tell(pending, outcome[0], outcome[1:])
                history.append((pending.round - 1, pending.arm, outcome))
    assert len(history) > 40
    return worst


def untried(history: History) -> Floats | None:
    """The mix over the arms without an outcome, if there are any."""
    seen = {arm for _, arm, _ in history}
    missing = np.array([float(arm not in seen) for arm in range(3)])
    return missing / missing.sum() if missing.any() else None


def explored(mix: Floats, epsilon: float) -> Floats:
    return (1 - epsilon) * mix + epsilon / 3


def slow_epsilon_greedy(step: float, epsilon: float) -> Twin:
    def twin(history: History, t: int, remaining: Floats) -> tuple[Floats, Floats]:
        budget = np.asarray(PROBLEM.budget)
        if (budget - remaining > budget * (t + 1) / 150 + 1e-12).any():
            return np.zeros(3), np.zeros(2)
        if (mix := untried(history)) is not None:
            return mix, np.zeros(2)
        value = np.zeros(3)
        for arm in range(3):
            mean = np.zeros(3)
            for n, (_, _, outcome) in enumerate((row for row in history if row[1] == arm), start=1):
                mean += max(1 / n, step) * (outcome - mean)
            value[arm] = mean[0] * min(1.0, *(np.maximum(remaining, 0.0) / (150 - t) / mean[1:]))
        return explored(np.eye(3)[np.argmax(value)], epsilon), np.zeros(2)

    return twin


def slow_price_controller(discount: float, epsilon: float, gain: float) -> Twin:
    prices = np.zeros(2)

    def twin(history: History, t: int, remaining: Floats) -> tuple[Floats, Floats]:
        if (mix := untried(history)) is not None:
            return mix, np.zeros(2)
        means = np.zeros((3, 3))
        for arm in range(3):
            weighted = [(discount ** (t - s), outcome) for s, other, outcome in history if other == arm]
            means[arm] = sum(w * outcome for w, outcome in weighted) / sum(w for w, _ in weighted)
        rate = np.maximum(remaining, 0.0) / (150 - t)
        value = means[:, 0] - means[:, 1:] @ (prices / rate)
        arm = int(np.argmax(value))
        pulled = value[arm] > 0
        best = means[:, 0].max()
        for j in range(2):
            used = means[arm, 1 + j] / rate[j] if pulled else 0.0
            start = prices[j] or best / 2
            prices[j] = np.clip(start * math.exp(gain * min(used - 1, 3.0)), best / 1e3, best * 1e3)
        return explored(np.eye(3)[arm] * pulled, epsilon), prices / rate

    return twin


def slow_recent_means(pulls: int, epsilon: float) -> Twin:
    def twin(history: History, t: int, remaining: Floats) -> tuple[Floats, Floats]:
        if (mix := untried(history)) is not None:
            return mix, np.zeros(2)
        recent = [[outcome for _, other, outcome in history if other == arm][-pulls:] for arm in range(3)]
        means = np.array([np.mean(some, axis=0) for some in recent])
        best = ds.lp.step_lp(means[:, 0], means[:, 1:].T, np.maximum(remaining, 0.0) / (150 - t))
        return explored(best.mix, epsilon), best.prices

    return twin


@pytest.mark.parametrize(
    ("policy", "twin", "faulty"),
    [
        (EpsilonGreedy(0.1, 0.2), slow_epsilon_greedy(0.2, 0.1), slow_epsilon_greedy(0.02, 0.1)),
        (
            PriceController(0.9, 0.1, 0.05),
            slow_price_controller(0.9, 0.1, 0.05),
            slow_price_controller(0.95, 0.1, 0.05),
        ),
        (RecentMeansLP(7, 0.1), slow_recent_means(7, 0.1), slow_recent_means(8, 0.1)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, ds.Policy) else "",
)
def test_equals_the_twin_and_the_twin_detects_another_memory(policy: ds.Policy, twin: Twin, faulty: Twin) -> None:
    assert largest_difference(policy, twin) < 1e-9
    assert largest_difference(policy, faulty) > 1e-3


@pytest.mark.filterwarnings("ignore::driftsack.core.errors.LooseCostMaxWarning")  # of UCB, as it should
@pytest.mark.parametrize(
    "policy", [EpsilonGreedy(), PriceController(), RecentMeansLP()], ids=lambda p: type(p).__name__
)
def test_the_scale_of_cost_max_does_not_matter(policy: ds.Policy) -> None:
    """The same outcomes with a ceiling 1,024 times as high; a policy whose radius has the unit ``cost_max`` fails."""
    assert same_arms(policy)
    assert not same_arms(ds.NaiveUCB(scale=0.1))


def same_arms(policy: ds.Policy) -> bool:
    arms = []
    for cost_max in (1.0, 1024.0):
        learner, rng = policy.start(ds.Problem(300, 3, [40.0], cost_max=cost_max), seed=3), np.random.default_rng(1)
        chosen = []
        while not learner.done:
            decision, outcome = learner.ask(), rng.random((3, 2)) * [[1.0, 0.8], [0.7, 0.3], [0.4, 0.1]]
            chosen.append(decision.arm)
            if not decision.skipped:
                learner.tell(decision, outcome[decision.arm, 0], outcome[decision.arm, 1:])
        arms.append(chosen)
    return arms[0] == arms[1]


@pytest.mark.parametrize(
    "policy", [EpsilonGreedy(), PriceController(), RecentMeansLP()], ids=lambda p: type(p).__name__
)
def test_good_enough_to_be_a_rival(policy: ds.Policy) -> None:
    """On Example 2 each earns at least 0.85 of the optimum, where uniform random choice earns 0.67."""
    world = ds.instances.example_2(horizon=5_000)
    optimum = ds.benchmarks.lp_dynamic(world).value
    assert ds.simulate(world, policy, trials=8, seed=0).reward.mean() > 0.85 * optimum
    assert ds.simulate(world, ds.policies.UniformRandom(), trials=8, seed=0).reward.mean() < 0.75 * optimum


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: EpsilonGreedy(epsilon=1.5), r"epsilon must lie in \[0, 1\], got 1.5"),
        (lambda: EpsilonGreedy(step=0.0), "step must be above 0"),
        (lambda: PriceController(discount=1.0), "discount must lie between 0 and 1, got 1"),
        (lambda: PriceController(gain=0.0), "gain must be above 0"),
        (lambda: RecentMeansLP(pulls=0), "pulls must be at least 1, got 0"),
    ],
)
def test_bad_settings(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(OutOfRangeError, match=words):
        make()
