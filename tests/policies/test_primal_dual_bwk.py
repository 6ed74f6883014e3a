"""PrimalDualBwK against a twin that uses the full history, and that it learns the right arm."""

from __future__ import annotations

import math

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.errors import OutOfRangeError

PROBLEM = ds.Problem(horizon=300, arms=4, budget=[60.0, 90.0])


def disagreements(confidence: float, twin_confidence: float) -> tuple[int, int]:
    """The number of rounds in which learner and twin choose different arms, and the number of rounds."""
    learner, rng = ds.policies.PrimalDualBwK(confidence=confidence).start(PROBLEM, seed=0), np.random.default_rng(3)
    budget, horizon = 60.0, PROBLEM.horizon
    constant = twin_confidence * math.log(2 * 4 * horizon)
    epsilon = math.sqrt(math.log(3) / budget)
    prices = np.ones(3)
    history: list[tuple[int, float, Floats]] = []
    wrong = 0
    while not learner.done:
        ratios, lows = np.zeros(4), np.zeros((4, 3))
        for a in range(4):
            seen = [(gain, costs) for arm, gain, costs in history if arm == a]
            lows[a, 2] = budget / horizon
            if not seen:
                ratios[a] = np.inf
                continue
            n = len(seen)
            mean, uses = np.mean([g for g, _ in seen]), np.mean([c for _, c in seen], axis=0)
            upper = min(mean + math.sqrt(constant * mean / n) + constant / n, 1.0)
            lows[a, :2] = np.maximum(uses - np.sqrt(constant * uses / n) - constant / n, 0.0) * [1.0, 60 / 90]
            ratios[a] = upper / (prices / prices.sum() @ lows[a])
        decision = learner.ask()
        expected = int(np.argmax(ratios))
        wrong += decision.arm != expected
        prices = prices * (1 + epsilon) ** lows[decision.arm]
        gain, costs = float(rng.random() < 0.2 + 0.15 * decision.arm), 0.6 * rng.random(2)
        learner.tell(decision, gain, costs)
        history.append((decision.arm, gain, costs))
    return wrong, len(history)


def test_equals_the_twin_and_the_twin_detects_a_wrong_radius() -> None:
    wrong, rounds = disagreements(confidence=0.05, twin_confidence=0.05)
    assert wrong == 0
    assert rounds > 100
    assert disagreements(confidence=0.05, twin_confidence=0.2)[0] > 10


def test_learns_the_arm_that_earns_most_for_its_cost() -> None:
    """Arm 1 earns less than arm 0 but costs a quarter: within budget it is the better one."""
    world = ds.Instance.stationary([0.8, 0.5], [[0.8, 0.2]], horizon=20_000, budget=4_000.0)
    run = ds.simulate(world, ds.policies.PrimalDualBwK(confidence=0.1), trials=20, seed=0)
    assert (run.pulls[:, 1] > 0.85 * run.pulls.sum(axis=1)).all()
    best = ds.benchmarks.lp_dynamic(world)
    assert run.reward.mean() > 0.85 * best.value


def test_bad_settings() -> None:
    with pytest.raises(OutOfRangeError, match="confidence must be 0 or more"):
        ds.policies.PrimalDualBwK(confidence=-1.0)
