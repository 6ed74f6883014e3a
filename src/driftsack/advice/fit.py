r"""An instance fitted to a log: change points, the means between them, and bootstrapped means.

Change points (:mod:`driftsack.advice.segmentation`) are found on windowed means divided by their standard deviation.
An additional change point adds q = m (1 + d) free means. By noise alone it reduces the loss by at most
:math:`q + 2\sqrt{qx} + 2x`, except with probability :math:`e^{-x}` (Laurent and Massart 2000); this is the penalty,
with :math:`x = \log(\text{windows}) + 3`. A change inside a window appears as two changes, at its ends; such a pair is
merged. Gradual drift is approximated by a step function, as fine as the noise allows. Where change points are nearly as
dense as the windows, as in logs of states that persist for a while, they are searched again in finer windows.

*Small samples.* Equal outcomes of a few pulls do not show that there is no noise. The variance of n pulls of mean
:math:`\mu` is therefore increased by what two pseudo-observations, 0 and the largest outcome c, would add,
:math:`(\mu^2 + (c - \mu)^2) / (n + 2)`: this dominates at n = 1 and is negligible at n = 1,000.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.advice.segmentation import best_segmentation, best_split
from driftsack.advice.time_windows import default_windows, latest_observed, ordered_sums, window_means
from driftsack.core.arrays import Floats, Ints
from driftsack.core.instance import Instance, Noise
from driftsack.core.problem import Problem
from driftsack.logs.survey import Series, Survey
from driftsack.numerics.lognormal import SIGMA

CHANGE_POINT_GRIDS: Final = ((8, 256), (4, 1024))  # cells of an arm in each window, and most windows; coarse, then fine
DENSE: Final = 8  # windows per change point, below which finer windows are used
LOCAL_CELLS: Final = 50  # cells of an arm, at least, that a local mean is taken of
MAX_LOCAL_MEANS: Final = 16
FEW_PULLS: Final = 10  # an arm with fewer is poorly known
LOGNORMAL_SPREAD: Final = math.sqrt(math.expm1(SIGMA**2))  # standard deviation over mean, far below the ceiling
SPREADS: Final[dict[Noise, Callable[[Floats], Floats]]] = {  # standard deviation of a pull with this mean
    "deterministic": np.zeros_like,
    "beta": lambda mean: np.sqrt(mean * (1.0 - mean) / 5.0),
    "uniform": lambda mean: np.minimum(mean, 1.0 - mean) / math.sqrt(3.0),
    "bernoulli": lambda mean: np.sqrt(mean * (1.0 - mean)),
    "lognormal": lambda mean: np.concatenate([np.sqrt(mean * (1.0 - mean))[:, :1], LOGNORMAL_SPREAD * mean[:, 1:]], 1),
}


class Fit(NamedTuple):
    """Means between change points, normalised to [0, 1]."""

    changes: Ints  # (K - 1,) rounds of the log, from 0, at which a new phase begins
    means: Floats  # (K, m, 1 + d) mean reward and costs of each arm in each phase
    noise: Noise  # name of the noise that is closest to that of the log
    largest: Floats  # (1 + d,) estimated largest outcomes of a single pull

    def rewards_and_costs(self, means: Floats | None = None) -> tuple[Floats, Floats]:
        """Return mean rewards (K, m) and costs (K, d, m), of ``means`` if they are given."""
        rows = self.means if means is None else means
        return rows[:, :, 0], rows[:, :, 1:].transpose(0, 2, 1)


def fit(survey: Survey, drifts: bool, at_least_one: bool = True) -> Fit:
    """Find the change points and the means between them.

    Without drift (``drifts``) there are no change points. With ``at_least_one`` the most likely change point is used
    even if none stands out from the noise.
    """
    changes = change_points(survey, at_least_one) if drifts else np.zeros(0, dtype=np.int64)
    count = len(changes) + 1
    means = np.stack([_phase_means(one, phase_bounds(one, changes), count) for one in survey.series], axis=1)
    return Fit(changes, means, noise_kind(survey), largest_outcomes(survey))


def change_points(survey: Survey, at_least_one: bool = True) -> Ints:
    """Return the rounds of the log at which a new phase begins."""
    breaks: list[int] = []
    windows = min_size = 1
    for cells, most in CHANGE_POINT_GRIDS:
        if len(breaks) * DENSE < windows and windows > 1:
            break
        windows = default_windows(survey, cells, most)
        signal = np.concatenate([_standardised_means(one, survey.rows, windows) for one in survey.series], axis=1)
        min_size = min(2, windows // 2)
        breaks = best_segmentation(signal, _penalty(signal), min_size)
        if not breaks and at_least_one:
            breaks = best_split(signal, min_size)
    merged = merge_adjacent(breaks, min_size)
    return np.array([round(position * survey.rows / windows) for position in merged], dtype=np.int64)


def _penalty(signal: Floats) -> float:
    """By how much noise alone may reduce the loss with one more change point."""
    windows, parameters = signal.shape
    x = math.log(windows) + 3.0
    return float(parameters + 2.0 * math.sqrt(parameters * x) + 2.0 * x)


def merge_adjacent(breaks: Sequence[int], min_size: int) -> list[float]:
    """Replace change points that are at most ``min_size`` windows apart by their mean.

    >>> merge_adjacent([10, 12, 40], min_size=2)
    [11.0, 40.0]
    """
    groups: list[list[int]] = []
    for position in breaks:
        if groups and position - groups[-1][0] <= min_size:
            groups[-1].append(position)
        else:
            groups.append([position])
    return [sum(group) / len(group) for group in groups]


def _standardised_means(one: Series, rows: int, windows: int) -> Floats:
    """(windows, 1 + d) Windowed means divided by their standard deviation; 0 for quantities that never vary."""
    means = window_means(ordered_sums(one, rows), windows)[0]
    noise = np.sqrt(cell_variance(one) * windows / len(one.values))
    signal: Floats = np.divide(means, noise, out=np.zeros_like(means), where=noise > 0)
    return signal


def cell_variance(one: Series) -> Floats:
    """(1 + d,) Noise variance of a cell: half the mean squared difference of successive cells, robust to drift."""
    if len(one.values) < 2:
        return np.zeros(one.values.shape[1])
    variance: Floats = (np.diff(one.values, axis=0) ** 2).mean(axis=0) / 2.0
    return variance


def phase_bounds(one: Series, changes: Ints) -> Ints:
    """(K + 1,) Index of the first cell of each phase, and the number of cells."""
    return np.concatenate([[0], np.searchsorted(one.rounds, changes), [len(one.rounds)]])


def _phase_means(one: Series, bounds: Ints, count: int) -> Floats:
    """(K, 1 + d) Means of the phases; a phase without observations gets the mean of the one before, or else after."""
    observed = np.flatnonzero(np.diff(bounds) > 0)
    means = np.array([one.values[bounds[k] : bounds[k + 1]].mean(axis=0) for k in observed])
    return means[latest_observed(observed, count)]


def small_sample_variance(one: Series, mean: Floats, pulls: int, largest: Floats) -> Floats:
    """(1 + d,) Variance that two pseudo-observations, 0 and ``largest``, add to ``pulls`` pulls of this mean.

    It is 0 for a resource that an arm with at least ``FEW_PULLS`` pulls never used.
    """
    variance: Floats = (mean**2 + (largest - mean) ** 2) / (pulls + 2)
    if one.pulls >= FEW_PULLS:
        variance[1:] *= one.values[:, 1:].any(axis=0)
    return variance


def largest_outcomes(survey: Survey) -> Floats:
    r"""(1 + d,) Estimate the largest outcomes of one pull.

    Cells are means of many pulls, but outcomes in [0, c] with mean :math:`\mu` and variance v satisfy
    :math:`\mu^2 + v \le c \mu`.
    """
    most = np.zeros(1 + len(survey.resources))
    for one in survey.series:
        mean, variance = one.values.mean(axis=0), cell_variance(one) * one.size
        needed = mean + np.divide(variance, mean, out=np.zeros_like(mean), where=mean > 0)
        most = np.maximum(most, np.maximum(one.values.max(axis=0), needed))
    return np.minimum(most, 1.0)


def noise_kind(survey: Survey) -> Noise:
    """Return the noise whose standard deviation relative to the mean is closest to that of the log.

    Deviations are relative to the mean because the variability of costs is what affects a budget. Where ``cost_max`` is
    far above all costs, absolute deviations would select a noise that reaches up to it, with rare and huge costs.
    """
    errors = dict.fromkeys(SPREADS, 0.0)
    for one in survey.series:
        mean, observed = one.values.mean(axis=0), np.sqrt(cell_variance(one) * one.size)
        parts = np.array_split(one.values, np.clip(len(one.values) // LOCAL_CELLS, 1, MAX_LOCAL_MEANS))
        local = np.array([part.mean(axis=0) for part in parts])  # changes of the mean are not noise
        for noise, spread in SPREADS.items():
            expected = np.sqrt((spread(local) ** 2).mean(axis=0))
            error = np.divide(expected - observed, mean, out=np.zeros_like(mean), where=mean > 0)
            errors[noise] += one.pulls * float((error**2).sum())
    return min(errors, key=errors.__getitem__)


def fitted_instance(
    fitted: Fit, survey: Survey, budget: Sequence[float], horizon: int, means: Floats | None = None
) -> Instance:
    """Return the fitted instance, with time scaled from the log's rounds to ``horizon``.

    ``means`` (K, m, 1 + d) replace the fitted means if they are given.
    """
    problem = Problem(horizon, survey.arms, budget, survey.reward_max, survey.cost_max, resource_names=survey.resources)
    starts = fitted.changes * horizon // survey.rows
    phase = np.searchsorted(starts, np.arange(horizon), side="right").astype(np.int32)
    rewards, costs = fitted.rewards_and_costs(means)
    units = np.asarray(survey.cost_max)[:, None]
    return Instance(problem, rewards * survey.reward_max, costs * units, phase, fitted.noise)


def bootstrap_means(survey: Survey, fitted: Fit, rng: Generator) -> Floats:
    """(K, m, 1 + d) Means of a bootstrap sample: cells resampled in each arm and phase, plus small-sample noise."""
    by_arm, normal = [], rng.spawn(1)[0]
    for one in survey.series:
        bounds = phase_bounds(one, fitted.changes)
        parts = []
        for low, high in pairwise(bounds.tolist()):
            if low < high:
                mean, pulls = one.values[low:high].mean(axis=0), (high - low) * one.size
                error = np.sqrt(small_sample_variance(one, mean, pulls, fitted.largest) / pulls)
                cells = one.values[rng.integers(low, high, high - low)]
                parts.append(cells + error * normal.standard_normal(mean.size))
        means = _phase_means(one._replace(values=np.concatenate(parts)), bounds, len(bounds) - 1)
        by_arm.append(np.clip(means, 0.0, 1.0))
    return np.stack(by_arm, axis=1)


def widened(fitted: Fit, means: Floats, factors: Floats) -> Floats:
    """Multiply the deviations of bootstrapped means from the fitted ones by factors (m, 1 + d)."""
    return np.clip(fitted.means + factors * (means - fitted.means), 0.0, 1.0)
