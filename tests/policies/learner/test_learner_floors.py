"""Floors in the life of a learner: status, late outcomes, files, seasons and arms that are added."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import FileFormatError, SettingError

COSTS = {"small": 0.001, "large": 0.010}
PROBLEM = ds.Problem(horizon=60, arms=list(COSTS), minimise="usd", floor={"reward": 0.75, "share:small": 0.2})


def started(seed: int = 0) -> ds.Learner:
    return ds.Adaptive().start(PROBLEM, seed=seed)


def told(learner: ds.Learner, decision: ds.Decision) -> None:
    learner.tell(decision, reward=0.5 if decision.name == "small" else 1.0, costs=COSTS.get(str(decision.name), 0.005))


def played(learner: ds.Learner, rounds: int) -> list[Any]:
    decisions = []
    for _ in range(rounds):
        decisions.append(learner.ask())
        told(learner, decisions[-1])
    return [(decision.arm, decision.mix.tolist(), decision.prices.tolist()) for decision in decisions]


def test_every_request_is_answered_and_the_floors_are_reached() -> None:
    learner = started()
    arms = [arm for arm, _, _ in played(learner, 60)]
    assert ds.SKIP not in arms
    status = learner.floors
    assert status["reward"].reached == pytest.approx(0.75, abs=0.02)
    assert status["share:small"].reached == arms.count(0) / 60 >= 0.2
    assert math.isnan(status["share:small"].price)
    assert started().floors["reward"].needed == 0.75


def test_the_price_is_the_cost_of_one_more_unit_of_reward() -> None:
    """It is (0.010 - 0.001) / (1.0 - 0.5) dollars, within the 15% by which the plan may miss it, and a draw."""
    learner = ds.Adaptive().start(replace(PROBLEM, horizon=1_000), seed=0)
    played(learner, 200)
    assert learner.floors["reward"].price == pytest.approx(0.018, rel=0.3)


def test_floors_that_are_not_there_have_no_status() -> None:
    assert ds.Adaptive().start(ds.Problem(10, 2, 5.0)).floors == {}


def test_an_outcome_counts_once_when_it_arrives_and_a_cancelled_one_never() -> None:
    learner = started()
    early, late, cancelled = (learner.ask() for _ in range(3))
    assert math.isnan(learner.floors["reward"].reached)
    told(learner, early)
    first = learner.floors["reward"].reached
    learner.cancel(cancelled)
    assert learner.floors["reward"].reached == first
    learner.tell(late, reward=0.0)
    assert learner.floors["reward"].reached == first, "half an outcome was counted"
    learner.tell(late, costs=0.001)
    assert learner.floors["reward"].reached == first / 2
    learner.tell(late, reward=0.0, costs=0.001)  # the same call again
    assert learner.floors["reward"].reached == first / 2


def test_a_loaded_learner_continues_bit_for_bit() -> None:
    learner = started(seed=3)
    played(learner, 25)
    pending = learner.ask()
    other = ds.Learner.from_bytes(learner.to_bytes())
    assert other.state_hash() == learner.state_hash()
    for one in (learner, other):
        told(one, one.pending[0])
    assert pending.round == 26
    assert played(other, 20) == played(learner, 20)
    played(other, 1)
    assert other.state_hash() != learner.state_hash()


def test_a_malicious_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = started()
    played(learner, 5)
    learner._engine.terms.floors.gained[0] = -1.0
    with pytest.raises(FileFormatError, match="gained"):
        ds.Learner.from_bytes(learner.to_bytes())


def test_each_season_has_to_reach_the_floors() -> None:
    learner = started()
    played(learner, 30)
    late = learner.ask()
    learner.renew(rollover=1.0)
    assert math.isnan(learner.floors["reward"].reached)
    told(learner, late)
    assert math.isnan(learner.floors["reward"].reached), "an outcome of the last season counts in this one"
    assert np.isinf(learner.remaining).all()
    assert math.isinf(learner.budgets["usd"].left)
    played(learner, 1)
    assert not math.isnan(learner.floors["reward"].reached)


def test_an_arm_that_is_added_is_used_and_counts() -> None:
    learner = started()
    played(learner, 20)
    before = learner.floors["reward"].reached
    learner.add_arm("medium")
    assert learner.floors["reward"].reached == before
    arms = [arm for arm, _, _ in played(learner, 30)]
    assert 2 in arms


def test_a_policy_without_floors_is_refused_by_name() -> None:
    with pytest.raises(SettingError, match="ThompsonBwK maximises the reward and cannot keep the floor"):
        ds.ThompsonBwK().start(PROBLEM)
    with pytest.raises(SettingError, match="UniformRandom maximises the reward"):
        ds.simulate(ds.instances.example_2(horizon=100).with_floor(0.5), ds.policies.UniformRandom(), trials=1)
