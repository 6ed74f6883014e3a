"""Budgets that are added to and renewed, horizons that are revised, and periods of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import NamesError, OutOfRangeError, SettingError
from driftsack.game.amounts import share_of
from tests.policies.test_policy_contract import LEARNERS, Recipe, built
from tests.support.constant_contexts import asked, with_features

PROBLEM = ds.Problem(horizon=100, arms=2, budget={"usd": 10.0, "seconds": 50.0}, cost_max={"usd": 1.0, "seconds": 2.0})


def test_grants_add_to_the_budgets() -> None:
    learner = ds.policies.AlwaysArm(0).start(PROBLEM, safe=True)
    learner.tell(learner.ask(), 0.5, {"usd": 0.75, "seconds": 1.5})
    learner.grant(usd=2.5)
    assert learner.budget.tolist() == [12.5, 50.0]
    assert learner.remaining.tolist() == [11.75, 48.5]
    learner.grant({"seconds": 1})
    learner.grant([0.25, 0.5])
    assert learner.remaining.tolist() == [12.0, 50.0]
    before = learner.state_hash()
    misuses: list[tuple[Any, type[Exception], str]] = [
        (lambda: learner.grant(euro=3), NamesError, r"grant needs amounts of \['usd', 'seconds'\], got \['euro'\]"),
        (lambda: learner.grant(usd=-1), OutOfRangeError, "amounts must be 0 or more"),
        (lambda: learner.grant([1.0, 2.0], usd=3), SettingError, "give the amounts once"),
        (learner.grant, NamesError, "got none"),
    ]
    for misuse, error, words in misuses:
        with pytest.raises(error, match=words):
            misuse()
    assert learner.state_hash() == before


def test_a_new_season_keeps_what_was_learnt_and_charges_late_outcomes_to_the_old_one() -> None:
    learner = ds.Adaptive().start(PROBLEM, seed=0, safe=True)
    while learner.round < 90:
        decision = learner.ask()
        if not decision.skipped and len(learner.pending) > 3:
            late = learner.pending[0]
            learner.tell(late, 0.5, {"usd": 0.1, "seconds": 0.2})
    waiting = learner.pending
    belief, left = learner.state.belief.mean.copy(), learner.remaining - learner.reserved
    learner.renew(rollover=0.5)
    np.testing.assert_array_equal(learner.state.belief.mean, belief)
    np.testing.assert_allclose(learner.remaining, np.array([10.0, 50.0]) + 0.5 * left, rtol=1e-9)
    assert learner.rounds_left == 100
    assert learner.pending == waiting
    before = learner.remaining
    learner.tell(waiting[0], 0.5, {"usd": 0.25, "seconds": 1.0})
    # Of the reservation of 1 and 2, half of what was not used rolls over like the rest did.
    np.testing.assert_allclose(learner.remaining - before, [0.375, 0.5], rtol=1e-9)
    learner.forfeit(waiting[1])
    np.testing.assert_array_equal(learner.remaining, before + np.array([0.375, 0.5]))
    learner.tell(waiting[1], 0.5, {"usd": 0.0, "seconds": 2.0})  # after all
    np.testing.assert_allclose(learner.remaining - before, [0.875, 0.5], rtol=1e-9)
    assert not learner.done
    restored = ds.Learner.from_bytes(learner.to_bytes())
    for own in (learner, restored):
        own.cancel(own.pending[0])
    assert restored.state_hash() == learner.state_hash()


@pytest.mark.filterwarnings("ignore::driftsack.core.errors.OverrunWarning")
@pytest.mark.parametrize(("promised", "cost", "budget"), [(10, 0.0, 5.0), (4, 2.5, 2.5), (4, 4.5, 1.0)])
def test_what_a_season_never_had_does_not_roll_over(promised: int, cost: float, budget: float) -> None:
    """A season of 4 in which more was promised, or one outcome cost more than its reservation of 1, and a season of 1.

    Adding what each decision did not use would give 11, and 4 in the other cases.
    """
    problem = ds.Problem(horizon=100, arms=1, budget=4.0, cost_max=1.0)
    learner = ds.policies.AlwaysArm(0).start(problem)
    waiting = [learner.ask() for _ in range(promised)]
    learner.renew(budget=1.0, rollover=1.0)
    learner.tell(waiting.pop(), 0.5, cost)
    for decision in waiting:
        learner.cancel(decision)
    assert learner.budget.tolist() == [budget]
    assert learner.remaining.tolist() == [budget]


def test_rollover_never_makes_money() -> None:
    """Exact for amounts at which floats have gaps of thousands; rounding to the nearest would add some."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        units, share = rng.integers(0, 8 * 10**18, size=3), float(rng.choice([1.0, 0.5, rng.random()]))
        moved = share_of(units, share)
        for before, after in zip(units.tolist(), moved.tolist(), strict=True):
            assert 0 <= Fraction(repr(share)) * before - after < 1
    assert int(np.floor((2**53 + 1) * 1.0)) != 2**53 + 1  # the planted fault


@LEARNERS
def test_every_policy_plays_on_after_a_renewal(recipe: Recipe) -> None:
    """Three seasons; the budgets of each hold, and none is left unused by a policy that stops at the first horizon."""
    budget = {"usd": 30.0} if recipe is ds.policies.Exp3BwK else {"usd": 30.0, "seconds": 40.0}
    problem = ds.Problem(horizon=80, arms=3, budget=budget, cost_max=1.0)
    policy = built(recipe, problem)
    learner, rng, spent = policy.start(with_features(policy, problem), 1, safe=True), np.random.default_rng(3), []
    for season in range(3):
        if season and not policy.open_ended:
            with pytest.raises(SettingError, match="follows a plan for the horizon"):
                learner.renew()
            return
        if season:
            learner.renew()
        while not learner.done:
            decision = asked(learner)
            if not decision.skipped:
                learner.tell(decision, float(rng.random()), 0.7 * rng.random(problem.resources))
        assert learner.round == 80 * (season + 1)
        assert (learner.remaining >= 0).all()
        spent.append(float((learner.budget - learner.remaining)[0]))
    assert min(spent) > 0.5 * max(spent) > 0


def test_a_revised_horizon_changes_the_pace() -> None:
    """Three times the rounds that were left, a third of the pace; the budget lasts, and is used up."""
    problem = ds.Problem(horizon=1_000, arms=1, budget=[200.0], cost_max=[1.0])
    paced = ds.NaiveUCB(scale=0.05, budget_rule="remaining")
    for policy in (ds.Adaptive(), ds.Adaptive(pacing="remaining"), paced, ds.policies.EpsilonGreedy()):
        learner, rng, used = policy.start(problem, seed=0, safe=True), np.random.default_rng(0), np.zeros(2_000)
        for t in range(2_000):
            if t == 500:
                learner.revise(rounds_left=1_500)
                assert not learner.done
            decision = learner.ask()
            if not decision.skipped:
                used[t] = 0.5 + 0.3 * rng.random()
                learner.tell(decision, float(rng.random()), used[t])
        assert learner.done
        assert used[:500].sum() == pytest.approx(100.0, rel=0.15), policy
        if policy != ds.Adaptive():  # whose long-run price follows within some hundred rounds
            assert used[500:1_000].sum() == pytest.approx(100.0 / 3, rel=0.3), policy
        assert used.sum() > 0.9 * 200, policy


def earned(learner: ds.Learner, arrivals: list[datetime], timed: bool) -> float:
    """Reward over one period in which requests arrive at given times."""
    rng, total = np.random.default_rng(1), 0.0
    for at in arrivals:
        decision = learner.ask(at=at) if timed else learner.ask()
        if not decision.skipped:
            mean, cost = ((0.45, 0.25), (0.9, 0.75))[decision.arm]
            reward = float(rng.random() < mean)
            if learner.remaining[0] >= 2 * cost:
                total += reward
                learner.tell(decision, reward, float(2 * cost * rng.random()))
            else:
                learner.cancel(decision)
    return total


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_wrong_first_guess_of_the_arrivals_costs_little(factor: float) -> None:
    """Within 3% of the learner that is told the true number; one that believes the guess loses more."""
    start, days, count = datetime(2026, 3, 2, tzinfo=UTC), 30, 6_000
    rng = np.random.default_rng(7)
    seconds = np.sort(rng.random(4 * count)) * days * 86_400
    busy = rng.random(seconds.size) < 0.5 * (1 + 0.8 * np.sin(2 * np.pi * (seconds / 86_400 - 0.3)))
    chosen = np.sort(rng.permutation(seconds[busy])[:count])
    arrivals = [start + timedelta(seconds=float(second)) for second in chosen]
    settings: dict[str, Any] = {"arms": 2, "budget": [0.3 * count], "cost_max": [2.0]}
    guess = round(factor * count)
    informed = ds.Problem(horizon=count, **settings)
    estimating = ds.Problem(horizon=guess, period=timedelta(days=days), **settings)
    misled = ds.Problem(horizon=guess, **settings)

    def mean(problem: ds.Problem, requests: list[datetime]) -> float:
        learners = [ds.Adaptive().start(problem, seed=seed, safe=True) for seed in range(3)]
        return float(np.mean([earned(own, requests, problem.period is not None) for own in learners]))

    known = mean(informed, arrivals)
    assert mean(estimating, arrivals) > 0.97 * known
    assert mean(misled, arrivals[:guess]) < 0.97 * known


def test_a_problem_in_time_has_no_last_round() -> None:
    problem = ds.Problem(period=timedelta(days=1), arms=2, budget=[50.0], cost_max=[1.0])
    learner = ds.Adaptive().start(problem, seed=0, safe=True)
    with pytest.raises(SettingError, match="each request needs its time"):
        learner.ask()
    start = datetime.fromisoformat("2026-05-01")  # times without a zone are allowed
    for minute in range(3 * 24 * 60):
        if minute and minute % (24 * 60) == 0:
            learner.renew()
        at = start + timedelta(minutes=minute)
        decision = learner.ask(at=at)
        if not decision.skipped:
            learner.tell(decision, 0.5, 0.2)
        if minute == 24 * 60 + 600:
            assert learner.rounds_left == pytest.approx(24 * 60 - 600, rel=0.1)
            learner = ds.Learner.from_bytes(learner.to_bytes())
    assert not learner.done
    with pytest.raises(SettingError, match="are estimated from the requests so far"):
        learner.revise(10)
    with pytest.raises(OutOfRangeError, match="at most an hour before the latest"):
        learner.ask(at=start)


@pytest.mark.parametrize("planted", [False, True])
def test_a_clock_that_was_wrong_is_set_back(planted: bool) -> None:
    """After it, requests are counted again and the budget is paced; the planted fault goes on with the wrong period."""
    day = 86_400.0
    problem = ds.Problem(horizon=2880, period=timedelta(days=2), arms=2, budget=[50.0], cost_max=[1.0])
    learner = ds.policies.UniformRandom().start(problem, seed=0)
    for minute in range(60):
        learner.ask(at=60.0 * minute)
    learner.ask(at=400 * day)  # by the wrong clock
    learner.renew(at=400 * day, period=timedelta(days=2))
    left = learner.remaining.tolist()
    if planted:
        assert learner.period_end == 402 * day
    else:
        learner.set_clock(day / 2, timedelta(days=1.5))
        assert learner.period_end == 2 * day
    assert learner.remaining.tolist() == left
    for minute in range(int(1.4 * 24 * 60)):
        learner.ask(at=day / 2 + 60.0 * minute)
    assert (learner.rounds_left < 300) is not planted  # there are 144 minutes left
    again = ds.Learner.from_bytes(learner.to_bytes())
    assert again.period_end == learner.period_end


def test_a_clock_is_set_back_within_the_present_period_or_to_a_whole_one() -> None:
    problem = ds.Problem(horizon=100, period=timedelta(seconds=1000), arms=2, budget=[50.0], cost_max=[1.0])
    for begun, latest, at, end in (
        (0.0, 10.0, 400.0, 1000.0),
        (0.0, 900.0, 400.0, 1000.0),
        (5000.0, 5500.0, 0.0, 1000.0),
    ):
        learner = ds.policies.UniformRandom().start(problem, seed=0)
        learner.ask(at=begun)
        learner.ask(at=latest)
        learner.set_clock(at)
        assert learner.period_end == end
        learner.ask(at=at + 1.0)
    with pytest.raises(SettingError, match="only problems with a period have a clock"):
        ds.policies.UniformRandom().start(PROBLEM).set_clock(5.0)
