"""When budgets are refilled: at midnight in the campaign's time zone, by day, week or month."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

SECOND: Final = 1000  # milliseconds
DAY_MS: Final = 86_400 * SECOND


def next_midnight(at: int, every: str, zone: ZoneInfo) -> int:
    """Return the first midnight after a time at which a period begins.

    Args:
        at: The time, in milliseconds since 1970.
        every: ``"day"``, ``"week"`` (weeks begin on Monday) or ``"month"``.
        zone: The time zone. Midnight is local, so a day may have 23 or 25 hours.

    Returns:
        The midnight, in milliseconds since 1970.

    >>> from zoneinfo import ZoneInfo
    >>> start = datetime(2028, 2, 29, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    >>> ms = next_midnight(int(start.timestamp() * 1000), "month", ZoneInfo("Europe/Berlin"))
    >>> datetime.fromtimestamp(ms / 1000, ZoneInfo("Europe/Berlin")).isoformat()
    '2028-03-01T00:00:00+01:00'
    """
    day = datetime.fromtimestamp(at / SECOND, zone).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if every == "month":
        following = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
    else:
        following = day + timedelta(days=1 if every == "day" else 7 - day.weekday())
    return int(following.timestamp() * SECOND)


def seconds_between(start: int, end: int) -> float:
    """Return the seconds between two times in milliseconds, at least 1.

    >>> seconds_between(1_000, 2_500)
    1.5
    """
    return max((end - start) / SECOND, 1.0)
