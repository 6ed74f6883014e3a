"""Fixtures of the tests that look at the dashboard in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.live_service import Live, serving
from tools.chromium import Driver, browsing
from tools.soak_page import fill


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serving(str(tmp_path_factory.mktemp("browser") / "s.db")) as found:
        fill(found)
        found.app.pages._pulse = 0.05  # type: ignore[union-attr]
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture
def driver(live: Live, browser: Browser) -> Iterator[Driver]:
    """Windows in which nothing may go wrong."""
    found = Driver(browser, live.url, live.key)
    yield found
    assert found.faults == []


@pytest.fixture
def faulty(live: Live, browser: Browser) -> Driver:
    """Windows in which something will go wrong."""
    return Driver(browser, live.url, live.key)
