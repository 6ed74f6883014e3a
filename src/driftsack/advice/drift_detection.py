r"""Is there drift? A permutation test, and the measures V and W compared with those that noise alone produces.

*The test.* For each arm, for its reward and each cost, and for each number of windows L = 2, 4, ..., 32, the sum of
squares between windows :math:`\sum_w n_w (\bar x_w - \bar x)^2` is computed in the order of the log and in N shuffled
orders. Its cube root, which is nearly normal, is standardised over all N + 1 orders; the test statistic is the maximum
over all of them. Under no drift all N + 1 orders are equally likely, so that :math:`p \le \alpha` has probability at
most :math:`\alpha` by construction, for any number of arms and resources. This is exact if arms were chosen
independently of their outcomes, for example at random, and if rounds are independent apart from the drift. If
neighbouring rounds are correlated, merge them first with :func:`driftsack.advice.time_windows.merge_blocks`. A log
gathered by a learner plays an arm more often after good outcomes; the test is then approximate.

*The measures* are those of :mod:`driftsack.measures.variation` on the instance of windowed means. Noise changes
windowed means too: the noise floor is the same measure with rows shuffled in time, and what exceeds it is drift.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.advice.time_windows import RunningSums, default_windows, shuffled_sums, window_means, window_sums
from driftsack.core.arrays import Floats
from driftsack.core.checks import ROUNDING, above_zero, share, whole
from driftsack.core.errors import SettingError
from driftsack.core.seeding import generator
from driftsack.logs.survey import MAX_CELLS, Survey

SCALES: Final = (2, 4, 8, 16, 32)
MIN_CELLS_PER_WINDOW: Final = 4  # with fewer, a scale is too fine for the log
LEVEL: Final = 0.01  # of the test: the probability that drift is reported although there is none
SHUFFLES: Final = 199


class DriftMeasure(NamedTuple):
    """A measure of variation compared with its noise floor.

    Attributes:
        value: The measure in the order of the log.
        floor: Its mean over the shuffled orders, which is due to noise alone.
        floor_high: Its 95% quantile over the shuffled orders.
        share: The share of ``value`` above the floor, (value - floor) / value, at least 0.
    """

    value: float
    floor: float
    floor_high: float
    share: float


class Drift(NamedTuple):
    """The result of the test for drift.

    Attributes:
        found: Whether drift was detected, that is, ``p_value`` is at most ``level``.
        p_value: Share of the orders, shuffled or not, whose test statistic is at least that of the log.
        level: Level of the test.
        shuffles: Number of shuffled orders.
        where: The arm and the quantity with the strongest drift.
        windows: Number of windows that the measures are computed in.
        measures: The measures ``v1``, ``v2``, ``w1`` and ``w2`` with their noise floors.
    """

    found: bool
    p_value: float
    level: float
    shuffles: int
    where: tuple[str, str]
    windows: int
    measures: dict[str, DriftMeasure]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {**self._asdict(), "measures": {name: one._asdict() for name, one in self.measures.items()}}


def detect_drift(
    survey: Survey, windows: int | None = None, level: float = LEVEL, shuffles: int = SHUFFLES, seed: int = 0
) -> Drift:
    """Test for drift and measure it, both relative to rows shuffled in time.

    Args:
        survey: Summary of the log.
        windows: Number of windows for the measures. Default: chosen by the length of the log.
        level: Level of the test.
        shuffles: Number of shuffled orders.
        seed: Seed of the shuffles.

    Returns:
        The verdict, the p-value and the measures.

    Raises:
        SettingError: If there are more windows than the log can be divided into, or too few shuffles for the level.

    >>> import driftsack as ds
    >>> drift = detect_drift(ds.logs.survey(ds.gather(ds.instances.example_2(horizon=2_000))))
    >>> drift.found, drift.p_value
    (True, 0.005)
    """
    count = default_windows(survey) if windows is None else whole(windows, "windows", at_least=2)
    most = min(survey.rows, MAX_CELLS)
    if windows is not None and count > most:
        raise SettingError(
            f"windows must be at most {most:,}, the number of parts that a log of {survey.rows:,} rounds is kept in, "
            f"got {count:,}."
        )
    _check_level(level, shuffles)

    # Score each arm and quantity in the order of the log and in shuffled orders.
    names = ("reward", *survey.resources)
    scores, labels, means = [], [], []
    for arm, sums in zip(survey.arms, shuffled_sums(survey, shuffles, generator(seed)), strict=True):
        for quantity, score in zip(names, between_window_scores(sums).transpose(2, 0, 1), strict=True):
            scores.append(score)
            labels.append((arm, quantity))
        means.append(window_means(sums, count))

    # Compare the largest score of the log with those of the shuffled orders.
    largest = np.stack(scores).max(axis=1)  # (m (1 + d), 1 + N): over the scales
    p_value = float((largest.max(axis=0) >= largest[:, 0].max()).mean())
    return Drift(
        found=p_value <= level,
        p_value=p_value,
        level=level,
        shuffles=shuffles,
        where=labels[int(largest[:, 0].argmax())],
        windows=count,
        measures=drift_measures(np.stack(means, axis=2), survey.rows),
    )


def _check_level(level: float, shuffles: int) -> None:
    """Raise unless the smallest possible p-value, 1 / (N + 1), is at most the level."""
    above_zero(share(level, "level"), "level")
    whole(shuffles, "shuffles", at_least=19)
    if level * (shuffles + 1) < 1.0 - ROUNDING:
        raise SettingError(
            f"level * (shuffles + 1) must be at least 1, otherwise drift cannot be detected, got level={level:g} and "
            f"shuffles={shuffles}; pass shuffles={math.ceil(1.0 / level - ROUNDING) - 1} or more."
        )


def between_window_scores(sums: RunningSums) -> Floats:
    """(scales, 1 + N, 1 + d) Standardised variation between windows; 0 for quantities that never vary."""
    total = sums.prefix[:, -1] ** 2 / max(len(sums.rounds), 1)
    scores = np.zeros((len(SCALES), *total.shape))
    for k, windows in enumerate(SCALES):
        totals, counts = window_sums(sums, windows)
        if len(sums.rounds) < MIN_CELLS_PER_WINDOW * windows and windows > SCALES[0]:
            break
        observed = counts > 0
        squares = (totals[:, observed] ** 2 / counts[observed, None]).sum(axis=1) - total
        rooted = np.cbrt(np.where(squares > 1e-9 * np.maximum(total, 1.0), squares, 0.0))
        spread = rooted.std(axis=0)
        scores[k] = np.divide(rooted - rooted.mean(axis=0), spread, out=np.zeros_like(rooted), where=spread > 0)
    return scores


def drift_measures(means: Floats, rows: int) -> dict[str, DriftMeasure]:
    """Compute V and W of windowed means (1 + N, windows, m, 1 + d): row 0 in the log's order, the others shuffled."""
    steps = np.abs(np.diff(means, axis=1)).max(axis=2)  # (1 + N, windows - 1, 1 + d): sup norm over the arms
    deviations = np.abs(means - means.mean(axis=1, keepdims=True))
    rounds = rows / means.shape[1]  # of a window
    values = {
        "v1": steps[:, :, 0].sum(axis=1),
        "v2": steps[:, :, 1:].sum(axis=1).max(axis=1),
        "w1": rounds * deviations[..., 0].max(axis=2).sum(axis=1),
        "w2": rounds * deviations[..., 1:].sum(axis=3).max(axis=2).sum(axis=1),
    }
    return {name: _compared_with_noise(one) for name, one in values.items()}


def _compared_with_noise(values: Floats) -> DriftMeasure:
    """Compare a measure in the log's order (the first value) with its values in shuffled orders."""
    value, floor = float(values[0]), float(values[1:].mean())
    high = float(np.quantile(values[1:], 0.95))
    return DriftMeasure(value, floor, high, max(value - floor, 0.0) / value if value > 0 else 0.0)
