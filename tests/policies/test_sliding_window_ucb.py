"""Sliding-window and naive UCB against a twin that recomputes every estimate from the full history."""

from __future__ import annotations

import itertools
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import driftsack as ds
from driftsack.core.errors import DriftsackError, OutOfRangeError, SettingError
from driftsack.game.ledger import open_ledger
from driftsack.game.protocol import choose, learn
from driftsack.game.records import new_outcome, new_terms, open_round
from driftsack.game.state_tree import programs
from driftsack.lp import certificate
from driftsack.policies import from_spec
from driftsack.policies.parts.pacing import BudgetRule
from driftsack.policies.parts.radius import BERNSTEIN, Radius, lower_bound, upper_bound
from driftsack.theory import epsilon, window
from tests.support import naive
from tests.support.delayed_feedback import give_feedback

ARMS, RESOURCES, HORIZON = 3, 2, 160


def disagreement(
    policy: Any, windows: tuple[int, int], seed: int, twin: Any = naive.bounds, kept: float = 1.0, late: bool = False
) -> tuple[float, int]:
    """Ask and tell under drift; return the largest disagreement with the twin's bounds and the number of skips.

    The learner's bounds must equal the twin's, and its mix must be optimal for the twin's LP, which a
    certificate shows because optima may tie. With ``late``, feedback arrives up to five rounds late.
    """
    rng = np.random.default_rng(seed)
    problem = ds.Problem(horizon=HORIZON, arms=ARMS, budget=[12.0, 14.0])
    learner = policy.start(problem, seed=seed)
    lp = next(programs(learner.state))
    history: list[naive.Round] = []
    worst, skips = 0.0, 0
    while not learner.done:
        upper, lower = twin(history, ARMS, RESOURCES, HORIZON, windows, policy.scale)
        decision = learner.ask()
        proof = certificate(upper, lower, kept * problem.rate, decision.mix, decision.prices)
        off = np.abs(lp.objective[:ARMS] - upper).max(), np.abs(lp.columns[:-1, :ARMS] - lower).max()
        worst = max(worst, *map(abs, proof), *off)
        skips += decision.skipped
        if late:
            history.append(naive.Round(-1, 0.0, np.zeros(RESOURCES)))
            for given in give_feedback(learner, rng, most=0.3):
                history[given.round - 1] = naive.Round(given.arm, given.reward, given.costs)
            continue
        if decision.skipped or rng.random() < 0.05:  # some feedback never arrives
            history.append(naive.Round(-1, 0.0, np.zeros(RESOURCES)))
            continue
        drift = 0.5 + 0.4 * np.sin(decision.round / 20 + decision.arm)
        reward, costs = rng.random() * drift, 0.7 * rng.random(RESOURCES) * (1.2 - drift)
        learner.tell(decision, reward, costs)
        history.append(naive.Round(decision.arm, reward, costs))
    assert len(history) > 30
    return worst, skips


@pytest.mark.parametrize("windows", [(1, 1), (7, 7), (50, 50), (HORIZON, HORIZON), (7, 50), (50, 7), (HORIZON, 7)])
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_same_bounds_and_mixes_as_the_twin(windows: tuple[int, int], scale: float) -> None:
    """With scale 0.01 the budgets bind and rounds are skipped; skipped rounds must advance the windows, too."""
    worst, skips = disagreement(ds.SlidingWindowUCB(windows=windows, scale=scale), windows, seed=0)
    assert worst < 1e-9
    assert scale == 1.0 or windows[1] == 1 or skips >= (1 if windows[1] == 7 else 10)


def test_naive_is_the_longest_window() -> None:
    worst, skips = disagreement(ds.NaiveUCB(scale=0.01), (HORIZON, HORIZON), seed=1)
    assert worst < 1e-9
    assert skips > 10


def test_refined_radii_and_a_rate_held_back() -> None:
    """The last appendix's bounds and right-hand side; without the shrinkage or the refined radii the twin disagrees."""
    windowed = ds.SlidingWindowUCB(windows=(7, 50), scale=0.01, radius="refined", shrink=0.2)
    assert disagreement(windowed, (7, 50), 0, naive.refined_bounds, kept=0.8)[0] < 1e-9
    unwindowed = ds.policies.UCBBwK(scale=0.01, shrink=0.3)
    assert disagreement(unwindowed, (HORIZON, HORIZON), 0, naive.refined_bounds, kept=0.7)[0] < 1e-9
    assert disagreement(unwindowed, (HORIZON, HORIZON), 0, naive.refined_bounds, kept=1.0)[0] > 1e-3
    assert disagreement(unwindowed, (HORIZON, HORIZON), 0, naive.bounds, kept=0.7)[0] > 1e-3


@pytest.mark.parametrize("late", [False, True])
def test_bernstein_radii_and_a_scale_of_their_own_for_costs(late: bool) -> None:
    """The bounds equal the twin's; a window that is off by one and the scale of rewards for costs are detected."""
    settings: Any = {"scale": 0.02, "cost_scale": 0.003}
    windowed = ds.SlidingWindowUCB(windows=(7, 50), radius="bernstein", **settings)
    twin = partial(naive.bernstein_bounds, cost_scale=0.003)
    worst, skips = disagreement(windowed, (7, 50), 0, twin, late=late)
    assert worst < 1e-9
    assert skips > 10
    for wrong in ((8, 50), (7, 49)):
        assert disagreement(windowed, wrong, 0, twin, late=late)[0] > 1e-3
    assert disagreement(windowed, (7, 50), 0, naive.bernstein_bounds, late=late)[0] > 1e-3
    unwindowed = ds.NaiveUCB(radius="bernstein", **settings)
    assert disagreement(unwindowed, (HORIZON, HORIZON), 0, twin, late=late)[0] < 1e-9
    printed, twin = ds.NaiveUCB(**settings), partial(naive.bounds, cost_scale=0.003)
    assert disagreement(printed, (HORIZON, HORIZON), 0, twin, late=late)[0] < 1e-9
    assert disagreement(printed, (HORIZON, HORIZON), 0, naive.bounds, late=late)[0] > 1e-3


@pytest.mark.parametrize("factor", [1.0, 0.1])
def test_bernstein_radii_cover_the_mean(factor: float) -> None:
    """The exact probability for Bernoulli outcomes; a tenth of the radius covers too rarely."""
    excess = []
    for n, mean, log in itertools.product((5, 20, 100, 1_000), (0.02, 0.1, 0.5, 0.9), (3.0, 6.0)):
        ones = np.arange(n + 1)
        shrunk = ones / (n + 1)
        radius = Radius(log, log, factor, factor, BERNSTEIN, False)
        cases = list(zip(shrunk, shrunk - shrunk**2, strict=True))
        low = np.array([lower_bound(radius, estimate, n + 1.0, spread) for estimate, spread in cases])
        high = np.array([upper_bound(radius, estimate, n + 1.0, spread) for estimate, spread in cases])
        missed = binom.pmf(ones, n, mean)[(low > mean) | (high < mean)].sum()
        excess.append(missed - 3 * math.exp(1 / 3 - log))
    assert (max(excess) <= 0) == (factor == 1.0)


def test_shrinkage_by_theory() -> None:
    problem = ds.Problem(horizon=10_000, arms=2, budget=[5_000.0, 6_000.0])
    log = np.log(2 * 2 * 1e8)
    load = log * 2 / 5_000
    assert ds.policies.UCBBwK().epsilon(problem) == pytest.approx(np.sqrt(load) + np.log(10_000) * load)
    assert ds.policies.UCBBwK().epsilon(ds.Problem(horizon=100, arms=2, budget=[1.0])) == 1.0
    shrunk = ds.SlidingWindowUCB(variation=(0.1, 0.01), radius="refined", shrink="theory").new_state(problem)
    expected = 1 - epsilon(10_000, 2, 2, 5_000.0, 0.01)
    assert 0 < expected < 1
    np.testing.assert_allclose(shrunk.lp.rhs[:-1], expected * problem.rate)


@pytest.mark.parametrize("wrong", [(6, 7), (8, 7), (7, 6), (7, 8)])
def test_the_twin_detects_a_window_that_is_off_by_one(wrong: tuple[int, int]) -> None:
    """The planted fault: one round more or less in either window."""
    assert disagreement(ds.SlidingWindowUCB(windows=(7, 7), scale=0.01), wrong, seed=0)[0] > 1e-3


@pytest.mark.parametrize(
    ("policy", "forgets"),
    [(ds.SlidingWindowUCB(windows=(40, 40), scale=0.1), True), (ds.NaiveUCB(scale=0.1), False)],
)
def test_windows_forget_and_naive_does_not(policy: ds.Policy, forgets: bool) -> None:
    """Two pasts of 100 rounds, then the same 100 rounds: with a window of 40 the bounds do not depend on the past."""
    problem = ds.Problem(horizon=400, arms=2, budget=[390.0])
    bounds = []
    for past in (0.1, 0.9):
        state, rng = policy.new_state(problem), np.random.default_rng(0)
        terms, ledger = new_terms(problem), open_ledger(problem)
        mix, prices = np.zeros(2), np.zeros(1)
        for t in range(200):
            choose(state, open_round(t, ledger, terms), rng, mix, prices)
            value = past if t < 100 else 0.5
            learn(state, new_outcome(terms, t, t % 2, 0.5, value, np.array([value])))  # the same arms for both pasts
        lp = next(programs(state))
        bounds.append(np.concatenate([lp.objective[:2], lp.columns[0, :2]]))
    assert np.array_equal(bounds[0], bounds[1]) == forgets


def test_windows_by_the_papers_formula() -> None:
    """The formula: w = ceil(m^(1/3) V^(-2/3) T^(2/3) log^(1/3)(12 m d T^3)), at most T; T without variation."""
    log = np.log(12 * 2 * 2 * 1e12)
    problem = ds.Problem(horizon=10_000, arms=2, budget=[5000.0, 5000.0])
    first, second = ds.SlidingWindowUCB(variation=(0.0, 1.5)).window_lengths(problem)
    assert first == 10_000
    assert second == int(np.ceil((2 * (1e4 / 1.5) ** 2 * log) ** (1 / 3)))
    assert window(horizon=100, arms=2, variation=1e-200) == 100
    assert window(horizon=10_000, arms=2, variation=1e6) >= 1
    with pytest.raises(OutOfRangeError, match="variation must be 0 or more"):
        window(horizon=100, arms=2, variation=-1.0)


def test_settings_are_kept_as_plain_numbers(tmp_path: Path) -> None:
    """NumPy numbers are accepted and stored as Python numbers, which can be saved, compared and hashed."""
    policy = ds.SlidingWindowUCB(windows=np.array([5, 6]), scale=np.float32(0.5), clip=np.bool_(True))  # type: ignore[arg-type]
    assert policy == ds.SlidingWindowUCB(windows=(5, 6), scale=0.5, clip=True)
    assert len({policy, ds.SlidingWindowUCB(windows=(5, 6), scale=0.5, clip=True)}) == 1
    policy.start(ds.Problem(9, 2, [3.0]), safe=np.bool_(True)).save(tmp_path / "learner")  # type: ignore[arg-type]
    assert ds.Learner.load(tmp_path / "learner").policy == policy


def test_clipping_keeps_bounds_in_the_unit_interval() -> None:
    for clip in (True, False):
        learner = ds.SlidingWindowUCB(windows=(9, 9), clip=clip).start(
            ds.Problem(horizon=50, arms=2, budget=[40.0]), seed=0
        )
        for _ in range(20):
            learner.tell(learner.ask(), 0.5, [0.5])
        lp = next(programs(learner.state))
        inside = (lp.objective[:2] <= 1).all() and (lp.columns[0, :2] >= 0).all()
        assert inside == clip


def test_remaining_rule_spends_the_remaining_budget_per_remaining_round() -> None:
    problem = ds.Problem(horizon=40, arms=1, budget=[10.0])
    learner = ds.NaiveUCB(scale=0.01, budget_rule="remaining").start(problem, seed=0)
    left, rounds = 10.0, 40
    while not learner.done:
        decision = learner.ask()
        lp = next(programs(learner.state))
        assert lp.rhs[0] == pytest.approx(min(left / rounds, 2.0))  # above 1 it cannot bind
        rounds -= 1
        if not decision.skipped:
            learner.tell(decision, 1.0, [0.3])
            left -= 0.3
    assert learner.remaining[0] < 1.0


@pytest.mark.parametrize("budget_rule", ["fixed", "remaining"])
def test_an_enormous_budget_needs_no_fallback(budget_rule: BudgetRule) -> None:
    world = ds.Instance.stationary([0.2, 0.8], [[0.5, 1.0]], horizon=500, budget=1e12)
    policy = ds.SlidingWindowUCB(windows=(100, 100), scale=0.1, budget_rule=budget_rule)
    run = ds.simulate(world, policy, trials=5, seed=0)
    assert not run.lp_rescues.any()
    assert (run.pulls[:, 1] > 400).all()


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({}, SettingError, "either windows=.* or variation="),
        ({"windows": (5, 5), "variation": (1.0, 1.0)}, SettingError, "either windows=.* or variation="),
        ({"windows": (0, 5)}, OutOfRangeError, "each window must be at least 1, got 0"),
        ({"windows": (5.5, 5)}, SettingError, "each window must be an integer"),
        ({"windows": 5.5}, SettingError, "windows must be a pair"),
        ({"variation": (-1.0, 1.0)}, OutOfRangeError, "each variation must be 0 or more"),
        ({"windows": "ab"}, SettingError, "windows must be a pair"),
        ({"windows": (5, 5), "radius": "small"}, SettingError, "one of 'printed', 'refined', 'bernstein', got 'small'"),
        ({"windows": (5, 5), "cost_scale": -1.0}, OutOfRangeError, "cost_scale must be 0 or more"),
        ({"windows": (5, 5), "first_pulls": -1}, OutOfRangeError, "first_pulls must be at least 0, got -1"),
        ({"windows": (5, 5), "first_pulls": 0.5}, SettingError, "first_pulls must be an integer"),
        ({"windows": (5, 5), "shrink": 2.0}, OutOfRangeError, r"shrink must lie in \[0, 1\], got 2"),
        ({"windows": (5, 5), "shrink": "theory"}, SettingError, "needs variation="),
        ({"variation": (np.nan, 1.0)}, DriftsackError, "each variation must be finite"),
        ({"windows": (5, 5), "scale": -1.0}, OutOfRangeError, "scale must be 0 or more"),
        ({"windows": (5, 5), "clip": 1}, SettingError, "clip must be True or False"),
        ({"windows": (5, 5), "budget_rule": "even"}, SettingError, "budget_rule must be one of 'fixed', 'remaining'"),
    ],
)
def test_bad_settings(settings: dict[str, Any], error: type[DriftsackError], words: str) -> None:
    with pytest.raises(error, match=words):
        ds.SlidingWindowUCB(**settings)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"policy": "Unknown"}, "policy must be one of .*NaiveUCB.*got 'Unknown'"),
        ({"policy": "UCBPolicy"}, "policy must be one of .*got 'UCBPolicy'"),  # abstract
        ({"scale": 1.0}, "policy must be one of .*got None"),
        ({"policy": "NaiveUCB", "size": 1.0}, "NaiveUCB takes scale, clip, .*first_pulls, got size"),
    ],
)
def test_bad_spec(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        from_spec(spec)


@pytest.mark.parametrize(
    ("example", "policy", "expected", "error"),
    [
        (1, "sliding", 3_426, 4),
        (1, "naive", 3_281, 3),
        (2, "sliding", 4_564, 5),
        (2, "naive", 3_711, 5),
    ],
)
def test_reference_values(example: int, policy: str, expected: float, error: float) -> None:
    """An independent study's means (400 trials, Bernoulli, printed radius): within 4 joint standard errors.

    One of the four fails by chance once in about 4,000 seeds.
    """
    world = (ds.instances.example_1, ds.instances.example_2)[example - 1]()
    variation = ds.variation(world)
    recipe = ds.NaiveUCB() if policy == "naive" else ds.SlidingWindowUCB(variation=(variation.v1, variation.v2))
    run = ds.simulate(world, recipe, trials=400, seed=0)
    summary = run.summary()
    assert abs(summary["reward"] - expected) < 4 * np.hypot(summary["reward_se"], error)


def test_one_window_is_used_for_rewards_and_costs() -> None:
    assert ds.SlidingWindowUCB(windows=9) == ds.SlidingWindowUCB(windows=(9, 9))
