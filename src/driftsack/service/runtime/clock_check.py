"""Checks at the start that the system's clock is plausible, because refills follow it and time never goes back.

If events were written while the clock was ahead, :func:`repair_clock` lets their campaigns continue at the present.
"""

from __future__ import annotations

import logging
import secrets
import time
from typing import Final

from driftsack.service.domain.calendar import DAY_MS
from driftsack.service.domain.campaign import Now
from driftsack.service.runtime.owned import Owned, ServiceClock
from driftsack.service.runtime.recovery import rebuild
from driftsack.service.store.interface import AuditRow, Owner, Store, StoreError

LONGEST_PAUSE: Final = 45  # days after the last event at which a start is still plausible
MOST_BACK: Final = 1  # days before it
NEGLIGIBLE: Final = 60_000  # milliseconds by which clocks may differ
ACCEPTED: Final = "clock accept"
REPAIRED: Final = "clock repair"
log = logging.getLogger("driftsack.service")


def check_clock(store: Store, now: int | None = None) -> None:
    """Refuse a clock that is far ahead of the last event: budgets would be refilled, and later not for as long.

    Args:
        now: The time in milliseconds since 1970; None for that of the system.

    Raises:
        StoreError: The clock is more than ``LONGEST_PAUSE`` days ahead, and an operator has not accepted this.
    """
    at, times = _now(now), [*store.latest_times().values()]
    accepted = store.latest_entry(ACCEPTED)
    latest = max(times if accepted is None else [*times, accepted], default=at)
    days = (at - latest) / DAY_MS
    if days > LONGEST_PAUSE:
        raise StoreError(
            f"the clock is {days:,.0f} days ahead of the last event of the store. If it is wrong, correct it: the "
            "budgets would be refilled now, and then not before that time. If it is right, because the service was "
            "stopped for so long, run: driftsack clock accept"
        )
    if days < -MOST_BACK:
        log.warning(
            "the clock is %.0f days behind the last event of the store, and no budget is refilled until then; if it is "
            "right now, and was wrong before, stop the service and run: driftsack clock repair",
            -days,
        )


def accept_clock(store: Store, now: int | None = None) -> None:
    """Record that an operator says that the clock is right."""
    store.add_audit(AuditRow(_now(now), "shell", ACCEPTED, None, ""))


def repair_clock(store: Store, now: int | None = None) -> dict[str, float]:
    """Let campaigns whose last event lies in the future continue at the present time.

    An event says so; earlier events keep their times. Budgets that were refilled too early are not taken back.

    Args:
        store: The store, which no service uses.
        now: The time in milliseconds since 1970; None for that of the system.

    Returns:
        By how many days each of these campaigns was ahead.

    Raises:
        StoreError: A service owns one of the campaigns.
        JournalError: A journal is damaged; campaigns before it, by name, were repaired.
    """
    at, owner = _now(now), Owner(f"{REPAIRED} {secrets.token_hex(4)}")
    ahead = {name: (last - at) / DAY_MS for name, last in store.latest_times().items() if last > at + NEGLIGIBLE}
    for name, days in sorted(ahead.items()):
        row = store.claim(name, owner)
        if row is None:
            raise StoreError(f"a service is using {name}; stop it first.")
        campaign, *saved = rebuild(store, row)
        owned = Owned(name, row.epoch, campaign, row.chain, ServiceClock(), 0, *saved)
        owned.entries.append(AuditRow(at, "shell", REPAIRED, name, f"{days:.1f} days"))
        campaign.set_clock(Now(at, campaign.book.tick))
        store.append([owned.collect(campaign.book.seq + 1)[0]])
        store.release([name], owner)
    accept_clock(store, at)
    return ahead


def _now(now: int | None) -> int:
    return int(1000 * time.time()) if now is None else now
