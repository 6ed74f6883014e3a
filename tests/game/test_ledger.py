"""Exact amounts: every sum and comparison of the ledger agrees with fractions."""

from __future__ import annotations

import copy
import itertools
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core import file_format
from driftsack.core.errors import OutOfRangeError, OverrunWarning
from driftsack.game import amounts
from driftsack.game.amounts import cost_units, grid_exponent, grid_factors, in_units_of_problem, whole_units
from driftsack.game.ledger import can_pay, charge, charge_or_stop, is_broken, open_ledger
from driftsack.policies.learner.file import LAYOUT
from tests.support.learner_parts import ledger_of

UNITS = [10.0**k for k in range(-12, 16)]


def exact(amount: float) -> Fraction:
    """The decimal number that a float is written as."""
    return Fraction(Decimal(repr(float(amount))))


def twin(amount: float, exponent: int) -> int:
    """The least number of grid units that is at least an amount."""
    return -int(-exact(amount) * Fraction(10) ** exponent // 1)


@pytest.mark.parametrize("unit", UNITS)
def test_costs_in_grid_units_are_those_of_fractions(unit: float) -> None:
    """Decimal numbers of up to 15 digits, neighbours of them, and arbitrary floats, up to 10^15 grid units."""
    rng = np.random.default_rng(int(np.log10(unit)) + 50)
    exponent = grid_exponent(1000 * unit, unit)
    fine, coarse = grid_factors(exponent)
    for _ in range(300):
        digits = int(rng.integers(1, 13))
        decimal = float(f"{rng.random() * unit:.{digits}g}")
        for amount in (decimal, np.nextafter(decimal, np.inf), np.nextafter(decimal, 0.0), rng.random() * 900 * unit):
            assert cost_units(float(amount), fine, coarse) == twin(float(amount), exponent)
            assert whole_units(float(amount), exponent, up=True) == twin(float(amount), exponent)


def test_a_plain_rounding_would_be_noticed() -> None:
    """The planted fault: round to the nearest grid number, as a tolerance would."""
    rng = np.random.default_rng(0)
    wrong = [x for x in rng.random(100) if round(x * 100) != twin(float(x), 2)]
    assert len(wrong) > 30


def test_amounts_survive_the_way_to_the_grid_and_back() -> None:
    for unit, k in itertools.product(UNITS, (1, 3, 7, 123456)):
        exponent = grid_exponent(1e6 * unit, unit)
        amount = float(f"{k * unit:.15g}")
        assert in_units_of_problem(whole_units(amount, exponent, up=False), exponent) == amount


def test_a_budget_is_planned_with_as_after_a_file() -> None:
    """Bit for bit; the quotient of the floats, which 0.7 / 0.1 shows, would differ in about a third of the cases."""
    rng, differing = np.random.default_rng(8), 0
    for _ in range(200):
        cost, rounds = float(rng.choice([0.1, 0.3, 0.07, 1e-6, 3e9])), int(rng.integers(1, 1_000))
        problem = ds.Problem(horizon=1_000, arms=2, budget=float(Decimal(repr(cost)) * rounds), cost_max=cost)
        started = ds.policies.UniformRandom().start(problem)
        read = ds.Learner.from_bytes(started.to_bytes())
        budgets = [ledger_of(learner).budget[0] for learner in (started, read)]
        assert budgets[0] == budgets[1]
        differing += budgets[0] != problem.unit_budget[0]
    assert differing > 20


def test_the_grid_has_limits() -> None:
    assert grid_exponent(0.0, 1e-30) == 22
    assert grid_exponent(1e39, 1.0) == -21
    with pytest.raises(OutOfRangeError, match="use a larger unit"):
        grid_exponent(1e45, 1.0)
    with pytest.raises(OutOfRangeError, match="the ledger of this budget holds amounts up to 8e"):
        whole_units(1e10, 12, up=True)


def spend_all(learner: ds.Learner, cost: float) -> list[float]:
    """Spend a cost in each round until the horizon; return what was spent."""
    paid = []
    while not learner.done:
        decision = learner.ask()
        if not decision.skipped:
            learner.tell(decision, 0.5, [cost])
            paid.append(cost)
    return paid


@pytest.mark.parametrize("unit", UNITS)
def test_safe_learners_never_overspend_and_use_what_they_may(unit: float) -> None:
    """Compared with fractions: the last round that fits begins, and no further one."""
    for budget, cost_max in ((7.0, 1.0), (1.0, 0.1), (0.3, 0.1), (1.1, 0.3), (1.0, 1.0 / 3.0), (5.05, 0.01)):
        total, most = float(f"{budget * unit:.15g}"), float(f"{cost_max * unit:.15g}")
        problem = ds.Problem(horizon=600, arms=1, budget=[total], cost_max=[most])
        learner = ds.policies.AlwaysArm(0).start(problem, safe=True)
        rounds = len(spend_all(learner, most))
        assert rounds * exact(most) <= exact(total)
        exponent = grid_exponent(total, most)
        units, granted = twin(most, exponent), int(exact(total) * Fraction(10) ** exponent // 1)
        assert rounds == min(granted // units, 600)
        assert learner.remaining[0] == in_units_of_problem(granted - rounds * units, exponent)
        if exact(most) * Fraction(10) ** exponent != units:  # a cost that is rounded down or to nearest is noticed
            assert learner.remaining[0] != in_units_of_problem(granted - rounds * (units - 1), exponent)


def test_cases_that_a_tolerance_got_wrong() -> None:
    """A budget of 1e-5 was overspent by a tenth at costs of 1e-8, and one of 1e15 by 500."""
    for budget, cost_max in ((1e-5, 1e-8), (1e15, 500.0), (1e15 + 1.0, 1e12)):
        problem = ds.Problem(horizon=1_200, arms=1, budget=[budget], cost_max=[cost_max])
        learner = ds.policies.AlwaysArm(0).start(problem, safe=True)
        spent = len(spend_all(learner, cost_max)) * exact(cost_max)
        assert spent <= exact(budget)
        assert exact(learner.remaining[0]) == exact(budget) - spent


def test_random_costs_are_summed_exactly() -> None:
    """Costs of many magnitudes on the grid: spending equals the fraction, whatever the order."""
    rng = np.random.default_rng(5)
    problem = ds.Problem(horizon=5_000, arms=1, budget=[10_000.0], cost_max=[10.0])
    learner = ds.policies.AlwaysArm(0).start(problem)
    costs = [float(f"{10.0 ** rng.uniform(-9, 1):.3g}") for _ in range(2_000)]
    for cost in costs:
        learner.tell(learner.ask(), 0.5, cost)
    assert exact(learner.remaining[0]) == exact(10_000.0) - sum(map(exact, costs))
    assert np.cumsum(costs)[-1] != float(sum(map(exact, costs)))  # a plain sum is inexact


def test_spending_a_budget_exactly_does_not_exceed_it() -> None:
    ledger = open_ledger(ds.Problem(horizon=9, arms=1, budget=[0.3, 10.0]))
    for _ in range(3):
        charge(ledger, np.array([0.1, 0.1]))  # 0.1 + 0.1 + 0.1 > 0.3 in floating point
    assert not is_broken(ledger)
    overshoot = np.zeros(2)
    assert not charge_or_stop(ledger, np.array([1e-12, 0.0]), overshoot)
    assert overshoot[0] == pytest.approx(1e-12, rel=1e-9)
    assert ledger.spent[0] == 0.3  # a round that would break a budget is not charged
    charge(ledger, np.array([1e-12, 0.0]))
    assert is_broken(ledger)


def test_budgets_pay_for_whole_rounds() -> None:
    ledger = open_ledger(ds.Problem(horizon=9, arms=1, budget=[2.5, 9.0]))
    assert [can_pay(ledger, rounds) for rounds in range(4)] == [True, True, True, False]
    charge(ledger, np.array([0.5, 0.0]))
    assert [can_pay(ledger, rounds) for rounds in range(4)] == [True, True, True, False]
    charge(ledger, np.array([0.1, 0.0]))
    assert [can_pay(ledger, rounds) for rounds in range(4)] == [True, True, False, False]


def test_costs_above_the_maximum_are_charged_in_full_learnt_and_counted() -> None:
    problem = ds.Problem(horizon=50, arms=["a"], budget={"usd": 10.0}, cost_max={"usd": 0.5})
    learner = ds.Adaptive().start(problem, safe=True)
    first, second = learner.ask(), learner.ask()
    with pytest.warns(OverrunWarning, match="cost more than was reserved for it \\(usd 3.25\\)"):
        learner.tell(first, 0.5, {"usd": 3.25})
    with pytest.warns(
        OverrunWarning, match=r"round 2 had a reward of 7, .* reward_max = 1. It is learnt as 7;"
    ) as seen:
        learner.tell(second, 7.0, {"usd": 0.75})
    assert len(seen) == 1  # only the first cost warns
    assert learner.remaining.tolist() == [6.0]
    assert learner.overruns.excess.tolist() == [3.0]
    assert (learner.overruns.decisions, learner.overruns.rewards) == (2, 1)
    belief = learner.state.belief
    assert (belief.top[1, :2] * belief.unit[0]).tolist() == pytest.approx([6.5, 1.5])  # times cost_max
    assert belief.largest[1] * belief.unit[0] == pytest.approx(6.0)  # at most four times the second largest


def told(learner: ds.Learner, reward: float, costs: Any, batch: bool) -> None:
    """Ask for a decision, or for a batch of two of which the second is as usual, and tell the outcome."""
    if not batch:
        learner.tell(learner.ask(), reward, costs)
        return
    learner.tell_many(learner.ask_many(2), [reward, 0.5], [costs, [0.25] * len(costs)])


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(("reward", "learnt"), [(-0.5, 0.0), (7.0, 2.0)])
def test_the_first_reward_out_of_range_warns(reward: float, learnt: float, batch: bool) -> None:
    """Those within range, or beyond it by a rounding error, do not."""
    problem = ds.Problem(horizon=50, arms=1, budget=[40.0], cost_max=1.0, reward_max=2.0)
    learner = ds.NaiveUCB(scale=0.1).start(problem)
    for usual in (0.0, 2.0, 2.0 * (1.0 + 1e-15), -1e-15):
        told(learner, usual, [0.5], batch)
    counted = learner.overruns.rewards
    words = rf"had a reward of {reward:g}, which is not between 0 and reward_max = 2. It is learnt as {learnt:g};"
    with pytest.warns(OverrunWarning, match=words) as seen:
        told(learner, reward, [0.5], batch)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    told(learner, reward, [0.5], batch)  # warnings are errors here: the second gives none
    assert (learner.overruns.rewards, learner.overruns.costs) == (counted + 2, 0)
    cancelled = ds.NaiveUCB(scale=0.1).start(problem)
    cancelled.cancel(cancelled.ask(), [0.5])  # has no reward
    with pytest.warns(OverrunWarning, match="round 2 cost more than was reserved"):
        cancelled.tell(cancelled.ask(), 1.0, [3.0])
    with pytest.warns(OverrunWarning, match="had a reward of"):  # each kind warns for itself
        cancelled.tell(cancelled.ask(), reward, [3.0])


@pytest.mark.parametrize("batch", [False, True])
def test_a_cost_that_a_policy_cannot_learn_warns_and_is_counted(batch: bool) -> None:
    """Without ``cost_max``, a policy that needs costs in [0, 1] would take every call of 30 seconds for one of 1."""
    problem = ds.Problem(horizon=100, arms=2, budget={"usd": 20.0, "seconds": 3000.0})
    learner = ds.NaiveUCB(scale=0.1).start(problem, seed=0)
    told(learner, 0.5, [0.02, 1.0], batch)
    words = "cost usd 0.(02|25), seconds 30, but NaiveUCB learns costs of up to usd 1, seconds 1 .* Set cost_max"
    with pytest.warns(OverrunWarning, match=words) as seen:
        told(learner, 0.5, [0.02, 30.0], batch)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    told(learner, 0.5, [0.02, 35.0], batch)
    assert (learner.overruns.decisions, learner.overruns.costs) == (0, 2)
    spent = 66.0 + (0.75 if batch else 0.0)
    assert learner.remaining[1] == 3000.0 - spent  # charged in full
    for other in (ds.Learner.from_bytes(learner.to_bytes()), copy.deepcopy(learner)):
        assert other.overruns.costs == 2
        assert other.state_hash() == learner.state_hash()
    nothing = ds.policies.UniformRandom().start(problem)  # learns nothing, so that nothing is clipped
    told(nothing, 0.5, [0.02, 30.0], batch)
    assert nothing.overruns.costs == 0
    for policy, maxima in ((ds.Adaptive(), None), (ds.NaiveUCB(scale=0.1), {"usd": 1.0, "seconds": 40.0})):
        fine = policy.start(ds.Problem(100, 2, {"usd": 20.0, "seconds": 3000.0}, cost_max=maxima))
        told(fine, 0.5, [0.02, 30.0], batch)
        assert fine.overruns.costs == 0
        assert "overruns.costs" not in read_arrays(fine)  # as in files of earlier releases
    assert "overruns.costs" in read_arrays(learner)


def read_arrays(learner: ds.Learner) -> dict[str, Any]:
    """The arrays of a learner's file."""
    return file_format.decode(learner.to_bytes(), "learner", LAYOUT, "a learner")[1]


def test_a_cost_of_a_log_that_a_policy_cannot_learn_warns_and_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("time,arm,reward,cost_seconds\n0,a,1,30\n1,b,0,0.5\n2,b,1,2\n")
    log = ds.logs.read(path, resources=["cost_seconds"])
    problem = ds.Problem(horizon=100, arms=["a", "b"], budget={"cost_seconds": 3000.0})
    with pytest.warns(OverrunWarning, match="2 rounds of the log cost up to cost_seconds 30, but NaiveUCB learns"):
        learner = ds.NaiveUCB(scale=0.1).start(problem, log=log)
    assert learner.overruns.costs == 2
    assert ds.Adaptive().start(problem, log=log).overruns.costs == 0


def test_costs_without_a_maximum() -> None:
    problem = ds.Problem(horizon=50, arms=2, budget={"usd": 10.0, "seconds": 900.0})
    learner = ds.Adaptive().start(problem)
    decision, lost = learner.ask(), learner.ask()
    learner.tell(decision, 0.5, {"usd": 0.02, "seconds": 35.0})
    assert learner.overruns.decisions == 0
    assert learner.remaining.tolist() == [9.98, 865.0]
    with pytest.raises(ds.errors.SettingError, match="forfeit charges the maximum cost of an arm, which is not known"):
        learner.forfeit(lost)
    careful = ds.Adaptive().start(problem, safe=True)
    for caps in (None, {"usd": 0.5}):
        with pytest.raises(ds.errors.SettingError, match="safe=True reserves the maximum cost of a request"):
            careful.ask(caps=caps)
    assert careful.round == 0
    decision = careful.ask(caps={"usd": 0.5, "seconds": 20.0})
    assert careful.reserved.tolist() == [0.5, 20.0]


def test_the_sum_of_a_ledger_cannot_overflow() -> None:
    problem = ds.Problem(horizon=50, arms=1, budget=[1.0], cost_max=[1.0], refuse_above=[1e9])
    learner = ds.policies.AlwaysArm(0).start(problem)
    most: Any = amounts.MOST_UNITS / 10.0 ** grid_exponent(1.0, 1.0)
    decision = learner.ask()
    before = learner.state_hash()
    with pytest.raises(OutOfRangeError, match="amounts that the ledger can hold"):
        learner.tell(decision, 0.5, 1.01 * most)
    assert learner.state_hash() == before
    learner.grant(0.999 * most)
    with pytest.raises(OutOfRangeError, match="budgets may grow up to"):
        learner.grant(0.999 * most)
