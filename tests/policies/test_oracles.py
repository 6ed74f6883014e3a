"""Oracles earn the value of their LP; baselines that do not learn play the arms that they should."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

import driftsack as ds
from driftsack.core.errors import OutOfRangeError, SettingError
from driftsack.game.ledger import open_ledger
from driftsack.game.protocol import choose
from driftsack.game.records import new_terms, open_round
from driftsack.policies import from_spec

EXAMPLES: list[Any] = [
    ds.instances.example_1,
    ds.instances.example_2,
    partial(ds.instances.example_3, 0.5),
    ds.instances.example_4,
    partial(ds.instances.piecewise_random, seed=3),
]
NAMES = ["example 1", "example 2", "example 3", "example 4", "random"]


def shortfall(world: ds.Instance, policy: ds.Policy, value: float) -> tuple[float, float]:
    """The LP's value minus the mean reward of the trials, and the standard error of that mean."""
    summary = ds.simulate(world, policy, trials=200, seed=0).summary()
    return value - summary["reward"], summary["reward_se"]


def within_noise(lost: float, error: float, horizon: int) -> bool:
    """Whether a shortfall is at most the loss by early stopping, and not significantly below 0.

    No policy earns more than LP-Dynamic in expectation, and no fixed mix more than LP-Static: the shortfall is below -4
    standard errors once in 30,000 seeds. The spending of a resource has a standard deviation of at most sqrt(T)/2, so a
    trial may stop O(sqrt(T)) rounds early: sqrt(T) is allowed, and these instances lose up to 0.63 sqrt(T).
    """
    return -4 * error <= lost <= 4 * error + math.sqrt(horizon)


@pytest.mark.parametrize("noise", ["bernoulli", "deterministic"])
@pytest.mark.parametrize("example", EXAMPLES, ids=NAMES)
def test_oracles_earn_their_benchmark(example: Any, noise: str) -> None:
    """With deterministic outcomes the draws of the mix are the only noise, and the same bound holds."""
    world = example(noise=noise)
    dynamic, static = ds.benchmarks.lp_dynamic(world).value, ds.benchmarks.lp_static(world).value
    assert within_noise(*shortfall(world, ds.policies.DynamicOracle(), dynamic), world.horizon)
    assert within_noise(*shortfall(world, ds.policies.StaticOracle(), static), world.horizon)


def test_the_check_detects_the_wrong_benchmark() -> None:
    """The planted faults: a dynamic plan judged by LP-Static's value, and the other way round."""
    world = ds.instances.example_1()
    dynamic, static = ds.benchmarks.lp_dynamic(world).value, ds.benchmarks.lp_static(world).value
    assert not within_noise(*shortfall(world, ds.policies.DynamicOracle(), static), world.horizon)
    assert not within_noise(*shortfall(world, ds.policies.StaticOracle(), dynamic), world.horizon)


def test_nothing_is_lost_without_randomness() -> None:
    """Example 1's plan is one arm and then the other: with deterministic outcomes every trial earns OPT = T/2."""
    run = ds.simulate(ds.instances.example_1(noise="deterministic"), ds.policies.DynamicOracle(), trials=20, seed=0)
    np.testing.assert_allclose(
        run.reward, 5_000, atol=1.0
    )  # tolerates one round, if rounding exceeds a budget in the last one
    assert (run.pulls >= 4_999).all()


def test_the_loss_grows_as_the_root_of_the_horizon() -> None:
    """With a hundredfold horizon the loss on example 2, whose mix is random, is 3 to 30 times as large.

    Both losses are estimated to within a few percent (400 trials each).
    """
    losses = []
    for horizon in (1_000, 100_000):
        world = ds.instances.example_2(horizon=horizon, noise="deterministic")
        losses.append(horizon / 2 - ds.simulate(world, ds.policies.DynamicOracle(), trials=400, seed=0).reward.mean())
    assert 3 < losses[1] / losses[0] < 30


def test_oracles_follow_their_plan() -> None:
    """In every round the mix is the plan's, and arms and SKIP are drawn with its probabilities.

    Chi-square tests over 5,000 rounds of each kind, where the plan mixes arms: one of four fails once in 10^5 seeds.
    """
    world = ds.instances.example_3(0.5)
    for policy, best in (
        (ds.policies.DynamicOracle(), ds.benchmarks.lp_dynamic(world)),
        (ds.policies.StaticOracle(), ds.benchmarks.lp_static(world)),
    ):
        state, rng = policy.state_on(world), np.random.default_rng(0)
        terms, ledger = new_terms(world.problem), open_ledger(world.problem)
        mix, prices, counts = np.zeros(2), np.zeros(2), np.zeros((2, 3))
        assert best.plan is not None
        assert best.prices is not None
        plan, given = best.plan.tolist(), best.prices.tolist()
        for t in range(world.horizon):
            arm = choose(state, open_round(t, ledger, terms), rng, mix, prices)
            assert mix.tolist() == plan[world.phase[t]]
            assert prices.tolist() == given
            counts[world.phase[t], arm] += 1  # SKIP is -1: the last column
        for row, count in zip(best.plan, counts, strict=True):
            expected = 5_000 * np.append(row, 1 - row.sum())
            likely = expected > 1e-3
            assert count[~likely].sum() == 0
            scaled = expected[likely] / expected[likely].sum() * 5_000
            assert likely.sum() == 1 or stats.chisquare(count[likely], scaled).pvalue > 1e-6


def test_units_do_not_matter() -> None:
    """Rewards up to 4, costs up to 1/2 and 100: the same trials in other units, and the same normalised prices."""
    plain = ds.instances.piecewise_random(horizon=2_000, seed=3)
    problem = ds.Problem(2_000, 5, [250.0, 50_000.0], reward_max=4.0, cost_max=[0.5, 100.0])
    scaled = ds.Instance(problem, 4 * plain.rewards, plain.costs * [[0.5], [100.0]], plain.phase, plain.noise)
    for policy in (ds.policies.DynamicOracle(), ds.policies.StaticOracle()):
        one, two = (ds.simulate(world, policy, trials=20, seed=0) for world in (plain, scaled))
        np.testing.assert_allclose(two.reward, 4 * one.reward, rtol=1e-9)
        prices = [policy.state_on(world).prices for world in (plain, scaled)]
        assert prices[0].any()
        np.testing.assert_allclose(prices[0], prices[1], atol=1e-6)


@pytest.mark.parametrize("policy", [ds.policies.DynamicOracle(), ds.policies.StaticOracle()])
def test_only_a_simulation_can_start_an_oracle(policy: ds.Policy) -> None:
    name = type(policy).__name__
    with pytest.raises(SettingError, match=rf"{name} knows the means .* only simulate\(instance, {name}\(\)\)"):
        policy.start(ds.Problem(horizon=10, arms=2, budget=[3.0]))
    assert ds.simulate(ds.instances.example_1(horizon=10), policy, trials=2).trials == 2
    assert policy.forgets is None
    assert from_spec(policy.to_spec()) == policy


@pytest.mark.parametrize("arms", [2, 3, 7])
def test_uniform_random_plays_arms_evenly(arms: int) -> None:
    """Chi-square tests of arms over 100,000 rounds and of consecutive pairs: each fails once in 10^6 seeds."""
    world = ds.Instance.stationary(np.full(arms, 0.5), np.full((1, arms), 0.1), horizon=50_000, budget=50_000)
    pulls = ds.simulate(world, ds.policies.UniformRandom(), trials=2, seed=0).pulls.sum(axis=0)
    assert pulls.sum() == 100_000
    assert stats.chisquare(pulls).pvalue > 1e-6
    learner = ds.policies.UniformRandom().start(ds.Problem(horizon=8_000, arms=arms, budget=[1.0]), seed=1)
    asked = [learner.ask() for _ in range(8_000)]
    assert all((decision.mix == 1 / arms).all() and not decision.prices.any() for decision in asked)
    pairs = np.array([decision.arm for decision in asked]).reshape(-1, 2) @ [arms, 1]
    assert stats.chisquare(np.bincount(pairs, minlength=arms * arms)).pvalue > 1e-6


def test_the_check_detects_uneven_probabilities() -> None:
    """The planted fault: 2% of the rounds go to one of three arms instead of the others."""
    drawn = np.random.default_rng(0).choice(3, 100_000, p=[0.353, 0.3235, 0.3235])
    assert stats.chisquare(np.bincount(drawn)).pvalue < 1e-6


@pytest.mark.parametrize("arm", [0, 1, 2])
def test_always_arm_plays_only_that_arm(arm: int) -> None:
    """Until the budget is exhausted: a budget of 100 pays for 200 of 300 rounds at a cost of 1/2."""
    world = ds.Instance.stationary([0.1, 0.5, 0.9], [[0.5, 0.5, 0.5]], 300, budget=100, noise="deterministic")
    run = ds.simulate(world, ds.policies.AlwaysArm(arm), trials=3, seed=0)
    expected = np.zeros(3)
    expected[arm] = 200
    assert (run.pulls == expected).all()
    assert (run.stopping_time == 201).all()
    np.testing.assert_allclose(run.reward, 200 * world.rewards[0, arm])
    decision = ds.policies.AlwaysArm(arm).start(world.problem).ask()
    assert (decision.arm, decision.mix.tolist()) == (arm, np.eye(3)[arm].tolist())


@pytest.mark.parametrize(
    ("arm", "error", "words"),
    [
        (3, OutOfRangeError, r"arm must lie in \[0, 2\] on this problem, got 3"),
        (-1, OutOfRangeError, "arm must be at least 0, got -1"),
        (1.0, SettingError, "arm must be an integer, got 1.0"),
    ],
)
def test_always_arm_refuses_an_arm_that_does_not_exist(arm: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ds.policies.AlwaysArm(arm).start(ds.Problem(horizon=10, arms=3, budget=[3.0]))
