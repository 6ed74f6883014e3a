r"""Does the world move? A permutation test, and V and W beside what noise alone would give.

*The test.* For each arm, each of reward and costs, and each number of windows L = 2, 4, ..., 32, the sum of squares
between windows :math:`\sum_w n_w (\bar x_w - \bar x)^2` is computed in the order that came and in N shuffled ones. Its
cube root, which is nearly normal, is standardised over all N + 1 orders; the test's statistic is the largest of them
all. Under no drift the order that came is one of N + 1 equally likely ones, so that :math:`p \le \alpha` happens with
probability at most :math:`\alpha`, by construction, however many arms and resources there are. (That is exact if arms
were chosen without regard to their outcomes, as at random, and if rounds are independent but for the drift. Where
neighbours resemble each other, join them first: :func:`driftsack.advice.windows.joined`. A log gathered by a learner
pulls an arm more often after good outcomes, and the test is then approximate.)

*The measures* are those of :mod:`driftsack.measures.variation` on the world of windowed means. Noise moves windowed
means too: the floor is the same measure with rows shuffled in time, and what lies above it is real.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.advice.windows import Order, orders, usual_windows, window_means, window_sums
from driftsack.core.arrays import Floats
from driftsack.core.checks import ROUNDING, above_zero, share, whole
from driftsack.core.errors import SettingError
from driftsack.core.seeding import generator
from driftsack.logs.survey import MOST_CELLS, Survey

SCALES: Final = (2, 4, 8, 16, 32)
FEWEST_IN_WINDOW: Final = 4  # cells; with fewer a scale is too fine for the log
LEVEL: Final = 0.01  # of the test: how often a world that stands still is called moving
SHUFFLES: Final = 199


class Measured(NamedTuple):
    """A measure, what noise alone would give, and the share that noise does not explain."""

    value: float
    floor: float  # mean over the shuffles
    floor_high: float  # 95% of the shuffles lie below
    share: float  # (value - floor) / value, at least 0

    @property
    def real(self) -> float:
        """What lies above the floor."""
        return max(self.value - self.floor, 0.0)


class Drift(NamedTuple):
    """Whether the world moves, where it shows most, and by how much."""

    found: bool
    p_value: float
    level: float
    shuffles: int
    where: tuple[str, str]  # the arm and the quantity that show it most
    windows: int
    measures: dict[str, Measured]  # v1, v2, w1, w2

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return {**self._asdict(), "measures": {name: one._asdict() for name, one in self.measures.items()}}


def drift(
    survey: Survey, windows: int | None = None, level: float = LEVEL, shuffles: int = SHUFFLES, seed: int = 0
) -> Drift:
    """Test for drift and measure it, both against time-shuffled rows.

    >>> import driftsack as ds
    >>> moving = ds.logs.survey(ds.gather(ds.instances.example_2(horizon=2_000)))
    >>> seen = drift(moving)
    >>> seen.found, seen.p_value
    (True, 0.005)
    """
    count = usual_windows(survey) if windows is None else whole(windows, "windows", at_least=2)
    most = min(survey.rows, MOST_CELLS)
    if windows is not None and count > most:
        raise SettingError(
            f"windows must be at most {most:,}, for a log of {survey.rows:,} rounds has no finer parts, got {count:,}."
        )
    _check_level(level, shuffles)
    names = ("reward", *survey.resources)
    scores, labels, means = [], [], []
    for arm, order in zip(survey.arms, orders(survey, shuffles, generator(seed)), strict=True):
        for quantity, score in zip(names, between(order).transpose(2, 0, 1), strict=True):
            scores.append(score)
            labels.append((arm, quantity))
        means.append(window_means(order, count))
    largest = np.stack(scores).max(axis=1)  # (m (1 + d), 1 + N): over the scales
    p_value = float((largest.max(axis=0) >= largest[:, 0].max()).mean())
    return Drift(
        found=p_value <= level,
        p_value=p_value,
        level=level,
        shuffles=shuffles,
        where=labels[int(largest[:, 0].argmax())],
        windows=count,
        measures=measured(np.stack(means, axis=2), survey.rows),
    )


def _check_level(level: float, shuffles: int) -> None:
    """Raise unless the smallest p-value there can be, 1 / (N + 1), is within the level."""
    above_zero(share(level, "level"), "level")
    whole(shuffles, "shuffles", at_least=19)
    if level * (shuffles + 1) < 1.0 - ROUNDING:
        raise SettingError(
            f"level * (shuffles + 1) must be at least 1, or no log could show drift, got level={level:g} and "
            f"shuffles={shuffles}; pass shuffles={math.ceil(1.0 / level - ROUNDING) - 1} or more."
        )


def between(order: Order) -> Floats:
    """(scales, 1 + N, 1 + d) how far windows differ, standardised; 0 where nothing varies."""
    total = order.prefix[:, -1] ** 2 / max(len(order.rounds), 1)
    scores = np.zeros((len(SCALES), *total.shape))
    for k, windows in enumerate(SCALES):
        sums, counts = window_sums(order, windows)
        if len(order.rounds) < FEWEST_IN_WINDOW * windows and windows > SCALES[0]:
            break
        seen = counts > 0
        squares = (sums[:, seen] ** 2 / counts[seen, None]).sum(axis=1) - total
        rooted = np.cbrt(np.where(squares > 1e-9 * np.maximum(total, 1.0), squares, 0.0))
        spread = rooted.std(axis=0)
        scores[k] = np.divide(rooted - rooted.mean(axis=0), spread, out=np.zeros_like(rooted), where=spread > 0)
    return scores


def measured(means: Floats, rows: int) -> dict[str, Measured]:
    """V and W of worlds of windowed means (1 + N, windows, m, 1 + d): the first as it came, the others shuffled."""
    steps = np.abs(np.diff(means, axis=1)).max(axis=2)  # (1 + N, windows - 1, 1 + d): sup norm over the arms
    away = np.abs(means - means.mean(axis=1, keepdims=True))
    rounds = rows / means.shape[1]  # of a window
    found = {
        "v1": steps[:, :, 0].sum(axis=1),
        "v2": steps[:, :, 1:].sum(axis=1).max(axis=1),
        "w1": rounds * away[..., 0].max(axis=2).sum(axis=1),
        "w2": rounds * away[..., 1:].sum(axis=3).max(axis=2).sum(axis=1),
    }
    return {name: _against_floor(values) for name, values in found.items()}


def _against_floor(values: Floats) -> Measured:
    value, floor = float(values[0]), float(values[1:].mean())
    high = float(np.quantile(values[1:], 0.95))
    return Measured(value, floor, high, max(value - floor, 0.0) / value if value > 0 else 0.0)
