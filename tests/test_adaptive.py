"""Adaptive against twins that keep every outcome; it does not depend on units, and closed arms stay closed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.errors import LooseCostMaxWarning, OutOfRangeError, SettingError
from driftsack.core.seeding import generator
from driftsack.game.ledger import open_ledger
from driftsack.game.protocol import choose, learn
from driftsack.game.records import new_outcome, new_terms, open_round
from driftsack.policies import Adaptive
from driftsack.policies.parts.run_length import new_run_lengths, observe_outcome
from tests.two_speed import SlowTwoSpeed

PROBLEM = ds.Problem(horizon=400, arms=3, budget=[120.0, 90.0], reward_max=2.0, cost_max=[1.0, 4.0])
RUNS = 6


@dataclass
class Run:
    """A hypothesis: the outcomes since the arm last changed, all of them."""

    weight: float
    predicted: Floats
    outcomes: list[Floats] = field(default_factory=list)


class Twin:
    """The run-length belief from lists of outcomes, in the order in which they arrived."""

    def __init__(self, problem: ds.Problem, hazard_rounds: float = 2000.0) -> None:
        self.unit, self.arms, self.hazard_rounds = problem.rate, problem.arms, hazard_rounds
        self.kinds = 1 + problem.resources
        self.runs: list[list[Run]] = [[] for _ in range(self.arms)]
        self.seen: list[Floats] = []
        self.errors: list[tuple[Floats, Floats]] = []  # squared errors, and q (1 - q/M) at that time
        self.last, self.trust, self.changes = [-1] * self.arms, [1.0] * self.arms, 0
        self.mean, self.sd = np.zeros((self.arms, self.kinds)), np.zeros((self.arms, self.kinds))
        self.largest = np.full(self.kinds, 1e-100)
        self.update_shared()

    def update_shared(self) -> None:
        total = np.sum(self.seen, axis=0) if self.seen else np.zeros(self.kinds)
        self.overall = (total + 0.5 * self.largest) / (len(self.seen) + 1)
        ratio = self.largest.copy()
        if self.errors:
            squares, spread = (np.sum([pair[k] for pair in self.errors], axis=0) for k in (0, 1))
            ratio = np.where(spread > 0, squares / np.where(spread > 0, spread, 1.0), self.largest)
        self.dispersion = np.where(ratio > 0.9 * self.largest, self.largest, np.maximum(ratio, 0.05 * self.largest))
        relative = np.maximum(1 / self.overall - 1 / self.largest, 1 / self.largest)
        self.prior = np.maximum(3 * self.dispersion * relative - 1, 0.5)

    def changed_unseen(self, arm: int, t: int) -> float:
        hazard = (1 + self.changes) / (self.hazard_rounds + self.arms * (t + 1))
        return 1.0 if self.last[arm] < 0 else 1 - self.trust[arm] * math.exp(-hazard * max(t - self.last[arm], 0))

    def start(self, arm: int) -> Floats:
        return self.overall if self.last[arm] < 0 else 0.7 * self.mean[arm] + 0.3 * self.overall

    def make_room(self, runs: list[Run]) -> None:
        if len(runs) == RUNS:
            ages = [len(run.outcomes) for run in runs]
            at = min(range(RUNS - 1), key=lambda r: ages[r] / ages[r + 1])
            heavier = max(runs[at : at + 2], key=lambda run: run.weight)
            runs[at : at + 2] = [Run(runs[at].weight + runs[at + 1].weight, heavier.predicted, heavier.outcomes)]

    def observe(self, t: int, arm: int, reward: float, costs: Floats) -> None:
        outcome = np.concatenate([[reward], costs / self.unit])
        first, changed = self.last[arm] < 0, self.changed_unseen(arm, max(t, self.last[arm] + 1))
        self.largest = np.maximum(self.largest, outcome)
        if not self.seen:
            self.overall, self.dispersion, self.prior = (
                0.5 * self.largest,
                self.largest.copy(),
                np.full(self.kinds, 2.0),
            )
        self.dispersion = np.maximum(self.dispersion, 0.05 * self.largest)
        start, runs = self.start(arm).copy(), self.runs[arm]
        self.make_room(runs)
        age = sum(run.weight * len(run.outcomes) for run in runs)
        for run in runs:
            run.weight *= 1 - changed
        runs.append(Run(changed, start))
        share, logs = outcome / self.largest, []
        for run in runs:
            p = np.clip(run.predicted / self.largest, 1e-6, 1 - 1e-6)
            logs.append((self.largest / self.dispersion * (share * np.log(p) + (1 - share) * np.log(1 - p))).sum())
        most = max(log for run, log in zip(runs, logs, strict=True) if run.weight > 0)
        for run, log in zip(runs, logs, strict=True):
            run.weight *= math.exp(min(log - most, 0.0))
        total = sum(run.weight for run in runs)
        for run in runs:
            run.weight /= total
            run.outcomes = [*run.outcomes, outcome]
        while len(runs) > 1 and runs[0].weight < 0.02:
            dropped = runs.pop(0)
            for run in runs:
                run.weight /= 1 - dropped.weight
        if not first and sum(run.weight * len(run.outcomes) for run in runs) < 0.5 * age:
            self.changes += 1
            self.trust = [0.9 * trust for trust in self.trust]
        self.trust[arm], self.last[arm] = 1.0, max(self.last[arm], t)
        mean = self.overall if first else self.mean[arm].copy()
        self.errors.append(((outcome - mean) ** 2, np.maximum(mean * (1 - mean / self.largest), 0)))
        self.seen.append(outcome)
        self.update_shared()
        for run in runs:
            run.predicted = (np.sum(run.outcomes, axis=0) + self.prior * start) / (len(run.outcomes) + self.prior)
        means = np.array([run.predicted for run in runs])
        counts = np.array([len(run.outcomes) for run in runs])[:, None]
        spread = np.maximum(means * (1 - means / self.largest), 0)
        within = self.dispersion * spread / (counts + self.prior + 1)
        weights = np.array([run.weight for run in runs])
        self.mean[arm] = weights @ means
        self.sd[arm] = np.sqrt(np.maximum(weights @ (means**2 + within) - self.mean[arm] ** 2, 0))


def outcome_of(t: int, arm: int, rng: np.random.Generator) -> tuple[float, Floats]:
    """Normalised outcomes whose means change twice: a fraction, a coin, and one that is nearly constant."""
    level = (0.2, 0.8, 0.5)[(t // 130 + arm) % 3]
    return level * rng.random(), np.array([float(rng.random() < level), 0.3 * level + 0.01 * rng.random()])


@pytest.mark.parametrize("late", [0, 6])
def test_the_belief_equals_its_twin(late: int) -> None:
    """Weights, estimates and counted changes; feedback may be late and out of order."""
    rng, terms = np.random.default_rng(late), new_terms(PROBLEM)
    belief, twin, wrong = new_run_lengths(PROBLEM), Twin(PROBLEM), Twin(PROBLEM, hazard_rounds=200.0)
    waiting: list[tuple[int, int]] = []
    for t in range(PROBLEM.horizon):
        waiting.append((t, int(rng.integers(3)) if t > 30 else t % 2))
        while len(waiting) > late:
            told, arm = waiting.pop(int(rng.integers(len(waiting))))
            reward, costs = outcome_of(told, arm, rng)
            observe_outcome(belief, new_outcome(terms, told, arm, 0.5, reward, costs))
            for one in (twin, wrong):
                one.observe(told, arm, reward, costs)
    for arm in range(3):
        weights = [run.weight for run in twin.runs[arm]]
        np.testing.assert_allclose(belief.weights[arm, : belief.live[arm]], weights, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(belief.mean, twin.mean, rtol=1e-9)
    np.testing.assert_allclose(belief.sd, twin.sd, rtol=1e-6)
    assert belief.changes[0] == twin.changes >= 4
    assert not np.allclose(wrong.mean, twin.mean, rtol=1e-6)  # the planted fault: another hazard


def disagreement(largest_step: float = 0.4) -> tuple[float, int]:
    """The worst difference between the learner's LP value and that of a twin that repeats its draws, and the skips."""
    learner, twin = Adaptive().start(PROBLEM, seed=3), Twin(PROBLEM)
    replay, rng = generator(3), np.random.default_rng(7)
    pacer, worst, skips, spent = SlowTwoSpeed(PROBLEM.horizon, 2, largest_step), 0.0, 0, np.zeros(2)
    drawn, observed, turn = np.zeros((3, 3)), {0, 1, 2}, 0
    while not learner.done:
        t = learner.round
        decision = learner.ask()
        if not twin.seen:
            replay.random()
        else:
            pace = (PROBLEM.unit_budget - spent) / (PROBLEM.horizon - t) / PROBLEM.rate
            due, turn = observed | {turn, (turn + 1) % 3}, (turn + 2) % 3
            for i in sorted(due):
                stale = replay.random() < twin.changed_unseen(i, t)
                start = twin.start(i)
                prior_sd = np.sqrt(
                    twin.dispersion * np.maximum(start * (1 - start / twin.largest), 0) / (twin.prior + 1)
                )
                for k in range(3):
                    mean, sd = (start[k], prior_sd[k]) if stale else (twin.mean[i, k], 0.7 * twin.sd[i, k])
                    drawn[i, k] = np.clip(mean + sd * replay.standard_normal(), 0, twin.largest[k])
            observed = set()
            pacer.follow(drawn, pace, twin.overall[0])
            worst = max(worst, pacer.error(decision.mix, drawn, pace, twin.largest))
            pacer.average(decision.prices / 2.0 * [1.0, 4.0] * PROBLEM.rate)
            replay.random()
        if decision.skipped:
            skips += 1
            continue
        reward, costs = outcome_of(t, decision.arm, rng)
        learner.tell(decision, 2.0 * reward, costs * [1.0, 4.0])
        twin.observe(t, decision.arm, reward, costs)
        observed = observed | {decision.arm}
        spent += costs
    return worst, skips


def test_decisions_equal_those_of_the_twin() -> None:
    """Held draws, snapshots, long-run price and LP; a step of the price that is a fifth larger is noticed."""
    worst, skips = disagreement()
    assert worst < 1e-7
    assert 20 < skips < 300
    assert disagreement(largest_step=0.48)[0] > 1e-4


def test_units_do_not_matter() -> None:
    """Maxima that are 1,024 times too large: the same decisions, since only ratios are learnt from."""
    arms, mixes = [], []
    for loose in (1.0, 2.0**10):
        problem = ds.Problem(300, 3, [40.0, 60.0], reward_max=loose, cost_max=[loose, 4 * loose])
        learner, rng, decisions = Adaptive().start(problem, seed=1), np.random.default_rng(2), list[ds.Decision]()
        while not learner.done:
            decision = learner.ask()
            decisions.append(decision)
            if not decision.skipped:
                reward, costs = outcome_of(learner.round, decision.arm, rng)
                learner.tell(decision, reward, costs)
        arms.append([decision.arm for decision in decisions])
        mixes.append([decision.mix for decision in decisions])
    assert arms[0] == arms[1]
    np.testing.assert_allclose(mixes[0], mixes[1], atol=1e-6)
    assert set(arms[0]) == {ds.SKIP, 0, 1, 2}


def earned(policy: ds.Policy, loose: float, heavy: bool, seed: int = 4) -> float:
    """Share of the optimum if the maxima are ``loose`` times too large; coins or lognormal costs."""
    horizon, rng = 2_000, np.random.default_rng(5)
    quality, means = np.array([0.9, 0.6, 0.3]), np.array([0.09, 0.03, 0.01])
    rewards = rng.random((horizon, 3)) < quality
    lognormal = np.minimum(means * np.exp(rng.normal(-0.5, 1.0, (horizon, 3))), 1.0)
    costs = lognormal if heavy else (rng.random((horizon, 3)) < means).astype(float)
    problem = ds.Problem(horizon, 3, 0.02 * horizon, reward_max=loose, cost_max=loose)
    learner, total = policy.start(problem, seed=seed), 0.0
    while not learner.done:
        decision = learner.ask()
        if not decision.skipped:
            row = decision.round - 1
            learner.tell(decision, rewards[row, decision.arm], costs[row, decision.arm])
            total += rewards[row, decision.arm]
    return float(total / (horizon * ds.lp.step_lp(quality, costs.mean(axis=0)[None], [0.02]).value))


def test_loose_maxima_do_not_matter() -> None:
    """Up to 1,024 times too large: the same share, with powers of two to the last bit. UCB loses over 10 points."""
    for heavy in (False, True):
        shares = {earned(Adaptive(), loose, heavy) for loose in (1.0, 8.0, 128.0, 1024.0)}
        assert len(shares) == 1
        assert min(shares) > 0.8
    ucb = ds.DetectAndRestart(ds.NaiveUCB(scale=0.05, budget_rule="remaining"))
    with pytest.warns(LooseCostMaxWarning):
        assert earned(ucb, 1.0, heavy=False) - earned(ucb, 128.0, heavy=False) > 0.1


def test_closed_arms_are_never_chosen() -> None:
    state, terms, ledger = Adaptive().new_state(PROBLEM), new_terms(PROBLEM), open_ledger(PROBLEM)
    rng, mix, prices, pulls = generator(0), np.zeros(3), np.zeros(2), np.zeros(3)
    for t in range(200):
        terms.open[:] = [t >= 100, True, t % 2 == 0]
        arm = choose(state, open_round(t, ledger, terms), rng, mix, prices)
        assert mix[~terms.open].sum() == 0.0
        if arm >= 0:
            pulls[arm] += 1
            learn(state, new_outcome(terms, t, arm, mix[arm], *outcome_of(t, arm, rng)))
    assert pulls.all()


def test_it_saves_in_poor_times_and_spends_in_rich_ones() -> None:
    """Rewards that alternate between high and low: at least 10 points of the optimum over the even pace."""
    phases = np.tile([[0.8, 0.6], [0.2, 0.1]], (4, 1))
    costs = np.tile([[[0.6, 0.4], [0.5, 0.6]]], (8, 1, 1))
    world = ds.Instance.piecewise(phases, costs, [1_250] * 8, 2_000.0)
    best = ds.benchmarks.lp_dynamic(world).value
    policies = (Adaptive(), Adaptive(pacing="remaining"), ds.policies.UniformRandom())
    fast, even, random = (ds.simulate(world, policy, trials=10, seed=0).reward.mean() / best for policy in policies)
    assert fast > even + 0.1
    assert fast > random + 0.1  # which spends early, and so by accident in good times


@pytest.mark.parametrize("world", [ds.instances.example_1(), ds.instances.example_2()])
def test_it_follows_abrupt_changes(world: ds.Instance) -> None:
    """At least 0.9 of the optimum without being told of the change; a policy that never forgets has less than 0.8."""
    best = ds.benchmarks.lp_dynamic(world).value
    mine = ds.simulate(world, Adaptive(), trials=20, seed=0).reward.mean() / best
    naive = ds.simulate(world, ds.NaiveUCB(scale=0.05, budget_rule="remaining"), trials=20, seed=0).reward.mean() / best
    assert mine > 0.9
    assert naive < 0.8


def routed(policy: ds.Policy, requests: int, seed: int) -> float:
    """Share of the optimum when requests go to three models with lognormal dollars and seconds, in natural units."""
    quality, dollars, seconds = np.array([0.62, 0.74, 0.86]), np.array([0.002, 0.009, 0.03]), np.array([1.2, 2.2, 4.0])
    rng, budget = np.random.default_rng(seed), requests * np.array([0.01, 2.5])
    means = np.stack([dollars, seconds], axis=1)
    costs = means * np.exp(rng.normal(-0.32, 0.8, (requests, 3, 1)) * [1.0, 0.5])
    answers = rng.random((requests, 3)) < quality
    learner = policy.start(ds.Problem(requests, 3, budget, cost_max=costs.max(axis=(0, 1))), seed=seed, safe=True)
    earned = 0.0
    while not learner.done:
        decision = learner.ask()
        if not decision.skipped:
            request = decision.round - 1
            learner.tell(decision, answers[request, decision.arm], costs[request, decision.arm])
            earned += answers[request, decision.arm]
    expected = costs.mean(axis=0).T
    return float(earned / (requests * ds.lp.step_lp(quality, expected, budget / requests).value))


def test_it_routes_requests_in_natural_units() -> None:
    """``cost_max`` is many times a typical cost: at least 0.95 of the optimum; uniform and windowed UCB below 0.85."""
    assert np.mean([routed(Adaptive(), 4_000, seed) for seed in range(2)]) > 0.95
    windowed = ds.SlidingWindowUCB(windows=(400, 400), scale=0.15, budget_rule="remaining")
    assert routed(ds.policies.UniformRandom(), 4_000, 0) < 0.85
    with pytest.warns(LooseCostMaxWarning):
        assert routed(windowed, 4_000, 0) < 0.85


def test_it_can_be_paced_by_a_plan() -> None:
    """All of the budget in the second half, through ``SpendingPlan``."""
    world = ds.Instance.stationary([0.9, 0.5], [[0.6, 0.4]], 2_000, 500.0)
    run = ds.simulate(world, ds.SpendingPlan(Adaptive(), (0.0, 0.0, 1.0)), trials=5, seed=0)
    half = np.searchsorted(run.times, 1_000)
    assert (run.curve[:, half] < 0.05 * run.reward).all()
    assert run.spent.mean() > 450


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"exploration": -1.0}, OutOfRangeError, "exploration must be 0 or more"),
        ({"pacing": "fast"}, SettingError, "pacing must be one of 'two-speed', 'remaining', 'fixed'"),
        ({"speed": 0.5}, OutOfRangeError, "speed must be at least 1, the even pace, got 0.5"),
    ],
)
def test_bad_settings(settings: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Adaptive(**settings)
