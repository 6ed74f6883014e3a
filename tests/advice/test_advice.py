"""Advice: the test for drift keeps its level and finds drift, its kind is recognised, and recommendations are good."""

from __future__ import annotations

import dataclasses
import functools
import html
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

import driftsack as ds
from driftsack.advice import time_windows
from driftsack.advice.budget_value import budget_value
from driftsack.advice.candidates import candidates, spending_curve
from driftsack.advice.drift_detection import SCALES, between_window_scores, detect_drift, drift_measures
from driftsack.advice.fit import (
    bootstrap_means,
    cell_variance,
    change_points,
    fit,
    fitted_instance,
    largest_outcomes,
    noise_kind,
    small_sample_variance,
)
from driftsack.advice.intervals import window_intervals
from driftsack.advice.judging import folded
from driftsack.advice.noise import error_factors
from driftsack.advice.standings import first_near_best
from driftsack.advice.time_windows import RunningSums, merge_blocks, shuffled_sums, window_means
from driftsack.benchmarks import lp_dynamic
from driftsack.cli import app
from driftsack.cli.console import progress_bar, rich_table, text_column
from driftsack.core.errors import OutOfRangeError, SettingError
from driftsack.core.instance import Noise
from driftsack.core.text import percent
from driftsack.measures.drift_kind import DriftKind, drift_kind
from tests.support import reference_lps as reference
from tests.support import split_worlds as half_worlds

T = 2_000
STATIONARY = ds.Instance.stationary([0.5, 0.7, 0.3], [[0.5, 0.9, 0.2], [0.3, 0.4, 0.1]], T, 0.25 * T)


def surveyed(instance: ds.Instance, seed: int) -> ds.logs.Survey:
    return ds.logs.survey(ds.gather(instance, seed=seed))


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["bernoulli", "beta"])
def test_noise_is_not_called_drift(noise: Noise) -> None:
    """200 logs of a stationary instance: at a level of 1%, more than 10 detections have a probability below 1e-4."""
    stationary = ds.Instance.stationary([0.5, 0.7, 0.3], [[0.5, 0.9, 0.2], [0.3, 0.4, 0.0]], T, 0.25 * T, noise)
    p_values = np.array([detect_drift(surveyed(stationary, seed), seed=seed).p_value for seed in range(200)])
    assert (p_values <= 0.01).sum() <= 10
    assert 0.4 < p_values.mean() < 0.6  # uniform: 0.5 with a standard error of 0.02
    assert (p_values <= 0.25).mean() < 0.25 + 4 * 0.031


@pytest.mark.slow
@pytest.mark.parametrize("example", [ds.instances.example_2(T), ds.instances.example_3(0.5, T)])
def test_drift_is_found(example: ds.Instance) -> None:
    found = [detect_drift(surveyed(example, seed), seed=seed).found for seed in range(200)]
    assert np.mean(found) >= 0.9


def test_a_test_that_never_shuffles_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: if rows are left in their order, every log equals its own shuffles, and p = 1."""
    shuffled = time_windows.permutations
    monkeypatch.setattr(
        time_windows, "permutations", lambda count, shuffles, rng: np.sort(shuffled(count, shuffles, rng), axis=1)
    )
    assert detect_drift(surveyed(ds.instances.example_2(T), seed=0)).p_value == 1.0


@pytest.mark.slow
def test_the_kind_of_drift_is_recognised() -> None:
    """Drift changes which arm is best in Example 2 and when to spend in Example 3."""
    kinds = {
        DriftKind.WHICH: ds.instances.example_2(T),
        DriftKind.WHEN: ds.instances.example_3(0.5, T),
        DriftKind.STATIONARY: STATIONARY,
    }
    for kind, instance in kinds.items():
        verdicts = []
        for seed in range(20):
            summary = surveyed(instance, seed)
            found = detect_drift(summary, seed=seed).found
            fitted = fitted_instance(fit(summary, found), summary, instance.problem.budget, T)
            verdicts.append(drift_kind(budget_value(fitted).optima, found))
        assert verdicts.count(kind) >= 18, (kind, verdicts)


def test_scores_against_a_simple_implementation() -> None:
    """Sums of squares between windows, by their definition, for every order and scale."""
    summary = surveyed(ds.instances.example_2(400), seed=1)
    order = next(iter(shuffled_sums(summary, 19, np.random.default_rng(0))))
    values = np.diff(order.prefix, axis=1)  # (20, n, 1 + d)
    for k, scale in enumerate(SCALES):
        inside = (order.rounds // (summary.rows / scale)).astype(int)
        expected = np.zeros((20, 3))
        for shuffle in range(20):
            for q in range(3):
                x = values[shuffle, :, q]
                parts = [x[inside == w] for w in range(scale) if (inside == w).any()]
                expected[shuffle, q] = sum(len(part) * (part.mean() - x.mean()) ** 2 for part in parts)
        rooted = np.cbrt(np.where(expected > 1e-9 * values.sum(axis=1) ** 2 / len(order.rounds), expected, 0.0))
        spread = rooted.std(axis=0)
        scores = np.divide(rooted - rooted.mean(axis=0), spread, out=np.zeros_like(rooted), where=spread > 0)
        np.testing.assert_allclose(between_window_scores(order)[k], scores, atol=1e-6)


def test_measures_are_those_of_the_instance_of_windowed_means() -> None:
    summary = surveyed(ds.instances.example_4(4, T), seed=0)
    means = np.stack([window_means(sums, 20) for sums in shuffled_sums(summary, 3, np.random.default_rng(0))], axis=2)
    for k in range(4):
        rows = np.repeat(means[k], T // 20, axis=0)
        variation = ds.variation(ds.Instance.from_arrays(rows[:, :, 0], rows[:, :, 1:].transpose(0, 2, 1), 1.0))
        measures = drift_measures(means[[k, k]], T)
        for name in ("v1", "v2", "w1", "w2"):
            assert measures[name].value == pytest.approx(getattr(variation, name))
            assert measures[name].share == pytest.approx(0.0, abs=1e-12)


def test_a_window_without_observations_has_the_previous_mean() -> None:
    prefix = np.cumsum([[[0.0], [1.0], [0.0], [0.5]]], axis=1)
    order = RunningSums(prefix, np.array([2.0, 3.0, 9.0]), rows=12)
    np.testing.assert_allclose(window_means(order, 4)[0, :, 0], [1.0, 0.0, 0.0, 0.5])


def test_a_table_is_shuffled_by_whole_rows() -> None:
    """Two arms that are equal in every row remain equal in every shuffle."""
    same = np.random.default_rng(0).random(100)
    rows = {"time": np.arange(100), "reward:a": same, "cost:a": same, "reward:b": same, "cost:b": same}
    first, second = shuffled_sums(ds.logs.survey(pl.DataFrame(rows)), 5, np.random.default_rng(1))
    np.testing.assert_array_equal(first.prefix, second.prefix)
    alone = [sums.prefix for sums in shuffled_sums(surveyed(STATIONARY, 0), 5, np.random.default_rng(1))]
    assert not np.array_equal(alone[0][1], alone[0][2])


def test_correlated_rounds_are_merged_to_one_outcome() -> None:
    """Runs of ten equal rows look like drift row by row, but not if each run is merged to one outcome."""
    values = np.repeat(np.random.default_rng(5).random(200), 10)
    frame = pl.DataFrame({"time": np.arange(T), "reward:a": values, "cost:a": values})
    rows = ds.logs.survey(frame, reward_max=1.0, cost_max=1.0)
    assert detect_drift(rows).found
    blocks = merge_blocks(rows, 10)
    assert not detect_drift(blocks).found
    one = blocks.series[0]
    np.testing.assert_allclose(one.values[:, 0], values[::10])
    np.testing.assert_allclose(one.rounds, np.arange(200) * 10 + 4.5)
    assert (one.size, one.pulls) == (10, T)
    assert len(merge_blocks(rows, 7).series[0].values) == T // 7


def test_change_points_and_means_of_planted_phases() -> None:
    """Means within 5 standard errors, plus the error from misplacing a change by up to 40 rounds."""
    planted = ds.Instance.piecewise(
        [[0.2, 0.8], [0.8, 0.2], [0.8, 0.7]], [[[0.5, 0.5]]] * 3, [700, 500, 800], 500.0, "bernoulli"
    )
    summary = surveyed(planted, seed=2)
    found = fit(summary, drifts=True)
    assert np.abs(found.changes - [700, 1200]).max() <= 40
    true = np.concatenate([planted.rewards[:, :, None], planted.costs.transpose(0, 2, 1)], axis=2)
    assert np.abs(found.means - true).max() < 5 * np.sqrt(0.25 / 250) + 40 / 500
    assert len(fit(summary, drifts=False).means) == 1
    assert len(change_points(surveyed(STATIONARY, 0))) == 1  # there is none, but at least one is returned
    again = bootstrap_means(summary, found, np.random.default_rng(0))
    assert again.shape == found.means.shape
    assert 0 < np.abs(again - found.means).max() < 5 * np.sqrt(0.25 / 250)


@pytest.mark.parametrize("noise", ["deterministic", "beta", "uniform", "bernoulli"])
def test_noise_is_recognised(noise: Noise) -> None:
    for build in (ds.instances.example_3(0.5, T, noise), ds.instances.example_1(T, noise)):
        assert noise_kind(surveyed(build, 0)) == noise
    assert noise_kind(surveyed(half_worlds.language_models(1_000), 0)) == "lognormal"


def losses(name_of_choice: Callable[[ds.Advice], str]) -> dict[str, float]:
    """By how much a choice among the candidates earned less than the best of them in the second half of each world."""
    lost = {}
    for name, (advice, earned) in second_halves().items():
        best = max(earned.values())
        lost[name] = 1.0 - earned[name_of_choice(advice)] / best
    return lost


@functools.cache
def second_halves() -> dict[str, tuple[ds.Advice, dict[str, float]]]:
    """Advice from a log of the first half of each world, and what each candidate earned in 10 trials of the second."""
    found = {}
    for name, build in half_worlds.WORLDS.items():
        first, second = half_worlds.halves(build())
        advice = ds.advise(ds.gather(first, seed=0), second.problem.budget)
        listed = [standing.candidate for standing in advice.standings]
        runs = {one.name: ds.simulate(second, one.policy, trials=10, seed=7).reward.mean() for one in listed}
        found[name] = advice, {one: float(reward) for one, reward in runs.items()}
    return found


@pytest.mark.slow
def test_the_recommended_policy_is_nearly_the_best_out_of_sample() -> None:
    """On average within 2% of the candidate that turned out best, never more than 5% below; fixed choices are not."""
    lost = losses(lambda advice: advice.recommended.candidate.name)
    assert len(lost) == 10
    assert np.mean(list(lost.values())) <= 0.02, lost
    assert max(lost.values()) <= 0.05, lost
    for k in range(1, 5):  # the policies without a window, which are listed for every world but Adaptive
        fixed = list(losses(lambda advice, k=k: advice.standings[k].candidate.name).values())  # type: ignore[misc]
        assert np.mean(fixed) > 0.03, (k, fixed)


def test_the_numbers_of_advice_agree_with_each_other() -> None:
    """No policy earns more than the optimum beside it, and the optimum lies in its interval."""
    for advice, _ in second_halves().values():
        low, high = advice.ranges.best
        assert low <= advice.ranges.expected <= high
        rewards = [advice.reward(standing) for standing in advice.standings]
        assert 0 <= max(rewards) <= advice.ranges.expected
        assert not re.search(r"e-\d\d", advice.summary + advice.notes + advice.caution)


def test_advice_tells_lack_of_foresight_from_the_cost_of_learning() -> None:
    """In Example 3 knowing all present means earns about 0.85 of the optimum; without drift, nearly all of it."""
    timing = ds.advise(ds.gather(ds.instances.example_3(0.5, horizon=T), seed=1), budget=500, worlds=3, trials=1)
    still = ds.advise(ds.gather(STATIONARY, seed=0), STATIONARY.problem.budget, worlds=3, trials=1)
    assert 0.8 < timing.present.even < 0.9
    assert still.present.even > 0.98
    for advice in (timing, still):
        known = advice.present
        assert advice.to_dict()["present_means_known"] == {"even": known.even, "two_speed": known.two_speed}
        earned = f"would earn {percent(known.even)} at an even pace and {percent(known.two_speed)} at two speeds"
        assert earned in advice.summary
        assert "present means known, at an even pace" in advice.html()
    learnt, missing = still.recommended.share, 1 - still.recommended.share
    assert f"of the {percent(missing)} that are missing, {percent(1 - still.present.best)} would" in still.summary
    ahead = dataclasses.replace(still, recommended=still.recommended._replace(share=1.0))
    assert "learning costs nothing that could be measured" in ahead.summary
    assert learnt < still.present.best


def seasons(order: Sequence[bool]) -> ds.Instance:
    """Periods of 1,000 rounds, each with a rich and a poor half in the given order; the budget is for half of them."""
    rich, poor = [0.8, 0.1], [0.2, 0.1]
    rewards = [row for first in order for row in ((rich, poor) if first else (poor, rich))]
    return ds.Instance.piecewise(rewards, [[[0.5, 0.5]]] * len(rewards), [500] * len(rewards), 250.0 * len(order))


@pytest.mark.slow
def test_plans_are_recommended_only_if_timing_recurs() -> None:
    """Four periods alike: a plan, and it pays in the fifth. In changing order, or with one period: no plan."""
    one = seasons([False])
    alike = ds.advise(ds.gather(seasons([False] * 4), seed=0), one.problem.budget, horizon=1_000)
    assert (alike.periods, alike.kind, alike.recommended.candidate.family) == (4, "when", "plans")
    plan, steady = (
        ds.simulate(one, found.candidate.policy, trials=40).reward.mean()
        for found in (
            alike.recommended,
            alike.steady,
        )
    )
    assert plan > 1.02 * steady
    assert "assumes that the timing of the log repeats" in alike.caution
    mixed = ds.advise(ds.gather(seasons([True, False, False, True, False]), seed=0), one.problem.budget, horizon=1_000)
    assert mixed.recommended.candidate.family != "plans"
    assert {standing.candidate.family for standing in mixed.standings} >= {"plans"}
    single = ds.advise(ds.gather(one, seed=0), one.problem.budget)
    assert (single.kind, single.periods) == ("when", 1)
    assert "plans" not in {standing.candidate.family for standing in single.standings}
    assert "less than two horizons of 1,000, so it cannot show whether its timing recurs" in single.caution
    assert "plans" not in {
        standing.candidate.family
        for standing in ds.advise(
            ds.gather(seasons([False] * 4), seed=0), one.problem.budget, horizon=1_000, plans=False, worlds=2, trials=1
        ).standings
    }


def test_folding_lays_periods_over_each_other() -> None:
    """Against a loop over the cells."""
    summary = surveyed(ds.instances.example_4(4, T), seed=0)
    part = folded(summary, 200, 1_800, 400)
    assert part.rows == 400
    for one, whole in zip(part.series, summary.series, strict=True):
        pairs = [
            ((t - 200) % 400, tuple(v)) for t, v in zip(whole.rounds, whole.values, strict=True) if 200 <= t < 1800
        ]
        assert sorted(pairs) == sorted(zip(one.rounds.tolist(), map(tuple, one.values), strict=True))
        assert (np.diff(one.rounds) >= 0).all()
        assert one.pulls == len(pairs)


def test_correlated_rounds_widen_intervals_and_do_not_move_the_optimum() -> None:
    """Ticks of spot capacity, which persist: the optimum is within 7% of the truth, whatever the block."""
    world, _ = half_worlds.halves(half_worlds.spot_capacity())
    truth, log = lp_dynamic(world).value, ds.gather(world, seed=0)
    found = [ds.advise(log, world.problem.budget, block=block, worlds=10, trials=1) for block in (1, 20, 200)]
    np.testing.assert_allclose([advice.ranges.expected for advice in found], found[0].ranges.expected)
    assert abs(found[0].ranges.expected / truth - 1) < 0.07
    widths = [advice.ranges.best[1] - advice.ranges.best[0] for advice in found]
    assert widths[0] < widths[1] < widths[2]
    merged = merge_blocks(ds.logs.survey(log), 200)  # what a fit to the blocks would give
    lower = budget_value(fitted_instance(fit(merged, drifts=True), merged, world.problem.budget, world.horizon)).best
    assert lower < 0.85 * truth


def test_error_factors_are_those_of_block_means() -> None:
    """An autoregressive series: the factor is near the known one; independent rounds have a factor near 1."""
    rng = np.random.default_rng(0)
    noise, series = rng.standard_normal(20_000), np.zeros(20_000)
    for t in range(1, 20_000):
        series[t] = 0.8 * series[t - 1] + noise[t]
    frame = pl.DataFrame({"time": range(20_000), "reward:a": series - series.min(), "cost:a": noise - noise.min()})
    summary = ds.logs.survey(frame, most_cells=2**15)
    still = fit(summary, drifts=False)
    factors = error_factors(summary, still, block=100, drifts=False)[0]
    # a mean of 100 rounds of correlation 0.8 has (1 + 0.8) / (1 - 0.8) = 9 times the variance, minus the ends' 4%
    assert factors[0] == pytest.approx(3.0, rel=0.15)
    assert factors[1] == pytest.approx(1.0, abs=0.15)
    np.testing.assert_array_equal(error_factors(summary, still, block=1, drifts=False), 1.0)


@pytest.mark.slow
def test_which_arm_is_said_only_above_noise() -> None:
    """Drift in one useless arm, the others being equal: what tracking seems to gain is noise, and is not reported."""
    costs = np.full((2, 1, 8), 0.5)
    costs[:, 0, 7] = 0.1, 0.9
    world = ds.Instance.piecewise([[0.3] * 7 + [0.0]] * 2, costs, [600, 600], 700.0)
    found = [ds.advise(ds.gather(world, seed=seed), 700.0, worlds=20, trials=1) for seed in range(10)]
    assert all(one.drift.found for one in found)
    naive = [drift_kind(one.worth.optima, drifts=True) for one in found]
    assert naive.count(DriftKind.WHICH) >= 4
    assert [one.kind for one in found].count(DriftKind.WHICH) <= 2
    spared = next(one for one, kind in zip(found, naive, strict=True) if one.kind != kind)
    assert "cannot be told from noise" in spared.summary
    clear = ds.advise(ds.gather(ds.instances.example_2(T), seed=1), [1000, 1000], worlds=20, trials=1)
    assert clear.kind == "which"
    assert clear.worth.tracking > 2 * clear.floor.tracking


def test_the_value_of_budget_agrees_with_another_solver() -> None:
    found = budget_value(ds.instances.example_3(0.5, 10_000))
    assert (found.best, found.even, found.fixed) == pytest.approx((2500.0, 2125.0, 2500.0))
    assert found.timing == pytest.approx(0.15)
    np.testing.assert_allclose(found.less, -125.0)  # the arms swap their costs, so both resources have the same value
    for j in range(2):  # another solver, another budget
        budget = np.full(2, 2500.0)
        budget[j] *= 1.1
        richer = ds.instances.example_3(0.5, 10_000)
        richer = ds.Instance(ds.Problem(10_000, 2, budget), richer.rewards, richer.costs, richer.phase)
        assert found.more[j] == pytest.approx(reference.lp_dynamic(richer) - 2500.0, abs=1e-5)
    nothing = budget_value(ds.Instance.stationary([0.5], [[1.0]], 10, 0.0))
    assert (nothing.timing, nothing.tracking) == (0.0, 0.0)


@pytest.mark.slow
def test_the_bias_of_the_optimum_is_removed() -> None:
    """Many equal, poorly known arms: the optimum of the fitted instance is biased upwards, the reported one is not."""
    equal = ds.Instance.stationary([0.5] * 10, [[0.5] * 10], 400, 100.0)  # the optimum is 100
    found = [ds.advise(ds.gather(equal, seed=seed), 100.0, worlds=20, trials=1) for seed in range(10)]
    naive, reported = np.mean([one.worth.best for one in found]), np.mean([one.ranges.expected for one in found])
    assert naive > 120
    assert abs(reported - 100) < 0.5 * abs(naive - 100)


def test_a_short_log_is_reported_and_no_candidate_is_repeated() -> None:
    frame = pl.DataFrame({"time": range(6), "arm": ["a", "b"] * 3, "reward": [0.5] * 6, "cost": [0.5] * 6})
    advice = ds.advise(frame, budget=3.0, worlds=2, trials=1)
    assert "The log of 6 rounds is too short to detect drift." in advice.summary
    names = [standing.candidate.name for standing in advice.standings]
    assert len(set(names)) == len(names)
    longer = ds.advise(frame, budget=30.0, horizon=60, worlds=2, trials=1)
    assert "If the next 60 rounds follow the course of the log's 6 rounds, scaled" in longer.summary
    assert "scaled from 6 to 60 rounds" in longer.html()
    assert "scaled from" not in advice.html()


def test_candidates_and_the_choice_among_them() -> None:
    drifting = ds.instances.example_3(0.5, T)
    families = [candidate.family for candidate in candidates(drifting.problem, drifting)]
    assert families == sorted(families, key=["adapts", "remembers", "forgets", "restarts", "plans"].index)
    listed = [candidate.policy for candidate in candidates(drifting.problem)]
    assert listed[0] == ds.Adaptive()
    for kind in (ds.policies.PrimalDualBwK, ds.policies.ThompsonBwK, ds.SlidingWindowUCB):
        assert any(isinstance(policy, kind) for policy in listed)
    assert any(isinstance(policy, ds.policies.ThompsonBwK) and policy.windows == T // 8 for policy in listed)
    assert "plans" not in [candidate.family for candidate in candidates(drifting.problem)]
    curve = np.array(spending_curve(drifting))
    np.testing.assert_allclose(curve[:, 25:], 1.0)  # all of the budget in the first half
    np.testing.assert_allclose(curve[:, 12], 12 / 25)
    found = ds.advise(ds.gather(STATIONARY, seed=0), STATIONARY.problem.budget, worlds=2, trials=1)
    changed = [standing._replace(share=0.9 + 0.004 * k) for k, standing in enumerate(found.standings[:3])]
    assert first_near_best(changed) == changed[0]  # the first within one percent of the best
    assert first_near_best([changed[0], changed[2]._replace(share=0.92)]).share == 0.92
    late = [standing._replace(share=0.5 + 0.1 * k) for k, standing in enumerate(found.standings)]
    assert first_near_best(late, ("forgets", "remembers")).candidate.family == "forgets"
    assert first_near_best(late, ("remembers",)) == late[4]


def test_windows_have_intervals_that_cover() -> None:
    """95% intervals of 180 stationary means: less than 85% coverage has probability 1e-7; quarter widths fail."""
    summary = surveyed(STATIONARY, 3)
    seen = window_intervals(summary, 20, largest_outcomes(summary))
    true = np.concatenate([STATIONARY.rewards[0][:, None], STATIONARY.costs[0].T], axis=1)
    covered = (seen.low <= true) & (true <= seen.high)
    assert covered.mean() > 0.85
    narrow = np.abs(true - seen.means) <= 0.25 * (seen.high - seen.means)
    assert narrow.mean() < 0.6


def test_advice_on_a_stationary_instance(tmp_path: Path) -> None:
    log = ds.gather(STATIONARY, seed=4)
    found = ds.advise(log, STATIONARY.problem.budget, worlds=4, trials=1)
    assert found.kind == "stationary"
    assert found.summary.startswith("No drift detected in 2,000 rounds (p = ")
    assert found.caution == ""
    assert found.recommended == first_near_best(found.standings, ("adapts", "remembers"))
    favoured = tuple(one._replace(share=0.999 if k == 0 else one.share) for k, one in enumerate(found.standings))
    assert first_near_best(favoured, ("adapts", "remembers")).candidate.policy == ds.Adaptive()
    found.write(tmp_path / "advice.json")
    assert json.loads((tmp_path / "advice.json").read_text())["kind"] == "stationary"


@pytest.mark.parametrize("seed", range(12))
def test_short_and_odd_logs_are_answered(seed: int) -> None:
    """Few rounds, arms played once, constant outcomes and tiny budgets give an answer, and no warning."""
    rng = np.random.default_rng(seed)
    rows, arms = int(rng.integers(4, 60)), int(rng.integers(1, 5))
    arm = [None, *(str(i) for i in range(arms)), "0", *rng.integers(0, arms, rows).astype(str).tolist()]
    played = np.array([name is not None for name in arm])
    drawn = [rng.random((len(arm), 3)), rng.integers(0, 2, (len(arm), 3)), np.full((len(arm), 3), 0.5)][seed % 3]
    names = ("reward", "cost_a", "cost_b")
    outcomes = {name: drawn[:, k] * played for k, name in enumerate(names)}
    log = pl.DataFrame({"time": np.arange(len(arm)), "arm": arm, **outcomes})
    budget = [float(rng.choice([0.01, 1.0, 500.0])), 10.0]
    found = ds.advise(log, budget, horizon=int(rng.integers(2, 100)), worlds=2, trials=1)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["kind"] == found.kind
    assert "Recommended policy" in found.html()


def rows_of(arm: list[str], reward: list[float], cost: list[float]) -> pl.DataFrame:
    return pl.DataFrame({"time": range(len(arm)), "arm": arm, "reward": reward, "cost": cost})


def tried_once() -> pl.DataFrame:
    """300 equal rounds, except for one in which another arm is played."""
    arm = ["a"] * 300
    arm[150] = "once"
    return rows_of(arm, [1.0 if name == "once" else 0.2 for name in arm], [0.5] * 300)


def test_an_arm_played_once_is_poorly_known() -> None:
    """After one pull the mean may be almost anything, so a plan that depends on it may earn only the other arm's."""
    found = ds.advise(tried_once(), budget=100, cost_max=1.0, trials=1)
    low, high = found.ranges.best
    assert low < 60
    assert 200 < high <= 300
    once = found.survey.arms.index("once")
    widths = np.nanmax(found.windows.high - found.windows.low, axis=0)
    assert widths[once].min() > 0.5
    assert 0.001 < widths[1 - once].max() < 0.05
    assert "poorly known: once (1)." in found.caution
    assert found.caution in str(found)
    short = ds.advise(rows_of(["a", "b", "a"], [0.7, 0.2, 0.7], [0.1] * 3), budget=100, trials=1)
    assert short.ranges.best[0] < 0.9 * short.worth.best
    many = ds.advise(rows_of(list("abcdaaaa"), [0.5] * 8, [0.5] * 8), budget=100, trials=1, worlds=1)
    assert "a (5), b (1), c (1) and 1 more" in many.caution


def test_small_sample_variance_is_what_two_more_pulls_would_add() -> None:
    """It is negligible after many pulls, and 0 for a resource that an arm never used."""
    summary = surveyed(STATIONARY, 3)
    one, top = summary.series[0], largest_outcomes(summary)
    np.testing.assert_array_equal(top, 1.0)
    mean = one.values.mean(axis=0)
    more = np.vstack([one.values, np.zeros(3), np.ones(3)])
    added = ((more - mean) ** 2).sum(axis=0) - ((one.values - mean) ** 2).sum(axis=0)
    np.testing.assert_allclose(small_sample_variance(one, mean, len(one.values), top), added / len(more))
    assert (small_sample_variance(one, mean, len(one.values), top) < 0.02 * cell_variance(one)).all()
    free = ds.advise(rows_of(["a", "b"] * 20, [0.5, 1.0] * 20, [0.0, 0.5] * 20), budget=1e-6, trials=1, worlds=3)
    assert free.worth.best == pytest.approx(20.0, abs=1e-3)
    assert free.ranges.best[0] > 15


def test_largest_outcomes_are_found_in_cells_of_many_pulls() -> None:
    """Cells of 256 pulls of 0 or 1 are all near 0.05, but the largest outcome is 1; a constant is its own maximum."""
    arm = np.zeros(200_000, dtype=int).astype(str).tolist()
    reward = (np.random.default_rng(0).random(200_000) < 0.05).astype(float).tolist()
    summary = ds.logs.survey(rows_of(arm, reward, [0.5] * 200_000), cost_max=5.0)
    assert summary.series[0].values[:, 0].max() < 0.3
    np.testing.assert_allclose(largest_outcomes(summary), [1.0, 0.1], rtol=0.15)  # 5 standard errors


@pytest.mark.parametrize("most", [0.5, 1.0, 5.0, 1e9])
@pytest.mark.parametrize("rate", [0.05, 0.6])
def test_a_loose_maximum_makes_no_costs_rare_and_huge(most: float, rate: float) -> None:
    """Rewards of 0 or 1 at a constant cost: no candidate exceeds the optimum, and a loose maximum is reported."""
    rng = np.random.default_rng(1)
    log = rows_of(["a", "b"] * 200, (rng.random(400) < [rate, rate / 2] * 200).astype(float).tolist(), [0.5] * 400)
    found = ds.advise(log, budget=50, cost_max=most, worlds=4, trials=2)
    assert max(standing.share for standing in found.standings) < 1.05
    assert found.world.problem.cost_max == (most,)  # the learner's maximum is the one that was given
    assert ("the cost was at most about 0.5, far below its maximum" in found.caution) == (most > 1)
    assert most != 0.5 or found.fit.noise == "bernoulli"  # a cost that always equals its maximum has no variance in it
    assert most < 1e9 or found.fit.noise in ("uniform", "lognormal")  # near the mean, whatever the maximum


def test_shares_above_the_optimum_are_explained() -> None:
    """With costs of 0 or 1 and a budget of 1, playing until the second cost earns about twice the optimum."""
    rng = np.random.default_rng(2)
    cost = (rng.random(400) < 0.3).astype(float).tolist()
    log = rows_of(["a"] * 400, (rng.random(400) < 0.5).astype(float).tolist(), cost)
    found = ds.advise(log, budget=1, worlds=3, trials=20)
    assert found.overshoots
    assert "larger by the largest cost" in found.caution
    assert found.ranges.expected > 1.5 * lp_dynamic(found.world).value
    assert max(standing.share for standing in found.standings) <= 1
    plain = ds.advise(log, budget=100, worlds=10, trials=20)
    assert not plain.overshoots
    assert plain.caution == ""


def test_a_zero_optimum_is_explained() -> None:
    earns = rows_of(["a", "b"] * 30, [0.5] * 60, [0.5] * 60)
    useless = ds.advise(rows_of(["a", "b"] * 30, [0.0] * 60, [0.5] * 60), budget=9, worlds=2, trials=1).summary
    assert "Nothing can be earned, whatever the policy: no arm in the log has a reward above 0." in useless
    assert "100% of" not in useless
    assert "0 to 0" not in useless
    with pytest.raises(SettingError, match=r"budget must be above 0.*got cost=0; pass the budget of the whole horizon"):
        ds.advise(earns, budget=0)


def test_settings_that_cannot_work_are_refused() -> None:
    log = ds.gather(STATIONARY, seed=4)
    with pytest.raises(
        SettingError, match=r"drift cannot be detected, got level=0.01 and shuffles=19; pass shuffles=99"
    ):
        ds.advise(log, 300, shuffles=19)
    with pytest.raises(SettingError, match="pass shuffles=999 or more"):
        ds.advise(log, 300, level=0.001)
    assert detect_drift(surveyed(ds.instances.example_2(T), 0), level=0.05, shuffles=19).found
    for block in (T // 2 + 1, 10 * T):
        with pytest.raises(SettingError, match=f"block must be at most half of the log's 2,000 rounds.*got {block:,}"):
            ds.advise(log, 300, block=block)
    assert {len(one.values) for one in merge_blocks(surveyed(STATIONARY, 4), T // 2).series} == {2}
    with pytest.raises(SettingError, match=r"windows must be at most 2,000, .* got 1,000,000,000"):
        ds.advise(log, 300, windows=10**9)
    with pytest.raises(SettingError, match=r"horizon times worlds must be at most .* got 100,000,000,000 times 20"):
        ds.advise(log, 300, horizon=10**11)
    with pytest.raises(SettingError, match="got 2,000 times 1,000,000,000"):
        ds.advise(log, 300, worlds=10**9)


@pytest.mark.parametrize(
    ("name", "value"),
    [("reward_max", 10.0), ("cost_max", [1.0, 2.0]), ("resources", ["cost_0"]), ("arms", ["0", "1"])],
)
def test_settings_of_a_log_are_not_given_twice(name: str, value: object) -> None:
    log = ds.gather(STATIONARY, seed=4)
    with pytest.raises(SettingError, match=f"got {name} too; pass {name} to ds.logs.read"):
        ds.advise(log, 300, **{name: value})  # type: ignore[arg-type]


def test_a_log_in_natural_units_states_what_was_taken_from_it(tmp_path: Path) -> None:
    """Columns with other names, dollars and seconds, a lost outcome and a repeated row: one command, no settings."""
    rng = np.random.default_rng(0)
    rows = [f"{t // 3},{'ab'[t % 2]},{t % 5 > 0:d},{rng.lognormal():.4f},{rng.lognormal(3):.3f}" for t in range(300)]
    rows[100] = "33,a,,0.5,"
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["ts,model,ok,usd,seconds", *rows, rows[-1]]))
    columns = ["--time", "ts", "--arm", "model", "--reward", "ok", "--cost", "usd", "--cost", "seconds", "--lost"]
    budget = ["--budget", "usd=100", "--budget", "seconds=3000", "--worlds", "2", "--trials", "1"]
    arguments = ["advise", str(path), *columns, *budget, "--out", str(tmp_path / "page.html")]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    most = pl.read_csv(path).select("usd", "seconds").max().row(0)
    assert found["problem"]["cost_max"] == pytest.approx(most)
    assert (found["log"]["lost"], found["log"]["repeated"]) == (1, 1)
    for words in (f"usd {most[0]:.3g}", "outcome was lost: 1 of 301", "every column: 1, which were kept", "--drop-"):
        assert words in found["notes"]
    assert found["notes"] in " ".join((tmp_path / "page.html").read_text().split())
    dropped = json.loads(CliRunner().invoke(app, [*arguments, "--drop-duplicates", "--json"]).stdout)
    assert "every column: 1, which were left out" in dropped["notes"]
    assert dropped["log"]["rows"] == 300
    given = ["--cost-max", "usd=50", "--cost-max", "seconds=900", "--reward-max", "1"]
    assert "largest" not in json.loads(CliRunner().invoke(app, [*arguments, *given, "--json"]).stdout)["notes"]


def test_names_of_any_kind_are_drawn() -> None:
    """Matplotlib must not interpret pairs of dollar signs as mathematics."""
    for arm in ("$5_$", "a_$b_$", "$$", r"\$5^$"):
        frame = rows_of([arm, "b"] * 10, [0.5] * 20, [0.5] * 20).rename({"cost": "cost_$_$"})
        assert "data:image/svg" in ds.advise(frame, budget=5, worlds=1, trials=1).html()


@pytest.fixture(scope="module")
def log_of_example_2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "log.csv"
    ds.gather(ds.instances.example_2(T), seed=1).write(path)
    return path


def test_advise_writes_one_page_that_needs_nothing_else(log_of_example_2: Path, tmp_path: Path) -> None:
    arguments = ["advise", str(log_of_example_2), "--budget", "1000", "--budget", "1000", "--worlds", "3"]
    arguments += ["--world", str(tmp_path / "world.npz")]
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "page.html")])
    assert result.exit_code == 0, result.output
    assert ds.Instance.load(tmp_path / "world.npz").horizon == T
    printed = " ".join(result.stdout.split())
    for words in (
        "Drift detected around round 1,0",
        "which arm is best",
        "Recommended policy",
        "10% more",
        "instances",
    ):
        assert words in printed
    page = (tmp_path / "page.html").read_text()
    lead = page.index('<p class="lead">')
    assert "Your present rule earns" in page[lead : lead + 200]
    assert page.count("data:image/svg+xml;base64,") == 3
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    for words in ("noise floor", "cost_1", "10% less budget", "95% of instances", "Assumptions"):
        assert words in page


def test_the_program_on_the_page_runs_the_recommended_policy(
    log_of_example_2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is run as printed, on outcomes of the very log, and does not repeat the analysis."""
    monkeypatch.chdir(tmp_path)
    arguments = ["advise", str(log_of_example_2), "--budget", "500", "--budget", "500", "--horizon", "1000"]
    result = CliRunner().invoke(app, [*arguments, "--worlds", "2", "--trials", "1", "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    page = Path("advice.html").read_text()
    program = html.unescape(page[page.index("<pre>import driftsack") + 5 :].split("</pre>")[0])
    log, turns = ds.logs.read(log_of_example_2), Counter[str]()

    def answer(name: str) -> tuple[float, dict[str, float]]:
        rows = np.flatnonzero(log.arm == log.arms.index(name))
        row = rows[turns[name] % len(rows)]
        turns[name] += 1
        return float(log.reward[row]), dict(zip(log.resources, log.costs[row].tolist(), strict=True))

    monkeypatch.setattr(ds, "advise", None)
    names: dict[str, object] = {"answer": answer}
    exec(program, names)
    learner = names["learner"]
    assert isinstance(learner, ds.Learner)
    assert learner.done
    assert learner.policy == ds.policies.from_spec(document["recommended"]["policy"])
    assert sum(turns.values()) > 300
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 1
    assert "advice.learner must not hold a learner that has begun" in " ".join(again.stderr.split())


def test_advice_is_started_and_saved(tmp_path: Path) -> None:
    """Safe if the maxima of costs are known; a saved learner is the one that is started."""
    log = ds.gather(STATIONARY, seed=4)
    found = ds.advise(log, STATIONARY.problem.budget, worlds=2, trials=1)
    assert found.start().safe
    assert not found.start(safe=False).safe
    found.save(tmp_path / "advice.learner", seed=3)
    loaded = ds.Learner.load(tmp_path / "advice.learner")
    assert (loaded.policy, loaded.problem, loaded.round) == (found.policy, found.problem, 0)
    fresh = found.start(seed=3)
    assert [loaded.ask().arm for _ in range(20)] == [fresh.ask().arm for _ in range(20)]
    taken = ds.advise(log.to_frame(), STATIONARY.problem.budget, worlds=2, trials=1)
    assert not taken.start().safe


def test_advise_as_json_and_for_another_horizon(log_of_example_2: Path, tmp_path: Path) -> None:
    budget = ["--budget", "cost_1=250", "--budget", "cost_0=251"]
    arguments = ["advise", str(log_of_example_2), *budget, "--horizon", "500", "--json"]
    arguments += ["--worlds", "2", "--trials", "1", "--no-plans", "--out", str(tmp_path / "page.html")]
    documents = [CliRunner().invoke(app, arguments).stdout for _ in range(2)]
    assert documents[0] == documents[1]
    document = json.loads(documents[0])
    assert document["problem"]["horizon"] == 500
    assert document["problem"]["budget"] == [251.0, 250.0]
    assert document["kind"] == "which"
    assert document["drift"]["measures"]["w1"]["share"] > 0.5
    assert {one["family"] for one in document["candidates"]} == {"adapts", "remembers", "forgets", "restarts"}
    assert ds.policies.from_spec(document["recommended"]["policy"]) in [
        c.policy for c in candidates(ds.Problem(500, 2, [251, 250]))
    ]
    assert len(document["worth"]["prices"]) == 2


def test_advise_names_bad_rows_and_wrong_settings(tmp_path: Path, log_of_example_2: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("time,arm,reward,cost\n1,a,2,0.5\n2,a,1,0.5\n")
    arguments = ["advise", str(bad), "--budget", "1", "--reward-max", "1", "--out", str(tmp_path / "page.html")]
    result = CliRunner().invoke(app, [*arguments, "--bad-rows", str(tmp_path / "rows.csv")])
    assert result.exit_code == 1
    printed = " ".join(result.stderr.split())
    assert "line 2: reward goes up to 2, above its reward_max 1; pass reward_max=2 (--reward-max 2)" in printed
    assert pl.read_csv(tmp_path / "rows.csv")["line"].to_list() == [2]
    one = pl.DataFrame({"time": [1], "arm": ["a"], "reward": [1.0], "cost": [0.5]})
    with pytest.raises(SettingError, match="at least twice"):
        ds.advise(one, budget=1.0)
    with pytest.raises(OutOfRangeError, match="level must be above 0"):
        ds.advise(log_of_example_2, budget=1.0, level=0.0)
    with pytest.raises(OutOfRangeError, match="windows must be at least 2"):
        detect_drift(surveyed(STATIONARY, 0), windows=1)


def test_advise_prints_names_as_they_are(tmp_path: Path) -> None:
    """Rich must not interpret brackets as markup or colons as emoji."""
    path, page = tmp_path / "log.csv", tmp_path / "page[x].html"
    arguments = ["--budget", "5", "--worlds", "1", "--trials", "1", "--out", str(page)]
    rows_of(["[/b]", ":bomb:", "[/b]"], [0.5] * 3, [0.5] * 3).write_csv(path)
    result = CliRunner().invoke(app, ["advise", str(path), *arguments])
    assert result.exit_code == 0, result.output
    assert "poorly known: :bomb: (1), [/b] (2)" in " ".join(result.stdout.split())
    assert "page[x].html" in result.stderr.replace("\n", "")
    for missing in ("log[x].csv", "log[/b].csv"):
        result = CliRunner().invoke(app, ["advise", missing, *arguments])
        assert result.exit_code == 1
        assert missing in result.stderr.replace("\n", "")


def test_tables_and_bars_show_names_as_they_are() -> None:
    shown, file = io.StringIO(), Console(file=io.StringIO(), width=100)
    table = rich_table([{"[/b]": "[x] [/b] :bomb:"}], [text_column("[/b]")], "log[x].csv[/b]")
    Console(file=shown, width=100).print(table)
    for word in ("log[x].csv[/b]", "[x] [/b] :bomb:"):
        assert word in shown.getvalue()
    bar = progress_bar()
    bar.add_task("[/b]")
    file.print(bar.get_renderable())  # fails if names are interpreted as markup


def test_advise_checks_its_output_files_first(tmp_path: Path) -> None:
    """They are checked before the log is read, and existing files are kept on failure."""
    arguments = ["advise", str(tmp_path / "none.csv"), "--budget", "9"]
    for option in ("--out", "--world"):
        for wrong in (tmp_path / "nowhere" / "file", tmp_path):
            result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "page.html"), option, str(wrong)])
            assert result.exit_code == 1
            assert f"error {option} must be a file that can be written" in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "page.html").write_text("old")
    assert CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "page.html")]).exit_code == 1
    assert (tmp_path / "page.html").read_text() == "old"


def test_a_bad_log_is_reported_even_if_its_rows_cannot_be_written(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    arguments = ["advise", str(log), "--budget", "1", "--out", str(tmp_path / "page.html"), "--bad-rows"]
    log.write_text("time,arm,reward\n1,a,1\n2,a,1\n")
    result = CliRunner().invoke(app, [*arguments, str(tmp_path / "rows.csv")])
    assert result.exit_code == 1
    assert "cost" in result.stderr
    assert "Bad rows" not in result.stderr
    assert not (tmp_path / "rows.csv").exists()
    log.write_text("time,arm,reward,cost\n1,a,-2,0.5\n2,a,1,0.5\n")
    result = CliRunner().invoke(app, [*arguments, str(tmp_path / "nowhere" / "rows.csv")])
    printed = " ".join(result.stderr.split())
    assert "Bad rows could not be written" in printed
    assert "line 2: reward must be 0 or more, got -2" in printed
