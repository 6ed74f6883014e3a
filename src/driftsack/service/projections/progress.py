"""The progress of a campaign through its season: elapsed share, pace of spending, and forecast."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from driftsack.service.projections.track import DecisionBucket, Track

WIDE: Final = 1.96  # standard errors on each side of a 95% interval
RECENT: Final = 60  # buckets that a forecast is based on
STEPS: Final = 20  # points of a forecast
SMOOTH: Final = 5  # buckets over which shares and prices are averaged
SHORTEST: Final = 1e-9
ON_PACE: Final = 0.05  # of the budget that spending may be ahead of an even pace


class Axis(NamedTuple):
    """The axis of a season: requests, or time in seconds.

    Attributes:
        by_time: Whether it is time.
        now: The current position.
        end: The end of the season; None if it is not known.
    """

    by_time: bool
    start: float
    now: float
    end: float | None

    @property
    def elapsed(self) -> float | None:
        """The elapsed share of the season; None if its end is not known."""
        if self.end is None:
            return None
        return min(max((self.now - self.start) / max(self.end - self.start, SHORTEST), 0.0), 1.0)

    def of(self, bucket: DecisionBucket) -> float:
        """Where a bucket ends."""
        return bucket.at / 1000 if self.by_time else float(bucket.number)


def axis_of(track: Track) -> Axis:
    """Return the axis of the current season: time if the budgets are for a period, requests otherwise."""
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


def season_buckets(track: Track) -> list[DecisionBucket]:
    """The buckets of the present season."""
    return [bucket for bucket in track.buckets if bucket.granted and bucket.number > track.season_number]


class BudgetForecast(NamedTuple):
    """The remaining budget from now to the end of the season, in the problem's units.

    Attributes:
        at: Positions on the axis.
        middle: The expected remaining budget.
        low: The lower end of a 95% band, assuming that requests continue as they were recently.
        high: The upper end of the band.
    """

    at: list[float]
    middle: list[float]
    low: list[float]
    high: list[float]


def forecast(places: list[float], spent: list[float], left: float, end: float | None) -> BudgetForecast | None:
    r"""Extrapolate recent spending to the end of a season.

    With increments :math:`\Delta_b` over lengths :math:`n_b`, the rate is :math:`\mu = \sum \Delta_b / \sum n_b`, and
    the variance of a step :math:`\sigma^2` is the mean of :math:`(\Delta_b - \mu n_b)^2 / n_b`. After x more steps
    :math:`\mu x \pm 1.96 \sqrt{\sigma^2 x + \sigma^2 x^2 / \sum n_b}` is spent.

    Args:
        places: Positions on the axis.
        spent: The amount spent up to each position.
        left: The remaining budget.
        end: The end of the season; None if it is not known.

    Returns:
        The forecast; None if there are too few observations or the season has no known end.

    >>> found = forecast([0.0, 10.0, 20.0, 30.0], [0.0, 1.0, 2.0, 3.0], left=7.0, end=80.0)
    >>> found.at[-1], round(found.middle[-1], 6), round(found.high[-1] - found.low[-1], 6)
    (80.0, 2.0, 0.0)
    """
    # Estimate rate and variance from the recent increments.
    places, spent = places[-RECENT:], spent[-RECENT:]
    steps = [(b - a, y - x) for a, b, x, y in zip(places, places[1:], spent, spent[1:], strict=False) if b > a]
    if len(steps) < 3 or end is None or end <= places[-1]:
        return None
    length = sum(n for n, _ in steps)
    rate = sum(moved for _, moved in steps) / length
    variance = sum((moved - rate * n) ** 2 / n for n, moved in steps) / (len(steps) - 1)
    # Extrapolate to the end of the season.
    found = BudgetForecast([], [], [], [])
    for k in range(STEPS + 1):
        ahead = (end - places[-1]) * k / STEPS
        wide = WIDE * math.sqrt(variance * (ahead + ahead * ahead / length))
        found.at.append(places[-1] + ahead)
        found.middle.append(max(left - rate * ahead, 0.0))
        found.low.append(max(left - rate * ahead - wide, 0.0))
        found.high.append(max(min(left - rate * ahead + wide, left), 0.0))
    return found


def ends_at(places: list[float], spent: list[float], left: float) -> float | None:
    """Return where on the axis a budget is exhausted at the recent rate; None if nothing is being spent."""
    places, spent = places[-RECENT:], spent[-RECENT:]
    if len(places) < 2 or spent[-1] <= spent[0] or places[-1] <= places[0]:
        return None
    return places[-1] + left * (places[-1] - places[0]) / (spent[-1] - spent[0])


class Pace(NamedTuple):
    """Spending compared with an even pace.

    Attributes:
        spent: The spent share of the budget.
        elapsed: The elapsed share of the season; None if its end is not known.
        exhausted: The share of the season after which the budget will be exhausted; None if it will last.
    """

    spent: float
    elapsed: float | None
    exhausted: float | None


def pace_of(track: Track, axis: Axis, resource: int) -> Pace:
    """Compare the spending of one budget in the current season with an even pace."""
    account = track.account
    spent, elapsed = account.spent[resource] / max(account.granted[resource], 1), axis.elapsed
    if elapsed is None or axis.end is None or spent <= elapsed + ON_PACE:
        return Pace(spent, elapsed, None)
    buckets = season_buckets(track)
    amounts = [float(bucket.spent[resource]) for bucket in buckets]
    left = float(buckets[-1].granted[resource] - buckets[-1].spent[resource]) if buckets else 0.0
    last = ends_at([axis.of(bucket) for bucket in buckets], amounts, left)
    if last is None or last >= axis.end:
        return Pace(spent, elapsed, None)
    return Pace(spent, elapsed, (last - axis.start) / (axis.end - axis.start))


def recent_shares(track: Track, arms: list[int]) -> list[float]:
    """Return the share of requests that some arms received, at the end of each bucket, over the latest buckets."""
    found = []
    for k in range(len(track.buckets)):
        window = track.buckets[max(0, k - SMOOTH + 1) : k + 1]
        chosen = sum(b.tallies[arm].chosen for b in window for arm in arms if arm in b.tallies)
        found.append(chosen / max(sum(bucket.rounds for bucket in window), 1))
    return found
