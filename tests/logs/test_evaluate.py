"""Off-policy evaluation: correct where the log supports an answer, refused where it does not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.errors import CannotAnswerError, NegativeBudgetError, OutOfRangeError

WORLD = ds.Instance.stationary([0.3, 0.6, 0.9], [[0.2, 0.5, 0.9], [0.4, 0.1, 0.3]], 6_000, 3_000.0)
SHARES = np.array([0.6, 0.3, 0.1])


def uneven_log(seed: int = 0) -> ds.logs.Log:
    """A log whose arms were chosen with known, unequal probabilities."""
    log, rng = ds.gather(WORLD, seed=seed), np.random.default_rng(seed)
    arm = rng.choice(3, size=len(log), p=SHARES).astype(np.int32)
    reward = (rng.random(len(log)) < WORLD.rewards[0, arm]).astype(float)
    costs = (rng.random((len(log), 2)) < WORLD.costs[0][:, arm].T).astype(float)
    return dataclasses.replace(log, arm=arm, reward=reward, costs=costs, propensity=SHARES[arm])


def log_of(arm: npt.NDArray[Any], propensity: Floats, reward: npt.NDArray[Any] | None = None) -> ds.logs.Log:
    """A log without costs; arm -1 is a skip."""
    n = len(arm)
    return dataclasses.replace(
        ds.gather(ds.Instance.stationary([0.5] * (int(arm.max()) + 1), [[0.0] * (int(arm.max()) + 1)], n, 1.0)),
        arm=arm.astype(np.int32),
        propensity=propensity,
        reward=np.zeros(n) if reward is None else reward.astype(float),
    )


def drawn(probabilities: Floats, rng: np.random.Generator, means: Floats | None = None) -> ds.logs.Log:
    """A log whose arms are drawn from the rows of ``probabilities`` (n, m); a skip has the remaining probability."""
    n, m = probabilities.shape
    arm = (rng.random((n, 1)) >= probabilities.cumsum(axis=1)).sum(axis=1)
    all_probabilities = np.column_stack([probabilities, 1.0 - probabilities.sum(axis=1)])
    paid = np.zeros((n, m + 1)) if means is None else np.column_stack([means, np.zeros(n)])
    reward = rng.random(n) < paid[np.arange(n), arm]
    return log_of(np.where(arm == m, -1, arm), all_probabilities[np.arange(n), arm], reward)


def greedy_log(n: int, rng: np.random.Generator) -> ds.logs.Log:
    """A log of an epsilon-greedy learner with epsilon = 0.2."""
    means, sums, pulls = np.array([0.4, 0.5, 0.6]), np.ones(3), np.full(3, 2.0)
    arm, propensity = np.zeros(n), np.zeros(n)
    for t in range(n):
        probabilities = np.full(3, 0.2 / 3) + 0.8 * (np.arange(3) == np.argmax(sums / pulls))
        i = rng.choice(3, p=probabilities)
        arm[t], propensity[t] = i, probabilities[i]
        sums[i], pulls[i] = sums[i] + (rng.random() < means[i]), pulls[i] + 1
    return log_of(arm, propensity)


def uneven_probabilities(n: int, rng: np.random.Generator) -> Floats:
    return np.tile(rng.dirichlet(np.full(3, 4.0)), (n, 1))


def periodic_probabilities(n: int, rng: np.random.Generator) -> Floats:
    waves = np.exp(np.sin(6.0 * np.arange(n)[:, None] / n + np.arange(3) + rng.random()))
    return np.asarray(waves / waves.sum(axis=1, keepdims=True))


def skipping_probabilities(n: int, rng: np.random.Generator) -> Floats:
    return uneven_probabilities(n, rng) * np.linspace(0.3, 0.9, n)[:, None]


def rare_probabilities(n: int, rng: np.random.Generator) -> Floats:
    return np.tile([0.01, *(0.99 * rng.dirichlet(np.full(2, 4.0)))], (n, 1))


def test_weights_against_a_simple_implementation_and_the_truth() -> None:
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
    assert abs(log.reward.mean() * 0.8 - true) > 8 * found.reward_se  # without weights the estimate is far off
    np.testing.assert_allclose(found.costs, WORLD.costs[0] @ mix, atol=0.05)
    assert found.lasts == pytest.approx(1_500.0 / found.costs[0])
    assert found.total == pytest.approx(found.reward * found.lasts)
    assert ds.logs.evaluate_mix(log, [0.0, 0.0, 0.0]).reward == 0.0


def test_standard_errors_of_weights_hold() -> None:
    """Over 60 logs the spread of the estimates agrees with their standard errors within a third."""
    found = [ds.logs.evaluate_mix(uneven_log(seed), [0.2, 0.2, 0.6]) for seed in range(60)]
    spread = np.std([one.reward for one in found], ddof=1)
    assert spread == pytest.approx(np.mean([one.reward_se for one in found]), rel=0.33)


@pytest.mark.parametrize("policy", [ds.NaiveUCB(scale=0.1), ds.policies.AlwaysArm(2)])
def test_standard_errors_of_rejection_sampling_hold(policy: ds.Policy) -> None:
    """Over 40 logs the spread of the estimates of 3 games is 0.5 to 1.33 times their standard errors.

    The standard error of the mean over games alone would be half as large for a fixed arm, and less for a learner.
    """
    world = ds.Instance.stationary([0.3, 0.6, 0.45], [[0.5, 0.5, 0.5]], horizon=500, budget=500.0)
    found = [ds.logs.evaluate(ds.gather(world, seed=s), policy, 500.0, trials=3, seed=s) for s in range(40)]
    spread = np.std([one.reward for one in found], ddof=1)
    expected = np.sqrt(np.mean([one.reward_se**2 for one in found]))
    assert 0.5 * expected < spread < 1.33 * expected


@pytest.mark.parametrize("policy", [ds.NaiveUCB(scale=0.1), ds.policies.AlwaysArm(2), ds.policies.UniformRandom()])
def test_rejection_sampling_earns_what_the_policy_would(policy: ds.Policy) -> None:
    """Agrees with a simulation of the same, shorter game within 4 standard deviations of a single game."""
    log = uneven_log()
    budget = np.array([2_000.0, 2_500.0])
    found = ds.logs.evaluate(log, policy, budget, trials=8)
    rounds = int(0.1 * len(log) - 2 * np.sqrt(len(log) * 0.1 * 0.9))
    shorter = ds.Instance.stationary(WORLD.rewards[0], WORLD.costs[0], rounds, budget * rounds / len(log))
    run = ds.simulate(shorter, policy, trials=200, seed=1)
    spread = run.reward.std() / rounds  # one log is a single draw
    assert abs(found.reward - run.reward.mean() / rounds) < 4 * spread
    assert found.effective <= rounds


def test_skipped_rounds_are_accepted_at_the_same_rate() -> None:
    """A policy that skips to save budget is evaluated on about as many rounds as others."""
    log = ds.gather(WORLD, seed=2)
    poor = ds.logs.evaluate(log, ds.NaiveUCB(scale=0.05, budget_rule="remaining"), [300.0, 300.0], trials=3)
    assert poor.effective > 0.9 * len(log) / 3 - 2 * np.sqrt(len(log) * 2 / 9) - 200
    assert (poor.costs * len(log) <= 300.0 * 1.001).all()
    again = ds.logs.evaluate(log, ds.NaiveUCB(scale=0.05, budget_rule="remaining"), [300.0, 300.0], trials=3)
    assert again.reward == poor.reward


def test_the_end_of_a_log_is_used() -> None:
    """Rewards only in the last 15% of 40 logs: 0.15 per round, minus 0.01 because the end has less weight, +- 4 errors.

    Accepting the first rounds until the horizon is reached would give 0.03.
    """
    n, rng, found = 500, np.random.default_rng(1), []
    for _ in range(40):
        log = log_of(rng.integers(0, 5, n), np.full(n, 0.2), np.arange(n) >= 425)
        found.append(ds.logs.evaluate(log, ds.policies.AlwaysArm(0), 500.0, trials=8).reward)
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert error < 0.01
    assert abs(np.mean(found) - 0.14) < 4 * error


def test_weights_are_right_under_drift_and_skips() -> None:
    """Over 100 logs: the mean within 4 errors, and 88 of them within 2; fails by chance once in 200 times."""
    n, rng, scores = 2_000, np.random.default_rng(3), []
    means = np.column_stack([np.linspace(0.1, 0.9, n), np.linspace(0.8, 0.2, n), np.full(n, 0.5)])
    for _ in range(100):
        found = ds.logs.evaluate_mix(drawn(skipping_probabilities(n, rng), rng, means), [0.3, 0.5, 0.1])
        scores.append((found.reward - means.mean(axis=0) @ [0.3, 0.5, 0.1]) / found.reward_se)
    assert abs(np.mean(scores)) < 0.4
    assert np.mean(np.abs(scores) < 2) > 0.88


@pytest.mark.parametrize(
    "probabilities", [uneven_probabilities, periodic_probabilities, skipping_probabilities, rare_probabilities, None]
)
@pytest.mark.parametrize("n", [300, 2_000])
def test_correct_logs_are_not_refused(
    probabilities: Callable[[int, np.random.Generator], Floats] | None, n: int
) -> None:
    """60 logs of each kind and length, 600 in all; None for a log of a learner. The mix is close to the log's."""
    rng = np.random.default_rng(n)
    for _ in range(60):
        log = greedy_log(n, rng) if probabilities is None else drawn(probabilities(n, rng), rng)
        tried = np.bincount(log.arm[log.arm >= 0], minlength=3)
        ds.logs.evaluate_mix(log, tried / tried.sum())


def test_a_learner_may_not_play_an_arm_for_a_while() -> None:
    """Arm 0 has probability 0.98, then 0.02: that it is not played in 100 such rounds has probability 1/8."""
    n = np.arange(1_000)
    log = log_of((n % 50 == 0) | (n >= 900), np.where((n % 50 == 0) & (n < 900), 0.02, 0.98))
    assert ds.logs.evaluate_mix(log, [1.0, 0.0]).effective > 800


def test_the_policy_is_judged_by_the_arms_that_it_asks_for() -> None:
    log = ds.gather(ds.Instance.stationary([0.3, 0.6], [[0.5, 0.5]], 2_000, 2_000.0), ds.policies.AlwaysArm(0))
    found = ds.logs.evaluate(log, ds.policies.AlwaysArm(0), 2_000.0, trials=2)
    assert found.reward == pytest.approx(log.reward.mean())
    assert found.effective == len(log)
    for policy in (ds.policies.AlwaysArm(1), ds.policies.UniformRandom()):
        with pytest.raises(CannotAnswerError, match="arm 1 stand for 0 of the first 2,000 rounds"):
            ds.logs.evaluate(log, policy, 2_000.0, trials=2)


def test_a_budget_may_be_exhausted_early() -> None:
    log = uneven_log()
    found = ds.logs.evaluate(log, ds.policies.AlwaysArm(2), [60.0, 6_000.0], trials=4)
    assert found.effective < 20
    assert found.costs[0] <= 60.0 / len(log)


def test_arms_with_zero_or_wrong_propensities_are_refused() -> None:
    rng, n = np.random.default_rng(5), 4_000
    late = np.arange(n) >= n // 2
    schedule, fair = late.astype(float), rng.random(n) < 0.5
    for log, mix, arm in [
        (log_of(schedule, np.ones(n)), [0.5, 0.5], "0"),  # nothing was random
        (log_of(late & fair, np.where(late, 0.5, 1.0)), [0.5, 0.5], "1"),  # added late
        (log_of(schedule, np.full(n, 0.5)), [0.0, 1.0], "1"),  # frequencies, correct only on average
        (log_of(fair, np.full(n, 0.4)), [0.5, 0.5], "0"),  # wrong
        (log_of(np.where(late, fair, -1.0), np.where(late, 0.5, 1.0)), [0.5, 0.5], "0"),  # closed at first
    ]:
        with pytest.raises(CannotAnswerError, match=f"the pulls of arm {arm} stand for"):
            ds.logs.evaluate_mix(log, mix)
        with pytest.raises(CannotAnswerError, match="weighted by 1/propensity"):
            ds.logs.evaluate(log, ds.policies.UniformRandom(), 1.0, trials=2)


def test_a_log_that_ends_before_the_game_is_refused() -> None:
    """The arm is so rare that its absence in the first rounds could be chance, but also too rare to evaluate."""
    n, rng = 3_800, np.random.default_rng(2)
    open_rounds = np.arange(n) >= 0.4 * n
    rare = open_rounds & (rng.random(n) < 0.02)
    log = log_of(rare, np.where(rare, 0.02, np.where(open_rounds, 0.98, 1.0)))
    with pytest.raises(CannotAnswerError, match=r"the log ended after 4. of 58 rounds of the game, and 50 are"):
        ds.logs.evaluate(log, ds.policies.AlwaysArm(1), 1.0, trials=2)


def test_budget_errors_show_the_given_value() -> None:
    log = uneven_log()
    with pytest.raises(NegativeBudgetError, match="budget must be 0 or more, got -5"):
        ds.logs.evaluate_mix(log, SHARES, budget=-5)
    with pytest.raises(NegativeBudgetError, match="budget must be 0 or more, got -5"):
        ds.logs.evaluate(log, ds.policies.UniformRandom(), -5)


def test_the_propensity_of_a_skip_is_not_used() -> None:
    log = drawn(np.full((1_000, 2), 0.4), np.random.default_rng(0))
    without = dataclasses.replace(log, propensity=np.where(log.arm < 0, 0.0, 0.4))
    assert ds.logs.evaluate_mix(without, [0.5, 0.5]).effective == ds.logs.evaluate_mix(log, [0.5, 0.5]).effective


def test_refusals() -> None:
    log = uneven_log()
    without = dataclasses.replace(log, propensity=None)
    with pytest.raises(CannotAnswerError, match="no column propensity"):
        ds.logs.evaluate(without, ds.NaiveUCB(), 1.0)
    with pytest.raises(CannotAnswerError, match="no column propensity"):
        ds.logs.evaluate_mix(without, [0, 0, 1])
    short = dataclasses.replace(
        log, **{name: getattr(log, name)[:200] for name in ("time", "arm", "reward", "costs", "propensity")}
    )
    with pytest.raises(CannotAnswerError, match="about 11 of 200 rounds are accepted, and 50 are needed"):
        ds.logs.evaluate(short, ds.NaiveUCB(), 1.0)
    with pytest.raises(CannotAnswerError, match="the effective sample size of 200 rounds is"):
        ds.logs.evaluate_mix(short, [0.0, 0.0, 1.0])
    untried = dataclasses.replace(log, arm=np.where(log.arm == 2, 0, log.arm).astype(np.int32))
    with pytest.raises(CannotAnswerError, match="the mix contains 2, which the log never played"):
        ds.logs.evaluate_mix(untried, [0.0, 0.0, 1.0])
    idle = dataclasses.replace(log, arm=np.full(len(log), -1, dtype=np.int32))
    with pytest.raises(CannotAnswerError, match="every round of the log was skipped"):
        ds.logs.evaluate_mix(idle, [0.0, 0.0, 1.0])
    with pytest.raises(OutOfRangeError, match="mix must sum to at most 1"):
        ds.logs.evaluate_mix(log, [0.5, 0.5, 0.5])
