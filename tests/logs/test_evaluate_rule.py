"""Doubly robust evaluation of rules that decide by the context: correct, with its error, or refused."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.errors import CannotAnswerError, NamesError, OutOfRangeError, SettingError, ShapeError
from driftsack.logs.doubly_robust import _asked, row_scores
from driftsack.logs.outcome_model import cross_fitted, draw_folds

KINDS = 3
REWARDS = np.array([[0.9, 0.2], [0.5, 0.6], [0.1, 0.8]])  # by kind and arm
COSTS = np.array([[0.3, 0.6], [0.2, 0.7], [0.4, 0.5]])
PLAYED = np.array([[0.8, 0.2], [0.5, 0.5], [0.25, 0.75]])  # the probabilities of the arms in the log, by kind
RULE = np.array([[0.9, 0.1], [0.3, 0.6], [0.0, 1.0]])  # a tenth of the second kind is skipped
TRUTH = float((RULE * REWARDS).sum(axis=1).mean())
SPENT = float((RULE * COSTS).sum(axis=1).mean())


def log_by_context(rows: int = 4_000, seed: int = 0) -> ds.logs.Log:
    """A log whose arms were chosen by the kind of the request, with the right propensities."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(KINDS, size=rows)
    arm = (rng.random(rows) >= PLAYED[kind, 0]).astype(np.int32)
    return ds.logs.Log(
        arms=("a", "b"),
        resources=("cost",),
        time=np.arange(rows, dtype=float),
        arm=arm,
        reward=(rng.random(rows) < REWARDS[kind, arm]).astype(float),
        costs=(rng.random(rows) < COSTS[kind, arm]).astype(float)[:, None],
        propensity=PLAYED[kind, arm],
        table=None,
        reward_max=1.0,
        cost_max=(1.0,),
        contexts=np.eye(KINDS)[kind],
        features=ds.Encoder(categories={"kind": ["x", "y", "z"]}, spare=0),
    )


def rule(contexts: Floats) -> Floats:
    return np.asarray(contexts @ RULE)


def test_estimates_are_unbiased_and_their_errors_are_right() -> None:
    """150 logs: the mean of the standardised errors is within 4 of its errors of 0, their spread within 25% of 1."""
    found = [ds.logs.evaluate_rule(log_by_context(600, seed), rule) for seed in range(150)]
    errors = np.array([(one.reward - TRUTH) / one.reward_se for one in found])
    assert abs(errors.mean()) < 4 / np.sqrt(len(found))
    assert 0.75 < errors.std() < 1.25
    spent = np.array([one.costs[0] for one in found])
    assert abs(spent.mean() - SPENT) < 4 * spent.std() / np.sqrt(len(found))


def test_a_simulated_world_with_numeric_features() -> None:
    """Logistic means, which the linear predictions do not match."""
    world = ds.ContextualInstance.linear(
        lambda rng, count: rng.standard_normal((count, 2)),
        rewards=[[2.0, 0.0, -0.5], [-1.0, 1.0, 0.5]],
        costs=[[[0.0, 1.0, 0.0], [0.5, 0.0, -1.0]]],
        budget=1_000.0,
        horizon=20_000,
        logistic=True,
        pool=500,
    )

    def threshold(contexts: Floats) -> Floats:
        return np.column_stack([contexts[:, 0] > 0, contexts[:, 0] <= 0]).astype(float)

    phase, context, rounds = world.pairs()
    rewards, _ = world.means_at(phase, context)
    truth = (threshold(world.contexts[context]) * rewards).sum(axis=1) @ rounds / rounds.sum()
    found = ds.logs.evaluate_rule(ds.gather(world, seed=5), threshold)
    assert abs(found.reward - truth) < 4 * found.reward_se
    assert found.reward_se < 0.006


def test_ignoring_the_context_is_far_from_the_truth() -> None:
    log = log_by_context(20_000)
    found = ds.logs.evaluate_rule(log, rule, budget=2_000.0)
    assert abs(found.reward - TRUTH) < 4 * found.reward_se
    assert found.lasts == pytest.approx(2_000.0 / found.costs[0])
    ignoring = ds.logs.evaluate_mix(log, rule(np.eye(KINDS)).mean(axis=0))
    assert abs(ignoring.reward - TRUTH) > 10 * ignoring.reward_se


def test_it_is_right_if_either_part_is_right_and_wrong_if_both_are_wrong() -> None:
    log = log_by_context(40_000)
    assert log.contexts is not None
    assert log.propensity is not None
    shares, good = rule(log.contexts), cross_fitted(log, draw_folds(len(log), 5, 0))
    wrong = dataclasses.replace(log, propensity=np.full(len(log), 0.5))

    def deviation(one: ds.logs.Log, predictions: Floats) -> float:
        scores = row_scores(one, shares, predictions)[:, 0]
        return float(abs(scores.mean() - TRUTH) / (scores.std() / np.sqrt(len(log))))

    assert deviation(log, good) < 4
    assert deviation(log, np.zeros_like(good)) < 4
    assert deviation(wrong, good) < 4
    assert deviation(wrong, np.zeros_like(good)) > 10


def test_predictions_do_not_know_the_outcomes_of_their_own_rows() -> None:
    log = log_by_context(300)
    fold = draw_folds(len(log), 3, 0)
    before = cross_fitted(log, fold)
    after = cross_fitted(dataclasses.replace(log, reward=np.where(fold == 1, 1.0 - log.reward, log.reward)), fold)
    np.testing.assert_array_equal(before[fold == 1], after[fold == 1])
    assert (before[fold == 0, :, 0] != after[fold == 0, :, 0]).any()


def test_good_predictions_make_it_more_precise_than_weights_alone() -> None:
    log = log_by_context(5_000)
    assert log.contexts is not None
    shares = rule(log.contexts)
    alone = row_scores(log, shares, np.zeros((len(log), 2, 2)))[:, 0].std() / np.sqrt(len(log))
    assert ds.logs.evaluate_rule(log, rule).reward_se < 0.9 * alone


def test_wrong_propensities_are_refused() -> None:
    log = log_by_context()
    frequencies = np.bincount(log.arm) / len(log)  # right on average, wrong at every context
    with pytest.raises(CannotAnswerError, match=r"the feature kind=. that all rounds have"):
        ds.logs.evaluate_rule(dataclasses.replace(log, propensity=frequencies[log.arm]), rule)
    with pytest.raises(CannotAnswerError, match="stand for"):
        ds.logs.evaluate_rule(dataclasses.replace(log, propensity=frequencies[1 - log.arm] ** 2), rule)


def test_right_propensities_are_not_refused() -> None:
    for seed in range(100):
        ds.logs.evaluate_rule(log_by_context(500, seed), rule)


def test_full_information_needs_no_propensities() -> None:
    log = log_by_context(200)
    assert log.contexts is not None
    kind = log.contexts.argmax(axis=1)
    table = np.stack([REWARDS[kind], COSTS[kind]], axis=2)
    found = ds.logs.evaluate_rule(dataclasses.replace(log, table=table, propensity=None), rule)
    assert found.method == "full information"
    assert found.reward == pytest.approx((RULE * REWARDS).sum(axis=1)[kind].mean())


def test_logs_and_rules_that_cannot_be_evaluated() -> None:
    log = log_by_context(400)
    with pytest.raises(CannotAnswerError, match="no contexts"):
        ds.logs.evaluate_rule(dataclasses.replace(log, contexts=None, features=None), rule)
    with pytest.raises(CannotAnswerError, match="no column propensity"):
        ds.logs.evaluate_rule(dataclasses.replace(log, propensity=None), rule)
    only_a = dataclasses.replace(log, arm=np.zeros_like(log.arm), propensity=np.ones(len(log)))
    with pytest.raises(CannotAnswerError, match="rule contains b, which the log never played"):
        ds.logs.evaluate_rule(only_a, rule)
    with pytest.raises(CannotAnswerError, match="the rule differs so much"):
        ds.logs.evaluate_rule(log, np.where(np.arange(len(log))[:, None] < 40, [1.0, 0.0], [0.0, 0.0]))
    with pytest.raises(SettingError, match=r"got the policy .* let it learn from other rows"):
        ds.logs.evaluate_rule(log, ds.LinearBwK())  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="rule must be"):
        ds.logs.evaluate_rule(log, [0.5, 0.5])
    with pytest.raises(OutOfRangeError, match="sum to at most 1"):
        ds.logs.evaluate_rule(log, np.full((len(log), 2), 0.8))


def learnt(policy: ds.Policy, safe: bool = False) -> ds.Learner:
    """A learner that was taught another log, and has a pending decision."""
    past = log_by_context(400, seed=77)
    assert past.features is not None
    problem = ds.Problem(horizon=2_000, arms=["a", "b"], budget={"cost": 1_000.0}, cost_max=1.0, features=past.features)
    learner = policy.start(problem, seed=3, safe=safe, log=past)
    learner.ask(context={"kind": "x"})
    return learner


def decisions_by_kind(learner: ds.Learner) -> Floats:
    """(kinds, m) The probabilities of a learner's next decision at each kind, from copies of it."""
    return np.array([copy.deepcopy(learner).ask(context=row).mix for row in np.eye(KINDS)])


def test_a_learner_is_evaluated_as_it_is() -> None:
    """Safe or not, it is the rule of its next decision; the same rule at the contexts of the next rows is far off."""
    log = log_by_context(4_000)
    assert log.contexts is not None
    plain, safe = (learnt(ds.policies.SquareCBwK(), safe) for safe in (False, True))
    before = plain.state_hash()
    found = ds.logs.evaluate_rule(log, plain)
    assert plain.state_hash() == before
    plain.tell(plain.pending[0], 0.5, [0.5])  # it still knows its pending decision
    mixes = decisions_by_kind(safe)
    truth = float((mixes * REWARDS).sum(axis=1) @ np.bincount(log.contexts.argmax(axis=1)) / len(log))
    assert abs(found.reward - truth) < 4 * found.reward_se
    assert ds.logs.evaluate_rule(log, safe).reward == found.reward
    shifted = ds.logs.evaluate_rule(log, np.roll(log.contexts, 1, axis=0) @ mixes)
    assert abs(shifted.reward - truth) > 10 * shifted.reward_se


def test_a_learner_that_draws_is_drawn_anew_for_each_row() -> None:
    log = log_by_context(600)
    learner = learnt(ds.LinearBwK(exploration=20.0))  # so that it does not always play the same arm
    before = learner.state_hash()
    found = ds.logs.evaluate_rule(log, learner)
    assert learner.state_hash() == before
    assert 0.05 < float(found.costs[0]) < 1.0
    assert log.contexts is not None
    choices = _asked(log, learner, log.contexts)[log.contexts[:, 1] == 1.0]
    assert 0.02 < choices[:, 0].mean() < 0.98
    assert set(choices.ravel().tolist()) == {0.0, 1.0}


def test_arms_of_a_learner_are_matched_by_name() -> None:
    log = log_by_context(600)
    past = log_by_context(400, seed=77)
    renamed = dataclasses.replace(past, arms=("b", "a"), arm=np.where(past.arm < 0, past.arm, 1 - past.arm))
    one = learnt(ds.policies.SquareCBwK())
    other = ds.policies.SquareCBwK().start(
        dataclasses.replace(one.problem, arm_names=("b", "a")), seed=3, safe=False, log=renamed
    )
    other.ask(context={"kind": "x"})
    found, turned = (ds.logs.evaluate_rule(log, learner).reward for learner in (one, other))
    assert abs(found - turned) < 0.02
    with pytest.raises(NamesError, match=r"must have the arms \['a', 'c'\]"):
        ds.logs.evaluate_rule(dataclasses.replace(log, arms=("a", "c")), one)
    with pytest.raises(SettingError, match=r"features=learner\.problem.encoder"):
        ds.logs.evaluate_rule(
            dataclasses.replace(log, features=ds.Encoder(categories={"kind": ["x", "z", "y"]}, spare=0)), one
        )
