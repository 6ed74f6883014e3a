"""Flood a page of the dashboard with server-sent events in a browser: its heap must not grow."""

from __future__ import annotations

import tempfile
import time

from tests.support.live_service import serving
from tests.support.page_growth import MOST_GROWTH, fill, growth
from tools.chromium import Driver, browsing


def soak_page(events: int, updates: int) -> list[str]:
    """Flood a campaign's page, print how much more it keeps, and return the faults."""
    with tempfile.TemporaryDirectory() as directory, serving(f"{directory}/s.db") as live, browsing() as browser:
        fill(live)
        driver, start = Driver(browser, live.url, live.key), time.monotonic()
        ratio = growth(driver, live, events, updates)
        print(f"after {events:,} events and {updates:,} updates the page keeps {ratio:.3f} times as much")
        driver.faults += ["the page keeps too much"] if ratio > MOST_GROWTH else []
        print(f"{time.monotonic() - start:.0f} s; faults: {driver.faults or 'none'}")
    return driver.faults
