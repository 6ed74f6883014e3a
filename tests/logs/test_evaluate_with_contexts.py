"""Rejection sampling of policies that decide by the context, and the bookmark that lets them be asked for each row."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import CannotAnswerError, SettingError, UnknownDecisionError
from driftsack.game.state_tree import arrays
from driftsack.logs.rejection_sampling import Offers
from driftsack.policies import Policy
from driftsack.policies.learner import Learner
from driftsack.policies.learner.bookmark import Bookmark
from tests.support.learner_parts import engine_of, terms_of

REWARDS = [[0.9, 0.1], [0.1, 0.9]]  # by kind of request and arm
COSTS = [[[0.5, 0.2]], [[0.2, 0.5]]]
CONTEXTUAL = [ds.LinearBwK(), ds.policies.DisjointBwK(), ds.policies.SquareCBwK(), ds.policies.PerSegment()]
ROWS, BUDGET = 2_000, 800.0


def world(rounds: int = ROWS) -> ds.ContextualInstance:
    """The better arm depends on the kind, and the budget suffices for eight of ten requests by it."""
    return ds.ContextualInstance.by_table(np.eye(2), REWARDS, COSTS, budget=BUDGET * rounds / ROWS, horizon=rounds)


def play(learner: Learner, rounds: int, seed: int) -> list[int]:
    """Ask and tell for some rounds, and leave a decision pending; return the arms."""
    rng, arms = np.random.default_rng(seed), []
    for _ in range(rounds):
        decision = learner.ask(context=rng.random(2) if learner.problem.features else None)
        arms.append(decision.arm)
        if decision.arm >= 0 and rng.random() < 0.9:
            learner.tell(decision, reward=float(rng.random()), costs=[float(rng.random())])
    return arms


@pytest.mark.parametrize("policy", [*CONTEXTUAL, ds.Adaptive()], ids=lambda policy: type(policy).__name__)
def test_a_learner_goes_back_to_where_it_was(policy: Policy) -> None:
    problem = ds.Problem(horizon=300, arms=2, budget=60.0, features=2 if policy.needs_context else 0)
    learner = policy.start(problem, seed=1)
    play(learner, 40, seed=0)
    start, before, twin = Bookmark(learner), learner.state_hash(), Learner.from_bytes(learner.to_bytes())
    for seed in (1, 2):
        play(learner, 5, seed)
        assert learner.state_hash() != before
        start.go_back()
        assert learner.state_hash() == before
    assert play(learner, 100, seed=3) == play(twin, 100, seed=3)
    assert learner.state_hash() == twin.state_hash()


@pytest.mark.parametrize("part", ["state", "ledger", "terms", "desk", "rng"])
def test_a_bookmark_that_forgets_a_part_is_noticed(part: str) -> None:
    """The planted faults: what was learnt, spent, agreed on (changed by hand), waits, or was drawn stays as it is."""
    learner = ds.policies.SquareCBwK().start(ds.Problem(horizon=300, arms=2, budget=60.0, features=2), seed=1)
    start, before = Bookmark(learner), learner.state_hash()
    play(learner, 30, seed=1)
    if part == "rng":
        start._drawn = engine_of(learner).rng.bit_generator.state
    else:
        forgotten = {id(array) for array in arrays(getattr(engine_of(learner), part)).values()}
        start._kept = [pair for pair in start._kept if id(pair[0]) not in forgotten]
    if part == "terms":
        terms_of(learner).rate[:] *= 0.5
    start.go_back()
    assert learner.state_hash() != before


def test_what_was_taken_back_cannot_be_told() -> None:
    learner = ds.LinearBwK().start(ds.Problem(horizon=50, arms=2, budget=60.0, features=2), seed=1)
    kept = learner.ask(context=[0.0, 1.0])
    start = Bookmark(learner)
    gone = learner.ask(context=[1.0, 0.0])
    start.go_back()
    with pytest.raises(UnknownDecisionError, match="rounds 1 to 1"):
        learner.tell(gone, reward=1.0, costs=[0.5])
    again = learner.ask(context=[1.0, 0.0])
    assert (again.round, again.arm) == (gone.round, gone.arm)
    with pytest.raises(UnknownDecisionError, match="id"):
        learner.tell(gone, reward=1.0, costs=[0.5])
    learner.tell(kept, reward=1.0, costs=[0.5])
    learner.tell(again, reward=1.0, costs=[0.5])


def test_terms_of_a_single_request_and_retired_arms_are_undone() -> None:
    problem = ds.Problem(horizon=200, arms=3, budget=60.0)
    learner, twin = (ds.policies.UniformRandom().start(problem, seed=4) for _ in range(2))
    for one in (learner, twin):
        one.ask(open=[2])
    start = Bookmark(learner)
    learner.ask()
    learner.retire_arm(0)
    start.go_back()
    assert [learner.ask().arm for _ in range(30)] == [twin.ask().arm for _ in range(30)]


def test_a_learner_with_a_period_or_an_open_season_goes_back() -> None:
    """The times of requests, and the budgets of earlier seasons, are as before."""
    timed = ds.Adaptive().start(ds.Problem(period=timedelta(days=1), arms=2, budget=60.0), seed=1)
    timed.ask(at=1.0)
    seasonal = ds.Adaptive().start(ds.Problem(horizon=50, arms=2, budget=60.0), seed=1)
    waiting = seasonal.ask()
    seasonal.renew()
    for learner, at in ((timed, 500.0), (seasonal, None)):
        before, start = learner.state_hash(), Bookmark(learner)
        learner.ask(at=at)
        assert learner.state_hash() != before
        start.go_back()
        assert learner.state_hash() == before
    start = Bookmark(seasonal)
    seasonal.tell(waiting, 1.0, 0.5)
    with pytest.raises(SettingError, match="was settled"):
        start.go_back()


def test_a_learner_with_other_arrays_cannot_go_back() -> None:
    learner = ds.Adaptive().start(ds.Problem(horizon=50, arms=["a", "b"], budget=60.0), seed=1)
    start = Bookmark(learner)
    learner.add_arm("c")
    before = learner.state_hash()
    with pytest.raises(SettingError, match="no arm was added"):
        start.go_back()
    assert learner.state_hash() == before


@pytest.mark.parametrize("policy", CONTEXTUAL, ids=lambda policy: type(policy).__name__)
def test_a_contextual_policy_earns_what_it_would(policy: Policy) -> None:
    """Within 4 standard deviations of a simulation of the same game; a policy without contexts is far from it."""
    found = ds.logs.evaluate(ds.gather(world(), seed=1), policy, BUDGET, trials=3)
    rounds = int(0.5 * ROWS - 2 * np.sqrt(ROWS * 0.25))
    run = ds.simulate(world(rounds), policy, trials=100, seed=1)
    spread = run.reward.std() / rounds
    assert abs(found.reward - run.reward.mean() / rounds) < 4 * spread
    assert rounds - 20 < found.effective <= rounds
    assert found.costs[0] * ROWS <= BUDGET * 1.001
    blind = ds.logs.evaluate(ds.gather(world(), seed=1), ds.Adaptive(), BUDGET, trials=3)
    assert run.reward.mean() / rounds - blind.reward > 4 * spread


@pytest.mark.slow
def test_standard_errors_hold() -> None:
    """Over 60 logs the spread of the estimates of 3 games is 0.5 to 1.33 times their standard errors."""
    policy = ds.policies.DisjointBwK()
    found = [ds.logs.evaluate(ds.gather(world(400), seed=s), policy, 160.0, trials=3, seed=s) for s in range(60)]
    spread = np.std([one.reward for one in found], ddof=1)
    expected = np.sqrt(np.mean([one.reward_se**2 for one in found]))
    assert 0.5 * expected < spread < 1.33 * expected


def test_the_context_of_each_row_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: every row is offered with the context of the next one, and learning gains nothing."""
    log, policy = ds.gather(world(), seed=2), ds.policies.DisjointBwK()
    right = ds.logs.evaluate(log, policy, BUDGET, trials=5)
    decide = Offers.decide
    monkeypatch.setattr(Offers, "decide", lambda self, row: decide(self, (row + 1) % len(log)))
    wrong = ds.logs.evaluate(log, policy, BUDGET, trials=5)
    assert right.reward - wrong.reward > 4 * np.hypot(right.reward_se, wrong.reward_se)


def test_logs_that_cannot_answer_for_a_contextual_policy() -> None:
    log = ds.gather(world(), seed=3)
    with pytest.raises(CannotAnswerError, match="no contexts"):
        ds.logs.evaluate(dataclasses.replace(log, contexts=None, features=None), ds.LinearBwK(), BUDGET)
    kind = log.contexts[:, 0] == 1  # type: ignore[index]
    swapped = np.random.default_rng(0).random(len(log)) < 0.4
    arm = np.where(swapped, kind, log.arm).astype(np.int32)  # by kind 0.3 and 0.7, which is 0.5 on average
    with pytest.raises(CannotAnswerError, match="the feature"):
        ds.logs.evaluate(dataclasses.replace(log, arm=arm), ds.policies.DisjointBwK(), BUDGET, trials=2)
