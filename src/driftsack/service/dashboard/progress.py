"""How far a campaign is: the share of its period that is over, and what its spending will be at the end of it."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from driftsack.service.dashboard.track import Bucket, Track

WIDE: Final = 1.96  # standard deviations on each side of a band
RECENT: Final = 60  # buckets that a forecast looks at
STEPS: Final = 20  # points of a forecast
SMOOTH: Final = 5  # buckets over which shares and prices are averaged
NOW_OR_NEVER: Final = 1e-9


class Axis(NamedTuple):
    """The axis of a season: requests, or time in seconds.

    Attributes:
        by_time: Whether it is time.
        start: Where the season began.
        now: Where it is.
        end: Where it ends; None if that is not known.
    """

    by_time: bool
    start: float
    now: float
    end: float | None

    @property
    def elapsed(self) -> float | None:
        """The share of the season that is over."""
        if self.end is None:
            return None
        return min(max((self.now - self.start) / max(self.end - self.start, NOW_OR_NEVER), 0.0), 1.0)

    def of(self, bucket: Bucket) -> float:
        """Where a bucket ends."""
        return bucket.at / 1000 if self.by_time else float(bucket.number)


def axis_of(track: Track) -> Axis:
    """The axis of the present season.

    Args:
        track: The campaign.

    Returns:
        Time if the budgets are meant for a period of time, requests otherwise.
    """
    config = track.config
    if track.following is not None:
        return Axis(True, track.season_at / 1000, track.at / 1000, track.following / 1000)
    if config.period is not None:
        return Axis(True, track.season_at / 1000, track.at / 1000, track.season_at / 1000 + config.period)
    if track.rounds_left is not None:
        left, since = track.rounds_left
        return Axis(False, track.season_number, track.number, since + left)
    end = None if config.horizon is None else track.season_number + config.horizon
    return Axis(False, track.season_number, track.number, end)


def season_buckets(track: Track) -> list[Bucket]:
    """The buckets of the present season."""
    return [bucket for bucket in track.buckets if bucket.granted and bucket.number > track.season_number]


class Forecast(NamedTuple):
    """What will be left of a budget, in the problem's units.

    Attributes:
        at: Places on the axis, from now to the end of the season.
        middle: What is expected to be left.
        low: The lower end of a band that holds 95% of what may happen if the requests go on as they did recently.
        high: The upper end.
    """

    at: list[float]
    middle: list[float]
    low: list[float]
    high: list[float]


def forecast(places: list[float], spent: list[float], left: float, end: float | None) -> Forecast | None:
    r"""Continue the spending to the end of a season.

    With increments :math:`\Delta_b` over lengths :math:`n_b`, the rate is :math:`\mu = \sum \Delta_b / \sum n_b`, and
    the variance of a step :math:`\sigma^2` is the mean of :math:`(\Delta_b - \mu n_b)^2 / n_b`. After x more steps
    :math:`\mu x \pm 1.96 \sqrt{\sigma^2 x + \sigma^2 x^2 / \sum n_b}` is spent.

    Args:
        places: Where on the axis the amounts were spent.
        spent: What was spent until there.
        left: What is left now.
        end: The end of the season.

    Returns:
        The forecast; None if there is too little to go on.

    >>> found = forecast([0.0, 10.0, 20.0, 30.0], [0.0, 1.0, 2.0, 3.0], left=7.0, end=80.0)
    >>> found.at[-1], round(found.middle[-1], 6), round(found.high[-1] - found.low[-1], 6)
    (80.0, 2.0, 0.0)
    """
    places, spent = places[-RECENT:], spent[-RECENT:]
    steps = [(b - a, y - x) for a, b, x, y in zip(places, places[1:], spent, spent[1:], strict=False) if b > a]
    if len(steps) < 3 or end is None or end <= places[-1]:  # noqa: PLR2004
        return None
    length = sum(n for n, _ in steps)
    rate = sum(moved for _, moved in steps) / length
    variance = sum((moved - rate * n) ** 2 / n for n, moved in steps) / (len(steps) - 1)
    found = Forecast([], [], [], [])
    for k in range(STEPS + 1):
        ahead = (end - places[-1]) * k / STEPS
        wide = WIDE * math.sqrt(variance * (ahead + ahead * ahead / length))
        found.at.append(places[-1] + ahead)
        found.middle.append(max(left - rate * ahead, 0.0))
        found.low.append(max(left - rate * ahead - wide, 0.0))
        found.high.append(max(min(left - rate * ahead + wide, left), 0.0))
    return found


def ends_at(places: list[float], spent: list[float], left: float) -> float | None:
    """Where on the axis a budget is used up if spending goes on as it did recently; None if it does not spend."""
    places, spent = places[-RECENT:], spent[-RECENT:]
    if len(places) < 2 or spent[-1] <= spent[0] or places[-1] <= places[0]:  # noqa: PLR2004
        return None
    return places[-1] + left * (places[-1] - places[0]) / (spent[-1] - spent[0])
