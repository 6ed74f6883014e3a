"""When budgets begin again: midnight of the campaign's time zone, by day, week or month."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo


def next_refill(at: int, every: str, zone: ZoneInfo) -> int:
    """Return the first midnight after a time at which a period begins.

    Args:
        at: The time, in milliseconds since 1970.
        every: ``"day"``, ``"week"`` (from Monday on) or ``"month"``.
        zone: The time zone; midnight is local, so days may have 23 or 25 hours.

    Returns:
        That midnight, in milliseconds since 1970.

    >>> from zoneinfo import ZoneInfo
    >>> start = datetime(2028, 2, 29, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    >>> ms = next_refill(int(start.timestamp() * 1000), "month", ZoneInfo("Europe/Berlin"))
    >>> datetime.fromtimestamp(ms / 1000, ZoneInfo("Europe/Berlin")).isoformat()
    '2028-03-01T00:00:00+01:00'
    """
    day = datetime.fromtimestamp(at / 1000, zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if every == "month":
        following = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
    else:
        following = day + timedelta(days=1 if every == "day" else 7 - day.weekday())
    return int(following.timestamp() * 1000)


def seconds_between(start: int, end: int) -> float:
    """The length of a season, at least a second.

    Args:
        start: When it begins, in milliseconds.
        end: When the next one begins.

    Returns:
        Seconds.

    >>> seconds_between(1_000, 2_500)
    1.5
    """
    return max((end - start) / 1000, 1.0)
