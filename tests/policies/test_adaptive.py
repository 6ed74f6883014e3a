"""Adaptive against twins that keep every outcome; it does not depend on units, and closed arms stay closed."""

from __future__ import annotations

import math
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
from driftsack.policies.parts.run_length import RunLengths, expected_now, new_run_lengths, observe_outcome
from tests.support.adaptive_twin import SlowBelief
from tests.support.two_speed_twin import SlowTwoSpeed, SlowWaiting

PROBLEM = ds.Problem(horizon=400, arms=3, budget=[120.0, 90.0], reward_max=2.0, cost_max=[1.0, 4.0])


def outcome_of(t: int, arm: int, rng: np.random.Generator) -> tuple[float, Floats]:
    """Normalised outcomes whose means change twice: a fraction, a coin, and one that is nearly constant."""
    level = (0.2, 0.8, 0.5)[(t // 130 + arm) % 3]
    return level * rng.random(), np.array([float(rng.random() < level), 0.3 * level + 0.01 * rng.random()])


def sale_of(t: int, arm: int, rng: np.random.Generator) -> tuple[float, Floats]:
    """A sale is a reward and the first cost at once; the price of an arm is known."""
    sold = float(rng.random() < (0.2, 0.5, 0.7)[arm])
    return sold * (1.0, 0.7, 0.5)[arm], np.array([sold, 0.1 * rng.random()])


class Unrelated(SlowBelief):
    """A planted fault: rewards and costs are drawn independently."""

    def correlation(self) -> Floats:
        return np.zeros(self.kinds)


class Largest(SlowBelief):
    """A planted fault: the scale is the largest outcome."""

    def scale(self, values: list[float]) -> float:
        return max(values)


def persistent(rng: np.random.Generator, rounds: int, phi: float, columns: int = 3) -> Floats:
    """(rounds, columns) AR(1) noise with variance 1."""
    noise = rng.standard_normal((rounds, columns))
    for t in range(1, rounds):
        noise[t] = phi * noise[t - 1] + math.sqrt(1 - phi**2) * noise[t]
    return noise


def observed(kind: str, late: int, *twins: SlowBelief) -> RunLengths:
    """The belief after 400 outcomes, which are late by about so many rounds and out of order; so are the twins."""
    rng, terms, belief = np.random.default_rng(late), new_terms(PROBLEM), new_run_lengths(PROBLEM)
    waves, waiting = persistent(rng, PROBLEM.horizon, 0.8), list[tuple[int, int]]()
    for t in range(PROBLEM.horizon):
        waiting.append((t, (t // 20 % 3 if kind == "persistent" else int(rng.integers(3))) if t > 30 else t % 2))
        while len(waiting) > late:
            told, arm = waiting.pop(int(rng.integers(len(waiting))))
            reward, costs = (sale_of if kind == "sales" else outcome_of)(told, arm, rng)
            if kind == "persistent":
                reward, costs[1] = (
                    np.clip(0.5 + 0.15 * waves[told, 0], 0, 1),
                    np.clip(0.2 + 0.05 * waves[told, 1], 0, 1),
                )
            if kind == "absurd" and told in (0, 200):
                reward, costs = 30 * reward + 30.0, 100 * costs + 30.0
            observe_outcome(belief, new_outcome(terms, told, arm, 0.5, reward, costs))
            for one in twins:
                one.observe(told, arm, reward, costs)
    return belief


@pytest.mark.parametrize("late", [0, 6])
@pytest.mark.parametrize("kind", ["plain", "persistent", "absurd", "sales"])
def test_the_belief_equals_its_twin(kind: str, late: int) -> None:
    """Weights, estimates, counted changes, scale, persistence and correlation; feedback may be late, in any order."""
    twin, wrong = SlowBelief(PROBLEM), SlowBelief(PROBLEM, hazard_rounds=200.0)
    belief = observed(kind, late, twin, wrong)
    for arm in range(3):
        weights = [run.weight for run in twin.runs[arm]]
        np.testing.assert_allclose(belief.weights[arm, : belief.live[arm]], weights, rtol=1e-7, atol=1e-12)
        expected = [expected_now(belief, arm, k, PROBLEM.horizon) for k in range(3)]
        np.testing.assert_allclose(expected, twin.expected(arm, PROBLEM.horizon), rtol=1e-8)
    np.testing.assert_allclose(belief.mean, twin.mean, rtol=1e-9)
    np.testing.assert_allclose(belief.sd, twin.sd, rtol=1e-6)
    np.testing.assert_allclose(belief.largest, twin.largest, rtol=1e-12)
    np.testing.assert_allclose(belief.persistence, twin.persistence(), atol=1e-9)
    np.testing.assert_allclose(belief.correlation, twin.correlation(), atol=1e-9)
    assert belief.changes[0] == twin.changes
    assert not np.allclose(wrong.mean, twin.mean, rtol=1e-6)  # the planted fault: another hazard
    if kind == "plain":
        assert twin.changes >= 4
    if kind == "sales":
        assert belief.correlation[1] > 0.9
        assert belief.correlation[2] == 0.0
    if kind == "persistent" and late == 0:
        assert (twin.persistence()[[0, 2]] > 0.2).all()


def test_the_twin_of_the_belief_detects_planted_faults() -> None:
    """A persistence that is larger by 0.02, and a scale that is the largest outcome."""
    for kind, wrong in (("persistent", SlowBelief(PROBLEM, tolerated=0.08)), ("absurd", Largest(PROBLEM))):
        assert not np.allclose(observed(kind, 0, wrong).mean, wrong.mean, rtol=1e-3)


class Never(SlowWaiting):
    """A planted fault: no pending outcome is expected to arrive."""

    def to_come(self) -> Floats:
        return np.zeros(self.arms)


def disagreement(
    largest_step: float = 0.4,
    late: int = 0,
    waiting: SlowWaiting | None = None,
    twin_of: type[SlowBelief] = SlowBelief,
    sales: bool = False,
    ending: float = 0.18,
) -> tuple[float, int]:
    """The worst difference between the learner's LP value and that of a twin that repeats its draws, and the skips."""
    learner, twin = Adaptive().start(PROBLEM, seed=3), twin_of(PROBLEM)
    replay, rng, waiting = generator(3), np.random.default_rng(7), waiting or SlowWaiting(3)
    pacer, worst, skips, spent = SlowTwoSpeed(PROBLEM.horizon, 2, largest_step, ending), 0.0, 0, np.zeros(2)
    drawn, due, turn, asked, pending = np.zeros((3, 3)), {0, 1, 2}, 0, [-1] * 3, list[ds.Decision]()
    while not learner.done:
        t = learner.round
        decision = learner.ask()
        if not twin.seen:
            replay.random()
        else:
            left = (PROBLEM.unit_budget - spent) / PROBLEM.rate
            pace = waiting.pace(left, twin.mean[:, 1:], PROBLEM.horizon - t)
            due, turn, to_come = due | {turn, (turn + 1) % 3}, (turn + 2) % 3, waiting.to_come()
            for i in sorted(due):
                drawn[i] = twin.draw(i, t, asked[i], to_come[i], replay)
            due = set()
            pacer.follow(drawn, pace, twin.overall[0], rounds_left=PROBLEM.horizon - t)
            worst = max(worst, pacer.error(decision.mix, drawn, pace, twin.largest))
            pacer.average(decision.prices / 2.0 * [1.0, 4.0] * PROBLEM.rate)
            replay.random()
        skips += decision.skipped
        if not decision.skipped:
            asked[decision.arm], due = t, due | {decision.arm}
            waiting.ask(t, decision.arm)
            pending.append(decision)
        # Tell some outcomes, out of order; every tenth decision is cancelled if outcomes are late.
        while len(pending) > late:
            told = pending.pop(int(rng.integers(len(pending))))
            row, cancelled = told.round - 1, late > 0 and told.round % 10 == 0
            waiting.settle(row, t, told=not cancelled)
            if cancelled:
                learner.cancel(told)
                continue
            reward, costs = (sale_of if sales else outcome_of)(row, told.arm, rng)
            learner.tell(told, 2.0 * reward, costs * [1.0, 4.0])
            twin.observe(row, told.arm, reward, costs)
            due, spent = due | {told.arm}, spent + costs
    return worst, skips


@pytest.mark.parametrize("late", [0, 12])
def test_decisions_equal_those_of_the_twin(late: int) -> None:
    """Held draws, pending decisions, snapshots, long-run price and LP.

    A larger step of the price is noticed, and a margin that grows over another share of the rounds at the end.
    """
    worst, skips = disagreement(late=late)
    assert worst < 1e-7
    assert 20 < skips < 300
    assert disagreement(largest_step=0.48, late=late)[0] > 1e-4
    assert disagreement(ending=0.2, late=late)[0] > 1e-4


def test_the_twin_notices_that_pending_decisions_count() -> None:
    assert disagreement(late=12, waiting=Never(3))[0] > 1e-4


def test_rewards_and_costs_are_drawn_together() -> None:
    """If a sale is a reward and a cost at once; a twin that draws them independently is noticed."""
    assert disagreement(sales=True)[0] < 1e-7
    assert disagreement(sales=True, twin_of=Unrelated)[0] > 1e-4


def test_snapshots_remember_which_arms_were_open() -> None:
    """The long-run price equals its twin's while arms close and open; one that forgets closed arms does not."""
    state, terms, ledger = Adaptive().new_state(PROBLEM), new_terms(PROBLEM), open_ledger(PROBLEM)
    rng, mix, prices = generator(0), np.zeros(3), np.zeros(2)
    twin, wrong = (SlowTwoSpeed(PROBLEM.horizon, 2) for _ in range(2))
    for t in range(200):
        terms.open[:] = [t % 60 < 30, True, t % 3 == 0]
        arm = choose(state, open_round(t, ledger, terms), rng, mix, prices)
        if t > 0:
            pace = np.asarray(ledger.budget) / (PROBLEM.horizon - t) / PROBLEM.rate
            for pacer, is_open in ((twin, terms.open), (wrong, None)):
                pacer.follow(state.drawn, pace, state.belief.overall[0], is_open)
                pacer.average(prices * PROBLEM.rate)
        learn(state, new_outcome(terms, t, max(arm, 0), 0.5, *outcome_of(t, max(arm, 0), rng)))
    assert not twin.even
    np.testing.assert_allclose(state.pacer.price, twin.price, rtol=1e-9)
    assert not np.allclose(wrong.price, twin.price, rtol=1e-3)


def counted_changes(phi: float, forced: bool) -> float:
    """Changes counted in 3,000 outcomes of one arm with AR(1) noise; ``forced`` keeps the persistence at 0."""
    rng, problem = np.random.default_rng(5), ds.Problem(3_000, 2, 900.0)
    belief, terms, waves = new_run_lengths(problem), new_terms(problem), persistent(rng, 3_000, phi, 2)
    for t, (good, dear) in enumerate(np.clip(0.5 + 0.12 * waves, 0, 1)):
        if forced:
            belief.products[:] = -1e9
        observe_outcome(belief, new_outcome(terms, t, 0, 1.0, good, np.array([dear])))
    return float(belief.changes[0])


@pytest.mark.parametrize("phi", [0.5, 0.7, 0.9])
def test_persistent_noise_is_not_taken_for_changes(phi: float) -> None:
    """At most a quarter of the changes that are counted if the planted fault forces the persistence to 0."""
    mine, blind = counted_changes(phi, forced=False), counted_changes(phi, forced=True)
    assert blind >= 12
    assert mine <= blind / 4


def skipped_after(bill: float, at: int, seed: int, horizon: int) -> int:
    """Skips in the 500 requests after round ``at``, whose bill is so many times the mean; 1 for a usual one."""
    rng, means = np.random.default_rng(seed), np.array([0.0004, 0.0005, 0.0006])
    problem = ds.Problem(horizon, 3, 0.0006 * horizon, cost_max=1.0)
    costs = means * rng.lognormal(-0.125, 0.5, (at + 500, 3))
    rewards = rng.random((at + 500, 3)) < [0.5, 0.6, 0.7]
    costs[at - 1] = bill * means
    learner, skips, billed = Adaptive().start(problem, seed=seed), 0, False
    for row in range(at + 500):
        decision = learner.ask()
        skips += decision.skipped and row >= at
        if not decision.skipped:
            learner.tell(decision, rewards[row, decision.arm], costs[row, decision.arm])
            billed |= row == at - 1
    assert billed
    return skips


@pytest.mark.parametrize("horizon", [20_000, 200_000])
@pytest.mark.parametrize("at", [1, 30, 1_000])
@pytest.mark.parametrize("bill", [10, 100, 1_000])
def test_one_absurd_bill_does_not_stop_it(bill: int, at: int, horizon: int) -> None:
    """On average over 24 runs at most 10 of the next 500 requests are skipped because of it, up to 5% of the budget."""
    more = [skipped_after(bill, at, seed, horizon) - skipped_after(1, at, seed, horizon) for seed in range(24)]
    assert np.mean(more) <= 10


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
