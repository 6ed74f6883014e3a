"""EXP3.BwK against a twin with plain weights that are recomputed from the full history in every round."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.errors import DriftsackError, OutOfRangeError, SettingError
from driftsack.core.seeding import generator
from tests.support.delayed_feedback import Feedback, give_feedback

PROBLEM = ds.Problem(horizon=400, arms=3, budget=[90.0], reward_max=2.0, cost_max=[1.5])
GAMMA = math.sqrt(3 * math.log(3) / 60)  # 60 = 90 / 1.5


def probabilities_of(history: list[tuple[Feedback, float]], explore: float) -> Floats:
    """Probabilities of the arms, from all feedback, each with the probability for its importance weight."""
    weights = np.ones(3)
    for feedback, probability in history:
        if feedback.arm != ds.SKIP:
            weights[feedback.arm] *= math.exp(
                explore / 3 * (feedback.reward / 2.0 - feedback.costs[0] / 1.5) / probability
            )
    mixed: Floats = (1 - explore) * weights / weights.sum() + explore / 3
    return mixed


def disagreement(
    policy: ds.policies.Exp3BwK,
    explore: float,
    use_current_probability: bool = False,
    safe: bool = False,
    latest: int = 20,
) -> tuple[float, int]:
    """Ask, and tell up to ``latest`` rounds late; return the largest disagreement and the number of skips."""
    learner, rng, replay = policy.start(PROBLEM, seed=0, safe=safe), np.random.default_rng(1), generator(0)
    history: list[tuple[Feedback, float]] = []
    worst, skips, late, cancels = 0.0, 0, 0, 0
    while not learner.done:
        expected = probabilities_of(history, explore)
        decision = learner.ask()
        expected_arm = min(int(np.searchsorted(np.cumsum(expected), replay.random(), side="right")), 2)
        if decision.skipped:
            skips += 1
            worst = max(worst, np.abs(decision.mix).max())
        else:
            worst = max(worst, np.abs(decision.mix - expected).max(), float(decision.arm != expected_arm))
        worst = max(worst, abs(decision.prices[0] - 2.0 / 1.5))
        for feedback in give_feedback(learner, rng, most=0.4, latest=latest):
            history.append(
                (feedback, float(expected[feedback.arm]) if use_current_probability else feedback.probability)
            )
            late += feedback.round < learner.round
            cancels += feedback.arm == ds.SKIP
    assert cancels > 10
    assert late > 10 or latest == 0
    assert len(history) > 150
    return worst, skips


def test_equals_the_twin() -> None:
    assert disagreement(ds.policies.Exp3BwK(), GAMMA)[0] < 1e-9
    assert disagreement(ds.policies.Exp3BwK(explore=0.9), 0.9)[0] < 1e-9
    assert disagreement(ds.policies.Exp3BwK(explore=1.0), 1.0)[0] < 1e-9


def test_rounds_skipped_by_safe_are_ignored() -> None:
    """Towards the end the budget cannot pay for another round; the twin still agrees after such skips."""
    worst, skips = disagreement(ds.policies.Exp3BwK(), GAMMA, safe=True)
    assert worst < 1e-9
    assert skips > 5


def test_late_feedback_uses_the_probability_of_its_own_decision() -> None:
    """The planted faults: the arm's probability when the outcome arrives, and another exploration rate."""
    assert disagreement(ds.policies.Exp3BwK(), GAMMA, use_current_probability=True)[0] > 1e-4
    assert disagreement(ds.policies.Exp3BwK(), 1.05 * GAMMA)[0] > 1e-3
    assert (
        disagreement(ds.policies.Exp3BwK(), GAMMA, use_current_probability=True, latest=0)[0] < 1e-9
    )  # without delay both are the same


def test_the_default_exploration_rate_is_at_most_one() -> None:
    """The rate min(1, sqrt(m ln m / B)) is 1 for a budget of a few rounds, so every arm is equally likely."""
    learner = ds.policies.Exp3BwK().start(ds.Problem(horizon=50, arms=4, budget=[3.0]))
    while not learner.done:
        decision = learner.ask()
        np.testing.assert_allclose(decision.mix, 0.25, rtol=1e-12)
        learner.tell(decision, 1.0, [0.1])
    assert learner.round > 20


STATIONARY = ds.Instance.stationary([0.8, 0.4, 0.2], [[0.4, 0.5, 0.6]], horizon=10_000, budget=2_000)
CHANGING = ds.Instance.piecewise(
    rewards=[[0.9, 0.5, 0.3], [0.3, 0.1, 0.2], [1.0, 0.6, 0.0], [0.5, 0.0, 0.1]],
    costs=[[[0.6, 0.8, 0.9]], [[0.1, 0.3, 0.3]], [[0.6, 0.7, 0.6]], [[0.2, 0.5, 0.4]]],
    lengths=[1_500, 2_500, 2_000, 4_000],
    budget=3_000,
)


@pytest.mark.parametrize("world", [STATIONARY, CHANGING], ids=["stationary", "changing"])
def test_beats_uniform_random(world: ds.Instance) -> None:
    """One arm stays the best while all levels may change; the difference is at least 20 joint standard errors."""
    exp3, uniform = (
        ds.simulate(world, policy, trials=50, seed=0).summary()
        for policy in (ds.policies.Exp3BwK(), ds.policies.UniformRandom())
    )
    assert exp3["reward"] > uniform["reward"] + 20 * np.hypot(exp3["reward_se"], uniform["reward_se"])
    assert exp3["pulls"][0] > 2 * max(exp3["pulls"][1:])


def test_refuses_more_than_one_resource() -> None:
    with pytest.raises(SettingError, match="for one resource, got 2; choose LagrangeBwK or DualDescent"):
        ds.policies.Exp3BwK().start(ds.Problem(horizon=9, arms=2, budget=[3.0, 3.0]))
    with pytest.raises(SettingError, match="for one resource, got 2"):
        ds.simulate(ds.instances.example_2(horizon=100), ds.policies.Exp3BwK(), trials=1)


@pytest.mark.parametrize(
    ("explore", "error", "words"),
    [
        (0.0, OutOfRangeError, "explore must be above 0"),
        (-0.1, OutOfRangeError, "explore must be above 0"),
        (1.5, SettingError, r"explore must lie in \(0, 1\], got 1.5"),
        (np.nan, DriftsackError, "explore must be finite"),
    ],
)
def test_bad_settings(explore: Any, error: type[DriftsackError], words: str) -> None:
    with pytest.raises(error, match=words):
        ds.policies.Exp3BwK(explore=explore)
