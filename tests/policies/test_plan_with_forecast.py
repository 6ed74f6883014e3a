"""Planning with a forecast against a twin: sliding-window UCB without trust, LP-Dynamic's plan at full trust."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import DriftsackError, OutOfRangeError, SettingError, ShapeError
from driftsack.game.state_tree import programs
from driftsack.lp import certificate
from driftsack.policies import from_spec
from driftsack.policies.parts.pacing import BudgetRule
from driftsack.policies.sliding_window_ucb import checked_windows
from tests.support.delayed_feedback import Feedback, give_feedback

HORIZON = 180
PROBLEM = ds.Problem(horizon=HORIZON, arms=3, budget=[22.0, 48.0], reward_max=2.0, cost_max=[1.0, 2.0])


def some_forecast(seed: int = 0) -> ds.Instance:
    """Five rows, some of which recur, in the problem's units."""
    rng = np.random.default_rng(seed)
    phase = np.repeat([0, 1, 2, 1, 3, 0, 4], [20, 30, 25, 15, 40, 30, 20])
    return ds.Instance(PROBLEM, 2.0 * rng.random((5, 3)), rng.random((5, 2, 3)) * [[1.0], [2.0]], phase)


class Twin:
    """A twin that computes bounds and rate of every round from the full history."""

    def __init__(self, policy: ds.PlanWithForecast, trust: float | None = None, shift: int = 0) -> None:
        self.trust = policy.trust if trust is None else trust
        self.policy, self.world, self.shift = policy, policy.forecast, shift
        self.windows = checked_windows(policy.windows) if policy.windows else (HORIZON, HORIZON)
        self.prior_weight = math.inf if self.trust == 1 else 1 / (1 - self.trust) ** 2
        plan = ds.benchmarks.lp_dynamic(self.world).plan
        assert plan is not None
        self.rates = np.zeros((HORIZON, 2))  # planned and even rates, weighted by trust
        for t in range(HORIZON):
            row = self.world.phase[t]
            planned = self.world.costs[row] @ plan[row] / [1.0, 2.0]
            self.rates[t] = self.trust * planned + (1 - self.trust) * PROBLEM.rate

    def bounds(self, known: list[Feedback], t: int) -> tuple[Any, Any]:
        """UCB of rewards (m,) and LCB of costs (d, m) in round t, from 1; ``shift`` plants a wrong round."""
        upper, lower = np.zeros(3), np.zeros((2, 3))
        rewards, costs = self.trust * self.world.rewards / 2.0, self.trust * self.world.costs / [[1.0], [2.0]]
        phase, scale = self.world.phase, self.policy.scale
        for i in range(3):
            observed = [
                feedback for feedback in known if feedback.arm == i and t - self.windows[0] <= feedback.round <= t - 1
            ]
            rows = [phase[(feedback.round - 1 + self.shift) % HORIZON] for feedback in observed]
            missed = sum(one.reward / 2.0 - rewards[row, i] for one, row in zip(observed, rows, strict=True))
            n = len(observed) + self.prior_weight
            radius = scale * math.sqrt(2 * math.log(12 * 3 * HORIZON**3) / n)
            upper[i] = rewards[phase[t - 1], i] + missed / n + radius
            observed = [
                feedback for feedback in known if feedback.arm == i and t - self.windows[1] <= feedback.round <= t - 1
            ]
            rows = [phase[(feedback.round - 1 + self.shift) % HORIZON] for feedback in observed]
            n = len(observed) + self.prior_weight
            radius = scale * math.sqrt(2 * math.log(12 * 3 * 2 * HORIZON**3) / n)
            for j in range(2):
                gaps = [
                    one.costs[j] / (1.0, 2.0)[j] - costs[row, j, i] for one, row in zip(observed, rows, strict=True)
                ]
                lower[j, i] = costs[phase[t - 1], j, i] + sum(gaps) / n - radius
        return upper, lower

    def rate(self, known: list[Feedback], t: int) -> Any:
        """The rate of round t: the plan's, times the remaining budget over what should remain."""
        rate = self.rates[t - 1]
        if self.policy.budget_rule == "remaining":
            spent = sum((one.costs for one in known), np.zeros(2)) / [1.0, 2.0]
            left, expected = np.maximum(PROBLEM.unit_budget - spent, 0.0), self.rates[t - 1 :].sum(axis=0)
            rate = rate * left / expected
        return np.minimum(rate, 2.0)


def disagreement(policy: ds.PlanWithForecast, **fault: Any) -> float:
    """Ask, and tell late; return the largest disagreement with the twin in bounds, rates, mixes and prices."""
    twin = Twin(policy, **fault)
    learner, rng = policy.start(PROBLEM, seed=0), np.random.default_rng(1)
    lp = next(programs(learner.state))
    known: list[Feedback] = []
    worst, skips, late, cancels = 0.0, 0, 0, 0
    while not learner.done:
        t = learner.round + 1
        upper, lower = twin.bounds(known, t)
        rate = twin.rate(known, t)
        decision = learner.ask()
        proof = certificate(upper, lower, rate, decision.mix, decision.prices * [1.0, 2.0] / 2.0)
        off = np.abs(lp.objective[:3] - upper).max(), np.abs(lp.columns[:-1, :3] - lower).max()
        worst = max(worst, *map(abs, proof), *off, np.abs(lp.rhs[:-1] - rate).max())
        skips += decision.skipped
        given = give_feedback(learner, rng)
        late += sum(one.round < learner.round for one in given)
        cancels += sum(one.arm == ds.SKIP for one in given)
        known += given
    assert min(skips, late, cancels) > 5
    assert len(known) > 50
    return worst


@pytest.mark.parametrize("rule", ["fixed", "remaining"])
@pytest.mark.parametrize("windows", [None, (30, 30), (12, 50), (50, 12)])
def test_equals_the_twin_at_half_trust(windows: tuple[int, int] | None, rule: BudgetRule) -> None:
    assert disagreement(ds.PlanWithForecast(some_forecast(), 0.5, windows, scale=0.02, budget_rule=rule)) < 1e-9


@pytest.mark.parametrize("trust", [0.0, 0.25, 0.9])
def test_equals_the_twin_at_other_trusts(trust: float) -> None:
    assert disagreement(ds.PlanWithForecast(some_forecast(), trust, (30, 40), scale=0.02)) < 1e-9


def test_the_twin_detects_planted_faults() -> None:
    """Another trust, and outcomes that are compared with the forecast of the round after theirs."""
    policy = ds.PlanWithForecast(some_forecast(), 0.5, (30, 40), scale=0.02)
    assert disagreement(policy, trust=0.51) > 1e-3
    assert disagreement(policy, shift=1) > 1e-3


def difference_from_ucb(trust: float) -> float:
    """The largest difference in mixes from sliding-window UCB with the same windows, rule and late feedback."""
    planning = ds.PlanWithForecast(some_forecast(), trust, windows=(25, 35), scale=0.05).start(PROBLEM, seed=2)
    plain = ds.SlidingWindowUCB(windows=(25, 35), scale=0.05, budget_rule="remaining").start(PROBLEM, seed=2)
    one, two = (np.random.default_rng(3) for _ in range(2))
    worst = 0.0
    while not (planning.done or plain.done):
        first, second = planning.ask(), plain.ask()
        worst = max(worst, np.abs(first.mix - second.mix).max(), np.abs(first.prices - second.prices).max())
        give_feedback(planning, one)
        give_feedback(plain, two)
    assert planning.round > 100
    return worst


def test_without_trust_it_is_sliding_window_ucb() -> None:
    """Without trust the forecast has no influence; with a little trust it has."""
    assert difference_from_ucb(0.0) < 1e-9
    assert difference_from_ucb(0.05) > 1e-2


def summary(world: ds.Instance, policy: ds.Policy, trials: int = 60) -> tuple[float, float]:
    results = ds.simulate(world, policy, trials=trials, seed=0).summary()
    return results["reward"], results["reward_se"]


WORLDS = [ds.instances.example_2(), ds.instances.example_3(0.5)]


@pytest.mark.parametrize("world", [*WORLDS, ds.instances.piecewise_random(seed=3)], ids=["2", "3", "random"])
def test_an_exact_forecast_at_full_trust_earns_the_optimum(world: ds.Instance) -> None:
    """It loses at most sqrt(T) of LP-Dynamic, within 4 standard errors (exceeded once in 30,000 seeds).

    The spending of a resource has a standard deviation of at most sqrt(T)/2; the largest loss here is 0.4 sqrt(T).
    """
    best = ds.benchmarks.lp_dynamic(world).value
    reward, error = summary(world, ds.PlanWithForecast(world, trust=1.0))
    assert -4 * error < best - reward < 4 * error + math.sqrt(world.horizon)


def forecast_with_error(world: ds.Instance, size: float, seed: int) -> ds.Instance:
    """A forecast in which every mean is off by ``size`` with a random sign, clipped to [0, 1]."""
    rng = np.random.default_rng(seed)
    rewards = world.rewards + size * rng.choice([-1, 1], world.rewards.shape)
    costs = world.costs + size * rng.choice([-1, 1], world.costs.shape)
    return ds.Instance(world.problem, rewards.clip(0, 1), costs.clip(0, 1), world.phase, world.noise)


def within_bound(lost: float, error: float, size: float, horizon: int) -> bool:
    """Whether an error of ε in every mean costs at most ε T / 2, within 4 standard errors."""
    return lost < size * horizon / 2 + 4 * error


@pytest.mark.parametrize("world", WORLDS, ids=["2", "3"])
def test_reward_degrades_linearly_with_the_error_of_the_forecast(world: ds.Instance) -> None:
    """At half trust an error of ε costs at most ε T / 2; up to 0.2 a forecast is better than none, by 5 errors.

    The dual's bound 2 (1 + |q|) ε T is 2 ε T and 3.4 ε T here; the largest measured loss is 0.28 ε T.
    """
    exact, noise = summary(world, ds.PlanWithForecast(world))
    without, spread = summary(world, ds.PlanWithForecast(world, trust=0.0))
    for size in (0.0, 0.05, 0.1, 0.2):
        for seed in range(3):
            reward, error = summary(world, ds.PlanWithForecast(forecast_with_error(world, size, seed)))
            assert within_bound(exact - reward, math.hypot(error, noise), size, world.horizon)
            assert reward > without + 5 * math.hypot(error, spread)


def test_the_bound_detects_a_forecast_with_a_larger_error() -> None:
    """The planted fault: the two halves of example 3 are swapped, but the error is stated as 0.05."""
    world = WORLDS[1]
    exact, noise = summary(world, ds.PlanWithForecast(world))
    swapped = ds.Instance(world.problem, world.rewards, world.costs, 1 - world.phase, world.noise)
    reward, error = summary(world, ds.PlanWithForecast(swapped))
    assert not within_bound(exact - reward, math.hypot(error, noise), 0.05, world.horizon)


@pytest.mark.parametrize(
    "problem",
    [
        ds.Problem(HORIZON - 1, 3, [22.0, 48.0], 2.0, [1.0, 2.0]),
        ds.Problem(HORIZON, 4, [22.0, 48.0], 2.0, [1.0, 2.0]),
        ds.Problem(HORIZON, 3, [22.0], 2.0, [1.0]),
    ],
    ids=["rounds", "arms", "resources"],
)
def test_refuses_a_forecast_of_another_shape(problem: ds.Problem) -> None:
    with pytest.raises(SettingError, match=r"the forecast must have the problem's .* got 180, 3 and 2\."):
        ds.PlanWithForecast(some_forecast()).start(problem)


def test_budget_and_units_are_those_of_the_problem() -> None:
    """The means of the forecast are in natural units; budget and normalisation are those of the problem."""
    forecast = some_forecast()
    problem = ds.Problem(HORIZON, 3, [40.0, 20.0], reward_max=4.0, cost_max=[2.0, 3.0])
    given = ds.PlanWithForecast(forecast, 0.7).new_state(problem)
    expected = ds.PlanWithForecast(ds.Instance(problem, forecast.rewards, forecast.costs, forecast.phase), 0.7)
    for one, two in zip(given.forecast, expected.new_state(problem).forecast, strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(given.forecast.rewards, 0.7 * forecast.rewards / 4.0)
    np.testing.assert_allclose(given.forecast.costs, 0.7 * forecast.costs / [[2.0], [3.0]])
    planned = forecast.rounds @ given.forecast.planned / 0.7
    assert (planned <= problem.unit_budget + 1e-9).all()
    assert (planned > problem.unit_budget - 1e-6).any()  # by the problem's budget, not the forecast's
    learner = ds.PlanWithForecast(forecast, 0.7).start(problem)
    learner.tell(learner.ask(), 3.9, [1.9, 2.9])
    with pytest.raises(OutOfRangeError, match=r"mean rewards must lie in \[0, 1\]"):
        ds.PlanWithForecast(forecast).start(ds.Problem(HORIZON, 3, [22.0, 48.0], 1.0, [1.0, 2.0]))


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"forecast": PROBLEM}, SettingError, "forecast must be a driftsack Instance"),
        ({"forecast": {"rewards": [1.0]}}, ShapeError, "an instance needs costs, noise, problem, rewards, runs"),
        ({"trust": 1.5}, OutOfRangeError, r"trust must lie in \[0, 1\], got 1.5"),
        ({"trust": -0.1}, OutOfRangeError, "trust must lie in"),
        ({"scale": -1.0}, OutOfRangeError, "scale must be 0 or more"),
        ({"windows": 5.5}, SettingError, "windows must be a pair"),
        ({"windows": (0, 5)}, OutOfRangeError, "each window must be at least 1"),
        ({"budget_rule": "even"}, SettingError, "budget_rule must be one of"),
    ],
)
def test_bad_settings(settings: dict[str, Any], error: type[DriftsackError], words: str) -> None:
    with pytest.raises(error, match=words):
        ds.PlanWithForecast(**({"forecast": some_forecast()} | settings))


def test_a_policy_with_a_forecast_is_a_value_and_survives_a_spec(tmp_path: Path) -> None:
    """Through JSON, nested in another policy, and in a learner's file, from which it continues bit for bit."""
    policy = ds.PlanWithForecast(some_forecast(), 0.3, (20, 30), scale=0.05)
    for one in (policy, ds.DetectAndRestart(policy)):
        again = from_spec(json.loads(json.dumps(one.to_spec())))
        assert again == one
        assert len({again, one}) == 1
    assert dataclasses.replace(policy, forecast=some_forecast(seed=1)) != policy
    assert [policy.forgets, ds.PlanWithForecast(some_forecast()).forgets] == [True, False]
    learner, rng = policy.start(PROBLEM, seed=0), np.random.default_rng(0)
    for _ in range(60):
        learner.ask()
        give_feedback(learner, rng)
    learner.save(tmp_path / "learner.npz")
    other = ds.Learner.load(tmp_path / "learner.npz")
    assert other.policy == policy
    for _ in range(30):
        first, second = learner.ask(), other.ask()
        assert (first.arm, first.mix.tolist()) == (second.arm, second.mix.tolist())


def test_an_instance_is_a_value() -> None:
    """Instances with equal parts are equal and have equal hashes; they survive a round trip through JSON."""
    world = some_forecast()
    again = ds.Instance.from_dict(json.loads(json.dumps(world.to_dict())))
    assert again == world
    assert hash(again) == hash(world)
    np.testing.assert_array_equal(again.phase, world.phase)
    assert world.to_dict()["runs"] == [[0, 20], [1, 30], [2, 25], [1, 15], [3, 40], [0, 30], [4, 20]]
    others: list[object] = [
        dataclasses.replace(world, noise="beta"),
        dataclasses.replace(world, rewards=world.rewards / 2),
        dataclasses.replace(world, costs=world.costs / 2),
        dataclasses.replace(world, phase=world.phase[::-1]),
        some_forecast(seed=1),
        ds.Instance(ds.Problem(HORIZON, 3, [23.0, 48.0], 2.0, [1.0, 2.0]), world.rewards, world.costs, world.phase),
        world.problem,
        None,
    ]
    assert all(other != world for other in others)
    assert len({world, again, *(other for other in others if isinstance(other, ds.Instance))}) == 7


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"noise": "unknown"}, "noise must be one of"),
        ({"runs": [[0, 20]]}, "the rounds of all runs must sum to 180, got 20"),
        ({"runs": [[9, 180]]}, r"phase must lie in \[0, 4\]"),
        ({"rewards": [[0.1, 0.2]]}, "rewards must be numbers of shape"),
        ({"more": 1}, "an instance needs"),
    ],
)
def test_a_bad_instance_as_plain_numbers(change: dict[str, Any], words: str) -> None:
    with pytest.raises(DriftsackError, match=words):
        ds.Instance.from_dict(some_forecast().to_dict() | change)


def test_a_policy_with_a_plan_of_its_own_cannot_follow_another() -> None:
    """A base that cannot follow a rate is refused when the plan is made, also within a wrapper."""
    policy = ds.PlanWithForecast(some_forecast())
    for base in (policy, ds.DetectAndRestart(policy)):
        with pytest.raises(SettingError, match="PlanWithForecast follows the plan of its forecast"):
            ds.SpendingPlan(base)
