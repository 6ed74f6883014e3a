"""Costs that are absurd, such as a bill in the wrong unit, are refused before anything changes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import AbsurdCostError, OutOfRangeError, OverrunWarning
from driftsack.policies.learner import arguments

PROBLEM = ds.Problem(horizon=100, arms=["small", "large"], budget={"usd": 50, "seconds": 80}, cost_max=[0.1, 2.0])


def learner_of(problem: ds.Problem = PROBLEM) -> ds.Learner:
    return ds.Adaptive().start(problem, seed=0, safe=True)


def made(learner: ds.Learner) -> Any:
    while (decision := learner.ask()).skipped:
        pass
    return decision


TELLS: list[Callable[[ds.Learner, Any, list[float]], None]] = [
    lambda learner, decision, costs: learner.tell(decision, 1.0, costs),
    lambda learner, decision, costs: learner.tell(decision, 1.0, dict(zip(("usd", "seconds"), costs, strict=True))),
    lambda learner, decision, costs: learner.tell(decision, 1.0, np.array(costs)),
    lambda learner, decision, costs: learner.tell(decision, costs=costs),
    lambda learner, decision, costs: learner.cancel(decision, costs),
]


@pytest.mark.parametrize("tell", TELLS)
@pytest.mark.parametrize("costs", [[100.1, 0.0], [0.0, 2000.5], [300_000.0, 1.0]])
def test_an_absurd_cost_changes_nothing_and_can_be_corrected(tell: Any, costs: list[float]) -> None:
    learner = learner_of()
    decision = made(learner)
    before = learner.state_hash()
    with pytest.raises(AbsurdCostError, match="refuse_above"):
        tell(learner, decision, costs)
    assert learner.state_hash() == before
    assert learner.pending == (decision,)
    tell(learner, decision, [0.05, 1.0])
    np.testing.assert_allclose(learner.remaining, [49.95, 79.0])


def test_a_batch_with_an_absurd_cost_is_refused_as_a_whole() -> None:
    learner = learner_of()
    batch = learner.ask_many(20)
    batch = batch[batch.arms != ds.SKIP]
    rewards, costs = np.ones(len(batch)), np.full((len(batch), 2), 0.05)
    costs[-1, 1] = 1e6
    before = learner.state_hash()
    with pytest.raises(AbsurdCostError, match="1000000"):
        learner.tell_many(batch, rewards, costs)
    assert learner.state_hash() == before
    costs[-1, 1] = 0.05
    learner.tell_many(batch, rewards, costs)
    assert not learner.pending


def test_costs_up_to_the_limit_are_charged() -> None:
    learner = learner_of(ds.Problem(100, 2, budget=[1000.0], cost_max=[0.1], refuse_above=[5.0]))
    with pytest.raises(AbsurdCostError):
        learner.tell(made(learner), 1.0, [5.1])
    with pytest.warns(OverrunWarning):
        learner.tell(learner.pending[0], 1.0, [5.0])
    assert learner.remaining.tolist() == [995.0]


def test_the_check_is_what_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the limit is not compared, so $300,000 are booked."""
    monkeypatch.setattr(arguments, "refuse_absurd", lambda *_: None)
    learner = learner_of()
    with pytest.warns(OverrunWarning):
        learner.tell(made(learner), 1.0, [300_000.0, 1.0])
    assert learner.remaining[0] < -299_000


def test_limits_of_problems() -> None:
    assert PROBLEM.refuse_above is None
    assert PROBLEM.cost_limit.tolist() == [100.0, 2000.0]
    named = ds.Problem(
        10, 2, {"usd": 1, "seconds": 2}, cost_max={"usd": 1, "seconds": 1}, refuse_above={"seconds": 9, "usd": 7}
    )
    assert named.refuse_above == (7.0, 9.0)
    assert ds.Problem.from_dict(named.to_dict()) == named
    assert eval(repr(named), {"Problem": ds.Problem}) == named
    unknown = ds.Problem(10, 2, [1.0])
    assert unknown.cost_limit.tolist() == [math.inf]
    with pytest.raises(OutOfRangeError, match="at least its cost_max"):
        ds.Problem(10, 2, [1.0], cost_max=[0.5], refuse_above=[0.4])


def test_a_new_arm_raises_the_default_limit() -> None:
    learner = learner_of()
    learner.add_arm("huge", cost_max={"usd": 1.0, "seconds": 2.0})
    assert learner.problem.cost_limit.tolist() == [1000.0, 2000.0]
    with pytest.warns(OverrunWarning):
        learner.tell(made(learner), 1.0, [500.0, 1.0])


def test_a_saved_learner_keeps_its_limit() -> None:
    learner = learner_of(ds.Problem(100, 2, budget=[1000.0], cost_max=[0.1], refuse_above=[5.0]))
    again = ds.Learner.from_bytes(learner.to_bytes())
    with pytest.raises(AbsurdCostError):
        again.tell(made(again), 1.0, [6.0])
