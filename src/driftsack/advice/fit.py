r"""A world fitted to a log: change points, the means between them, and worlds from which the log could also have come.

Change points come from ``ruptures`` (PELT with squared loss) on windowed means in units of their noise. A change more
frees q = m (1 + d) means; by noise alone it gains at most :math:`q + 2\sqrt{qx} + 2x`, but for a chance of
:math:`e^{-x}` (Laurent and Massart 2000), and that is the penalty, with :math:`x = \log(\text{windows}) + 3`. A change
that falls inside a window shows as two at its ends; such a pair is taken as one. Slow drift becomes a staircase, as
fine as the noise allows.

*Doubt.* Equal outcomes of a few pulls do not show that there is no noise. To the variance of n pulls of mean
:math:`\mu` comes what two pulls more, one of 0 and one of the largest outcome c, would add about that mean,
:math:`(\mu^2 + (c - \mu)^2) / (n + 2)`: nearly all there is at n = 1, nothing that matters at n = 1,000.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.advice.windows import Order, usual_windows, window_means
from driftsack.core.arrays import Floats, Ints
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.logs.survey import Series, Survey

FINE_CELLS: Final = 8  # of an arm in a window in which change points are looked for
FINE_WINDOWS: Final = 256
STRETCH: Final = 50  # cells of an arm, at least, of which a local mean is taken
STRETCHES: Final = 16
FEW_PULLS: Final = 10  # an arm with fewer is known badly
SPREADS: Final[dict[str, Callable[[Floats], Floats]]] = {  # standard deviation of a pull with this mean
    "deterministic": np.zeros_like,
    "beta": lambda mean: np.sqrt(mean * (1.0 - mean) / 5.0),
    "uniform": lambda mean: np.minimum(mean, 1.0 - mean) / math.sqrt(3.0),
    "bernoulli": lambda mean: np.sqrt(mean * (1.0 - mean)),
}


class Fit(NamedTuple):
    """Means between change points, as kernels see them."""

    changes: Ints  # (K - 1,) rounds of the log, from 0, at which a new phase begins
    means: Floats  # (K, m, 1 + d)
    noise: str
    largest: Floats  # (1 + d,) about the largest outcomes of one pull

    def rewards_and_costs(self, means: Floats | None = None) -> tuple[Floats, Floats]:
        """(K, m) and (K, d, m)."""
        rows = self.means if means is None else means
        return rows[:, :, 0], rows[:, :, 1:].transpose(0, 2, 1)


def fit(survey: Survey, moving: bool, single: Survey | None = None) -> Fit:
    """Find the change points, if the world moves at all, and the means between them.

    ``single`` is the survey before its cells were joined to blocks, if they were: it tells the noise of single pulls.
    """
    pulls = single or survey
    changes = change_points(survey) if moving else np.zeros(0, dtype=np.int64)
    count = len(changes) + 1
    means = np.stack([_segment_means(one, phases(one, changes), count) for one in survey.series], axis=1)
    return Fit(changes, means, noise_kind(pulls), largest_outcomes(pulls))


def change_points(survey: Survey) -> Ints:
    """Rounds of the log at which a new phase begins; at least one."""
    import ruptures  # noqa: PLC0415  (loads SciPy)

    windows = usual_windows(survey, FINE_CELLS, FINE_WINDOWS)
    signal = np.concatenate([_in_noise_units(one, survey.rows, windows) for one in survey.series], axis=1)
    freed, x = signal.shape[1], math.log(windows) + 3.0
    penalty = freed + 2.0 * math.sqrt(freed * x) + 2.0 * x
    least = min(2, windows // 2)
    found = ruptures.Pelt(model="l2", min_size=least, jump=1).fit(signal).predict(pen=penalty)[:-1]
    if not found:
        found = ruptures.Binseg(model="l2", min_size=least, jump=1).fit(signal).predict(n_bkps=1)[:-1]
    return np.array([round(place * survey.rows / windows) for place in without_pairs(found, least)], dtype=np.int64)


def without_pairs(places: Sequence[int], least: int) -> list[float]:
    """Changes, in windows; those that are as near to each other as can be are one, in the middle.

    >>> without_pairs([10, 12, 40], least=2)
    [11.0, 40.0]
    """
    groups: list[list[int]] = []
    for place in places:
        if groups and place - groups[-1][0] <= least:
            groups[-1].append(place)
        else:
            groups.append([place])
    return [sum(group) / len(group) for group in groups]


def _in_noise_units(one: Series, rows: int, windows: int) -> Floats:
    """(windows, 1 + d) windowed means over their standard deviation by noise; what never varies is 0."""
    prefix = np.concatenate([np.zeros((1, one.values.shape[1])), np.cumsum(one.values, axis=0)])
    means = window_means(Order(prefix[None], one.rounds, rows), windows)[0]
    noise = np.sqrt(cell_variance(one) * windows / len(one.values))
    signal: Floats = np.divide(means, noise, out=np.zeros_like(means), where=noise > 0)
    return signal


def cell_variance(one: Series) -> Floats:
    """(1 + d,) variance of a cell by noise: half the mean squared step from cell to cell, whatever the drift."""
    if len(one.values) < 2:  # noqa: PLR2004
        return np.zeros(one.values.shape[1])
    variance: Floats = (np.diff(one.values, axis=0) ** 2).mean(axis=0) / 2.0
    return variance


def phases(one: Series, changes: Ints) -> Ints:
    """(K + 1,) where each phase begins among an arm's cells, and the end."""
    return np.concatenate([[0], np.searchsorted(one.rounds, changes), [len(one.rounds)]])


def _segment_means(one: Series, cut: Ints, count: int) -> Floats:
    """(K, 1 + d) means of the phases; where the arm was not seen, the phase's before, or else after."""
    means = np.array([one.values[cut[k] : cut[k + 1]].mean(axis=0) for k in range(count) if cut[k] < cut[k + 1]])
    return means[_known(cut, count)]


def _known(cut: Ints, count: int) -> Ints:
    """For each phase, which of the phases with data speaks for it."""
    seen = np.flatnonzero(np.diff(cut) > 0)
    known: Ints = np.maximum(np.searchsorted(seen, np.arange(count), side="right") - 1, 0)
    return known


def doubt(one: Series, mean: Floats, pulls: int, largest: Floats) -> Floats:
    """(1 + d,) variance of a pull that so many pulls of this mean leave open; none in a resource that it never used."""
    found: Floats = (mean**2 + (largest - mean) ** 2) / (pulls + 2)
    if one.pulls >= FEW_PULLS:
        found[1:] *= one.values[:, 1:].any(axis=0)
    return found


def largest_outcomes(survey: Survey) -> Floats:
    r"""(1 + d,) about the largest outcomes of one pull. Cells hold many, but in [0, c] :math:`\mu^2 + v \le c \mu`."""
    most = np.zeros(1 + len(survey.resources))
    for one in survey.series:
        mean, variance = one.values.mean(axis=0), cell_variance(one) * one.size
        needed = mean + np.divide(variance, mean, out=np.zeros_like(mean), where=mean > 0)
        most = np.maximum(most, np.maximum(one.values.max(axis=0), needed))
    return np.minimum(most, 1.0)


def noise_kind(survey: Survey) -> str:
    """Which of the library's noises is nearest: by the squared error of a pull's standard deviation over its mean.

    Over the mean, for what budgets feel is how uneven costs are: where ``cost_max`` is far above all costs, noises that
    reach up to it would make costs rare and huge.
    """
    errors = dict.fromkeys(SPREADS, 0.0)
    for one in survey.series:
        mean, seen = one.values.mean(axis=0), np.sqrt(cell_variance(one) * one.size)
        parts = np.array_split(one.values, np.clip(len(one.values) // STRETCH, 1, STRETCHES))
        local = np.array([part.mean(axis=0) for part in parts])  # a mean that moves is not noise
        for noise, spread in SPREADS.items():
            expected = np.sqrt((spread(local) ** 2).mean(axis=0))
            off = np.divide(expected - seen, mean, out=np.zeros_like(mean), where=mean > 0)
            errors[noise] += one.pulls * float((off**2).sum())
    return min(errors, key=errors.__getitem__)


def world(fitted: Fit, survey: Survey, budget: Sequence[float], horizon: int, means: Floats | None = None) -> Instance:
    """The fitted world, stretched from the log's rounds to ``horizon``."""
    problem = Problem(horizon, len(survey.arms), budget, survey.reward_max, survey.cost_max)
    starts = fitted.changes * horizon // survey.rows
    phase = np.searchsorted(starts, np.arange(horizon), side="right").astype(np.int32)
    rewards, costs = fitted.rewards_and_costs(means)
    units = np.asarray(survey.cost_max)[:, None]
    return Instance(problem, rewards * survey.reward_max, costs * units, phase, fitted.noise)


def resampled(survey: Survey, fitted: Fit, rng: Generator) -> Floats:
    """(K, m, 1 + d) means of a bootstrap: cells drawn anew within each arm and phase, and moved by its doubt."""
    again, aside = [], rng.spawn(1)[0]
    for one in survey.series:
        cut = phases(one, fitted.changes)
        parts = []
        for low, high in pairwise(cut.tolist()):
            if low < high:
                mean, pulls = one.values[low:high].mean(axis=0), (high - low) * one.size
                error = np.sqrt(doubt(one, mean, pulls, fitted.largest) / pulls)
                parts.append(one.values[rng.integers(low, high, high - low)] + error * aside.standard_normal(mean.size))
        means = _segment_means(one._replace(values=np.concatenate(parts)), cut, len(cut) - 1)
        again.append(np.clip(means, 0.0, 1.0))
    return np.stack(again, axis=1)
