r"""95% intervals of the reported quantities: means in windows of time, and the value of the budget.

*The optimum.* With the optimum p of the fitted instance, and the mean m and the standard deviation s of the optima of
resampled instances, the interval is

.. math:: [\min(p, 2p - m) - 1.96\, s,\; \max(p, 2p - m) + 1.96\, s] .

An optimum over estimated means is biased, upwards where the best of several arms is picked, and downwards where errors
of either sign break a tie of the budgets. Resampling adds the same errors again, so :math:`2p - m` corrects for it; but
the estimated bias has an error of its own, so the interval holds both. `python -m lab advice-intervals` measures how
often it holds the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.advice.budget_value import BestPlan, BudgetValue, best_plan
from driftsack.advice.fit import bootstrap_means, cell_variance, fitted_instance, small_sample_variance, widened
from driftsack.advice.judging import LogCourse
from driftsack.advice.time_windows import ordered_sums, window_sums
from driftsack.benchmarks import lp_dynamic
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.logs.survey import Survey

Z: Final = 1.96  # standard errors of a 95% interval
RESAMPLES: Final = 200  # instances that intervals are computed from


class WindowMeans(NamedTuple):
    """Means in equal windows of time with 95% intervals, in the problem's units; NaN where an arm was not observed."""

    starts: Floats  # (L,) first round of each window, from 0
    means: Floats  # (L, m, 1 + d) mean reward and costs of each arm
    low: Floats  # (L, m, 1 + d) lower ends of the intervals
    high: Floats  # (L, m, 1 + d) upper ends of the intervals


class BudgetIntervals(NamedTuple):
    """95% intervals of the optimum and the value of budget over resampled instances, in the problem's units."""

    expected: float  # the optimum minus its estimated bias
    best: tuple[float, float]  # interval of the optimum
    prices: Floats  # (2, d) intervals of the prices
    less: Floats  # (2, d) intervals of the change of the optimum with 10% less of each resource
    more: Floats  # (2, d) intervals of the change of the optimum with 10% more of each resource


def window_intervals(survey: Survey, windows: int, largest: Floats) -> WindowMeans:
    """Compute the means of every arm in equal windows of time, with intervals.

    ``largest`` (1 + d,) are the largest outcomes of a single pull, normalised to [0, 1].
    """
    unit = np.array([survey.reward_max, *survey.cost_max])
    means = np.full((windows, len(survey.arms), unit.size), np.nan)
    error = means.copy()
    for i, one in enumerate(survey.series):
        sums, counts = window_sums(ordered_sums(one, survey.rows), windows)
        observed = counts > 0
        means[observed, i] = sums[0, observed] / counts[observed, None]
        pulls = len(one.values) * one.size
        small_sample = small_sample_variance(one, one.values.mean(axis=0), pulls, largest) / one.size
        error[observed, i] = np.sqrt((cell_variance(one) + small_sample) / counts[observed, None])
    low, high = np.clip(means - Z * error, 0.0, 1.0), np.clip(means + Z * error, 0.0, 1.0)
    starts = np.arange(windows, dtype=np.float64) * (survey.rows / windows)
    return WindowMeans(starts, means * unit, low * unit, high * unit)


def bootstrap_intervals(
    point: BudgetValue | BestPlan, course: LogCourse, rng: Generator, reached: Callable[[Instance], Instance]
) -> BudgetIntervals:
    """Compute the intervals of the value of budget from resampled instances.

    Correlated rounds widen the interval, but do not move the optimum: the bias is that of independent rounds.

    Args:
        point: The value of the fitted instance.
        course: The course of the log.
        rng: The randomness of the resampling.
        reached: Changes the budgets of an instance to those that policies reach.
    """

    def instance(means: Floats) -> Instance:
        return reached(fitted_instance(course.fit, course.survey, course.budget, course.horizon, means))

    means = [bootstrap_means(course.survey, course.fit, rng) for _ in range(RESAMPLES)]
    values = [best_plan(instance(widened(course.fit, one, course.factors))) for one in means]
    optima = np.array([value.best for value in values])
    independent = optima
    if (course.factors != 1.0).any():
        independent = np.array([lp_dynamic(instance(one)).value for one in means])

    def interval(name: str) -> Floats:
        """Percentiles of the resampled instances, extended to contain the fitted instance's value."""
        low, high = np.quantile([getattr(value, name) for value in values], [0.025, 0.975], axis=0)
        own = getattr(point, name)
        return np.stack([np.minimum(low, own), np.maximum(high, own)])

    most = course.horizon * course.survey.reward_max * float(course.fit.largest[0])
    expected = float(np.clip(2 * point.best - independent.mean(), 0.0, most))
    margin = Z * float(optima.std(ddof=1))
    best = max(min(point.best, expected) - margin, 0.0), min(max(point.best, expected) + margin, most)
    return BudgetIntervals(expected, best, interval("prices"), interval("less"), interval("more"))
