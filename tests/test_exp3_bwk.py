"""EXP3.BwK against a twin in plain weights that goes through the whole history in every round."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.errors import DriftsackError, OutOfRangeError, SettingError
from driftsack.core.seeding import generator
from tests.late import Told, answer

PROBLEM = ds.Problem(horizon=400, arms=3, budget=[90.0], reward_max=2.0, cost_max=[1.5])
GAMMA = math.sqrt(3 * math.log(3) / 60)  # 60 = 90 / 1.5


def chances_of(history: list[tuple[Told, float]], explore: float) -> Floats:
    """Probabilities of the arms, from weights of 1 and all that was told, each with the chance to divide by."""
    weights = np.ones(3)
    for told, chance in history:
        if told.arm != ds.SKIP:
            weights[told.arm] *= math.exp(explore / 3 * (told.reward / 2.0 - told.costs[0] / 1.5) / chance)
    mixed: Floats = (1 - explore) * weights / weights.sum() + explore / 3
    return mixed


def disagreement(
    policy: ds.policies.Exp3BwK, explore: float, chance_of_today: bool = False, safe: bool = False, latest: int = 20
) -> tuple[float, int]:
    """Ask, and tell up to ``latest`` rounds late; the worst disagreement in mixes, prices and arms, and the skips."""
    learner, rng, replay = policy.start(PROBLEM, seed=0, safe=safe), np.random.default_rng(1), generator(0)
    history: list[tuple[Told, float]] = []
    worst, skips, late, cancels = 0.0, 0, 0, 0
    while not learner.done:
        expected = chances_of(history, explore)
        decision = learner.ask()
        place = min(int(np.searchsorted(np.cumsum(expected), replay.random(), side="right")), 2)
        if decision.skipped:
            skips += 1
            worst = max(worst, np.abs(decision.mix).max())
        else:
            worst = max(worst, np.abs(decision.mix - expected).max(), float(decision.arm != place))
        worst = max(worst, abs(decision.prices[0] - 2.0 / 1.5))
        for told in answer(learner, rng, most=0.4, latest=latest):
            history.append((told, float(expected[told.arm]) if chance_of_today else told.chance))
            late += told.round < learner.round
            cancels += told.arm == ds.SKIP
    assert cancels > 10
    assert late > 10 or latest == 0
    assert len(history) > 150
    return worst, skips


def test_equals_the_twin() -> None:
    assert disagreement(ds.policies.Exp3BwK(), GAMMA)[0] < 1e-9
    assert disagreement(ds.policies.Exp3BwK(explore=0.9), 0.9)[0] < 1e-9
    assert disagreement(ds.policies.Exp3BwK(explore=1.0), 1.0)[0] < 1e-9


def test_rounds_skipped_for_safety_teach_nothing() -> None:
    """Towards the end no budget is left for one more round: skips, after which the twin still agrees."""
    worst, skips = disagreement(ds.policies.Exp3BwK(), GAMMA, safe=True)
    assert worst < 1e-9
    assert skips > 5


def test_late_feedback_uses_the_chance_of_its_own_decision() -> None:
    """The planted faults: the chance of the day on which the outcome came, and another share of exploration."""
    assert disagreement(ds.policies.Exp3BwK(), GAMMA, chance_of_today=True)[0] > 1e-4
    assert disagreement(ds.policies.Exp3BwK(), 1.05 * GAMMA)[0] > 1e-3
    assert (
        disagreement(ds.policies.Exp3BwK(), GAMMA, chance_of_today=True, latest=0)[0] < 1e-9
    )  # at once, they are the same


def test_explores_by_theory_at_most_always() -> None:
    """The share min(1, sqrt(m ln m / B)): with a budget of a few rounds it is 1, and every arm is as likely."""
    learner = ds.policies.Exp3BwK().start(ds.Problem(horizon=50, arms=4, budget=[3.0]))
    while not learner.done:
        decision = learner.ask()
        np.testing.assert_allclose(decision.mix, 0.25, rtol=1e-12)
        learner.tell(decision, 1.0, [0.1])
    assert learner.round > 20


STEADY = ds.Instance.stationary([0.8, 0.4, 0.2], [[0.4, 0.5, 0.6]], horizon=10_000, budget=2_000)
SWINGING = ds.Instance.piecewise(
    rewards=[[0.9, 0.5, 0.3], [0.3, 0.1, 0.2], [1.0, 0.6, 0.0], [0.5, 0.0, 0.1]],
    costs=[[[0.6, 0.8, 0.9]], [[0.1, 0.3, 0.3]], [[0.6, 0.7, 0.6]], [[0.2, 0.5, 0.4]]],
    lengths=[1_500, 2_500, 2_000, 4_000],
    budget=3_000,
)


@pytest.mark.parametrize("world", [STEADY, SWINGING], ids=["steady", "swinging"])
def test_beats_uniform_random(world: ds.Instance) -> None:
    """Where one arm stays the best while levels jump as they like: by 20 joint standard errors, chance has no say."""
    mine, uniform = (
        ds.simulate(world, policy, trials=50, seed=0).summary()
        for policy in (ds.policies.Exp3BwK(), ds.policies.UniformRandom())
    )
    assert mine["reward"] > uniform["reward"] + 20 * np.hypot(mine["reward_se"], uniform["reward_se"])
    assert mine["pulls"][0] > 2 * max(mine["pulls"][1:])


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
