"""Fixtures of the tests that drive the dashboard in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.live_service import Live, serving
from tests.support.page_growth import fill
from tools.chromium import Driver, browsing


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A service with a campaign; tests without a browser define their own."""
    with serving(str(tmp_path_factory.mktemp("browser") / "s.db"), {"pulse": 0.05}) as found:
        fill(found)
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture
def driver(live: Live, browser: Browser) -> Iterator[Driver]:
    """A driver for pages without errors; an error fails the test."""
    found = Driver(browser, live.url, live.key)
    yield found
    assert found.faults == []


@pytest.fixture
def faulty(live: Live, browser: Browser) -> Driver:
    """A driver for pages with expected errors."""
    return Driver(browser, live.url, live.key)
