"""``Calendar``: when the rounds of a log took place, if its times are dates."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats

DAY: Final = 86_400.0  # seconds
UNIX_TIMES: Final = (1e9, 1e10)  # seconds since 1970, of 2001 to 2286: numbers between them are dates
MOST_TIMES: Final = 4_096  # that are kept


class Calendar(NamedTuple):
    """Times of some rounds of a log, in seconds since 1970; the others are interpolated."""

    rounds: Floats  # (k,) rounds, from 0
    seconds: Floats  # (k,) their times

    @property
    def days(self) -> float:
        """The days that the log covers, including the time until the round after the last."""
        rounds, seconds = self.rounds[-1], self.seconds[-1] - self.seconds[0]
        return float(seconds / DAY * (rounds + 1) / rounds)

    def at(self, round: float) -> datetime:
        """Return the time of a round, from 0.

        >>> Calendar(np.array([0.0, 10.0]), np.array([0.0, 864_000.0])).at(1.5).isoformat()
        '1970-01-02T12:00:00+00:00'
        """
        return datetime.fromtimestamp(float(np.interp(round, self.rounds, self.seconds)), UTC)


class TimeSamples:
    """Collect the times of a log while it is read; every k-th is kept, and k doubles when there are too many."""

    def __init__(self) -> None:
        self.rows = 0
        self._kept, self._step, self._last = np.zeros(0), 1, 0.0

    def add(self, times: Floats) -> None:
        """Add the times of the next rows."""
        self._kept = np.concatenate([self._kept, times[-self.rows % self._step :: self._step]])
        self.rows += len(times)
        self._last = float(times[-1]) if len(times) else self._last
        while len(self._kept) > MOST_TIMES:
            self._kept, self._step = self._kept[::2], 2 * self._step

    def calendar(self, dates: bool) -> Calendar | None:
        """Return the calendar if the times are dates or look like Unix times, and cover some time; otherwise None."""
        seconds = np.append(self._kept, self._last)
        rounds = np.append(np.arange(len(self._kept)) * float(self._step), self.rows - 1.0)
        low, high = UNIX_TIMES
        if not (dates or (low <= seconds[0] and seconds[-1] < high)) or seconds[-1] <= seconds[0]:
            return None
        return Calendar(rounds, seconds)
