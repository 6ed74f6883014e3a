"""Drift alarms: changes in the outcomes of an arm, with the outcomes before and after as evidence.

Rewards are tested as they are. Costs have heavy tails, which hide a change of the mean, so the test looks at whether a
cost is above the median of the first costs: a stream of zeros and ones, whatever the distribution.

A policy abandons a failing arm after half a dozen outcomes. The likelihood ratio is therefore computed not only at
dyadic splits (:mod:`driftsack.numerics.glr`) but also at every split before the last few outcomes. The level was chosen
to keep a budget of false alarms (``python -m lab alarm-level``).
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.numerics.compiled import kernel, source
from driftsack.numerics.glr import GLR, glr_detects, new_glr, split_detects, statistic

LEVEL: Final = 0.03  # nominal probability of a false alarm in a stream
RECENT: Final = 32  # latest outcomes before each of which a split is tested
LONGEST: Final = 2**40
REFERENCE: Final = 30  # first costs, whose median the others are compared with
LOOKED_AT: Final = 2000  # latest outcomes among which the change is located
_statistic = source(statistic)


class Sample(NamedTuple):
    """Summary of some outcomes.

    Attributes:
        size: Number of outcomes.
        mean: Their mean.
        error: Standard error of the mean.
    """

    size: int
    mean: float
    error: float


class Alarm(NamedTuple):
    """A detected change.

    Attributes:
        at: Time of the detection, in milliseconds since 1970.
        decision: The decision whose outcome raised the alarm.
        stream: 0 for the reward, 1 + j for the cost in resource j.
        before: The outcomes before the change.
        after: The outcomes after the change.
    """

    at: int
    decision: int
    arm: int
    stream: int
    before: Sample
    after: Sample


class OutcomeStream:
    """Detects changes in the reward, or one of the costs, of one arm.

    Args:
        most: Maximum reward; None for a cost.
        level: Nominal probability of a false alarm.
    """

    def __init__(self, most: float | None, level: float = LEVEL) -> None:
        self._most, self._level = most, level
        self._restart()

    def _restart(self) -> None:
        """Discard all outcomes."""
        self._glr = new_glr(1, LONGEST, self._level)
        self._recent = np.zeros(RECENT)
        self._latest: deque[tuple[float, float]] = deque(maxlen=LOOKED_AT)  # (outcome, normalised outcome)
        self._first: list[float] = []
        self._median: float | None = None

    def observe(self, outcome: float) -> tuple[Sample, Sample] | None:
        """Add an outcome; if a change is detected, return the outcomes before and after it."""
        # The first costs only determine the median.
        if self._most is None and self._median is None:
            self._first.append(outcome)
            if len(self._first) == REFERENCE:
                self._median = statistics.median(self._first)
                return next((found for value in self._first if (found := self._add(value))), None)
            return None
        return self._add(outcome)

    def _share(self, outcome: float) -> float:
        """Normalise an outcome to [0, 1]."""
        if self._median is None:
            return min(max(outcome / (self._most or 1.0), 0.0), 1.0)
        return 0.5 * ((outcome > self._median) + (outcome >= self._median))

    def _add(self, outcome: float) -> tuple[Sample, Sample] | None:
        """Test for a change after one more outcome."""
        share = self._share(outcome)
        self._latest.append((outcome, share))
        if not detects(self._glr, self._recent, share):
            return None
        split = self._split()
        values = [value for value, _ in self._latest]
        self._restart()
        return sample_of(values[:split]), sample_of(values[split:])

    def _split(self) -> int:
        """Return the split with the largest likelihood ratio."""
        shares = [share for _, share in self._latest]
        total, head, best, split = sum(shares), 0.0, -1.0, 1
        for first in range(1, len(shares)):
            head += shares[first - 1]
            ratio = _statistic(first, head, len(shares), total) if 0 < total < len(shares) else 0.0
            if ratio > best:
                best, split = ratio, first
        return split


class ArmDetector:
    """Tests reward and costs of one arm by generalised likelihood ratios (:mod:`driftsack.numerics.glr`).

    Args:
        reward_max: Maximum reward.
        level: Nominal probability of a false alarm in one stream.
    """

    def __init__(self, arm: int, reward_max: float, resources: int, level: float = LEVEL) -> None:
        self._arm = arm
        self._streams = [OutcomeStream(reward_max, level), *(OutcomeStream(None, level) for _ in range(resources))]

    def observe(self, at: int, decision: int, outcomes: list[float]) -> list[Alarm]:
        """Add the outcomes of one decision, and return the detected changes.

        Args:
            at: Time of the outcomes, in milliseconds since 1970.
            outcomes: (1 + d,) reward and costs.
        """
        found = []
        for k, (stream, outcome) in enumerate(zip(self._streams, outcomes, strict=True)):
            change = stream.observe(outcome)
            if change is not None:
                found.append(Alarm(at, decision, self._arm, k, *change))
        return found


@kernel
def detects(glr: GLR, recent: Floats, outcome: float) -> bool:
    """Add an outcome, and return whether a change is detected, at a dyadic split or before the last few outcomes."""
    recent[glr.counts[0] % recent.size] = outcome
    return glr_detects(glr, 0, outcome) or few_differ(recent, glr.counts[0], glr.sums[0], glr.log_confidence)


@kernel
def few_differ(recent: Floats, n: int, total: float, log_confidence: float) -> bool:
    """Return whether the last few of n outcomes, whose sum is ``total``, differ from those before them."""
    if not 0.0 < total < n:
        return False
    threshold = log_confidence + 1.5 * math.log(n)
    tail = 0.0
    for last in range(1, min(recent.size, n - 1) + 1):
        tail += recent[(n - last) % recent.size]
        if split_detects(n - last, total - tail, n, total, threshold):
            return True
    return False


def sample_of(values: list[float]) -> Sample:
    """Return count, mean and standard error of some values.

    >>> sample_of([1.0, 3.0])
    Sample(size=2, mean=2.0, error=1.0)
    """
    size = len(values)
    mean = sum(values) / size if size else 0.0
    spread = sum((value - mean) ** 2 for value in values)
    return Sample(size, mean, math.sqrt(spread / (size - 1) / size) if size > 1 else 0.0)
