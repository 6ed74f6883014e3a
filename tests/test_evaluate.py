"""Judging policies by logs that others gathered: right where the log can answer, a refusal where it cannot."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import CannotAnswerError, OutOfRangeError

WORLD = ds.Instance.stationary([0.3, 0.6, 0.9], [[0.2, 0.5, 0.9], [0.4, 0.1, 0.3]], 6_000, 3_000.0)
SHARES = np.array([0.6, 0.3, 0.1])


def uneven_log(seed: int = 0) -> ds.logs.Log:
    """A log whose arms were chosen with known, unequal probabilities."""
    log, rng = ds.gather(WORLD, seed=seed), np.random.default_rng(seed)
    arm = rng.choice(3, size=len(log), p=SHARES).astype(np.int32)
    reward = (rng.random(len(log)) < WORLD.rewards[0, arm]).astype(float)
    costs = (rng.random((len(log), 2)) < WORLD.costs[0][:, arm].T).astype(float)
    return dataclasses.replace(log, arm=arm, reward=reward, costs=costs, propensity=SHARES[arm])


def test_weights_against_an_obvious_twin_and_the_truth() -> None:
    log, mix = uneven_log(), [0.1, 0.2, 0.5]
    found = ds.logs.evaluate_mix(log, mix, budget=[1_500.0, 3_000.0])
    top = bottom = squares = 0.0
    for t in range(len(log)):
        weight = mix[log.arm[t]] / SHARES[log.arm[t]]
        top, bottom, squares = top + weight * log.reward[t], bottom + weight, squares + weight**2
    assert found.reward == pytest.approx(0.8 * top / bottom)
    assert found.effective == pytest.approx(bottom**2 / squares)
    true = np.array(mix) @ WORLD.rewards[0]
    assert abs(found.reward - true) < 4 * found.reward_se
    assert abs(log.reward.mean() * 0.8 - true) > 8 * found.reward_se  # without weights it would be far off
    np.testing.assert_allclose(found.costs, WORLD.costs[0] @ mix, atol=0.05)
    assert found.lasts == pytest.approx(1_500.0 / found.costs[0])
    assert found.total == pytest.approx(found.reward * found.lasts)
    assert ds.logs.evaluate_mix(log, [0.0, 0.0, 0.0]).reward == 0.0


def test_standard_errors_of_weights_hold() -> None:
    """Over 60 logs the estimates spread as their standard errors say, within a third."""
    found = [ds.logs.evaluate_mix(uneven_log(seed), [0.2, 0.2, 0.6]) for seed in range(60)]
    spread = np.std([one.reward for one in found], ddof=1)
    assert spread == pytest.approx(np.mean([one.reward_se for one in found]), rel=0.33)


@pytest.mark.parametrize("policy", [ds.NaiveUCB(scale=0.1), ds.AlwaysArm(2), ds.UniformRandom()])
def test_rejection_sampling_earns_what_the_policy_would(policy: ds.Policy) -> None:
    """Against simulation of the same, shorter game: within 4 standard errors of a log's own luck and of the trials'."""
    log = uneven_log()
    budget = np.array([2_000.0, 2_500.0])
    found = ds.logs.evaluate(log, policy, budget, trials=8)
    rounds = int(0.1 * len(log) - 2 * np.sqrt(len(log) * 0.1 * 0.9))
    shorter = ds.Instance.stationary(WORLD.rewards[0], WORLD.costs[0], rounds, budget * rounds / len(log))
    run = ds.simulate(shorter, policy, trials=200, seed=1)
    luck = run.reward.std() / rounds  # one log is one draw of nature
    assert abs(found.reward - run.reward.mean() / rounds) < 4 * luck
    assert found.effective <= rounds


def test_a_policy_that_skips_counts_as_many_rounds() -> None:
    """Skipping is known exactly, but takes its time: a plan that must save plays about as long as one that need not."""
    log = ds.gather(WORLD, seed=2)
    poor = ds.logs.evaluate(log, ds.NaiveUCB(scale=0.05, budget_rule="remaining"), [300.0, 300.0], trials=3)
    assert poor.effective > 0.9 * len(log) / 3 - 2 * np.sqrt(len(log) * 2 / 9) - 200
    assert (poor.costs * len(log) <= 300.0 * 1.001).all()
    again = ds.logs.evaluate(log, ds.NaiveUCB(scale=0.05, budget_rule="remaining"), [300.0, 300.0], trials=3)
    assert again.reward == poor.reward


def test_refusals() -> None:
    log = uneven_log()
    blind = dataclasses.replace(log, propensity=None)
    with pytest.raises(CannotAnswerError, match="no column propensity"):
        ds.logs.evaluate(blind, ds.NaiveUCB(), 1.0)
    with pytest.raises(CannotAnswerError, match="no column propensity"):
        ds.logs.evaluate_mix(blind, [0, 0, 1])
    short = dataclasses.replace(
        log, **{name: getattr(log, name)[:200] for name in ("time", "arm", "reward", "costs", "propensity")}
    )
    with pytest.raises(CannotAnswerError, match="200 rounds count as 11, and 50 are needed"):
        ds.logs.evaluate(short, ds.NaiveUCB(), 1.0)
    with pytest.raises(CannotAnswerError, match="so unlike what was tried that 200 rounds count as"):
        ds.logs.evaluate_mix(short, [0.0, 0.0, 1.0])
    untried = dataclasses.replace(log, arm=np.where(log.arm == 2, 0, log.arm).astype(np.int32))
    with pytest.raises(CannotAnswerError, match="the mix plays 2, which the log never tried"):
        ds.logs.evaluate_mix(untried, [0.0, 0.0, 1.0])
    idle = dataclasses.replace(log, arm=np.full(len(log), -1, dtype=np.int32))
    with pytest.raises(CannotAnswerError, match="every round of the log was skipped"):
        ds.logs.evaluate_mix(idle, [0.0, 0.0, 1.0])
    with pytest.raises(OutOfRangeError, match="mix must sum to at most 1"):
        ds.logs.evaluate_mix(log, [0.5, 0.5, 0.5])
