"""95% intervals of the reported quantities: means in windows of time, and the value of the budget."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from driftsack.advice.budget_value import BudgetValue
from driftsack.advice.fit import cell_variance, small_sample_variance
from driftsack.advice.time_windows import ordered_sums, window_sums
from driftsack.core.arrays import Floats
from driftsack.logs.survey import Survey

Z: Final = 1.96  # standard errors of a 95% interval


class WindowMeans(NamedTuple):
    """Means in equal windows of time with 95% intervals, in the problem's units; NaN where an arm was not observed."""

    starts: Floats  # (L,) first round of each window, from 0
    means: Floats  # (L, m, 1 + d) mean reward and costs of each arm
    low: Floats  # (L, m, 1 + d) lower ends of the intervals
    high: Floats  # (L, m, 1 + d) upper ends of the intervals


class BudgetIntervals(NamedTuple):
    """95% intervals of the optimum and the value of budget over bootstrapped instances, in the problem's units.

    An optimum over estimated means is biased upwards, the more so the noisier they are. A bootstrapped instance adds
    the same noise again, so its increase of the optimum estimates the bias, which is subtracted. Where means lie at the
    end of their range, noise can only decrease them: the interval of the optimum then extends down to the bootstrapped
    optima. It never exceeds the largest reward in every round.
    """

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
    point: BudgetValue, bootstrapped: list[BudgetValue], independent: list[float], most: float
) -> BudgetIntervals:
    """Compute the intervals of the value of budget.

    The bias is estimated from ``independent``, the optima of instances bootstrapped as if rounds were independent:
    correlated rounds widen the interval, but do not move the optimum. ``most`` is an upper bound on the total reward.
    """

    def interval(name: str) -> Floats:
        """Percentiles of the bootstrap, extended to contain the fitted instance's value."""
        low, high = np.quantile([getattr(value, name) for value in bootstrapped], [0.025, 0.975], axis=0)
        own = getattr(point, name)
        return np.stack([np.minimum(low, own), np.maximum(high, own)])

    optima = np.array([value.best for value in bootstrapped])
    optima += np.mean(independent) - optima.mean()
    low, high = np.quantile(optima, [0.025, 0.975]).tolist()
    twice = 2 * point.best
    expected = float(np.clip(twice - optima.mean(), 0.0, most))
    best = max(min(twice - high, low), 0.0), min(twice - low, most)
    return BudgetIntervals(expected, best, interval("prices"), interval("less"), interval("more"))
