"""Drift alarms: where the outcomes of an arm changed, with the evidence from before and after."""

from __future__ import annotations

import math
from collections import deque
from typing import Final, NamedTuple

from driftsack.numerics.compiled import source
from driftsack.numerics.glr import glr_detects, new_glr, statistic

CONFIDENCE: Final = 1e-4  # the probability of a false alarm in one stream
LONGEST: Final = 2**40
LOOKED_AT: Final = 2000  # the latest outcomes among which the change is located
_statistic = source(statistic)


class Sample(NamedTuple):
    """Outcomes on one side of a change.

    Attributes:
        size: Their number.
        mean: Their mean.
        error: The standard error of the mean.
    """

    size: int
    mean: float
    error: float


class Alarm(NamedTuple):
    """A change that was detected.

    Attributes:
        at: When, in milliseconds since 1970.
        decision: The decision whose outcome gave the alarm.
        arm: The number of the arm.
        stream: 0 for its reward, 1 + j for its cost in resource j.
        before: The outcomes before the change.
        after: The outcomes after it.
    """

    at: int
    decision: int
    arm: int
    stream: int
    before: Sample
    after: Sample


class Detector:
    """Watches the reward and the costs of one arm by generalised likelihood ratios (:mod:`driftsack.numerics.glr`).

    Args:
        arm: The number of the arm.
        maxima: (1 + d,) the most that a reward and each cost can be.
    """

    def __init__(self, arm: int, maxima: list[float]) -> None:
        self._arm, self._maxima = arm, maxima
        self._glr = new_glr(len(maxima), LONGEST, CONFIDENCE)
        self._latest: list[deque[float]] = [deque(maxlen=LOOKED_AT) for _ in maxima]

    def observe(self, at: int, decision: int, outcomes: list[float]) -> list[Alarm]:
        """Add the outcomes of one decision.

        Args:
            at: When they came, in milliseconds since 1970.
            decision: The decision.
            outcomes: (1 + d,) reward and costs.

        Returns:
            The changes that are detected.
        """
        found = []
        for k, (outcome, most) in enumerate(zip(outcomes, self._maxima, strict=True)):
            self._latest[k].append(outcome)
            share = min(max(outcome / most, 0.0), 1.0) if most > 0 else 0.0
            if glr_detects(self._glr, k, share):
                found.append(self._alarm(at, decision, k))
                self._glr.counts[k] = 0
                self._glr.sums[k] = 0.0
                self._latest[k].clear()
        return found

    def _alarm(self, at: int, decision: int, stream: int) -> Alarm:
        """Locate the change where the likelihood ratio is largest."""
        values, most = list(self._latest[stream]), self._maxima[stream]
        shares = [min(max(value / most, 0.0), 1.0) for value in values]
        total, head, best, split = sum(shares), 0.0, -1.0, 1
        for first in range(1, len(shares)):
            head += shares[first - 1]
            ratio = _statistic(first, head, len(shares), total) if 0 < total < len(shares) else 0.0
            if ratio > best:
                best, split = ratio, first
        return Alarm(at, decision, self._arm, stream, sample_of(values[:split]), sample_of(values[split:]))


def sample_of(values: list[float]) -> Sample:
    """Count, mean and standard error of some values.

    >>> sample_of([1.0, 3.0])
    Sample(size=2, mean=2.0, error=1.0)
    """
    size = len(values)
    mean = sum(values) / size if size else 0.0
    spread = sum((value - mean) ** 2 for value in values)
    return Sample(size, mean, math.sqrt(spread / (size - 1) / size) if size > 1 else 0.0)
