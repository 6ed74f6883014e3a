"""Wall time, and ratios of wall times.

Machines are noisy, so two things are compared by measuring them in turns several times, in one process and on one
thread, and reporting the median of the ratios. No test asserts a time; ``docs/benchmarks.md`` has the figures of one
machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

Progress = Callable[[str], None]
"""Called with the current measurement."""


def seconds(work: Callable[..., object], *arguments: object) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begun


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """The median of the ratios of paired measurements.

    >>> median_ratio([2.0, 9.0, 4.0], [1.0, 3.0, 1.0])
    3.0
    """
    return statistics.median(a / b for a, b in zip(numerators, denominators, strict=True))
