"""Drift alarms: where the outcomes of an arm changed, with the evidence from before and after.

Rewards are watched as they are. Costs have heavy tails, in which a change of the mean drowns, so what is watched is
whether a cost is above the median of the first ones: a stream of zeros and ones, whatever the costs are like.

A policy leaves an arm that fails at once, after half a dozen outcomes. So the likelihood ratio is computed not only at
dyadic splits (:mod:`driftsack.numerics.glr`), but also at every split that only a few outcomes follow. The level was
chosen by a budget for false alarms (``tools/alarm_level.py``).
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
RECENT: Final = 32  # outcomes after a change for which every split is looked at
LONGEST: Final = 2**40
REFERENCE: Final = 30  # costs that the others are compared with
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


class Stream:
    """The reward, or one of the costs, of one arm.

    Args:
        most: The most that a reward can be; None for a cost.
        level: The nominal probability of a false alarm.
    """

    def __init__(self, most: float | None, level: float = LEVEL) -> None:
        self._most, self._level = most, level
        self._restart()

    def _restart(self) -> None:
        """Forget everything."""
        self._glr = new_glr(1, LONGEST, self._level)
        self._recent = np.zeros(RECENT)
        self._latest: deque[tuple[float, float]] = deque(maxlen=LOOKED_AT)  # outcomes, and as shares
        self._first: list[float] = []
        self._median: float | None = None

    def observe(self, outcome: float) -> tuple[Sample, Sample] | None:
        """Add an outcome; return those before and after a change if one is detected."""
        if self._most is None and self._median is None:
            self._first.append(outcome)
            if len(self._first) == REFERENCE:
                self._median = statistics.median(self._first)
                return next((found for value in self._first if (found := self._add(value))), None)
            return None
        return self._add(outcome)

    def _share(self, outcome: float) -> float:
        """An outcome as a number from 0 to 1."""
        if self._median is None:
            return min(max(outcome / (self._most or 1.0), 0.0), 1.0)
        return 0.5 * ((outcome > self._median) + (outcome >= self._median))

    def _add(self, outcome: float) -> tuple[Sample, Sample] | None:
        """Let the detector see an outcome."""
        share = self._share(outcome)
        self._latest.append((outcome, share))
        if not detects(self._glr, self._recent, share):
            return None
        split = self._split()
        values = [value for value, _ in self._latest]
        self._restart()
        return sample_of(values[:split]), sample_of(values[split:])

    def _split(self) -> int:
        """Where the likelihood ratio of a change is largest."""
        shares = [share for _, share in self._latest]
        total, head, best, split = sum(shares), 0.0, -1.0, 1
        for first in range(1, len(shares)):
            head += shares[first - 1]
            ratio = _statistic(first, head, len(shares), total) if 0 < total < len(shares) else 0.0
            if ratio > best:
                best, split = ratio, first
        return split


class Detector:
    """Watches the reward and the costs of one arm by generalised likelihood ratios (:mod:`driftsack.numerics.glr`).

    Args:
        arm: The number of the arm.
        reward_max: The most that a reward can be.
        resources: The number of resources.
        level: The nominal probability of a false alarm in one stream.
    """

    def __init__(self, arm: int, reward_max: float, resources: int, level: float = LEVEL) -> None:
        self._arm = arm
        self._streams = [Stream(reward_max, level), *(Stream(None, level) for _ in range(resources))]

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
        for k, (stream, outcome) in enumerate(zip(self._streams, outcomes, strict=True)):
            change = stream.observe(outcome)
            if change is not None:
                found.append(Alarm(at, decision, self._arm, k, *change))
        return found


@kernel
def detects(glr: GLR, recent: Floats, outcome: float) -> bool:
    """Add an outcome; return whether a change is detected, at a dyadic split or before the last few outcomes."""
    recent[glr.counts[0] % recent.size] = outcome
    return glr_detects(glr, 0, outcome) or few_differ(recent, glr.counts[0], glr.sums[0], glr.log_confidence)


@kernel
def few_differ(recent: Floats, n: int, total: float, log_confidence: float) -> bool:
    """Whether the last few of n outcomes, whose sum is ``total``, differ from those before them."""
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
    """Count, mean and standard error of some values.

    >>> sample_of([1.0, 3.0])
    Sample(size=2, mean=2.0, error=1.0)
    """
    size = len(values)
    mean = sum(values) / size if size else 0.0
    spread = sum((value - mean) ** 2 for value in values)
    return Sample(size, mean, math.sqrt(spread / (size - 1) / size) if size > 1 else 0.0)
