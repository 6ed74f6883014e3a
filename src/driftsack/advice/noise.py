r"""Correlated rounds: how much wider they make standard errors, and how large drift looks by noise alone.

If b neighbouring rounds are correlated without any drift, means vary more than independent rounds would. With
:math:`v_1` the variance of a cell around its mean and :math:`v_b` that of the mean of a block of b cells, standard
errors are multiplied by :math:`\sqrt{b v_b / v_1}`, at least 1. The fitted means, and so the optimum, do not depend on
the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from driftsack.advice.fit import Fit, fitted_instance, phase_bounds
from driftsack.advice.time_windows import cells_per_block, in_blocks
from driftsack.benchmarks import fixed_distribution, lp_dynamic, single_step
from driftsack.core.arrays import Floats, Ints
from driftsack.core.instance import Instance
from driftsack.logs.survey import Series, Survey
from driftsack.measures.drift_kind import DriftKind, Optima, drift_kind

Z: Final = 2.33  # standard deviations below which 99% of a normal distribution lie


class NoiseFloor(NamedTuple):
    """Apparent gains of planning and tracking by noise alone, as 99% quantiles of shares of the optimum."""

    timing: float  # quantile of the gain by planning when to spend
    tracking: float  # quantile of the gain by tracking the changes


def error_factors(survey: Survey, fitted: Fit, block: int, drifts: bool) -> Floats:
    """(m, 1 + d) Factor by which correlated rounds increase the standard errors; all 1 if the block is a single round.

    Unless drift was detected beyond that correlation (``drifts``), the phases count as noise.
    """
    changes = fitted.changes if drifts else fitted.changes[:0]
    return np.stack([_error_factor(one, changes, cells_per_block(one, survey.rows, block)) for one in survey.series])


def _error_factor(one: Series, changes: Ints, per_block: int) -> Floats:
    """(1 + d,) The factor of one arm."""
    parts = np.split(one.values, phase_bounds(one, changes)[1:-1])
    residuals = np.concatenate([part - part.mean(axis=0) for part in parts if len(part)])
    cells, blocks = (residuals**2).mean(axis=0), (in_blocks(residuals, per_block) ** 2).mean(axis=0)
    ratio = np.divide(per_block * blocks, cells, out=np.ones_like(cells), where=cells > 0)
    factor: Floats = np.sqrt(np.maximum(ratio, 1.0))
    return factor if per_block > 1 else np.ones_like(factor)


def noise_floor(fitted: Fit, survey: Survey, resampled: Sequence[Floats], instance: Instance) -> NoiseFloor:
    """Compute the apparent gains of planning and tracking on instances whose phases differ by noise alone.

    The noise is the deviation of the bootstrapped means ``resampled`` (K, m, 1 + d) from the fitted ones. Without
    change points the floors are 0.
    """
    if fitted.changes.size == 0:
        return NoiseFloor(0.0, 0.0)
    overall = np.stack([one.values.mean(axis=0) for one in survey.series])
    problem, found = instance.problem, []
    for means in resampled:
        still = np.clip(overall + means - fitted.means, 0.0, 1.0)
        found.append(optima_of(fitted_instance(fitted, survey, problem.budget, problem.horizon, still)))
    timing, tracking = (np.array([getattr(one, part) for one in found]) for part in ("timing", "tracking"))
    return NoiseFloor(*(float(gain.mean() + Z * gain.std()) for gain in (timing, tracking)))


def optima_of(instance: Instance) -> Optima:
    """The three optima that tell the kinds of drift apart."""
    return Optima(lp_dynamic(instance).value, single_step(instance).value, fixed_distribution(instance).value)


def kind_above_noise(optima: Optima, floor: NoiseFloor, drifts: bool) -> DriftKind:
    """Decide what drift changes; a gain that is not above its noise floor counts as none.

    >>> kind_above_noise(Optima(100.0, 95.0, 90.0), NoiseFloor(timing=0.06, tracking=0.01), drifts=True)
    <DriftKind.WHICH: 'which'>
    >>> kind_above_noise(Optima(100.0, 95.0, 90.0), NoiseFloor(timing=0.06, tracking=0.06), drifts=True)
    <DriftKind.HARMLESS: 'harmless'>
    """
    timing = optima.timing if optima.timing > floor.timing else 0.0
    tracking = optima.tracking if optima.tracking > floor.tracking else 0.0
    return drift_kind(Optima(1.0, 1.0 - timing, 1.0 - timing - tracking), drifts)
