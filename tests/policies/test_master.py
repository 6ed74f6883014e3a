"""MASTER against a twin with one object per learner, and each of the two tests separately."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import OutOfRangeError
from driftsack.core.seeding import generator
from driftsack.lp import certificate, step_lp
from driftsack.policies.master import improved
from tests.support import naive
from tests.support.learner_parts import engine_of

PROBLEM = ds.Problem(horizon=700, arms=2, budget=[300.0, 320.0])
SCALE = 0.05
Pair = tuple[float, float]
MEANS = ((0.9, 0.2, 0.3), (0.2, 0.5, 0.4)), ((0.1, 0.7, 0.4), (0.8, 0.3, 0.6))  # before and after; arm; reward, costs


@dataclass
class Base:
    """A learner that the twin has started."""

    order: int
    start: int
    history: list[naive.Round] = field(default_factory=list)


class Twin:
    """A twin that keeps everything in lists and recomputes it in every round."""

    def __init__(self, constant: float, seed: int) -> None:
        self.rng = generator(seed)
        logs = 6 * (math.log2(700) + 1) * math.log(700**2)
        radius = math.sqrt(2 * math.log(12 * 2 * 2 * 700**3))
        self.width = constant * logs * (1 + SCALE * radius) * math.sqrt(2)
        self.restarts: list[int] = []
        self.open_block(0, 0)

    def open_block(self, n: int, t: int) -> None:
        self.n, self.first, self.alive = n, t, list[Base]()
        self.rounds: list[tuple[float, float, float]] = []
        self.gaps: list[tuple[float, float, float]] = []
        self.least, self.least_prices = math.inf, np.zeros(2)

    def rho(self, length: int) -> float:
        return self.width / math.sqrt(length)

    def fires(self, t: int) -> bool:
        played = t - self.first
        if played == 0:
            return False
        worse = np.sum(self.gaps, axis=0) / played >= 3 * self.rho(played)
        for base in self.alive:
            if base.start + 2**base.order == t:
                part = np.array(self.rounds[base.start - self.first :])
                priced = part[:, 0] - (part[:, 1:] - PROBLEM.rate) @ self.least_prices
                margin = 9 * self.rho(len(part)) * (1 + self.least_prices.sum())
                if priced.mean() >= self.least + margin:
                    return True
        return bool(worse.any())

    def advance(self, t: int) -> Base:
        if self.fires(t):
            self.restarts.append(t)
            self.open_block(0, t)
        elif t - self.first >= 2**self.n:
            self.open_block(self.n + 1, t)
        self.alive = [base for base in self.alive if base.start + 2**base.order > t]
        for k in range(self.n, -1, -1):
            if (t - self.first) % 2**k == 0 and (k == self.n or self.rng.random() < 2 ** (-(self.n - k) / 2)):
                self.alive.append(Base(k, t))
        return min(self.alive, key=lambda base: base.order)


def play(policy: ds.policies.Master, twin: Twin, seed: int, follow: bool = True) -> tuple[float, list[int], list[int]]:
    """Ask and tell; return the largest disagreement in mixes and the restarts of learner and twin.

    The twin draws its schedule, and follows the learner's draws of ties and arms unless ``follow`` is False.
    """
    learner, rng = policy.start(PROBLEM, seed=seed), np.random.default_rng(seed)
    worst, restarts = 0.0, list[int]()
    while not learner.done:
        t = learner.round
        base = twin.advance(t)
        upper, lower = naive.bounds(base.history, 2, 2, 700, (700, 700), scale=SCALE)
        upper, lower = np.minimum(upper, 1.0), np.maximum(lower, 0.0)
        decision = learner.ask()
        if follow:
            twin.rng.bit_generator.state = engine_of(learner).rng.bit_generator.state
        worst = max(worst, *map(abs, certificate(upper, lower, PROBLEM.rate, decision.mix, decision.prices)))
        value = step_lp(upper, lower, PROBLEM.rate).value
        if value < twin.least - 1e-12:
            twin.least, twin.least_prices = value, decision.prices
        if learner.state.schedule.restarts[0] > len(restarts):
            restarts.append(t)
        outcome = (rng.random(3) < MEANS[t > 350][max(decision.arm, 0)]).astype(float)
        if decision.skipped:
            twin.rounds.append((0.0, 0.0, 0.0))
            twin.gaps.append((0.0, 0.0, 0.0))
            continue
        learner.tell(decision, outcome[0], outcome[1:])
        base.history.append(naive.Round(decision.arm, outcome[0], outcome[1:]))
        twin.rounds.append(tuple(outcome))
        twin.gaps.append((upper[decision.arm] - outcome[0], *(outcome[1:] - lower[:, decision.arm])))
    return worst, restarts, twin.restarts


def test_equals_the_twin_and_the_twin_detects_faults() -> None:
    policy = ds.policies.Master(constant=0.0014, scale=SCALE)
    for seed in range(3):
        worst, restarts, expected = play(policy, Twin(0.0014, seed), seed)
        assert worst < 1e-8
        assert restarts == expected
    worst, restarts, expected = play(ds.policies.Master(constant=0.0007, scale=SCALE), Twin(0.0007, 7), 7)
    assert worst < 1e-8
    assert restarts == expected
    assert len(restarts) > 0
    assert play(policy, Twin(0.0014, seed=99), 0, follow=False)[0] > 1e-3  # another random schedule
    _, restarts, expected = play(ds.policies.Master(constant=0.0007, scale=SCALE), Twin(0.00035, 7), 7)
    assert restarts != expected  # another constant


@pytest.mark.parametrize(
    ("before", "after", "scale"),
    [
        ((0.9, 0.2), (0.2, 0.2), 0.1),  # the reward falls
        ((0.6, 0.1), (0.6, 0.9), 0.1),  # the cost rises
        ((0.2, 0.4), (1.0, 0.4), 0.05),  # the reward rises
        ((0.2, 0.9), (1.0, 0.0), 0.05),  # both get better
    ],
)
def test_fires_on_a_change_and_not_before(before: Pair, after: Pair, scale: float) -> None:
    """One arm, outcomes without noise, a change in round 10,000."""
    problem = ds.Problem(horizon=16_000, arms=1, budget=[6_400.0])
    learner, first = ds.policies.Master(constant=0.002 / (1 + scale * 7.7), scale=scale).start(problem, seed=1), None
    while not learner.done and first is None:
        decision = learner.ask()
        if learner.state.schedule.restarts[0] > 0:
            first = learner.round
        if not decision.skipped:
            reward, cost = after if learner.round > 10_000 else before
            learner.tell(decision, reward, [cost])
    assert first is not None
    assert first > 10_000


def test_with_the_theorys_constant_no_test_can_fire_at_this_horizon() -> None:
    """Every gap is at most 1, and so is every mean: a test whose threshold is above 2 can never fire."""
    assert ds.policies.Master(constant=1.0).new_state(PROBLEM).width / math.sqrt(700) > 2


def test_overspending_is_not_taken_for_an_improvement() -> None:
    """An arm of reward 1 and cost 1 at the rate 0.1: a new learner always plays it and earns 1 per round, not 0.1."""
    problem = ds.Problem(horizon=1_000, arms=1, budget=[100.0])
    state = ds.policies.Master(constant=1e-4).new_state(problem)
    state.schedule.order[0], state.schedule.latest[0] = 8, 255
    state.schedule.ends[8] = 256
    state.evidence.earned[8] = 256.0, 256.0 * (1.0 - 0.1)  # rewards, and costs minus the rate
    state.evidence.least[:] = [0.1, 1.0]  # U and the price of its LP
    assert not improved(state, 256)
    state.evidence.least[1] = 0.0  # the planted fault: resources cost nothing
    assert improved(state, 256)


@pytest.mark.parametrize("batch", [1, 100, 500])
def test_feedback_in_batches_is_not_taken_for_a_change(batch: int) -> None:
    """A stationary environment with feedback in batches: a learner is credited only with its own rounds."""
    problem = ds.Problem(horizon=5_000, arms=3, budget=[5_000.0])
    learner, rng = ds.policies.Master().start(problem, seed=0), np.random.default_rng(0)
    while not learner.done:
        learner.ask()
        if learner.round % batch == 0:
            for decision in learner.pending:
                mean = (0.8, 0.5, 0.3)[decision.arm]
                learner.tell(decision, float(rng.random() < mean), [float(rng.random() < 0.3)])
    assert learner.state.schedule.restarts[0] == 0


def test_follows_a_change_that_naive_ucb_does_not() -> None:
    world = ds.instances.example_2()
    master, naive_ucb = (
        ds.simulate(world, p, trials=30, seed=0) for p in (ds.policies.Master(), ds.NaiveUCB(scale=0.1))
    )
    assert master.reward.mean() > naive_ucb.reward.mean() + 10 * master.summary()["reward_se"]


def test_bad_settings() -> None:
    with pytest.raises(OutOfRangeError, match="constant must be above 0"):
        ds.policies.Master(constant=0.0)
