"""The rounds at which curves are recorded."""

from __future__ import annotations

from typing import Final

import numpy as np

from driftsack.core.arrays import Ints

CURVE_POINTS: Final = 512


def curve_times(horizon: int) -> Ints:
    """Return up to 512 evenly spaced rounds that end with T.

    >>> curve_times(5), curve_times(10_000_000)[[0, 1, -1]]
    (array([1, 2, 3, 4, 5]), array([   19531,    39062, 10000000]))
    """
    points = min(horizon, CURVE_POINTS)
    return np.arange(1, points + 1, dtype=np.int64) * horizon // points
