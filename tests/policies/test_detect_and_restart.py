"""Detect and restart against a twin that uses all outcomes since the last restart."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import OutOfRangeError, SettingError
from driftsack.lp import certificate
from tests.support import naive

PROBLEM = ds.Problem(horizon=600, arms=2, budget=[260.0, 280.0])
POLICY = ds.DetectAndRestart(ds.NaiveUCB(scale=0.05), explore=0.1, delta=0.05)
MEANS = ((0.9, 0.2, 0.3), (0.2, 0.5, 0.4)), ((0.1, 0.7, 0.4), (0.8, 0.3, 0.6))  # before and after; arm; reward, costs


def play(policy: ds.DetectAndRestart, twin_delta: float, twin_explore: float) -> tuple[float, list[int], list[int]]:
    """Ask and tell; return the largest disagreement in mixes and the rounds of the restarts of learner and twin."""
    learner, rng = policy.start(PROBLEM, seed=0), np.random.default_rng(1)
    history: list[naive.Round] = []
    worst, restarts, twin_restarts = 0.0, list[int](), list[int]()
    while not learner.done:
        upper, lower = naive.bounds(history, 2, 2, 600, (600, 600), scale=0.05)
        decision = learner.ask()
        base = (decision.mix - twin_explore / 2) / (1 - twin_explore)
        worst = max(worst, *map(abs, certificate(upper, lower, PROBLEM.rate, base, decision.prices)))
        outcome = (rng.random(3) < MEANS[learner.round > 300][max(decision.arm, 0)]).astype(float)
        if decision.skipped:
            history.append(naive.Round(-1, 0.0, np.zeros(2)))
            continue
        learner.tell(decision, outcome[0], outcome[1:])
        history.append(naive.Round(decision.arm, outcome[0], outcome[1:]))
        outcomes = [(r.reward, *r.costs) for r in history if r.arm == decision.arm]
        if any(naive.glr_detects([float(row[k]) for row in outcomes], twin_delta) for k in range(3)):
            history = []
            twin_restarts.append(learner.round)
        if learner.state.restarts[0] > len(restarts):
            restarts.append(learner.round)
    return worst, restarts, twin_restarts


def test_equals_the_twin_and_the_twin_detects_faults() -> None:
    worst, restarts, twin = play(POLICY, 0.05, 0.1)
    assert worst < 1e-9
    assert restarts == twin
    assert any(300 < t <= 400 for t in restarts)
    assert play(POLICY, 0.05, 0.12)[0] > 1e-3  # a wrong share of exploration
    _, restarts, twin = play(POLICY, 1e-9, 0.1)  # a wrong confidence
    assert restarts != twin


def test_outcomes_of_rounds_before_a_restart_are_dropped() -> None:
    learner = replace(POLICY, base=ds.NaiveUCB(), explore=0.0).start(PROBLEM)
    early = [learner.ask() for _ in range(5)]
    while learner.state.restarts[0] == 0:
        decision = learner.ask()
        learner.tell(decision, float(learner.round > 150), [0.1, 0.1])
    assert not learner.state.base.means.rewards.pulls.any()
    for decision in early:
        learner.tell(decision, 1.0, [0.1, 0.1])
    assert not learner.state.base.means.rewards.pulls.any()
    decision = learner.ask()
    learner.tell(decision, 1.0, [0.1, 0.1])
    assert learner.state.base.means.rewards.pulls.sum() == 1


@pytest.mark.parametrize("detector", ["glr", "cusum"])
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_reward_is_within_a_tenth_of_the_right_window_on_example_2(
    detector: Literal["glr", "cusum"], scale: float
) -> None:
    """SW-UCB is given V, this policy is not. 40 trials, with standard errors of at most 30."""
    world = ds.instances.example_2()
    restarting = ds.simulate(world, ds.DetectAndRestart(ds.NaiveUCB(scale=scale), detector=detector), trials=40, seed=0)
    windowed = ds.simulate(world, ds.SlidingWindowUCB(variation=(0.5, 1.0), scale=scale), trials=40, seed=0)
    naive_ucb = ds.simulate(world, ds.NaiveUCB(scale=scale), trials=40, seed=0)
    assert restarting.summary()["reward_se"] < 30
    assert restarting.reward.mean() > 0.9 * windowed.reward.mean()
    assert naive_ucb.reward.mean() < 0.9 * windowed.reward.mean()  # the loss without restarts


def test_any_base_and_a_wrapper_around_a_wrapper() -> None:
    world = ds.instances.example_2(horizon=2_000)
    for base in (
        ds.policies.LagrangeBwK(benchmark=750.0),
        ds.SpendingPlan(ds.policies.PrimalDualBwK()),
        ds.ThompsonBwK(windows=200),
    ):
        policy = ds.DetectAndRestart(base)
        run = ds.simulate(world, policy, trials=2, seed=0)
        assert (run.reward > 300).all()
        assert ds.policies.from_spec(policy.to_spec()) == policy


def test_bad_settings() -> None:
    with pytest.raises(SettingError, match="base must be"):
        ds.DetectAndRestart("NaiveUCB")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="detector must be one of 'glr', 'cusum'"):
        ds.DetectAndRestart(detector="unknown")  # type: ignore[arg-type]
    with pytest.raises(OutOfRangeError, match="explore"):
        ds.DetectAndRestart(explore=1.5)
    with pytest.raises(OutOfRangeError, match="delta"):
        ds.DetectAndRestart(delta=5.0)


def test_exploration_spends_little_of_a_small_budget() -> None:
    """The budget pays for one round in two hundred, and the default explores less than a tenth of that."""
    world = ds.Instance.stationary([0.9, 0.5], [[0.9, 0.9]], 20_000, 100.0)
    run = ds.simulate(world, ds.DetectAndRestart(ds.NaiveUCB(scale=0.05, budget_rule="remaining")), trials=5, seed=0)
    assert (run.stopping_time > 15_000).all()


def test_a_restarted_plan_continues_from_its_round() -> None:
    """After a restart, the plan of a forecast must account for what should have been spent by then."""
    world = ds.instances.example_2(horizon=4_000)
    for policy in (ds.PlanWithForecast(world), ds.DetectAndRestart(ds.PlanWithForecast(world))):
        run = ds.simulate(world, policy, trials=5, seed=0)
        assert (run.spent.max(axis=1) > 0.95 * world.problem.budget[0]).all()
