"""What every policy must do. Policies are found, not listed: a new one is covered as soon as it is imported."""

from __future__ import annotations

import inspect
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.policies import from_spec
from driftsack.policies.policy import recipes

# Settings for policies that have no default ones, by name.
NEEDED: dict[str, dict[str, Any]] = {"SlidingWindowUCB": {"windows": (30, 40)}}


def found() -> list[ds.Policy]:
    return [
        recipe(**NEEDED.get(recipe.__name__, {}))
        for recipe in recipes()
        if recipe.__module__.startswith("driftsack.") and not inspect.isabstract(recipe)
    ]


def test_the_search_finds_policies() -> None:
    assert {type(policy).__name__ for policy in found()} >= {"SlidingWindowUCB", "NaiveUCB"}


HARD_PROBLEMS = [
    ds.Problem(horizon=50, arms=1, budget=[20.0]),  # one arm, one resource
    ds.Problem(horizon=1, arms=3, budget=[1.0, 1.0]),  # one round
    ds.Problem(horizon=50, arms=2, budget=[0.4]),  # a budget below one round's cost
    ds.Problem(horizon=50, arms=2, budget=[0.0]),  # no budget at all
    ds.Problem(horizon=50, arms=2, budget=[1e9, 5.0]),  # one that never binds
    ds.Problem(horizon=80, arms=7, budget=[30.0, 20.0, 40.0], reward_max=9.0, cost_max=[3.0, 0.5, 1.0]),
]


@pytest.mark.parametrize("problem", HARD_PROBLEMS)
@pytest.mark.parametrize("policy", found(), ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_survives_and_keeps_mixes_valid(policy: ds.Policy, problem: ds.Problem, value: float) -> None:
    """Zero reward everywhere, costs all 1, and in between."""
    learner = policy.start(problem, seed=0)
    rounds = 0
    while not learner.done:
        decision = learner.ask()
        rounds += 1
        assert decision.round == rounds
        assert decision.mix.shape == (problem.arms,)
        assert decision.prices.shape == (problem.resources,)
        assert (decision.mix >= 0).all()
        assert decision.mix.sum() <= 1 + 1e-9
        assert (decision.prices >= 0).all()
        assert decision.skipped or decision.mix[decision.arm] > 0
        if not decision.skipped:
            learner.tell(decision, value * problem.reward_max, (1 - value) * np.asarray(problem.cost_max))
    assert rounds >= 1


@pytest.mark.parametrize("policy", found(), ids=lambda policy: type(policy).__name__)
def test_saved_midway_equals_never_saved(policy: ds.Policy, tmp_path: Path) -> None:
    problem = ds.Problem(horizon=120, arms=3, budget=[50.0, 60.0])
    rng = np.random.default_rng(0)
    outcomes = rng.random((120, 3, 3)) * 0.6
    straight, saved = (policy.start(problem, seed=5) for _ in range(2))
    for t in range(90):
        if t == 45:
            saved.save(tmp_path / "learner.npz")
            saved = ds.Learner.load(tmp_path / "learner.npz")
        one, two = straight.ask(), saved.ask()
        assert (one.arm, one.mix.tolist()) == (two.arm, two.mix.tolist())
        for learner, decision in ((straight, one), (saved, two)):
            if not decision.skipped:
                reward, *costs = outcomes[t, decision.arm]
                learner.tell(decision, reward, costs)


@pytest.mark.parametrize("policy", found(), ids=lambda policy: type(policy).__name__)
def test_is_a_value_and_survives_a_spec(policy: ds.Policy) -> None:
    assert from_spec(policy.to_spec()) == policy
    assert len({policy, from_spec(policy.to_spec())}) == 1
    with pytest.raises(AttributeError):
        policy.anything = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("policy", found(), ids=lambda policy: type(policy).__name__)
def test_deterministic_and_within_budget(policy: ds.Policy) -> None:
    world = ds.instances.example_2(horizon=400)
    one, two = (ds.simulate(world, policy, trials=4, seed=3, threads=k) for k in (1, 2))
    np.testing.assert_array_equal(one.curve, two.curve)
    assert (one.spent <= np.asarray(world.problem.budget)).all()


@pytest.mark.parametrize("policy", found(), ids=lambda policy: type(policy).__name__)
def test_memory_does_not_grow_with_the_horizon(policy: ds.Policy) -> None:
    """Peak memory of a trial at T = 10^5 and 10^6, beyond the instance itself."""
    peaks = []
    for horizon in (100_000, 1_000_000):
        world = ds.instances.example_2(horizon=horizon)
        ds.simulate(world, policy, trials=1, threads=1)
        tracemalloc.start()
        ds.simulate(world, policy, trials=1, threads=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 10_000
