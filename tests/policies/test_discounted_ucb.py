"""Discounted UCB against a twin that recomputes the weights of the full history in every round."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.errors import OutOfRangeError
from driftsack.game.state_tree import programs
from driftsack.lp import certificate

PROBLEM = ds.Problem(horizon=150, arms=3, budget=[14.0, 16.0])


def printed(_: Floats, weights: Floats, log: float) -> float:
    """The printed radius."""
    return math.sqrt(2 * log / weights.sum())


def bernstein(values: Floats, weights: Floats, log: float) -> float:
    """The empirical Bernstein radius with a weighted variance."""
    variance = np.average((values - np.average(values, weights=weights)) ** 2, weights=weights)
    return math.sqrt(2 * variance * log / weights.sum()) + 3 * log / float(weights.sum())


def disagreement(policy: ds.policies.DiscountedUCB, twin_discount: float, width: Any = printed) -> float:
    """Ask, and tell up to five rounds late; return the largest disagreement with the twin's bounds and LP."""
    scales = policy.scale, policy.scale if policy.cost_scale is None else policy.cost_scale
    learner, rng = policy.start(PROBLEM, seed=0), np.random.default_rng(2)
    lp = next(programs(learner.state))
    history: list[tuple[int, int, float, list[float]]] = []
    worst = 0.0
    while not learner.done:
        t = learner.round + 1
        upper, lower = np.zeros(3), np.zeros((2, 3))
        for i in range(3):
            known = [(twin_discount ** (t - s), gain, *costs) for s, arm, gain, costs in history if arm == i]
            weights, *outcomes = np.array([*known, (1.0, 0.0, 0.0, 0.0)]).T  # with one outcome of 0
            means = [np.average(values, weights=weights) for values in outcomes]
            log = math.log(12 * 3) + 3 * math.log(150)
            upper[i] = means[0] + scales[0] * width(outcomes[0], weights, log)
            for j in range(2):
                lower[j, i] = means[1 + j] - scales[1] * width(outcomes[1 + j], weights, log + math.log(2))
        decision = learner.ask()
        proof = certificate(upper, lower, PROBLEM.rate, decision.mix, decision.prices)
        off = np.abs(lp.objective[:3] - upper).max(), np.abs(lp.columns[:-1, :3] - lower).max()
        worst = max(worst, *map(abs, proof), *off)
        for pending in learner.pending:
            if rng.random() < 0.5 or learner.round - pending.round >= 5:
                gain, costs = rng.random(), (0.5 * rng.random(2)).tolist()
                learner.tell(pending, gain, costs)
                history.append((pending.round, pending.arm, gain, costs))
    assert len(history) > 30
    return worst


def test_equals_the_twin_and_the_twin_detects_a_wrong_discount() -> None:
    policy = ds.policies.DiscountedUCB(discount=0.95, scale=0.02)
    assert disagreement(policy, 0.95) < 1e-9
    assert disagreement(policy, 0.96) > 1e-3


def test_bernstein_radii_and_a_scale_of_their_own_for_costs() -> None:
    """The printed radius in the twin, and the scale of rewards for costs, are detected."""
    policy = ds.policies.DiscountedUCB(discount=0.95, scale=0.02, radius="bernstein", cost_scale=0.003)
    assert disagreement(policy, 0.95, bernstein) < 1e-9
    assert disagreement(policy, 0.95, printed) > 1e-3
    policy = ds.policies.DiscountedUCB(discount=0.95, scale=0.02, cost_scale=0.003)
    assert disagreement(policy, 0.95) < 1e-9


def test_weights_decay_by_the_discount() -> None:
    """After k more rounds, the weight of a round is the discount to the power k."""
    learner = ds.policies.DiscountedUCB(discount=0.9).start(ds.Problem(horizon=99, arms=1, budget=[99.0]))
    learner.tell(learner.ask(), 1.0, [0.5])
    for k in range(1, 20):
        learner.cancel(learner.ask())
        assert learner.state.means.sums[0].tolist() == pytest.approx([0.9**k, 0.5 * 0.9**k])


def test_follows_a_change_that_naive_ucb_does_not() -> None:
    world = ds.instances.example_2()
    policies = (ds.policies.DiscountedUCB(discount=1 - 1 / 1_000, scale=0.1), ds.NaiveUCB(scale=0.1))
    discounted, naive = (ds.simulate(world, policy, trials=30, seed=0) for policy in policies)
    assert discounted.reward.mean() > naive.reward.mean() + 10 * naive.summary()["reward_se"]


@pytest.mark.parametrize("discount", [0.0, 1.0, -0.5])
def test_bad_settings(discount: float) -> None:
    with pytest.raises(OutOfRangeError, match="discount must lie between 0 and 1"):
        ds.policies.DiscountedUCB(discount=discount)
