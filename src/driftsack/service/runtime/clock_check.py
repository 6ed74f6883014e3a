"""Checks at the start that the system's clock is plausible, because refills follow it and time never goes back."""

from __future__ import annotations

import logging
import time
from typing import Final

from driftsack.service.domain.calendar import DAY_MS
from driftsack.service.store.interface import AuditRow, Store, StoreError

LONGEST_PAUSE: Final = 45  # days after the last event at which a start is still plausible
MOST_BACK: Final = 1  # days before it
ACCEPTED: Final = "clock accept"
log = logging.getLogger("driftsack.service")


def check_clock(store: Store, now: int | None = None) -> None:
    """Refuse a clock that is far ahead of the last event: budgets would be refilled, and later not for as long.

    Args:
        now: The time in milliseconds since 1970; None for that of the system.

    Raises:
        StoreError: The clock is more than ``LONGEST_PAUSE`` days ahead, and an operator has not accepted this.
    """
    at, latest = _now(now), store.latest_time(ACCEPTED)
    if latest is None:
        return
    days = (at - latest) / DAY_MS
    if days > LONGEST_PAUSE:
        raise StoreError(
            f"the clock is {days:,.0f} days ahead of the last event of the store. If it is wrong, correct it: the "
            "budgets would be refilled now, and then not before that time. If it is right, because the service was "
            "stopped for so long, run: driftsack clock accept"
        )
    if days < -MOST_BACK:
        log.warning(
            "the clock is %.0f days behind the last event of the store; no budget is refilled until then", -days
        )


def accept_clock(store: Store, now: int | None = None) -> None:
    """Record that an operator says that the clock is right."""
    store.add_audit(AuditRow(_now(now), "shell", ACCEPTED, None, ""))


def _now(now: int | None) -> int:
    return int(1000 * time.time()) if now is None else now
