"""ThompsonBwK against a twin that recomputes every posterior from the history and replays the learner's draws."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
import pytest
from scipy import stats

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.errors import DriftsackError, OutOfRangeError, SettingError
from driftsack.core.seeding import generator
from driftsack.game.ledger import open_ledger
from driftsack.game.protocol import choose, learn
from driftsack.game.records import new_outcome, new_terms, open_round
from driftsack.game.state_tree import programs
from driftsack.lp import certificate
from driftsack.numerics.sampling import hashed_uniform
from tests.support.delayed_feedback import Feedback, give_feedback
from tests.support.two_speed_twin import SlowTwoSpeed, SlowWaiting

Rule = Literal["fixed", "remaining", "two-speed"]
PACED: Final[tuple[Rule, ...]] = ("two-speed", "remaining")
PROBLEM = ds.Problem(horizon=220, arms=3, budget=[20.0, 46.0], reward_max=2.0, cost_max=[0.5, 1.0])
TWO_SPEED: Final = "two-speed"
KEY = 20_240_607
SIGNIFICANCE = 1e-6  # the probability that a test fails although the hash is random


def posterior_draws(
    known: list[Feedback], t: int, window: int, key: int, rng: np.random.Generator, by_arrival: bool
) -> tuple[Any, Any]:
    """Posterior draws of round t (from 1); ``by_arrival`` plants a fault: hashes of the order of arrival."""
    rewards, costs = np.zeros(3), np.zeros((2, 3))
    for i in range(3):
        observed = [(n, one) for n, one in enumerate(known) if one.arm == i and t - window <= one.round <= t - 1]
        for k in range(3):
            ones = 0
            for arrival, one in observed:
                outcome = one.reward / 2.0 if k == 0 else one.costs[k - 1] / (0.5, 1.0)[k - 1]
                ones += hashed_uniform(key, arrival if by_arrival else one.round - 1, k) < outcome
            drawn = rng.beta(1.0 + ones, 1.0 + len(observed) - ones)
            if k == 0:
                rewards[i] = drawn
            else:
                costs[k - 1, i] = drawn
    return rewards, costs


class Free(SlowWaiting):
    """A planted fault: pending decisions cost nothing."""

    def to_come(self) -> Floats:
        return np.zeros(self.arms)


def disagreement(
    policy: ds.ThompsonBwK,
    window: int,
    rule: Rule = "fixed",
    by_arrival: bool = False,
    pacer: SlowTwoSpeed | None = None,
    waiting: SlowWaiting | None = None,
) -> float:
    """Ask, and tell late; return the largest disagreement in the LP's data, its solution and the arm (1 if wrong)."""
    learner, rng, replay = policy.start(PROBLEM, seed=4), np.random.default_rng(5), generator(4)
    lp = next(programs(learner.state))
    key = 1 + int(replay.random() * 2.0**32)
    known, waiting = list[Feedback](), waiting or SlowWaiting(3)
    worst, skips, late, cancels = 0.0, 0, 0, 0
    while not learner.done:
        t = learner.round + 1
        rewards, costs = posterior_draws(known, t, window, key, replay, by_arrival)
        spent = sum((one.costs for one in known), np.zeros(2)) / [0.5, 1.0]
        rate = PROBLEM.rate
        if rule != "fixed":
            rate = np.maximum(PROBLEM.unit_budget - spent, 0.0) / (PROBLEM.horizon - t + 1)
        decision = learner.ask()
        unit_prices = decision.prices * [0.5, 1.0] / 2.0
        if pacer is None:
            proof = certificate(rewards, costs, np.minimum(rate, 2.0), decision.mix, unit_prices)
            off = [*map(abs, proof), np.abs(lp.objective[:3] - rewards).max()]
        else:
            drawn = np.column_stack([rewards, costs.T / PROBLEM.rate])  # costs in units of the budget rate
            rate = waiting.pace(PROBLEM.unit_budget - spent, costs.T, PROBLEM.horizon - t + 1)
            pacer.follow(drawn, rate / PROBLEM.rate, rewards.mean())
            off = [pacer.error(decision.mix, drawn, rate / PROBLEM.rate, np.append(1.0, 1.0 / PROBLEM.rate))]
            pacer.average(unit_prices * PROBLEM.rate)
        index = int(np.searchsorted(np.cumsum(decision.mix), replay.random(), side="right"))
        off += [np.abs(lp.columns[:2, :3] - costs).max(), float(decision.arm != (index if index < 3 else ds.SKIP))]
        worst = max(worst, *off)
        skips += decision.skipped
        if not decision.skipped:
            waiting.ask(t, decision.arm)
        given = give_feedback(learner, rng)
        for one in given:
            waiting.settle(one.round, t, told=one.arm != ds.SKIP)
        late += sum(learner.round > one.round for one in given)
        cancels += sum(one.arm == ds.SKIP for one in given)
        known += given
    assert min(skips, late, cancels) > 5
    assert len(known) > 80
    return worst


@pytest.mark.parametrize("window", [None, 40, 3, 1])
@pytest.mark.parametrize("rule", ["fixed", "remaining"])
def test_equals_the_twin(window: int | None, rule: Rule) -> None:
    """The draws are the same bit for bit, because Numba's Beta is NumPy's."""
    policy = ds.ThompsonBwK(windows=window, budget_rule=rule)
    assert disagreement(policy, window or PROBLEM.horizon, rule) < 1e-9


def test_the_twin_detects_planted_faults() -> None:
    """A window off by one, the other budget rule, and outcomes binarised by order of arrival instead of by round."""
    policy = ds.ThompsonBwK(windows=40)
    assert disagreement(policy, 39) > 1e-2
    assert disagreement(policy, 41) > 1e-2
    assert disagreement(policy, 40, rule="remaining") > 1e-2
    assert disagreement(policy, 40, by_arrival=True) > 1e-2


@pytest.mark.parametrize("window", [None, 40])
def test_two_speeds_equal_the_twin(window: int | None) -> None:
    """Snapshots, long-run price, expected costs of pending decisions and LP, with late feedback."""
    policy = ds.ThompsonBwK(windows=window, budget_rule=TWO_SPEED)
    pacer = SlowTwoSpeed(PROBLEM.horizon, 2)
    assert disagreement(policy, window or PROBLEM.horizon, TWO_SPEED, pacer=pacer) < 1e-9
    assert not pacer.even


def test_the_twin_of_two_speeds_detects_planted_faults() -> None:
    """A price step that is a fifth larger, free pending decisions, and the even pace in place of two speeds."""
    two_speed, even = (ds.ThompsonBwK(budget_rule=rule) for rule in PACED)
    larger, right = SlowTwoSpeed(PROBLEM.horizon, 2, largest_step=0.48), SlowTwoSpeed(PROBLEM.horizon, 2)
    assert disagreement(two_speed, PROBLEM.horizon, TWO_SPEED, pacer=larger) > 1e-4
    free, pacer = Free(3), SlowTwoSpeed(PROBLEM.horizon, 2)
    assert disagreement(two_speed, PROBLEM.horizon, TWO_SPEED, pacer=pacer, waiting=free) > 1e-4
    assert disagreement(two_speed, PROBLEM.horizon, "remaining") > 1e-2
    assert disagreement(even, PROBLEM.horizon, TWO_SPEED, pacer=right) > 1e-2


def test_two_speeds_earn_more_in_rich_and_poor_times() -> None:
    """By 8 joint standard errors over the even pace; so do they over uniform random choice, which spends early."""
    world = ds.instances.rich_and_poor(seed=2)
    two_speed, even = (ds.ThompsonBwK(windows=500, budget_rule=rule) for rule in PACED)
    mine = mean_and_error(world, two_speed)
    for other in (even, ds.policies.UniformRandom()):
        reward, error = mean_and_error(world, other)
        assert mine[0] > reward + 8 * np.hypot(mine[1], error)


def test_two_speeds_can_be_paced_by_a_plan() -> None:
    assert ds.ThompsonBwK(windows=9, budget_rule=TWO_SPEED).follow_rate() == ds.ThompsonBwK(windows=9)


def test_hashed_numbers_are_uniform() -> None:
    """Kolmogorov-Smirnov tests over rounds, for each outcome and other keys; one of seven fails once in 10^5."""
    for key in (KEY, 1, 2**32):
        for k in range(3 if key == KEY else 2):
            numbers = np.array([hashed_uniform(key, t, k) for t in range(20_000)])
            assert (numbers >= 0).all()
            assert (numbers < 1).all()
            assert stats.kstest(numbers, "uniform").pvalue > SIGNIFICANCE


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0, 0, 0), (0, 0, 1)),
        ((0, 0, 1), (0, 0, 2)),
        ((0, 0, 0), (0, 1, 0)),
        ((0, 0, 1), (0, 1, 0)),
        ((0, 0, 0), (1, 0, 0)),
    ],
    ids=["rewards and costs", "two costs", "a round and the next", "a cost and the next reward", "two keys"],
)
def test_hashed_numbers_are_independent(first: tuple[int, int, int], second: tuple[int, int, int]) -> None:
    """Pairs fall evenly into 16 by 16 cells (chi-square, 255 degrees of freedom): each fails once in 10^6."""
    rounds = range(0, 60_000, 2)
    one, two = (np.array([hashed_uniform(KEY + a, t + b, k) for t in rounds]) for a, b, k in (first, second))
    cells = np.histogram2d(one, two, bins=16, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(cells.ravel()).pvalue > SIGNIFICANCE


def test_the_check_of_independence_detects_a_poor_hash() -> None:
    """The planted fault: multiples of the golden ratio are uniform, but each determines the next."""
    numbers = np.arange(30_000) * 0.6180339887498949 % 1.0
    assert stats.kstest(numbers, "uniform").pvalue > SIGNIFICANCE
    cells = np.histogram2d(numbers[:-1], numbers[1:], bins=16, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(cells.ravel()).pvalue < SIGNIFICANCE


def sums(window: int | None, delay: int, past: float, seed: int = 0) -> list[Any]:
    """The sums in the state after 300 rounds, the first 100 with outcomes ``past``, reported ``delay`` rounds late."""
    problem = ds.Problem(horizon=400, arms=2, budget=[390.0])
    state, rng = ds.ThompsonBwK(windows=window).new_state(problem), generator(seed)
    terms, ledger = new_terms(problem), open_ledger(problem)
    mix, prices = np.zeros(2), np.zeros(1)
    for t in range(300):
        choose(state, open_round(t, ledger, terms), rng, mix, prices)
        for due in range(t - delay, t + 1 if t == 299 else t - delay + 1):
            if due >= 0:
                value = past if due < 100 else 0.5
                learn(state, new_outcome(terms, due, due % 2, 0.5, value, np.array([value])))
    outcomes = state.posterior.outcomes
    return [outcomes.sums.tolist(), outcomes.pulls.tolist()]


def test_late_feedback_is_binarised_in_the_same_way() -> None:
    """Reported at once or 30 rounds late, an outcome gives the same one or zero, with and without a window."""
    for window in (None, 150):
        assert sums(window, delay=0, past=0.3) == sums(window, delay=30, past=0.3)
    assert sums(None, delay=0, past=0.3) != sums(None, delay=0, past=0.3, seed=1)  # another key gives other numbers


def test_a_window_forgets_exactly() -> None:
    """Two pasts of 100 rounds, then the same 200: with a window of at most 200 the sums do not depend on the past."""
    lengths: tuple[int | None, ...] = (40, 199, 200, 201, None)
    same = [sums(window, delay=0, past=0.1) == sums(window, delay=0, past=0.9) for window in lengths]
    assert same == [True, True, True, False, False]


def mean_and_error(world: ds.Instance, policy: ds.Policy) -> tuple[float, float]:
    summary = ds.simulate(world, policy, trials=60, seed=0).summary()
    return summary["reward"], summary["reward_se"]


def test_learns_faster_than_naive_ucb_in_a_stationary_environment() -> None:
    """By 10 joint standard errors, and within 3% of the optimum."""
    world = ds.Instance.stationary([0.8, 0.5, 0.3], [[0.6, 0.2, 0.3]], horizon=10_000, budget=3_000)
    thompson, naive = mean_and_error(world, ds.ThompsonBwK()), mean_and_error(world, ds.NaiveUCB())
    assert thompson[0] > naive[0] + 10 * np.hypot(thompson[1], naive[1])
    assert thompson[0] > 0.97 * ds.benchmarks.lp_dynamic(world).value


def test_rewards_on_the_papers_examples() -> None:
    """Without a window a change misleads it as it does NaiveUCB; with one it follows, by 20 joint standard errors.

    Example 1: above NaiveUCB with the printed radius. Example 2: within 5% of NaiveUCB(scale=0.1), about what one fixed
    mix earns (LP-Static, 3,333). The remaining rule gives the same within 5%.
    """
    for example, base in ((ds.instances.example_1, ds.NaiveUCB()), (ds.instances.example_2, ds.NaiveUCB(scale=0.1))):
        world = example()
        naive, thompson = mean_and_error(world, base), mean_and_error(world, ds.ThompsonBwK())
        windowed = mean_and_error(world, ds.ThompsonBwK(windows=1_000))
        if example is ds.instances.example_1:
            assert thompson[0] > naive[0] + 4 * np.hypot(thompson[1], naive[1])
        else:
            assert thompson[0] == pytest.approx(naive[0], rel=0.05)
        assert windowed[0] > thompson[0] + 20 * np.hypot(windowed[1], thompson[1])
        assert mean_and_error(world, ds.ThompsonBwK(budget_rule="remaining"))[0] == pytest.approx(thompson[0], rel=0.05)


def test_forgets() -> None:
    assert ds.ThompsonBwK(windows=9).forgets
    assert not ds.ThompsonBwK().forgets


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"windows": 0}, OutOfRangeError, "windows must be at least 1, got 0"),
        ({"windows": 2.5}, SettingError, "windows must be an integer, got 2.5"),
        ({"budget_rule": "even"}, SettingError, "budget_rule must be one of 'fixed', 'remaining', 'two-speed'"),
    ],
)
def test_bad_settings(settings: dict[str, Any], error: type[DriftsackError], words: str) -> None:
    with pytest.raises(error, match=words):
        ds.ThompsonBwK(**settings)
