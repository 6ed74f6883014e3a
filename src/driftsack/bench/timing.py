"""Wall time, and ratios of wall times.

Machines are noisy, so two things that are compared are measured in alternation several times, in one process and on one
thread, and the median of the ratios is reported. Nothing here is a timed test; ``docs/benchmarks.md`` keeps the figures
of one machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

Progress = Callable[[str], None]
"""Called with what is being measured."""


def seconds(work: Callable[..., object], *arguments: object) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begun


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """Median of the ratios of neighbouring measurements.

    >>> median_ratio([2.0, 9.0, 4.0], [1.0, 3.0, 1.0])
    3.0
    """
    return statistics.median(a / b for a, b in zip(numerators, denominators, strict=True))
