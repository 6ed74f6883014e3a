"""``Clock``: the times of requests, and the expected number of rounds left in a period."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from driftsack.core.checks import number
from driftsack.core.errors import OutOfRangeError, SettingError
from driftsack.core.problem import Problem
from driftsack.game.arrival_rates import DAY, WEEK
from driftsack.game.arrivals import SHORTEST, Arrivals

NAIVE_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  (of times without a zone)


class Clock:
    """The times of a learner's requests.

    Attributes:
        arrivals: The arrivals of the current period; None before the first request and without a period.
        start: The time at which the current period began, in seconds.
        latest: The time of the latest request, in seconds; minus infinity before the first.
    """

    def __init__(self, problem: Problem) -> None:
        self._period = None if problem.period is None else problem.period.total_seconds()
        self._expected = None if problem.guessed else float(problem.horizon)
        self.arrivals: Arrivals | None = None
        self.start = 0.0
        self.latest = -np.inf

    def advance(self, at: float | datetime | None) -> tuple[float, float]:
        """Count a request; return its time in seconds and the rounds left from it on, NaN without a period."""
        if at is None:
            raise SettingError("the problem has a period, so each request needs its time; pass at=datetime.now(...).")
        now, left = seconds(at), math.nan
        if self._period is not None:
            if self.arrivals is None:
                self.start = now
                self.arrivals = Arrivals(self._period, self._expected, day_start(at))
            since = max(now - self.start, 0.0)  # clocks of workers disagree
            if since <= self._period:
                self.arrivals.arrive(since)
            left = 1.0 + self.arrivals.rounds_left(since)
        self.latest = max(self.latest, now)
        return now, left

    def repeat(self, now: float, most: int) -> int:
        """Count up to ``most`` further requests at the time ``now`` of the latest one; return how many were counted.

        Only requests for which :meth:`advance` would return the same are counted.
        """
        if self.arrivals is None or self._period is None or not now - self.start <= self._period:
            return most
        return self.arrivals.repeat(most)

    @property
    def end(self) -> float | None:
        """The time at which the current period ends, in seconds; None before it has begun, and without a period."""
        return None if self.arrivals is None or self._period is None else self.start + self._period

    def next_start(self, at: float | datetime | None) -> float:
        """Return when a new period would begin; nothing is changed."""
        start = self.start + (self._period or 0.0) if at is None else seconds(at)
        if self.arrivals is not None and start < min(self.latest, self.start + (self._period or 0.0)):
            raise OutOfRangeError(
                f"a period must begin after the latest request of the last one, at {self.latest:.0f} seconds, got "
                f"{start:.0f}; pass the time of renewal."
            )
        return start

    def renew(self, start: float, period: timedelta | None, at: float | datetime | None) -> float | None:
        """Begin a new period.

        Args:
            start: When it begins, as :meth:`next_start` returned it.
            period: Its length; None for that of the last one.
            at: When it begins, as the caller passed it, which determines the hour of the week.

        Returns:
            The expected number of rounds; None if there was no request and no length was given, which changes nothing.
        """
        if self._period is None or (self.arrivals is None and period is None):
            return None
        if self.arrivals is None:  # the first guess is for the period of the problem, and becomes a rate
            self.start = start
            self.arrivals = Arrivals(self._period, self._expected, day_start(start if at is None else at))
        length = self._period if period is None else period.total_seconds()
        self.arrivals.renew(start - self.start, length)
        self.start, self._period = start, length
        return 1.0 + self.arrivals.rounds_left(0.0)

    def set_back(self, at: float, period: timedelta | None) -> float | None:
        """Begin a period at a time that may lie before requests whose time was wrong.

        Wrong times are moved back by whole weeks, so that the arrivals of each hour of the week are kept.

        Args:
            at: The time in seconds.
            period: Its length; None for what is left of the current one, or the whole if that began later than ``at``.

        Returns:
            The expected number of rounds; None if there was no request and no length was given, which changes nothing.
        """
        left = self.start + (self._period or 0.0) - at
        if period is None and self.arrivals is not None and self._period is not None:
            period = timedelta(seconds=left if SHORTEST <= left <= self._period else self._period)
        if self.arrivals is not None:
            ahead = max(self.start, self.latest) - at
            weeks = max(math.ceil(ahead / WEEK), 0)
            self.start, self.latest = self.start - weeks * WEEK, self.latest - weeks * WEEK
        return self.renew(at, period, None)

    def restore(self, arrivals: Arrivals, period: float) -> None:
        """Continue with saved arrivals, in a period of a length in seconds."""
        self.arrivals, self._period = arrivals, period

    def now(self, at: float | datetime | None) -> float:
        """Return the given time in seconds, or that of the latest request."""
        if at is not None:
            return seconds(at)
        if self.latest == -np.inf:
            raise SettingError("no request had a time; pass at=..., to ask as well, or give older_than in rounds.")
        return float(self.latest)


def seconds(at: float | datetime) -> float:
    """Return a time in seconds; a ``datetime`` without a time zone is not converted."""
    if isinstance(at, datetime):
        return at.timestamp() if at.tzinfo is not None else (at - NAIVE_EPOCH).total_seconds()
    return number(at, "at")


def day_start(at: float | datetime) -> float:
    """Return the seconds from local midnight to a time, counted from Monday if the time is a ``datetime``."""
    if not isinstance(at, datetime):
        return seconds(at)
    local = at.replace(tzinfo=UTC)
    return local.weekday() * DAY + local.hour * 3600.0 + local.minute * 60.0 + local.second
