"""The exploration floor: true probabilities, for every policy that the contract finds, and propensities over draws."""

from __future__ import annotations

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import CannotAnswerError, OutOfRangeError
from driftsack.logs.propensities import check_propensities
from driftsack.policies import WithExploration
from driftsack.policies.learner.propensities import redraw
from driftsack.service.domain.campaign import Campaign
from driftsack.service.domain.refusals import Refusal
from tests.support.campaigns import small

WORLD = ds.Instance.stationary([0.2, 0.5, 0.8], [[0.3, 0.3, 0.3]], horizon=3_000, budget=3_000.0)
PROBLEM = ds.Problem(horizon=200, arms=["a", "b", "c"], budget=100.0, cost_max=1.0)


def test_logs_of_the_flagship_answer_with_a_floor_and_not_without() -> None:
    """The mix of a draw is often 0, so the log contradicts it; with the floor the estimate is within 4 errors."""
    with pytest.raises(CannotAnswerError):
        ds.logs.evaluate_mix(ds.gather(WORLD, ds.Adaptive()), [0.5, 0.5, 0.0])
    log = ds.gather(WORLD, WithExploration(explore=0.1))
    assert log.propensity is not None
    assert log.propensity.min() >= 0.1 / 3 * (1 - 1e-12)
    check_propensities(log, log.propensity, np.ones(3, dtype=bool))
    found = ds.logs.evaluate_mix(log, [0.5, 0.5, 0.0])
    assert abs(found.reward - 0.35) < 4 * found.reward_se


def test_the_share_is_spread_over_open_arms_and_drawn_as_recorded() -> None:
    """Of 4,000 draws of one round, the shares are those of the mix within 4 standard errors; a closed arm gets none."""
    learner = ds.policies.AlwaysArm(0).start(ds.Problem(5_000, 3, 5_000.0), seed=0, explore=0.3)
    arms = np.array([learner.ask(open=[0, 2]).arm for _ in range(4_000)])
    decision = learner.ask(open=[0, 2])
    np.testing.assert_allclose(decision.mix, [0.85, 0.0, 0.15])
    shares = np.bincount(arms, minlength=3) / len(arms)
    assert (np.abs(shares - decision.mix) <= 4 * np.sqrt(decision.mix * (1 - decision.mix) / len(arms))).all()


def test_with_a_safe_learner_only_arms_that_the_budget_covers_are_explored() -> None:
    problem = ds.Problem(100, ["cheap", "dear"], {"usd": 1.0}, cost_max={"usd": {"cheap": 0.01, "dear": 5.0}})
    learner = ds.policies.AlwaysArm(0).start(problem, seed=0, safe=True, explore=0.5)
    assert learner.ask().mix.tolist() == [1.0, 0.0]


def test_without_a_share_nothing_changes() -> None:
    learner = ds.Adaptive().start(PROBLEM, seed=3, explore=0.0)
    assert learner.state_hash() == ds.Adaptive().start(PROBLEM, seed=3).state_hash()
    with pytest.raises(OutOfRangeError, match="explore"):
        ds.Adaptive().start(PROBLEM, explore=1.5)


def test_an_explored_skip_is_a_pull() -> None:
    """A policy that has nothing left to spend on still explores, and learns from it."""
    learner = ds.Adaptive().start(PROBLEM, seed=0, explore=1.0)
    decisions = [learner.ask() for _ in range(50)]
    assert {decision.arm for decision in decisions} == {0, 1, 2}
    for decision in decisions:
        learner.tell(decision, 0.5, 0.1)
    assert learner.remaining[0] == pytest.approx(95.0)


@pytest.mark.parametrize("policy", [ds.ThompsonBwK(), ds.Adaptive()], ids=["thompson", "adaptive"])
def test_propensities_over_draws(policy: ds.Policy) -> None:
    """They change nothing, begin with the next decision, and agree with many other draws within 5 standard errors."""
    learner, rng = policy.start(PROBLEM, seed=1), np.random.default_rng(0)
    for _ in range(40):
        decision = learner.ask()
        if not decision.skipped:
            learner.tell(decision, float(rng.random() < 0.5), 0.3)
    before = learner.state_hash()
    found = learner.propensities(draws=300)
    assert learner.state_hash() == before
    other = type(learner).from_bytes(learner.to_bytes())
    other._engine.rng.bit_generator.state = np.random.default_rng(9).bit_generator.state
    others = redraw(other, 300, {})
    error = np.hypot(found.error, others.error)
    assert (np.abs(found.probability - others.probability) <= 5 * error).all()
    assert found.error.max() > 0.0
    first = learner.propensities(draws=2).probability
    decision = learner.ask()
    assert decision.skipped or first[decision.arm] >= decision.mix[decision.arm] / 2


def test_logged_propensities_over_draws_pass_the_check_that_those_of_a_draw_fail() -> None:
    """300 requests with few outcomes: weighted pulls add up to the requests with the mean over draws only."""
    learner = ds.ThompsonBwK().start(ds.Problem(400, 2, 400.0), seed=0)
    arms, chances, drawn = [], [], []
    for k in range(300):
        chance = learner.propensities(draws=30).probability
        decision = learner.ask()
        arms.append(decision.arm)
        chances.append(chance[decision.arm])
        drawn.append(decision.mix[decision.arm])
        if k < 4:
            learner.tell(decision, 0.5, 0.1)
        else:
            learner.cancel(decision)
    own = np.array(arms) == 0
    weights = 1 / np.array(chances)[own]
    error = np.sqrt((weights * (weights - 1)).sum())
    assert abs(weights.sum() - 300) < 4 * error
    assert abs((1 / np.array(drawn))[own].sum() - 300) > 4 * error  # the planted fault


def test_a_campaign_explores() -> None:
    campaign = Campaign.new(small(explore=0.02))
    assert isinstance(campaign.learner.policy, WithExploration)
    assert campaign.learner.policy.explore == 0.02
    assert not isinstance(Campaign.new(small()).learner.policy, WithExploration)
    with pytest.raises(Refusal, match="explore"):
        Campaign.new(small(explore=1.5))
