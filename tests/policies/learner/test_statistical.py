"""``safe="statistical"``, blocked rounds, and spending outside the learner."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import BudgetExhaustedError, FileFormatError, NamesError, OutOfRangeError, SettingError
from driftsack.game.expected_costs import LARGEST, expected_costs, insert, note_costs, scale
from driftsack.numerics.compiled import source
from driftsack.policies.learner import file as learner_file
from tests.support.learner_parts import engine_of, ledger_of, terms_of

PROBLEM = ds.Problem(
    horizon=10_000, arms=["a", "b"], budget={"usd": 100.0, "s": 5_000.0}, cost_max={"usd": 1.0, "s": 10.0}
)
STATISTICAL: Any = "statistical"


def started(safe: Any = STATISTICAL, problem: ds.Problem = PROBLEM) -> ds.Learner:
    return ds.Adaptive().start(problem, seed=2, safe=safe)


def told(learner: ds.Learner, rounds: int, costs: Any = (0.01, 0.5), arm: str = "a") -> None:
    for _ in range(rounds):
        decision = learner.ask(open=[arm])
        if not decision.skipped:
            learner.tell(decision, 0.5, list(costs))


def waiting(learner: ds.Learner, count: int, arm: str = "a") -> list[ds.Decision]:
    """Exactly ``count`` decisions for an arm that are not skipped."""
    found: list[ds.Decision] = []
    while len(found) < count:
        decision = learner.ask(open=[arm])
        if not decision.skipped:
            found.append(decision)
    return found


def check_sums(learner: ds.Learner) -> None:
    """The maximum costs by arm are those that the ledger holds, and never less than what is reserved."""
    engine = engine_of(learner)
    assert engine.terms.costs.owed.sum(axis=1).tolist() == engine.ledger.reserved.tolist()
    assert (engine.held() <= engine.ledger.reserved).all()
    assert (engine.held() >= 0).all()


def test_pending_decisions_reserve_their_expected_costs_and_a_margin() -> None:
    learner, hard = started(), started(safe=True)
    for one in (learner, hard):
        told(one, 400)
    ours, theirs = waiting(learner, 20), waiting(hard, 20)
    assert [d.reserved.tolist() for d in ours] == [d.reserved.tolist() for d in theirs] == [[1.0, 10.0]] * 20
    assert hard.reserved.tolist() == [20.0, 200.0]
    assert 20 * 0.01 <= learner.reserved[0] <= 20 * 0.02
    assert 20 * 0.5 <= learner.reserved[1] <= 20 * 1.0
    check_sums(learner)
    learner.tell(ours[0], costs=[0.01, 0.5])
    learner.forfeit(ours[1])
    learner.cancel(ours[2])
    check_sums(learner)
    assert terms_of(learner).unpaid.tolist() == [17.0, 0.0]


def test_a_lost_decision_is_charged_the_mean_cost_of_its_arm() -> None:
    """The first one, of an arm without outcomes, its maximum; bills that arrive after all are no overruns."""
    learner, hard = started(), started(safe=True)
    lost = waiting(learner, 1)
    learner.forfeit(lost[0])
    assert learner.remaining.tolist() == [100.0 - 1.0, learner.budget[1] - 10.0]
    learner.tell(lost[0], 1.0, [0.01, 0.5])
    for one in (learner, hard):
        told(one, 400)
        before, decision = one.remaining, waiting(one, 1)[0]
        one.forfeit(decision)
        charged = before - one.remaining
        if one is hard:
            np.testing.assert_allclose(charged, [1.0, 10.0])
        else:
            assert 0.01 <= charged[0] <= 0.011
            assert 0.5 <= charged[1] <= 0.55
        one.tell(decision, 1.0, [0.02, 0.7])
        np.testing.assert_allclose(before - one.remaining, [0.02, 0.7])
        assert one.overruns.decisions == 0
        check_sums(one)


def test_without_observations_the_maximum_costs_are_reserved() -> None:
    learner = started()
    learner.ask(open=["a"])
    assert learner.reserved.tolist() == [1.0, 10.0]
    told(learner, 100)
    before = learner.reserved
    learner.ask(open=["b"])
    assert (learner.reserved - before)[0] == pytest.approx(1.0, rel=0.1)


def test_one_absurd_bill_reserves_little() -> None:
    learner = started()
    told(learner, 200)
    waiting(learner, 20)
    before = learner.reserved[0]
    told(learner, 1, costs=(1.0, 0.5))
    assert learner.remaining[0] == pytest.approx(100.0 - 2.0 - 1.0)
    assert learner.reserved[0] < 2.0 * before
    told(learner, 100, costs=(1.0, 0.5))  # but a rise is followed
    assert learner.reserved[0] > 5.0


def test_rare_costs_are_remembered() -> None:
    """A cost of 1 in every hundredth round, between which the short average forgets it."""
    learner = started()
    for _ in range(5):
        told(learner, 1, costs=(1.0, 0.0))
        told(learner, 99, costs=(0.0, 0.0))
    waiting(learner, 30)
    assert learner.reserved[0] > 30 * 0.01 + 2.0 * np.sqrt(30 * 0.01)


def test_the_margin_is_not_planned() -> None:
    learner = started()
    rng = np.random.default_rng(0)
    for _ in range(300):
        told(learner, 1, costs=(float(rng.random() < 0.02), 0.5))
    waiting(learner, 30)
    learner.ask(open=[])
    terms = terms_of(learner)
    total, margin = source(expected_costs)(terms.costs, ledger_of(learner), terms.unpaid, 0)
    assert terms.costs.margin[0] == pytest.approx(margin)
    assert margin > 1.0
    assert learner.reserved[0] == pytest.approx(total + margin)
    pacer = learner.state.pacer
    ledger = ledger_of(learner)
    left = ledger.budget - ledger.spent - pacer.committed * pacer.unit - terms.costs.margin
    rounds = learner.rounds_left + 1
    assert pacer.pace == pytest.approx(np.maximum(left, 0.0) / rounds / pacer.unit, rel=1e-6)


def test_files_copies_seasons_and_new_arms_keep_the_costs() -> None:
    learner = started()
    told(learner, 50)
    waiting(learner, 5)
    restored = ds.Learner.from_bytes(learner.to_bytes())
    for one in (restored, copy.deepcopy(learner)):
        assert one.safe == "statistical"
        assert one.state_hash() == learner.state_hash()
        assert one.reserved.tolist() == learner.reserved.tolist()
        check_sums(one)
    for one in (learner, restored):
        told(one, 20)
        one.add_arm("c")
        waiting(one, 2, "c")
        check_sums(one)
        assert one.reserved[0] > 2.0
        one.renew()
        assert one.reserved.tolist() == [0.0, 0.0]
        check_sums(one)
        for decision in one.pending:
            one.tell(decision, 0.5, [0.01, 0.5])
        waiting(one, 5)
        check_sums(one)
        assert one.reserved[0] < 1.0
    assert restored.state_hash() == learner.state_hash()
    assert not any(name.startswith("costs.") for name in learner_file._arrays(started(safe=True)._snapshot()))


@pytest.mark.parametrize(("name", "value"), [("means", -1.0), ("squares", np.nan), ("top", np.inf), ("seen", -1.0)])
def test_impossible_costs_in_a_file_are_refused(name: str, value: float) -> None:
    learner = started()
    told(learner, 3)
    getattr(terms_of(learner).costs, name)[..., 0] = value
    with pytest.raises(FileFormatError):
        ds.Learner.from_bytes(learner.to_bytes())


def test_a_log_teaches_costs() -> None:
    learner = started()
    log = ds.Adaptive().start(PROBLEM, seed=0)

    class Log:
        arms, resources = PROBLEM.arm_names, PROBLEM.resource_names
        arm, reward = np.zeros(100, dtype=np.int32), np.full(100, 0.5)
        costs, propensity = np.tile([0.01, 0.5], (100, 1)), None

    learner.teach(Log())
    waiting(learner, 10)
    assert learner.reserved[0] < 0.5
    assert log.safe is False


@pytest.mark.parametrize("wrong", ["hard", 1, None, "Statistical"])
def test_other_modes_are_refused(wrong: Any) -> None:
    with pytest.raises(SettingError, match='safe must be True, False or "statistical", got'):
        started(safe=wrong)


def test_a_learner_that_is_not_statistical_keeps_no_costs() -> None:
    learner = started(safe=True)
    told(learner, 5)
    assert learner.safe is True
    assert not terms_of(learner).costs.seen.any()


def test_the_scale_ignores_single_outliers() -> None:
    top = np.zeros(4)
    for cost in (0.001, 1.0, 0.002, 0.0, 0.001, 0.002):
        insert(top, cost)
    assert top.tolist() == [1.0, 0.002, 0.002, 0.001]
    assert scale(top) == pytest.approx(0.008)
    assert scale(np.array([3.0, 0.0, 0.0, 0.0])) == 3.0
    learner = started()
    note_costs(terms_of(learner).costs, 0, np.array([1e300, 0.0]), np.ones(2))
    assert terms_of(learner).costs.top[0, 0, 0] == LARGEST


# Blocked rounds


def test_blocked_rounds_are_counted() -> None:
    problem = ds.Problem(horizon=1_000, arms=2, budget=[5.0], cost_max=1.0)
    learner = started(safe=True, problem=problem)
    held = waiting_any(learner, 5)
    assert learner.blocked == 0
    assert all(learner.ask().skipped for _ in range(3))
    assert learner.blocked == 3
    assert learner.ask(open=[]).skipped  # closed by the request
    assert learner.blocked == 3
    assert ds.Learner.from_bytes(learner.to_bytes()).blocked == 3
    for decision in held:
        learner.tell(decision, costs=1.0)
    assert all(learner.ask().skipped for _ in range(3))  # the money is gone
    assert learner.blocked == 3


def waiting_any(learner: ds.Learner, count: int) -> list[ds.Decision]:
    found: list[ds.Decision] = []
    while len(found) < count:
        decision = learner.ask()
        if not decision.skipped:
            found.append(decision)
    return found


# Spending outside


def test_charges_are_exact_and_counted_where_they_exceed_what_is_free() -> None:
    learner = started(safe=True)
    learner.charge(usd=0.1)
    learner.charge({"usd": 0.2})
    assert learner.remaining.tolist() == [99.7, 5_000.0]
    assert learner.overruns.outside.tolist() == [0.0, 0.0]
    decision = learner.ask(open=["a"])
    assert not decision.skipped
    rate = terms_of(learner).rate[0]
    learner.charge([99.0, 0.0])  # 98.7 are free
    assert terms_of(learner).rate[0] < rate
    assert learner.overruns.outside.tolist() == [0.3, 0.0]
    assert learner.remaining[0] == 0.7
    assert ds.Learner.from_bytes(learner.to_bytes()).overruns.outside.tolist() == [0.3, 0.0]
    learner.charge(usd=1.0)
    with pytest.raises(BudgetExhaustedError):
        learner.ask()
    assert learner.overruns.decisions == 0


def test_wrong_charges_change_nothing() -> None:
    learner = started()
    before = learner.state_hash()
    with pytest.raises(NamesError, match="charge needs amounts of"):
        learner.charge(eur=1.0)
    with pytest.raises(OutOfRangeError, match="use grant for a refund"):
        learner.charge(usd=-1.0)
    with pytest.raises(OutOfRangeError):
        learner.charge(usd=1e30)
    assert learner.state_hash() == before
