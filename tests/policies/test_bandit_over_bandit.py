"""Bandit over bandit against a twin that keeps every block's history."""

from __future__ import annotations

import math

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.errors import FileFormatError, OutOfRangeError, SettingError
from driftsack.core.seeding import generator
from driftsack.lp import certificate
from tests.support import naive
from tests.support.learner_parts import engine_of

PROBLEM = ds.Problem(horizon=470, arms=2, budget=[190.0, 200.0])
BLOCK = 60
POLICY = ds.policies.BanditOverBandit(block=BLOCK, scale=0.02)
WINDOWS = [1, 2, 5, 11, 26, 60]  # floor(60^(k/5)); ceil(log 60) = 5


class Twin:
    """The upper bandit with plain weights; the lower one is recomputed from its block's history."""

    def __init__(self, seed: int, windows: list[int]) -> None:
        self.rng, self.windows = generator(seed), windows
        self.weights = np.ones(len(windows))
        blocks = math.ceil(470 / BLOCK)
        self.explore = min(1.0, math.sqrt(len(windows) * math.log(len(windows)) / ((math.e - 1) * blocks)))
        self.history: list[naive.Round] = []
        self.k, self.probabilities = 0, np.ones(len(windows))

    def open_block(self) -> None:
        if self.history:
            earned = sum(r.reward for r in self.history)
            self.weights[self.k] *= math.exp(
                self.explore / len(self.windows) * earned / BLOCK / self.probabilities[self.k]
            )
        self.probabilities = (1 - self.explore) * self.weights / self.weights.sum() + self.explore / len(self.windows)
        self.k = int(np.searchsorted(np.cumsum(self.probabilities), self.rng.random(), side="right"))
        self.history = []


def disagreement(windows: list[int]) -> float:
    """The largest disagreement between the learner and its twin."""
    learner, rng = POLICY.start(PROBLEM, seed=4), np.random.default_rng(1)
    twin, worst, skips = Twin(4, windows), 0.0, 0
    while not learner.done:
        t = learner.round
        if t % BLOCK == 0:
            twin.open_block()
        window = windows[twin.k]
        upper, lower = naive.bounds(twin.history, 2, 2, BLOCK, (window, window), scale=0.02)
        spent = sum((r.costs for r in twin.history), np.zeros(2))
        budget = PROBLEM.rate * min(BLOCK, 470 - t // BLOCK * BLOCK)
        decision = learner.ask()
        outcome = rng.random(3) * (0.9, 0.8, 0.7)
        if (spent + 1 > budget + 1e-9).any():
            assert decision.skipped
            skips += 1
        else:
            twin.rng.bit_generator.state = engine_of(learner).rng.bit_generator.state  # after ties and the arm's draw
            worst = max(worst, *map(abs, certificate(upper, lower, PROBLEM.rate, decision.mix, decision.prices)))
        worst = max(worst, abs(int(learner.state.block.window[0]) - twin.k))
        if decision.skipped:
            twin.history.append(naive.Round(-1, 0.0, np.zeros(2)))
        else:
            learner.tell(decision, outcome[0], outcome[1:])
            twin.history.append(naive.Round(decision.arm, outcome[0], outcome[1:]))
    assert skips > 0
    return worst


def test_equals_the_twin_and_the_twin_detects_a_wrong_window() -> None:
    assert POLICY.windows(PROBLEM) == WINDOWS
    assert disagreement(WINDOWS) < 1e-9
    assert disagreement([w + 1 if w < BLOCK else w for w in WINDOWS]) > 1e-3


def test_feedback_after_the_end_of_its_block_is_dropped() -> None:
    learner = POLICY.start(PROBLEM, seed=0)
    early = [decision for decision in (learner.ask() for _ in range(BLOCK)) if not decision.skipped]
    learner.ask()  # the next block has begun
    assert len(early) > 10
    for decision in early:
        learner.tell(decision, 1.0, [0.0, 0.0])
    assert not learner.state.base.means.rewards.pulls.any()
    assert learner.state.block.earned[0] == 0.0


def test_blocks_keep_their_own_budget() -> None:
    """No block spends more than the rate times its rounds, whatever the outcomes."""
    learner, rng = POLICY.start(PROBLEM, seed=0), np.random.default_rng(0)
    spent = np.zeros((8, 2))
    while not learner.done:
        block, decision = learner.round // BLOCK, learner.ask()
        if not decision.skipped:
            costs = (rng.random(2) < 0.7).astype(float)
            learner.tell(decision, 1.0, costs)
            spent[block] += costs
    rounds = np.array([BLOCK] * 7 + [50])
    assert (spent <= rounds[:, None] * PROBLEM.rate + 1e-9).all()
    assert (spent[:7].max(axis=1) > 0.9 * BLOCK * PROBLEM.rate.min()).all()


def test_reward_is_within_a_tenth_of_the_right_window_on_example_2() -> None:
    """It learns the window and forgets after every block, and still loses less than a tenth. 40 trials."""
    world = ds.instances.example_2()
    adaptive = ds.simulate(world, ds.policies.BanditOverBandit(), trials=40, seed=0)
    best_window = ds.simulate(world, ds.SlidingWindowUCB(variation=(0.5, 1.0)), trials=40, seed=0)
    assert adaptive.summary()["reward_se"] < 30
    assert adaptive.reward.mean() > 0.9 * best_window.reward.mean()


@pytest.mark.parametrize(
    ("problem", "length"),
    [
        (ds.Problem(10_000, 2, [5_000.0]), 200),
        (ds.Problem(10_000, 2, [100.0]), 1_000),  # a block whose budget pays for ten rounds
        (ds.Problem(10_000, 2, [5.0]), 10_000),
        (ds.Problem(9, 3, [9.0]), 9),
    ],
)
def test_block_length(problem: ds.Problem, length: int) -> None:
    assert ds.policies.BanditOverBandit().block_length(problem) == length
    windows = ds.policies.BanditOverBandit().windows(problem)
    assert windows[0] == 1
    assert windows[-1] == length


def test_a_short_last_block_paces_over_its_own_rounds() -> None:
    """1,000 rounds in blocks of 600: with "remaining" the last 400 earn about as much per round as with "fixed"."""
    world = ds.Instance.stationary([0.9, 0.5], [[0.6, 0.4]], 1_000, 250.0)
    ends = []
    for rule in ("fixed", "remaining"):
        run = ds.simulate(world, ds.policies.BanditOverBandit(block=600, budget_rule=rule), trials=40, seed=0)
        ends.append((run.curve[:, -1] - run.curve[:, np.searchsorted(run.times, 600)]).mean())
    assert ends[1] > 0.95 * ends[0]


def test_follows_a_rate_that_changes_within_a_block() -> None:
    """The plan spends only in the second half: a block that begins before must use the new rate."""
    world = ds.Instance.stationary([0.9, 0.5], [[0.6, 0.4]], 1_000, 250.0)
    plan = ds.SpendingPlan(ds.policies.BanditOverBandit(block=600), (0.0, 0.0, 1.0))
    assert ds.simulate(world, plan, trials=10, seed=0).spent.mean() > 225


def test_bad_settings() -> None:
    with pytest.raises(SettingError, match="block must be long enough"):
        ds.policies.BanditOverBandit(block=50).start(ds.Problem(10_000, 2, [100.0]))
    with pytest.raises(OutOfRangeError, match="block"):
        ds.policies.BanditOverBandit(block=0)


@pytest.mark.parametrize(("part", "amount"), [("rate", 1e300), ("earned", 1e300), ("budget", -1e300)])
def test_a_block_with_impossible_amounts_is_not_loaded(part: str, amount: float) -> None:
    """They would overflow when the block goes on, and the learner could not be saved any more."""
    learner = ds.policies.BanditOverBandit().start(ds.Problem(horizon=200, arms=2, budget=50.0), seed=1)
    for _ in range(20):
        decision = learner.ask()
        if not decision.skipped:
            learner.tell(decision, reward=0.5, costs=[0.2])
    assert ds.Learner.from_bytes(learner.to_bytes()).state_hash() == learner.state_hash()
    record = learner.state.account if part == "budget" else learner.state.block
    getattr(record, part)[:] = amount
    with pytest.raises(FileFormatError, match="inconsistent"):
        ds.Learner.from_bytes(learner.to_bytes())
