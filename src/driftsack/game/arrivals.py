"""The expected number of remaining requests in a period of time, estimated from the arrivals so far.

The rates of the hours of the week are estimated from counts (:mod:`driftsack.game.arrival_rates`) and summed over the
rest of the period.

The first arrival starts the clock and is not counted, so that a service that goes live in the middle of its period is
not mistaken for a slow one. From then on silence is evidence. Without a first guess a very high one is used, which is
forgotten after a few arrivals; until then spending is paced with care.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import round_from, within
from driftsack.core.checks import LARGEST_INT, number
from driftsack.core.errors import OutOfRangeError
from driftsack.game.arrival_rates import HOUR, SHAPE, WEEK, estimate_rates, hours_between
from driftsack.game.state_checks import check_state

UNKNOWN: Final = 1e5  # the guess where none was given
STALE: Final = 1 / 64  # share of new evidence after which the rates are estimated again
MEMORY: Final = WEEK  # time that all earlier periods count as, at most
SHORTEST: Final = 1.0  # seconds of a period
LONGEST: Final = 1e10  # seconds of a period, about 300 years
MOST: Final = 1e15  # arrivals


class ArrivalArrays(NamedTuple):
    """The state of an estimate as arrays, for files."""

    period: Annotated[Floats, within(SHORTEST, LONGEST)]  # (1,) the length of the period in seconds
    phase: Annotated[Floats, within(0.0, WEEK)]  # (1,) the time of the week at which it begins, in seconds
    guess: Annotated[Floats, within(1.0 / LONGEST, MOST / SHORTEST)]  # (1,) the first guess, in arrivals per second
    # (3,) in seconds of the period: when the watch began, when the rates were last estimated, and the latest arrival;
    # all -1 before the first arrival.
    times: Annotated[Floats, within(-1.0, LONGEST)]
    # (1,) the number of arrivals since the rates were last estimated, all in the same hour.
    recent: Annotated[Ints, round_from(0)]
    # (7, 24) arrivals before that in each hour of the week, those of earlier periods at a lower weight.
    counts: Annotated[Floats, round_from(0)]
    # (7, 24) the seconds watched in earlier periods, at the same lower weight.
    past: Annotated[Floats, within(0.0, 2 * MEMORY)]

    def check(self) -> None:
        """Raise ``ValueError`` unless the fields fit each other."""
        first, mark, latest = self.times
        unseen = first == mark == latest == -1.0
        if not (unseen or 0.0 <= first <= mark <= latest <= self.period[0]):
            raise ValueError("times must be in order and in the period, or all -1")
        if unseen and (self.recent[0] or self.counts.any() or self.past.any()):
            raise ValueError("nothing can have been counted before the first arrival")
        if latest > hour_end(self.phase[0], mark):
            raise ValueError("the rates must have been estimated in the hour of the latest arrival")


class Arrivals:
    """The arrivals of a period so far, and an estimate of the remaining ones.

    Times are seconds since the period began. An arrival costs O(1), amortised: the rates are estimated again when an
    hour of the day begins or the evidence has grown by 1/64, in arrivals or in time. Memory is constant.

    Args:
        period: The length of the period in seconds.
        expected: The first guess of the number of arrivals in the period; None if there is none.
        day_start: The local time at which the period begins, in seconds after midnight, or after the midnight of any
            earlier day. It decides which arrivals belong to the same hour and day.

    Raises:
        OutOfRangeError: The period is not between a second and 1e10 seconds, or the guess not between 1 and 1e15.

    >>> arrivals = Arrivals(period=10 * 24 * 3600, expected=1_000)
    >>> round(arrivals.rounds_left(24 * 3600))
    900
    >>> for minute in range(2 * 24 * 60):  # one a minute are 14,400 in 10 days
    ...     arrivals.arrive(60.0 * minute)
    >>> round(arrivals.rounds_left(48 * 3600), -2)
    11500.0
    """

    def __init__(self, period: float, expected: float | None = None, day_start: float = 0.0) -> None:
        self._period = _between(period, "period", SHORTEST, LONGEST)
        self._guess = _between(UNKNOWN if expected is None else expected, "expected", 1.0, MOST) / self._period
        self._phase = number(day_start, "day_start") % WEEK
        self._first = self._mark = self._latest = -1.0
        self._recent = 0
        self._counts, self._past = np.zeros((2, *SHAPE))
        self._estimate()

    def arrive(self, at: float) -> None:
        """Count an arrival.

        Args:
            at: When it arrived. Clocks may disagree: a time of up to an hour before the latest arrival is taken to be
                that of the latest arrival.

        Raises:
            OutOfRangeError: The time is not in the period, or more than an hour before the latest arrival.
        """
        at = self._checked(at)
        if at > self._period:
            raise OutOfRangeError(f"at must lie in [0, period={self._period:g}], got {at:g}; call renew first.")
        if self._first < 0.0:  # it starts the clock
            self._first = self._mark = self._latest = at
            self._estimate()
            return
        if at >= self._valid_until:
            self._absorb(at)
        self._recent += 1
        self._latest = at
        if self._recent >= self._enough:
            self._absorb(at)

    def repeat(self, most: int) -> int:
        """Count further arrivals at the time of the latest one, as long as they do not change the estimate.

        Args:
            most: The number of further arrivals.

        Returns:
            How many of them were counted.
        """
        if self._latest >= self._valid_until:
            return 0
        count = min(max(math.ceil(self._enough - self._recent) - 1, 0), most)
        self._recent += count
        return count

    def rounds_left(self, at: float) -> float:
        """Estimate the number of arrivals after ``at`` until the end of the period; nothing is changed.

        Args:
            at: The time; one before the latest arrival is treated as by :meth:`arrive`.

        Returns:
            The expected number, at least 1 before the end of the period and 0 from then on.

        Raises:
            OutOfRangeError: The time is negative, or more than an hour before the latest arrival.
        """
        at = self._checked(at)
        if at >= self._period:
            return 0.0
        if at < self._valid_until and self._recent < self._enough:
            return max(self._left - self._rate * (at - self._mark), 1.0)
        rates = estimate_rates(self._counts_so_far(), self._watched(at), self._guess)
        return max(float((rates * self._ahead(at)).sum()), 1.0)

    def renew(self, start: float, period: float | None = None) -> None:
        """Begin a new period. The estimates are kept, with the weight of at most a week.

        Args:
            start: When the new period begins, in seconds since the current one began. Time between the end of the
                current period and ``start`` counts as not watched.
            period: The length of the new period in seconds; that of the current one if omitted.

        Raises:
            OutOfRangeError: The new period begins before the latest arrival, or its length is not allowed.
        """
        length = self._period if period is None else _between(period, "period", SHORTEST, LONGEST)
        start = _between(start, "start", max(self._latest, 0.0), LONGEST)
        if self._first >= 0.0:
            counts, watched = self._counts_so_far(), self._watched(min(start, self._period))
            weight = min(1.0, MEMORY / max(float(watched.sum()), 1.0))
            self._counts, self._past = weight * counts, weight * watched
            self._first = self._mark = self._latest = 0.0
            self._recent = 0
        self._phase = (self._phase + start) % WEEK
        self._period = length
        self._estimate()

    def to_arrays(self) -> ArrivalArrays:
        """Return the state of the estimate as arrays of fixed shapes; :meth:`from_arrays` reads them.

        Returns:
            Copies of the arrays.
        """
        return ArrivalArrays(
            period=np.array([self._period]),
            phase=np.array([self._phase]),
            guess=np.array([self._guess]),
            times=np.array([self._first, self._mark, self._latest]),
            recent=np.array([self._recent], dtype=np.int64),
            counts=self._counts.copy(),
            past=self._past.copy(),
        )

    @classmethod
    def from_arrays(cls, arrays: ArrivalArrays) -> Arrivals:
        """Continue, bit for bit, from what :meth:`to_arrays` returned. Nothing in the arrays is trusted.

        Args:
            arrays: The arrays.

        Raises:
            ValueError: An array has another shape or type, or values that are not possible.
        """
        restored = cls(LONGEST)
        for name, array, known in zip(arrays._fields, arrays, restored.to_arrays(), strict=True):
            if (np.shape(array), np.asarray(array).dtype) != (known.shape, known.dtype):
                raise ValueError(f"{name} must be {known.dtype} of shape {known.shape}, got {array!r:.80}")
        arrays = ArrivalArrays._make(map(np.array, arrays))
        check_state(arrays, restored.to_arrays(), LARGEST_INT)
        restored._period, restored._phase, restored._guess = (float(one[0]) for one in arrays[:3])
        restored._first, restored._mark, restored._latest = arrays.times.tolist()
        restored._recent = int(arrays.recent[0])
        restored._counts, restored._past = arrays.counts, arrays.past
        restored._estimate()
        return restored

    def _checked(self, at: float) -> float:
        """The time, not before the latest arrival."""
        at = float(at)
        if not max(self._latest - HOUR, 0.0) <= at < math.inf:
            raise OutOfRangeError(
                f"at must be 0 or more, and at most an hour before the latest arrival ({self._latest:g}), got {at:g}."
            )
        return max(at, self._latest)

    def _absorb(self, at: float) -> None:
        """Estimate the rates again, from all arrivals until now."""
        self._counts = self._counts_so_far()
        self._recent, self._mark, self._latest = 0, at, at
        self._estimate()

    def _estimate(self) -> None:
        """Estimate the rates as of the mark; they are valid until the hour ends or the evidence has grown."""
        rates = estimate_rates(self._counts, self._watched(self._mark), self._guess)
        self._rate = float(rates.flat[self._mark_hour()])
        self._left = float((rates * self._ahead(self._mark)).sum())
        self._enough = STALE * float(self._counts.sum())
        growth = STALE * (float(self._past.sum()) + self._mark - self._first)
        self._valid_until = min(hour_end(self._phase, self._mark), self._mark + growth)

    def _mark_hour(self) -> int:
        """The hour of the week in which the rates were estimated."""
        return int((self._phase + self._mark) // HOUR) % self._counts.size

    def _counts_so_far(self) -> Floats:
        """(7, 24) arrivals, with the recent ones, which lie in the hour of the mark."""
        counts = self._counts.copy()
        counts.flat[self._mark_hour()] += self._recent
        return counts

    def _watched(self, at: float) -> Floats:
        """(7, 24) seconds that count as evidence at a time."""
        if self._first < 0.0:
            return self._past
        return self._past + hours_between(self._phase + self._first, self._phase + at)

    def _ahead(self, at: float) -> Floats:
        """(7, 24) seconds from a time to the end of the period."""
        return hours_between(self._phase + at, self._phase + self._period)


def hour_end(phase: float, at: float) -> float:
    """When the hour of the day of ``at`` ends, in seconds since the period began at time ``phase`` of the week."""
    return ((phase + at) // HOUR + 1.0) * HOUR - phase


def _between(value: float, name: str, low: float, high: float) -> float:
    """The value as a float in [low, high]."""
    result = number(value, name)
    if not low <= result <= high:
        raise OutOfRangeError(f"{name} must lie in [{low:g}, {high:g}], got {result:g}.")
    return result
