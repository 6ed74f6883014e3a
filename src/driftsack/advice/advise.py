"""``advise``: test a log for drift, recommend a policy for a budget, and compute the value of the budget."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Unpack

from driftsack.advice.advice import Advice
from driftsack.advice.budget_value import budget_value, with_last_cost
from driftsack.advice.candidates import ADAPTS, FAMILIES, PLANS, REMEMBERS
from driftsack.advice.context_advice import context_advice
from driftsack.advice.drift_detection import Drift, detect_drift
from driftsack.advice.fit import bootstrap_means, fit, fitted_instance, widened
from driftsack.advice.intervals import bootstrap_intervals, window_intervals
from driftsack.advice.judging import Judged, LogCourse, judged_instances, past_of
from driftsack.advice.noise import error_factors, kind_above_noise, noise_floor
from driftsack.advice.own_rule import own_rule
from driftsack.advice.settings import AdviseKeywords, AdviseSettings, with_changes
from driftsack.advice.standings import (
    Standing,
    first_near_best,
    share_with_shifted_timing,
    simulate_candidates,
)
from driftsack.advice.time_windows import merge_blocks
from driftsack.core.checks import vector, whole
from driftsack.core.errors import SettingError
from driftsack.core.instance import Instance
from driftsack.core.names import Amounts
from driftsack.core.seeding import generator
from driftsack.logs import Log, ReadOptions, Survey, read, survey
from driftsack.logs.layout import one_per_resource
from driftsack.logs.stream import LogStream

MAX_ROUNDS: Final = 2 * 10**8  # of all bootstrapped instances together: about 2 GB


def advise(
    source: Any,
    budget: Amounts,
    horizon: int | None = None,
    *,
    options: ReadOptions | None = None,
    settings: AdviseSettings | None = None,
    progress: Callable[[str, int, int], None] = lambda _what, _done, _total: None,
    **changes: Unpack[AdviseKeywords],
) -> Advice:
    """Test a log for drift, recommend a policy for a budget, and compute the value of the budget.

    Args:
        source: A ``Log``, a .csv or .parquet file, or a Polars DataFrame (see :mod:`driftsack.logs`). A log with
            contexts is kept in memory.
        budget: Budget for ``horizon`` rounds, one number for all resources or one for each, in the order of the log's
            resources or by name.
        horizon: Rounds that the budget is for; the course of the log is scaled to them. Default: those of the log.
        options: How to read the log; only for a file or a DataFrame.
        settings: Settings of the test for drift and of the comparison of candidates.
        progress: Called with the current step, how much of it is done, and of how much.
        **changes: Options and settings by name, such as ``resources=["usd"]`` or ``worlds=50``; see
            :class:`~driftsack.logs.ReadOptions` and :class:`~driftsack.advice.AdviseSettings`.

    Returns:
        The advice. Its instance and its policy know the names of the log, so the policy may be started on any problem
        with the same arms and resources, whatever their order.

    Raises:
        LogError: If the log cannot be read or any row is bad.
        CannotAnswerError: If an arm was never played, or no arm was.
        SettingError: If a setting does not fit the log.

    >>> import driftsack as ds
    >>> log = ds.gather(ds.instances.example_2(horizon=1_000))
    >>> advice = advise(log, budget=500, plans=False, worlds=2, trials=1)
    >>> str(advice.kind), advice.fit.changes.size, advice.summary[:28]
    ('which', 1, 'Drift detected around round ')
    """
    reading, chosen = with_changes(options, settings, changes)
    block, worlds, trials, seed = chosen.block, chosen.worlds, chosen.trials, chosen.seed
    if isinstance(source, Log):
        _check_not_given_twice(reading.given)

    # Read the log and test it for drift.
    progress("reading the log", 0, 1)
    rows = _log_with_contexts(source, reading)
    log = survey(source if rows is None else rows, reading)
    merged = merge_blocks(log, block)
    amounts, rounds = _checked_budget_and_horizon(merged, budget, horizon, worlds)
    progress("testing for drift", 0, 1)
    drift = detect_drift(merged, chosen.windows, chosen.level, chosen.shuffles, seed)

    # Fit an instance to the log, and resample instances from it.
    course = course_of(log, drift, block, amounts, rounds, seed)
    instance = fitted_instance(course.fit, log, amounts, rounds)
    rng = generator(seed)
    wide = [widened(course.fit, bootstrap_means(log, course.fit, rng), course.factors) for _ in range(worlds)]
    bootstrapped = [fitted_instance(course.fit, log, amounts, rounds, one) for one in wide]

    # Compare the candidates.
    judged, past = (
        judged_instances(course, bootstrapped, rng),
        past_of(course) if chosen.plans and drift.found else None,
    )
    standings = simulate_candidates(
        judged, past, trials, seed, lambda name, done: progress(name, done, len(bootstrapped))
    )
    recommended, steady = _choose(standings.of, drift)

    # Compute the value of budget, and how far it and the effect of drift are above noise.
    progress("computing the value of budget", 0, 1)
    reached = with_last_cost if standings.overshoots else _as_is
    value = budget_value(reached(instance))
    floor = noise_floor(course.fit, log, wide, instance)
    ranges = bootstrap_intervals(value, course, rng.spawn(1)[0], reached)
    efficiency = recommended.share * ranges.expected / value.best if value.best > 0 else 0.0
    advice = Advice(
        name=Path(source).name if isinstance(source, (str, os.PathLike)) else "the log",
        survey=merged,
        drift=drift,
        fit=course.fit,
        world=instance,
        windows=window_intervals(merged, drift.windows, course.fit.largest),
        kind=kind_above_noise(value.optima, floor, drift.found),
        floor=floor,
        worth=value,
        ranges=ranges,
        standings=standings.of,
        present=standings.present,
        recommended=recommended,
        steady=steady,
        shifted=_with_shifted_timing((recommended, steady), judged, trials, seed),
        periods=course.periods,
        overshoots=standings.overshoots,
        context=None
        if rows is None
        else context_advice(rows, amounts, rounds, course.fit.noise, recommended, steady, trials, seed),
        own_rule=own_rule(log, instance, efficiency),
        reward_name=(reading.columns or {}).get("reward", "reward"),
    )
    progress("computing the value of budget", 1, 1)
    return advice


def _log_with_contexts(source: Any, options: ReadOptions) -> Log | None:
    """Return the log with all rows in memory if it has contexts; otherwise None."""
    if isinstance(source, Log):
        return source if source.contexts is not None else None
    return read(source, options) if LogStream(source, options).reader.features else None


def course_of(log: Survey, drift: Drift, block: int, budget: Sequence[float], horizon: int, seed: int) -> LogCourse:
    """Fit the course of the log, which does not depend on the block, and the errors of its means, which do."""
    drifts = drift.found
    if block > 1 and not drifts:
        drifts = detect_drift(log, level=drift.level, shuffles=drift.shuffles, seed=seed).found
    fitted = fit(log, drifts)
    return LogCourse(log, fitted, error_factors(log, fitted, block, drift.found), drifts, budget, horizon)


def _as_is(instance: Instance) -> Instance:
    return instance


def _check_not_given_twice(given: Sequence[str]) -> None:
    """Raise if any option that a ``Log`` was read with is given again."""
    if given:
        names = " and ".join(given)
        raise SettingError(
            f"a Log was read with its resources, arms, maxima and columns, got {names} too; pass {names} to "
            "ds.logs.read, or pass the file itself."
        )


def _checked_budget_and_horizon(
    summary: Survey, budget: Amounts, horizon: int | None, worlds: int
) -> tuple[list[float], int]:
    """Return the budget of each resource and the horizon, or raise if they do not fit the log or memory."""
    names = summary.resources
    amounts: list[float] = vector(one_per_resource(budget, "budget", names), "budget", len(names)).tolist()
    rounds = summary.rows if horizon is None else whole(horizon, "horizon", at_least=2)
    if min(amounts) <= 0:
        listed = ", ".join(f"{name}={amount:g}" for name, amount in zip(names, amounts, strict=True))
        raise SettingError(
            f"budget must be above 0, because nothing can be played without one, got {listed}; pass the budget of the "
            f"whole horizon of {rounds:,} rounds (--budget)."
        )
    if rounds * worlds > MAX_ROUNDS:
        raise SettingError(
            f"horizon times worlds must be at most {MAX_ROUNDS:,}, because every round of every bootstrapped instance "
            f"is kept in memory, got {rounds:,} times {worlds:,}; pass a shorter horizon with the budget for it, or "
            "fewer worlds."
        )
    if summary.rows < 2 or max(len(one.values) for one in summary.series) < 2:
        raise SettingError(
            f"advice needs a log in which some arm was played at least twice, got {summary.rows} rounds; pass a longer "
            "log."
        )
    return amounts, rounds


def _choose(standings: Sequence[Standing], drift: Drift) -> tuple[Standing, Standing]:
    """Return the recommended candidate, and the one recommended if the timing of the log may not repeat.

    Without drift there is nothing to forget, so only Adaptive, which forgets nothing unless something changes, and
    policies that learn from all rounds are eligible.
    """
    eligible = FAMILIES if drift.found else (ADAPTS, REMEMBERS)
    without_plans = [family for family in eligible if family != PLANS]
    return first_near_best(standings, eligible), first_near_best(standings, without_plans)


def _with_shifted_timing(
    pair: tuple[Standing, Standing], judged: Sequence[Judged], trials: int, seed: int
) -> tuple[float, float]:
    """Return the shares that a recommended plan and its alternative earn if changes come earlier or later."""
    plan, steady = pair
    if plan.candidate.family != PLANS:
        return plan.share, steady.share
    shares = [share_with_shifted_timing(one, judged, trials, seed) for one in pair]
    return shares[0], shares[1]
