"""Costs and rewards that are told apart: charged at once, learnt together, never charged twice."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import (
    AbsurdCostError,
    AlreadyToldError,
    FileFormatError,
    NotFiniteError,
    OutcomeError,
    OutOfRangeError,
    OverrunWarning,
    SettingError,
    UnknownDecisionError,
)
from driftsack.policies.learner import file as learner_file
from driftsack.policies.learner.bookmark import Bookmark
from tests.support.learner_parts import desk_of, terms_of

COSTS = [0.25, 0.5]
OTHER = [0.25, 0.75]


def started(safe: bool = True, **changes: Any) -> ds.Learner:
    settings: dict[str, Any] = {"horizon": 500, "arms": ["a", "b", "c"], "budget": [300.0, 300.0], "cost_max": 1.0}
    return ds.Adaptive().start(ds.Problem(**settings | changes), seed=2, safe=safe)


def counts(learner: ds.Learner) -> tuple[list[float], list[float]]:
    terms = terms_of(learner)
    return terms.pending.tolist(), terms.unpaid.tolist()


def test_costs_are_charged_at_once_and_the_outcome_is_learnt_with_the_reward() -> None:
    learner, twin = started(), started()
    one, two = learner.ask(open=["b"]), twin.ask(open=["b"])
    learner.tell(one, costs={"cost_0": 0.25, "cost_1": 0.5})
    assert learner.remaining.tolist() == [299.75, 299.5]
    assert learner.reserved.tolist() == [0.0, 0.0]
    assert learner.pending == (one,)
    assert counts(learner) == ([0, 1, 0], [0, 0, 0])
    learner.tell(one, costs=COSTS)  # again
    assert learner.remaining.tolist() == [299.75, 299.5]
    learner.tell(one, reward=0.5)
    twin.tell(two, 0.5, COSTS)
    assert learner.state_hash() == twin.state_hash()
    before = learner.state_hash()
    for again in ({"reward": 0.5}, {"costs": COSTS}, {"reward": 0.5, "costs": COSTS}):
        learner.tell(one, **again)
    assert learner.state_hash() == before


def test_the_reward_may_come_first() -> None:
    learner, twin = started(), started()
    one, two = learner.ask(), twin.ask()
    learner.tell(one, reward=0.5)
    learner.tell(one, reward=0.5)
    assert learner.reserved.tolist() == [1.0, 1.0]
    assert learner.pending == (one,)
    learner.tell(one, costs=COSTS)
    twin.tell(two, 0.5, COSTS)
    assert learner.state_hash() == twin.state_hash()


@pytest.mark.parametrize("first", [{"reward": 0.5}, {"costs": COSTS}])
def test_a_part_may_be_followed_by_the_whole(first: dict[str, Any]) -> None:
    learner, twin = started(), started()
    one, two = learner.ask(), twin.ask()
    learner.tell(one, **first)
    learner.tell(one, 0.5, COSTS)
    twin.tell(two, 0.5, COSTS)
    assert learner.state_hash() == twin.state_hash()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"reward": 0.5}, {"reward": 0.25}),
        ({"reward": 0.5}, {"reward": 0.25, "costs": COSTS}),
        ({"costs": COSTS}, {"costs": OTHER}),
        ({"costs": COSTS}, {"reward": 0.5, "costs": OTHER}),
        ({"reward": 0.5, "costs": COSTS}, {"reward": 0.25}),
        ({"reward": 0.5, "costs": COSTS}, {"costs": OTHER}),
    ],
)
def test_another_value_is_refused(first: dict[str, Any], second: dict[str, Any]) -> None:
    learner = started()
    decision = learner.ask()
    learner.tell(decision, **first)
    before = learner.state_hash()
    with pytest.raises(AlreadyToldError):
        learner.tell(decision, **second)
    assert learner.state_hash() == before


def test_misuse_changes_nothing() -> None:
    learner, other = started(), started()
    decision, foreign = learner.ask(), other.ask()
    skipped = learner.ask(open=[])
    before = learner.state_hash()
    wrong: list[tuple[type[Exception], ds.Decision, dict[str, Any]]] = [
        (OutcomeError, decision, {}),
        (NotFiniteError, decision, {"reward": math.nan}),
        (NotFiniteError, decision, {"costs": [math.nan, 0.0]}),
        (OutOfRangeError, decision, {"costs": [-1.0, 0.0]}),
        (AbsurdCostError, decision, {"costs": [1e30, 0.0]}),
        (UnknownDecisionError, foreign, {"costs": COSTS}),
        (OutcomeError, skipped, {"costs": COSTS}),
        (OutcomeError, skipped, {"reward": 1.0}),
    ]
    for error, which, given in wrong:
        with pytest.raises(error):
            learner.tell(which, **given)
        assert learner.state_hash() == before
    learner.tell(skipped, costs=[0.0, 0.0])
    learner.tell(decision, costs=COSTS)
    with pytest.raises(NotFiniteError):
        learner.tell(decision, 0.5, [math.nan, 0.0])


def test_a_decision_whose_costs_were_told_is_not_charged_again() -> None:
    """It may be forfeited, expire, be cancelled, and be told after all."""
    for end in ("forfeit", "expire", "cancel", "cancel with costs"):
        learner = started()
        decision = learner.ask()
        learner.tell(decision, costs=COSTS)
        if end == "forfeit":
            learner.forfeit(decision)
        elif end == "expire":
            learner.ask(open=[])
            assert learner.expire(0) == (decision,)
        else:
            learner.cancel(decision, COSTS if end == "cancel with costs" else None)
            learner.cancel(decision, COSTS if end == "cancel with costs" else None)
        assert learner.remaining.tolist() == [299.75, 299.5]
        assert learner.reserved.tolist() == [0.0, 0.0]
        assert counts(learner) == ([0, 0, 0], [0, 0, 0])
        if end in ("forfeit", "expire"):
            assert learner.forfeited == (decision,)
            learner.tell(decision, reward=0.5)
            assert learner.state.belief.observed[0] == 1
            assert learner.remaining.tolist() == [299.75, 299.5]
        else:
            assert learner.state.belief.observed[0] == 0  # the costs alone are not learnt
            with pytest.raises(AlreadyToldError):
                learner.tell(decision, reward=0.5)
    learner = started()
    decision = learner.ask()
    learner.tell(decision, costs=COSTS)
    with pytest.raises(AlreadyToldError):
        learner.cancel(decision, OTHER)


def test_costs_after_a_forfeit_give_back_the_difference() -> None:
    learner = started()
    decision = learner.ask()
    learner.forfeit(decision)
    assert learner.remaining.tolist() == [299.0, 299.0]
    learner.tell(decision, costs=COSTS)
    assert learner.remaining.tolist() == [299.75, 299.5]
    assert learner.forfeited == (decision,)
    learner.tell(decision, reward=0.5)
    assert learner.remaining.tolist() == [299.75, 299.5]
    assert not learner.forfeited


def test_a_forfeit_without_a_known_maximum_is_possible_once_the_costs_are_told() -> None:
    learner = started(safe=False, cost_max=None)
    decision = learner.ask()
    with pytest.raises(SettingError):
        learner.forfeit(decision)
    learner.tell(decision, costs=COSTS)
    learner.forfeit(decision)
    assert learner.forfeited == (decision,)


def test_costs_above_the_reservation_are_an_overrun_once() -> None:
    learner = started()
    decision = learner.ask()
    with pytest.warns(OverrunWarning, match="cost more than was reserved"):
        learner.tell(decision, costs=[1.5, 0.5])
    learner.tell(decision, reward=0.5)
    assert learner.overruns.decisions == 1
    assert learner.overruns.excess.tolist() == [0.5, 0.0]
    assert learner.remaining.tolist() == [298.5, 299.5]


def test_files_and_copies_keep_the_parts(tmp_path: Any) -> None:
    learner, twin = started(), started()
    for one in (learner, twin):
        a, b, c = one.ask(), one.ask(), one.ask()
        one.tell(a, costs=COSTS)
        one.tell(b, reward=0.5)
        one.forfeit(c)
        one.tell(c, costs=COSTS)
    learner.save(tmp_path / "learner")
    restored = ds.Learner.load(tmp_path / "learner")
    for copied in (restored, copy.deepcopy(learner)):
        assert copied.state_hash() == learner.state_hash()
        assert counts(copied) == counts(learner)
        assert copied.reserved.tolist() == learner.reserved.tolist() == [1.0, 1.0]
    a, b = restored.pending
    (c,) = restored.forfeited
    with pytest.raises(AlreadyToldError):
        restored.tell(a, costs=OTHER)
    for decision, part in ((a, {"reward": 0.25}), (b, {"costs": COSTS}), (c, {"reward": 0.75})):
        restored.tell(decision, **part)
    for decision, reward in zip((*twin.pending, *twin.forfeited), (0.25, 0.5, 0.75), strict=True):
        twin.tell(decision, reward, COSTS)
    assert restored.state_hash() == twin.state_hash()
    plain = started()
    plain.ask()
    assert not any(name.startswith("pending.costs") for name in learner_file._arrays(plain._snapshot()))


@pytest.mark.parametrize(
    ("reward", "costs"),
    [(0.5, [0.1, 0.1]), (math.inf, [math.nan] * 2), (math.nan, [0.1, math.nan]), (math.nan, [-1.0, 0.0])],
)
def test_impossible_parts_in_a_file_are_refused(reward: float, costs: list[float]) -> None:
    learner = started()
    learner.tell(learner.ask(), costs=COSTS)
    decision = learner.ask()
    awaited = desk_of(learner).awaited
    slot = learner._register.slots[decision.round]
    awaited.reward[slot], awaited.costs[slot] = reward, costs
    with pytest.raises(FileFormatError):
        ds.Learner.from_bytes(learner.to_bytes())


def test_batches() -> None:
    learner, twin = started(), started()
    ours, theirs = learner.ask_many(6), twin.ask_many(6)
    rewards, costs = np.linspace(0.0, 1.0, 6), np.full((6, 2), 0.25)
    learner.tell_many(ours, costs=costs)
    learner.tell_many(ours, costs=costs)
    assert learner.reserved.tolist() == [0.0, 0.0]
    before = learner.state_hash()
    with pytest.raises(AlreadyToldError):
        learner.tell_many(ours, rewards, costs + np.arange(6)[:, None] / 10)
    with pytest.raises(AlreadyToldError):
        learner.tell_many(ours, costs=costs + np.arange(6)[:, None] / 10)
    with pytest.raises(OutcomeError):
        learner.tell_many(ours)
    assert learner.state_hash() == before
    learner.tell_many(ours[:3], rewards=rewards[:3])
    learner.tell_many(ours[3:], rewards[3:], costs[3:])
    twin.tell_many(theirs, rewards, costs)
    assert learner.state_hash() == twin.state_hash()


def test_seasons_arms_and_bookmarks() -> None:
    """Costs of the last season are charged to its budgets, and what they leave rolls over once."""
    learner = started()
    a, b = learner.ask(), learner.ask()
    learner.tell(a, costs=COSTS)
    learner.renew([300.0, 300.0], rollover=0.5)
    assert counts(learner) == ([0, 0, 0], [0, 0, 0])
    learner.tell(b, costs=COSTS)
    assert learner.budget.tolist() == [300 + (300 - 0.5) / 2, 300 + (300 - 1) / 2]
    learner.tell(b, reward=0.5)
    learner.tell(a, reward=0.5)
    assert learner.budget.tolist() == [300 + (300 - 0.5) / 2, 300 + (300 - 1) / 2]
    assert learner.remaining.tolist() == learner.budget.tolist()
    decision = learner.ask(open=["b"])
    learner.add_arm("d")
    learner.tell(decision, costs=COSTS)
    other = learner.ask(open=["d"])
    assert counts(learner) == ([0, 1, 0, 1], [0, 0, 0, 1])
    mark, before = Bookmark(learner), learner.state_hash()
    learner.tell(decision, reward=1.0)
    learner.tell(other, costs=COSTS)
    mark.go_back()
    assert learner.state_hash() == before
    learner.tell(decision, reward=1.0)
    learner.tell(other, costs=COSTS)
    assert counts(learner) == ([0, 0, 0, 1], [0, 0, 0, 0])


def test_policies_pace_with_told_costs_as_with_settled_ones() -> None:
    """Expected costs are subtracted from the budget only for decisions that have not been charged."""
    learner = started(budget=[60.0, 60.0])
    for _ in range(100):
        decision = learner.ask()
        if not decision.skipped:
            learner.tell(decision, 0.5, [0.2, 0.2])
    pacer = learner.state.pacer
    held = [decision for decision in (learner.ask() for _ in range(40)) if not decision.skipped]
    terms_of(learner).delay[0] = 100.0
    learner.ask()
    assert pacer.committed.min() > 0.0
    waiting = len(held)
    for decision in held:
        learner.tell(decision, costs=[0.2, 0.2])
    learner.ask(open=[])
    assert len(learner.pending) >= waiting
    assert pacer.committed.max() < 0.1 * waiting * 0.2 / 0.12
