"""Problems in which every request is answered: the fallback arm, its reserve, and planning with both."""

from __future__ import annotations

import dataclasses
import pickle
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import InfeasibleError, SettingError
from driftsack.game import records
from tests.policies.test_policy_contract import LEARNERS, Recipe, built
from tests.support.constant_contexts import asked, with_features

MOST = {"usd": {"small": 0.1, "large": 1.0}}


def problem(horizon: int | None = 300, budget: float = 60.0, **settings: Any) -> ds.Problem:
    return ds.Problem(
        horizon=horizon, arms=["small", "large"], budget={"usd": budget}, cost_max=MOST, fallback="small", **settings
    )


@LEARNERS
def test_no_request_goes_unanswered_and_no_budget_is_overspent(recipe: Recipe) -> None:
    """With the worst outcomes: every answer costs the most that it may."""
    policy = built(recipe, problem())
    learner = policy.start(with_features(policy, problem()), seed=2, safe=True)
    counts = np.zeros(2, dtype=int)
    while not learner.done:
        decision = asked(learner)
        assert not decision.skipped
        assert decision.mix.sum() == pytest.approx(1.0)
        counts[decision.arm] += 1
        learner.tell(decision, 0.2 + 0.6 * decision.arm, [0.1, 1.0][decision.arm])
    assert counts.sum() == 300
    assert learner.remaining[0] >= 0.0
    assert learner.overruns.decisions == 0


def test_late_outcomes_do_not_touch_the_reserve() -> None:
    """Up to 40 outcomes are pending, each of which may cost the most."""
    learner, rng = ds.Adaptive().start(problem(), seed=2, safe=True), np.random.default_rng(0)
    larges = 0
    while not learner.done:
        decision = learner.ask()
        assert not decision.skipped
        larges += decision.name == "large"
        for late in rng.permutation(len(learner.pending))[40:]:
            own = learner.pending[int(late)] if late < len(learner.pending) else learner.pending[0]
            learner.tell(own, float(rng.random() < (0.9 if own.name == "large" else 0.3)), own.reserved)
    assert larges > 10
    assert learner.remaining[0] - learner.reserved[0] >= 0.0


def test_a_budget_that_cannot_pay_for_the_fallback_is_refused_with_the_number_that_would_do() -> None:
    with pytest.raises(InfeasibleError, match="may cost 30 of 'usd', got a budget of 29; a budget of 30 suffices"):
        ds.Adaptive().start(problem(budget=29.0), safe=True)
    ds.Adaptive().start(problem(budget=30.0), safe=True)
    ds.Adaptive().start(problem(budget=29.0))  # without safe nothing is promised
    month = timedelta(days=30)
    with pytest.raises(InfeasibleError, match=r"answering 10,000 requests by 'small' may cost 1000 of 'usd'"):
        ds.Adaptive().start(problem(horizon=10_000, period=month), safe=True)  # also the number that is guessed if ...
    unknown = problem(horizon=None, period=month)  # ... nothing is known of the number of requests
    assert (unknown.guessed, unknown.horizon) == (True, 10_000)
    for same in (ds.Problem.from_dict(unknown.to_dict()), dataclasses.replace(unknown, slots=3)):
        assert same.guessed
        ds.Adaptive().start(same, safe=True)
    given = problem(horizon=10_000, period=month)
    for same in (ds.Problem.from_dict(given.to_dict()), pickle.loads(pickle.dumps(given))):
        assert same == given != unknown
    assert "guessed" not in unknown.to_dict()  # so that files of the previous layout are read as they were meant
    assert not dataclasses.replace(unknown, horizon=9_999).guessed
    learner = ds.Adaptive().start(problem(), safe=True)
    before = learner.state_hash()
    with pytest.raises(InfeasibleError, match="answering 700 requests by 'small' may cost 70 of 'usd', got"):
        learner.revise(rounds_left=700)
    with pytest.raises(InfeasibleError, match="a budget of 30 suffices"):
        learner.renew(budget={"usd": 20.0})
    assert learner.state_hash() == before
    with pytest.raises(SettingError, match="set cost_max"):
        ds.Adaptive().start(ds.Problem(horizon=9, arms=2, budget=[3.0], fallback=0), safe=True)


def earned(policy: ds.Policy, seed: int) -> float:
    """The share of the optimum over 2,000 requests, each of which is answered.

    With 0.3 a request, the optimum is to send every one to the medium model. Per unit of cost the large model earns
    more, so a plan that could skip would choose it for 60% of the requests and skip the rest.
    """
    rewards, costs = {"small": 0.2, "medium": 0.53, "large": 0.9}, {"small": 0.2, "medium": 0.3, "large": 0.5}
    world = ds.Problem(
        horizon=2_000, arms=list(costs), budget={"usd": 600.0}, cost_max={"usd": costs}, fallback="small"
    )
    learner, rng, total = policy.start(world, seed=seed, safe=True), np.random.default_rng(seed), 0.0
    while not learner.done:
        decision = learner.ask()
        name = str(decision.name)
        reward = float(rng.random() < rewards[name])
        learner.tell(decision, reward, costs[name])
        total += reward
    assert learner.round == 2_000
    return total / (0.53 * 2_000)


@pytest.mark.parametrize("policy", [ds.Adaptive(), ds.ThompsonBwK(budget_rule="two-speed")], ids=str)
def test_planning_knows_that_every_request_is_answered(policy: ds.Policy) -> None:
    assert np.mean([earned(policy, seed) for seed in range(3)]) > 0.92
    assert np.mean([earned(ds.policies.AlwaysArm("small"), seed) for seed in range(3)]) < 0.5


def test_a_plan_that_skips_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the LP plans to skip requests, which the fallback then answers at a cost nobody planned."""
    monkeypatch.setattr(records, "MUST_SERVE", 0.0)
    assert np.mean([earned(ds.Adaptive(), seed) for seed in range(3)]) < 0.88


def test_simulations_serve_as_learners_do() -> None:
    """``simulate`` plays a problem with a fallback by the same rules: no round is skipped."""
    world = ds.Instance.stationary([0.4, 0.9], [[0.05, 0.6]], 400, [80.0], noise="bernoulli")
    serving = ds.Instance(problem_like(world), world.rewards, world.costs, world.phase, world.noise)
    run = ds.simulate(serving, ds.Adaptive(), trials=3, seed=0)
    assert (run.pulls.sum(axis=1) + (run.stopping_time <= 400) >= np.minimum(run.stopping_time, 400)).all()
    skipping = ds.simulate(world, ds.Adaptive(), trials=3, seed=0)
    assert (skipping.pulls.sum(axis=1) < 400).all()


def problem_like(world: ds.Instance) -> ds.Problem:
    return ds.Problem(world.horizon, world.arms, world.problem.budget, fallback=0)


@pytest.mark.parametrize("guess", [None, 240])
def test_more_requests_than_expected_are_answered_while_money_is_left(guess: int | None) -> None:
    """A request every minute for half a day; the other arm is used only for what the reserve does not need."""
    period = timedelta(days=0.5)
    offered = ds.Problem(
        horizon=guess, period=period, arms=["small", "large"], budget={"usd": 60.0}, cost_max=MOST, fallback="small"
    )
    learner = ds.Adaptive().start(offered, seed=1, safe=True)
    unanswered = 0
    for minute in range(720):
        decision = learner.ask(at=60.0 * minute)
        if decision.skipped:
            unanswered += 1
            assert learner.remaining[0] < 0.1
            continue
        learner.tell(decision, 0.2 + 0.6 * decision.arm, [0.1, 0.9][decision.arm])
    assert unanswered <= 120 + (0 if guess is None else 60)
    assert learner.remaining[0] >= 0.0


def test_an_overrun_does_not_leave_requests_unanswered() -> None:
    """One bill above the maximum, and the reserve falls short by less than an answer: only the last one is missing."""
    learner = ds.Adaptive().start(problem(horizon=100, budget=10.0), seed=0, safe=True)
    first = learner.ask()
    with pytest.warns(ds.errors.OverrunWarning):
        learner.tell(first, 0.5, 0.101)
    answered = 1
    while not learner.done:
        decision = learner.ask()
        if not decision.skipped:
            answered += 1
            learner.tell(decision, 0.5, 0.1)
    assert answered == 99
