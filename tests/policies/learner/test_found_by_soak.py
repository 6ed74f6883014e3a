"""Defects found by random sequences of operations, or while these were written, each as a small test."""

from __future__ import annotations

from datetime import timedelta

import pytest

import driftsack as ds
from driftsack.core.errors import BudgetExhaustedError, HorizonReachedError, OutOfRangeError, SettingError
from driftsack.policies import AlwaysArm, UniformRandom
from tests.support.learner_parts import engine_of


def test_decisions_stay_in_their_slots_when_the_desk_grows() -> None:
    """After decisions were settled between others, a large batch and a new arm need larger tables."""
    problem = ds.Problem(horizon=1_000, arms=2, budget=[900.0], cost_max=[[1.0, 0.5]])
    learner = UniformRandom().start(problem, seed=3)
    first = [learner.ask() for _ in range(12)]
    for decision in first[:9:2]:
        learner.tell(decision, 0.5, [0.25])
    learner.ask_many(40)
    learner.add_arm("more")
    for decision in first[1:9:2]:
        before = learner.reserved[0]
        learner.tell(decision, 0.5, [0.25])
        assert before - learner.reserved[0] == decision.reserved[0]
    assert learner.remaining.tolist() == [900.0 - 9 * 0.25]


def test_the_share_that_rolls_over_is_the_decimal_number_that_was_written() -> None:
    learner = UniformRandom().start(ds.Problem(horizon=10, arms=2, budget=[10.0], cost_max=1.0))
    learner.renew(budget=[200.0], rollover=0.3)
    assert learner.budget.tolist() == [203.0]


def test_a_request_that_is_refused_is_no_arrival() -> None:
    ended = UniformRandom().start(ds.Problem(horizon=1, arms=2, budget=[10.0], cost_max=1.0))
    ended.ask(at=5.0)
    spent = AlwaysArm(0).start(ds.Problem(arms=2, budget=[0.5], cost_max=1.0, period=timedelta(days=1)))
    spent.tell(spent.ask(at=5.0), 0.0, [1.0])
    for learner, error in ((ended, HorizonReachedError), (spent, BudgetExhaustedError)):
        before = learner.state_hash()
        with pytest.raises(error):
            learner.ask(at=60.0)
        assert learner.state_hash() == before


def test_a_season_that_cannot_begin_changes_nothing() -> None:
    timed = UniformRandom().start(ds.Problem(arms=2, budget=[50.0], cost_max=1.0, period=timedelta(days=1)))
    timed.ask(at=1_000.0)
    timed.ask(at=5_000.0)
    rich = UniformRandom().start(ds.Problem(horizon=10, arms=2, budget=[1.0], cost_max=1.0))
    rich.grant([5e6])
    before = [learner.state_hash() for learner in (timed, rich)]
    with pytest.raises(OutOfRangeError, match="latest request"):
        timed.renew(at=2_000.0)
    with pytest.raises(OutOfRangeError, match="budgets may grow"):
        rich.renew(budget=[5e6], rollover=1.0)
    assert [learner.state_hash() for learner in (timed, rich)] == before


def test_expire_forfeits_all_or_none() -> None:
    learner = UniformRandom().start(ds.Problem(horizon=10, arms=2, budget=[10.0]))
    learner.ask(caps=[1.0])
    learner.ask()
    learner.ask()
    before = learner.state_hash()
    with pytest.raises(SettingError, match="not known"):
        learner.expire(0)
    assert learner.state_hash() == before


def test_reservations_do_not_overflow() -> None:
    """Each cap is almost all that a ledger can hold; the second one would make the sum negative."""
    learner = UniformRandom().start(ds.Problem(horizon=10, arms=2, budget=[10.0]))
    most = [7e4]  # in units of 1e-14
    first, second = learner.ask(caps=most), learner.ask(caps=most)
    assert not first.skipped
    assert second.skipped
    assert learner.reserved.tolist() == most
    with pytest.raises(OutOfRangeError, match="other units"):
        learner.tell(first, 0.0, [9e4])
    learner.forfeit(first)
    assert learner.remaining.tolist() == [10.0 - 7e4]
    learner.tell(first, 0.0, [4.0])
    assert learner.remaining.tolist() == [6.0]


def test_a_restored_learner_accepts_decisions_from_before_an_arm_was_added() -> None:
    learner = UniformRandom().start(ds.Problem(horizon=10, arms=2, budget=[10.0], cost_max=1.0))
    decision = learner.ask()
    learner.add_arm("more")
    restored = ds.Learner.from_bytes(learner.to_bytes())
    restored.tell(decision, 0.5, [0.25])
    assert restored.remaining.tolist() == [9.75]


def test_a_batch_of_the_last_season_is_told_at_once() -> None:
    """The seasons that wait for an outcome are looked for once in a batch, not once for each decision."""
    learner = UniformRandom().start(ds.Problem(horizon=500, arms=2, budget=[100.0], cost_max=1.0))
    decisions = learner.ask_many(50)
    learner.renew(rollover=0.5)
    searches = 0
    drop = engine_of(learner)._drop_past

    def counted() -> None:
        nonlocal searches
        searches += 1
        drop()

    engine_of(learner)._drop_past = counted  # type: ignore[method-assign]
    learner.tell_many(decisions, [0.5] * 50, [[0.5]] * 50)
    assert searches == 1
    assert learner.budget.tolist() == [100.0 + 25.0 + 12.5]
    assert not engine_of(learner).past
