"""The instances that candidates are judged on: resampled from the log, and from later parts than plans are made from.

*A log of less than two horizons* shows its course once, so it cannot show whether its timing recurs, and no plan takes
part. Half of the instances follow the course of the whole log. The others follow a later part of it, the second half or
a later third, scaled to the horizon: there, changes are slower.

*A log of at least two horizons* is divided into periods of one horizon each, counted from its end. Each instance
follows one of the last periods in its own time, and the plans that are judged on it are made from all periods before it
(rolling origin). A plan is therefore recommended only if plans from earlier periods worked in later ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.advice.fit import Fit, bootstrap_means, fit, fitted_instance, widened
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.logs.survey import Series, Survey

SPLITS: Final = (2, 3)  # parts of a log that shows its course once; all but the first of each are later parts
MAX_PERIODS: Final = 3  # periods that candidates are judged on
MIN_CELLS: Final = 2  # of every arm in a part, below which nothing can be resampled from it


class LogCourse(NamedTuple):
    """The course of a log, with the budget and the horizon for which it is repeated."""

    survey: Survey  # summary of the log
    fit: Fit  # the fit to the whole log
    factors: Floats  # (m, 1 + d) factors on the standard errors, above 1 if neighbouring rounds are correlated
    drifts: bool  # whether the means change
    budget: Sequence[float]  # budget of each resource
    horizon: int  # rounds that the budget is for

    @property
    def periods(self) -> int:
        """The number of whole horizons that the log covers."""
        return self.survey.rows // self.horizon


class Part(NamedTuple):
    """A part of the log that instances are resampled from."""

    survey: Survey  # summary of the part
    fit: Fit  # the fit to it
    past: Instance | None  # the instance fitted to the periods before it, from which plans are made; None without plans


class Judged(NamedTuple):
    """An instance that candidates are judged on."""

    instance: Instance
    past: Instance | None  # the instance that plans are made from; None without plans


def judged_instances(course: LogCourse, bootstrapped: Sequence[Instance], rng: Generator) -> list[Judged]:
    """Return an instance to judge candidates on for each bootstrapped one; all of them have a past, or none."""
    parts = _later_periods(course) or _later_parts(course)
    recurs = bool(parts) and parts[0].past is not None
    count = len(bootstrapped)
    of_log = 0 if recurs else count if not parts else (count + 1) // 2
    drawn = [parts[k % len(parts)] for k in range(count - of_log)]
    return [
        *(Judged(one, None) for one in bootstrapped[:of_log]),
        *(Judged(_resampled(part, course, rng), part.past) for part in drawn),
    ]


def past_of(course: LogCourse) -> Instance | None:
    """Return the instance that plans for the next horizon are made from: all periods, laid over each other.

    None if the log covers less than two horizons, or an arm is missing.
    """
    rows, periods = course.survey.rows, course.periods
    if not _later_periods(course):
        return None
    return _past(course, rows - periods * course.horizon, rows)


def folded(survey: Survey, first: int, last: int, period: int) -> Survey:
    """Lay rounds ``first`` to ``last`` (exclusive) of the log over each other: round t becomes t mod ``period``."""
    series = []
    for one in survey.series:
        low, high = np.searchsorted(one.rounds, [first, last])
        rounds = (one.rounds[low:high] - first) % period
        order = np.argsort(rounds, kind="stable")
        series.append(Series(rounds[order], one.values[low:high][order], one.size, int(high - low) * one.size))
    return dataclasses.replace(survey, rows=period, series=tuple(series))


def _later_periods(course: LogCourse) -> list[Part]:
    """The last periods of the log, each with the periods before it; none if the log covers less than two horizons."""
    rows, length, count = course.survey.rows, course.horizon, course.periods
    found = []
    for number in range(max(count - MAX_PERIODS, 1), count):
        begin, start = rows - count * length, rows - (count - number) * length
        past, later = _past(course, begin, start), folded(course.survey, start, start + length, length)
        if past is not None and _is_observed(later):
            found.append(Part(later, _fit(later, course), past))
    return found


def _later_parts(course: LogCourse) -> list[Part]:
    """The parts after the first of each split of the log."""
    found = []
    for count in SPLITS:
        edges = [k * course.survey.rows // count for k in range(1, count + 1)]
        for first, last in pairwise(edges):
            part = folded(course.survey, first, last, last - first)
            if _is_observed(part):
                found.append(Part(part, _fit(part, course), None))
    return found


def _past(course: LogCourse, first: int, last: int) -> Instance | None:
    """Fit an instance to the periods of a part of the log; None if an arm is missing in it."""
    part = folded(course.survey, first, last, course.horizon)
    if not _is_observed(part):
        return None
    return fitted_instance(_fit(part, course), part, course.budget, course.horizon)


def _fit(part: Survey, course: LogCourse) -> Fit:
    """Fit a part; it has no change points unless they stand out from the noise."""
    return fit(part, course.drifts, at_least_one=False)._replace(noise=course.fit.noise, largest=course.fit.largest)


def _is_observed(part: Survey) -> bool:
    """Whether every arm was played often enough in a part."""
    return all(len(one.values) >= MIN_CELLS for one in part.series)


def _resampled(part: Part, course: LogCourse, rng: Generator) -> Instance:
    """Draw an instance from which a part could also have come, scaled to the horizon."""
    means = widened(part.fit, bootstrap_means(part.survey, part.fit, rng), course.factors)
    return fitted_instance(part.fit, part.survey, course.budget, course.horizon, means)
