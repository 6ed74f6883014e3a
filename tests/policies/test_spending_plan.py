"""A spending plan: its rates and skips against a twin, what its base observes, and the value of the right curve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.errors import DriftsackError, NotFiniteError, OutOfRangeError, SettingError, ShapeError
from driftsack.game.state_tree import programs
from driftsack.lp import certificate
from driftsack.policies import from_spec
from driftsack.policies.parts.pacing import BudgetRule
from tests.support import naive
from tests.support.delayed_feedback import Feedback, give_feedback

PROBLEM = ds.Problem(horizon=240, arms=3, budget=[40.0, 90.0], cost_max=[1.0, 2.0])
ONE = (0.0, 0.1, 0.7, 1.0)
EACH = ((0.0, 0.6, 0.6, 0.8), (0.0, 0.05, 0.5, 1.0))
FAST = ds.NaiveUCB(scale=0.02)
BASES: list[ds.Policy] = [
    FAST,
    ds.policies.LagrangeBwK(benchmark=60.0),
    ds.policies.UniformRandom(),
    ds.policies.DualDescent(),
]
KINDS = [type(base).__name__ for base in BASES]


def share(curve: Any, resource: int, rounds: float) -> float:
    """P_j after a number of rounds, by linear interpolation between evenly spaced points."""
    points = np.atleast_2d(np.asarray(curve))
    row = points[resource if len(points) > 1 else 0]
    return float(np.interp(rounds, np.linspace(0, PROBLEM.horizon, len(row)), row))


def rates(curve: Any, rule: BudgetRule, t: int, spent: Floats) -> Floats:
    """The rate of each resource in round t (from 1), normalised."""
    rate = np.zeros(2)
    for j in range(2):
        step = share(curve, j, t) - share(curve, j, t - 1)
        end = share(curve, j, PROBLEM.horizon)
        if rule == "fixed":
            rate[j] = PROBLEM.unit_budget[j] * step
        elif end > share(curve, j, t - 1):
            left = max(PROBLEM.unit_budget[j] * end - spent[j], 0.0)
            rate[j] = left / (end - share(curve, j, t - 1)) * step
    return rate


def disagreement(plan: ds.SpendingPlan, curve: Any, rule: BudgetRule, slack: float) -> tuple[float, int]:
    """Ask, and tell late; return the largest disagreement with the twin, and the number of rounds held back."""
    learner, rng = plan.start(PROBLEM, seed=0), np.random.default_rng(3)
    lp = next(programs(learner.state), None)
    known: list[Feedback] = []
    worst, held_back = 0.0, 0
    while not learner.done:
        t, spent = learner.round + 1, sum((one.costs for one in known), np.zeros(2)) / [1.0, 2.0]
        rate = rates(curve, rule, t, spent)
        ahead = any(spent[j] > PROBLEM.unit_budget[j] * (share(curve, j, t) + slack) for j in range(2))
        decision = learner.ask()
        worst = max(worst, np.abs(learner.state.rate - rate).max())
        held_back += ahead
        worst = max(worst, float(ahead and not decision.skipped), decision.mix.max() if ahead else 0.0)
        if isinstance(plan.base, ds.policies.UniformRandom):  # it never skips by itself
            worst = max(worst, float(decision.skipped != ahead))
        if lp is not None and not ahead:
            data = lp.objective[:3], lp.columns[:-1, :3]
            proof = certificate(*data, np.minimum(rate, 2.0), decision.mix, decision.prices * [1.0, 2.0])
            worst = max(worst, *map(abs, proof))
        known += give_feedback(learner, rng)
    assert len(known) > 40
    return worst, held_back


@pytest.mark.parametrize("rule", ["fixed", "remaining"])
@pytest.mark.parametrize("curve", [ONE, EACH, (0.0, 1.0), (0.0, 0.0, 0.9)], ids=["one", "each", "even", "late"])
@pytest.mark.parametrize("base", BASES, ids=KINDS)
def test_equals_the_twin(base: ds.Policy, curve: Any, rule: BudgetRule) -> None:
    """Rates for both rules, skips exactly where spending is ahead, and the base's LP at the round's rate."""
    worst, held_back = disagreement(ds.SpendingPlan(base, curve, rule, slack=0.02), curve, rule, 0.02)
    assert worst < 1e-9
    assert held_back > 3


def test_the_twin_detects_planted_faults() -> None:
    """Another curve, the curves of the resources swapped, the other rule, another slack."""
    plan = ds.SpendingPlan(FAST, EACH, "remaining", slack=0.02)
    assert disagreement(plan, EACH[::-1], "remaining", 0.02)[0] > 1e-2
    assert disagreement(plan, ((0.0, 0.6, 0.61, 0.8), EACH[1]), "remaining", 0.02)[0] > 1e-3
    assert disagreement(plan, EACH, "fixed", 0.02)[0] > 1e-2
    uniform = ds.SpendingPlan(ds.policies.UniformRandom(), EACH, "fixed", slack=0.02)
    assert disagreement(uniform, EACH, "fixed", 0.03)[0] == 1.0


def furthest_ahead(policy: ds.Policy, curve: Any, slack: float) -> tuple[float, int]:
    """The furthest that spending was ahead of the curve plus slack, with immediate feedback, in units of cost_max."""
    learner, rng = policy.start(PROBLEM, seed=1), np.random.default_rng(2)
    most = -np.inf
    while not learner.done:
        decision = learner.ask()
        if not decision.skipped:
            learner.tell(decision, rng.random(), rng.random(2) * [1.0, 2.0])
        spent = PROBLEM.unit_budget - learner.remaining / [1.0, 2.0]
        for j in range(2):
            most = max(most, spent[j] - PROBLEM.unit_budget[j] * (share(curve, j, decision.round) + slack))
    return most, learner.round


@pytest.mark.parametrize("slack", [0.0, 0.01, 0.1])
@pytest.mark.parametrize("base", BASES, ids=KINDS)
def test_spending_is_never_ahead_by_more_than_slack_and_one_round(base: ds.Policy, slack: float) -> None:
    """Without the plan (the planted fault) it is far ahead."""
    for rule in ("fixed", "remaining"):
        ahead, rounds = furthest_ahead(ds.SpendingPlan(base, EACH, rule, slack), EACH, slack)
        assert ahead <= 1.0 + 1e-9
        assert rounds == PROBLEM.horizon  # the curve prevents both budgets from being exceeded early
    assert furthest_ahead(base, EACH, slack)[0] > 3.0


@pytest.mark.parametrize(
    "base", [ds.SlidingWindowUCB(windows=(20, 30), scale=0.02), ds.SlidingWindowUCB(windows=(5, 5))]
)
def test_rounds_held_back_advance_the_windows_of_the_base(base: ds.SlidingWindowUCB) -> None:
    """Before every round the base's bounds are those of its last w rounds, held back or not."""
    plan = ds.SpendingPlan(base, (0.0, 0.3, 0.3, 1.0), "fixed", slack=0.0)
    learner, rng = plan.start(PROBLEM, seed=0), np.random.default_rng(0)
    lp = next(programs(learner.state))
    history: list[naive.Round] = []
    worst, skips = 0.0, 0
    windows = base.window_lengths(PROBLEM)
    while not learner.done:
        upper, lower = naive.bounds(history, 3, 2, PROBLEM.horizon, windows, base.scale)
        decision = learner.ask()
        worst = max(worst, np.abs(lp.objective[:3] - upper).max(), np.abs(lp.columns[:-1, :3] - lower).max())
        skips += decision.skipped
        reward, costs = rng.random(), 0.7 * rng.random(2)
        if decision.skipped:
            history.append(naive.Round(ds.SKIP, 0.0, np.zeros(2)))
            continue
        learner.tell(decision, reward, costs * [1.0, 2.0])
        history.append(naive.Round(decision.arm, reward, costs))
    assert skips > 80
    assert worst < 1e-9


def test_rounds_held_back_lower_the_prices_of_the_base() -> None:
    """DualDescent's prices fall by the step times the round's rate in a round that is held back."""
    problem = ds.Problem(horizon=100, arms=2, budget=[50.0])
    learner = ds.SpendingPlan(ds.policies.DualDescent(), (0.0, 0.0, 0.2, 1.0, 1.0), "fixed", slack=0.0).start(
        problem, seed=0
    )
    seen = 0
    for _ in range(100):
        before = learner.state.base.prices.copy()
        decision = learner.ask()
        state = learner.state.base
        if decision.skipped and not decision.mix.any():
            expected = max(before[0] - state.step * learner.state.rate[0], 0.0)
            assert state.prices[0] == pytest.approx(expected, abs=1e-12)
            seen += before[0] > 0
        if not decision.skipped:
            learner.tell(decision, 0.9, [1.0])
    assert seen > 5


@pytest.mark.parametrize("base", BASES, ids=KINDS)
def test_an_even_curve_is_the_base_alone(base: ds.Policy) -> None:
    """Every reward, cost and pull of every trial is the same bit for bit if 1/T is exact."""
    for world in (ds.instances.example_2(horizon=2_048), ds.instances.piecewise_random(horizon=1_024, seed=1)):
        plan = ds.SpendingPlan(base, budget_rule="fixed", slack=1.0)
        paced, alone = (ds.simulate(world, policy, trials=8, seed=0) for policy in (plan, base))
        np.testing.assert_array_equal(paced.curve, alone.curve)
        np.testing.assert_array_equal(paced.spent, alone.spent)
        np.testing.assert_array_equal(paced.pulls, alone.pulls)
        uneven = ds.simulate(world, ds.SpendingPlan(base, (0.0, 0.1, 1.0), "fixed", slack=0.0), trials=8, seed=0)
        assert not np.array_equal(uneven.curve, alone.curve)


def test_replaces_the_bases_own_rule() -> None:
    world = ds.instances.example_3(0.5, horizon=2_000)
    by_base = [ds.SpendingPlan(ds.NaiveUCB(scale=0.1, budget_rule=rule), ONE) for rule in ("fixed", "remaining")]
    one, two = (ds.simulate(world, plan, trials=5, seed=0) for plan in by_base)
    np.testing.assert_array_equal(one.curve, two.curve)


def test_the_right_curve_beats_even_pacing() -> None:
    """Example 3 with α = 1/2: LP-Dynamic spends all in the first half. By 50 standard errors, and within 3% of OPT.

    With the reversed curve it earns no more than with even pacing, within 4 standard errors.
    """
    world = ds.instances.example_3(alpha=0.5)
    best = ds.benchmarks.lp_dynamic(world)
    assert best.plan is not None
    amounts = (world.costs @ best.plan[:, :, None])[:, :, 0]  # (K, d) per round of each half
    base = ds.NaiveUCB(scale=0.1)
    right = ds.SpendingPlan.by_period(base, amounts)
    wrong = ds.SpendingPlan.by_period(base, amounts[::-1])
    paced, even, late = (ds.simulate(world, policy, trials=60, seed=0).summary() for policy in (right, base, wrong))
    assert paced["reward"] > even["reward"] + 50 * np.hypot(paced["reward_se"], even["reward_se"])
    assert paced["reward"] > 0.97 * best.value
    assert late["reward"] < even["reward"] + 4 * np.hypot(late["reward_se"], even["reward_se"])


def test_by_period() -> None:
    plan = ds.SpendingPlan.by_period(FAST, [2, 0, 6], budget_rule="fixed", slack=0.5)
    assert plan == ds.SpendingPlan(FAST, (0.0, 0.25, 0.25, 1.0), "fixed", 0.5)
    each = ds.SpendingPlan.by_period(FAST, [[1, 3], [1, 1]])
    assert each == ds.SpendingPlan(FAST, ((0.0, 0.5, 1.0), (0.0, 0.75, 1.0)))
    assert tuple(ds.SpendingPlan.by_period(FAST, np.full(7, 0.1)).curve)[-1] == 1.0


@pytest.mark.parametrize(
    ("curve", "error", "words"),
    [
        ((), SettingError, "curve must begin with 0"),
        ((0.0,), SettingError, "curve must begin with 0"),
        ((0.1, 1.0), SettingError, "curve must begin with 0"),
        ((0.0, 0.6, 0.5, 1.0), SettingError, "never decrease"),
        ((0.0, 1.1), SettingError, "not exceed 1"),
        (((0.0, 1.0), (0.2, 1.0)), SettingError, "curve must begin with 0"),
        (((0.0, 1.0), (0.0, 0.5, 1.0)), ShapeError, "curve must be an array of numbers with 2 axes"),
        ((((0.0, 1.0),),), ShapeError, "curve must be an array of numbers with 2 axes"),
        ((0.0, np.nan), NotFiniteError, "curve must be finite"),
        ("linear", ShapeError, "curve must be an array of numbers with 1 axis"),
        (None, ShapeError, "curve must be an array of numbers with 1 axis"),
        (0.5, ShapeError, "got the single number 0.5"),
    ],
)
def test_bad_curves(curve: Any, error: type[DriftsackError], words: str) -> None:
    with pytest.raises(error, match=words):
        ds.SpendingPlan(FAST, curve)


@pytest.mark.parametrize(
    ("amounts", "error", "words"),
    [
        ([], SettingError, "amounts must be 0 or more and not all 0"),
        ([0, 0], SettingError, "amounts must be 0 or more and not all 0"),
        ([1, -1, 3], SettingError, "amounts must be 0 or more"),
        ([[1, 0], [1, 0]], SettingError, "not all 0"),
        ([[1, 2], [3]], ShapeError, "amounts must be an array of numbers with 2 axes"),
        ([1, np.inf], NotFiniteError, "amounts must be finite"),
        ("ab", ShapeError, "amounts must be an array of numbers with 1 axis"),
    ],
)
def test_bad_amounts(amounts: Any, error: type[DriftsackError], words: str) -> None:
    with pytest.raises(error, match=words):
        ds.SpendingPlan.by_period(FAST, amounts)


def test_other_bad_settings() -> None:
    with pytest.raises(SettingError, match="base must be a driftsack Policy"):
        ds.SpendingPlan("NaiveUCB")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="budget_rule must be one of 'fixed', 'remaining'"):
        ds.SpendingPlan(budget_rule="even")  # type: ignore[arg-type]
    with pytest.raises(OutOfRangeError, match="slack must be 0 or more"):
        ds.SpendingPlan(slack=-0.1)
    with pytest.raises(SettingError, match="one for each of 1 resources, got 2"):
        ds.SpendingPlan(FAST, EACH).start(ds.Problem(horizon=10, arms=2, budget=[3.0]))


def test_spec_round_trip_with_a_nested_base(tmp_path: Path) -> None:
    """Through JSON, where tuples become lists, and through a learner's file."""
    inner = ds.SpendingPlan(ds.SlidingWindowUCB(windows=(5, 9), scale=0.1), EACH, "fixed", slack=0.2)
    for plan in (inner, ds.SpendingPlan(ds.DetectAndRestart(ds.NaiveUCB()), ONE)):
        again = from_spec(json.loads(json.dumps(plan.to_spec())))
        assert again == plan
        assert hash(again) == hash(plan)
        assert from_spec(plan.to_spec()) != ds.SpendingPlan(ds.NaiveUCB(), ONE)
    assert inner.to_spec()["base"]["policy"] == "SlidingWindowUCB"
    assert [inner.forgets, ds.SpendingPlan().forgets, ds.SpendingPlan(ds.policies.UniformRandom()).forgets] == [
        True,
        False,
        None,
    ]
    learner = inner.start(PROBLEM, seed=0)
    learner.ask()
    learner.save(tmp_path / "learner.npz")
    assert ds.Learner.load(tmp_path / "learner.npz").policy == inner


def test_the_curve_replaces_the_budget_rules_of_nested_bases() -> None:
    """The budget rule of the base of a wrapper must not matter under a curve."""
    world = ds.instances.example_1(horizon=2_000)
    rules: tuple[BudgetRule, ...] = ("fixed", "remaining")
    plans = [ds.SpendingPlan(ds.DetectAndRestart(ds.NaiveUCB(scale=0.1, budget_rule=rule)), ONE) for rule in rules]
    one, two = (ds.simulate(world, plan, trials=3, seed=0).curve for plan in plans)
    np.testing.assert_array_equal(one, two)


def test_bases_that_cannot_be_paced_are_refused() -> None:
    with pytest.raises(SettingError, match="must not know the means"):
        ds.SpendingPlan(ds.policies.DynamicOracle(), ONE)
    with pytest.raises(SettingError, match="its own spending plan"):
        ds.SpendingPlan(ds.DetectAndRestart(ds.SpendingPlan(ds.NaiveUCB(), ONE)), ONE)
