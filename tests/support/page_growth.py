"""Flood a page of the dashboard with server-sent events, and measure how much more it keeps afterwards.

Only the time between events and between updates is shortened; everything else is the service and the page as they are.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from playwright.sync_api import CDPSession, Page, Route

from tests.support.live_service import Live
from tools.chromium import Driver

MOST_GROWTH: Final = 1.2
LOOKS: Final = 3
CAMPAIGN: Final = "/campaigns/chat"
COUNT: Final = """
window.counted = { events: 0, updates: 0 };
window.EventSource = class extends EventSource {
  constructor(...a) { super(...a); this.addEventListener("message", () => { window.counted.events++; }); }
};
addEventListener("changed", () => { window.counted.updates++; }, true);
"""
LEAK: Final = """
window.kept = [];
addEventListener("changed", () => { window.kept.push(KEPT); }, true);
"""
LEAKS: Final = {
    "values": LEAK.replace("KEPT", "new Array(5000).fill(0).map((_, k) => k + 0.5)"),
    "elements": LEAK.replace("KEPT", "document.body.cloneNode(true)"),
}
"""Scripts that leak at each update of the page, to check that a leak is detected."""


@contextmanager
def flooding(live: Live) -> Iterator[None]:
    """Let the event streams of a service send without a pause."""
    pages: Any = live.app.pages
    counter, usual = itertools.count(), (pages._pulse, pages._latest)

    async def latest(*_: Any) -> str:
        return str(next(counter))

    pages._pulse, pages._latest = 0.0, latest
    try:
        yield
    finally:
        pages._pulse, pages._latest = usual


def impatient(route: Route) -> None:
    """Serve the page's script with hardly any time between two updates."""
    answer = route.fetch()
    text = answer.text()
    assert "AT_MOST_EVERY = 1000;" in text
    route.fulfill(response=answer, body=text.replace("AT_MOST_EVERY = 1000;", "AT_MOST_EVERY = 5;"))


def wait_for(page: Page, events: int, updates: int, seconds: float) -> None:
    """Wait until a page has received further events and updates."""
    end, first = time.monotonic() + seconds, page.evaluate("counted")
    while True:
        page.wait_for_timeout(50)
        now = page.evaluate("counted")
        if now["events"] - first["events"] >= events and now["updates"] - first["updates"] >= updates:
            return
        if time.monotonic() > end:
            raise TimeoutError(f"expected {events} events and {updates} updates after {first}, got {now}")


def least(page: Page, session: CDPSession) -> tuple[int, int]:
    """The size of the JavaScript heap and the number of DOM nodes, the minimum of a few measurements."""
    looks = []
    for _ in range(LOOKS):
        page.wait_for_timeout(200)  # pending events arrive
        session.send("HeapProfiler.collectGarbage")
        used = session.send("Runtime.getHeapUsage")["usedSize"]
        looks.append((used, session.send("Memory.getDOMCounters")["nodes"]))
    heap, nodes = map(min, zip(*looks, strict=True))
    return heap, nodes


def growth(driver: Driver, live: Live, events: int, updates: int, script: str = "", seconds: float = 900.0) -> float:
    """Flood the page of the campaign ``chat`` and return the growth of its heap or of its nodes, whichever is larger.

    Args:
        driver: Opens the page.
        live: The service.
        events: Number of events; a tenth of them comes before the first measurement.
        updates: How often the page must have fetched its parts again, at least.
        script: A script that runs in the page, too, such as one that leaks.
        seconds: The time limit.

    Returns:
        The ratio of the second measurement to the first.
    """
    with driver.page(script=COUNT + script) as page:
        page.route("**/static/app.js*", impatient)
        page.goto(live.url + CAMPAIGN)
        page.wait_for_selector(".u-over")
        session = page.context.new_cdp_session(page)
        kept = []
        for share in (0.1, 1.0):
            with flooding(live):
                wait_for(page, int(share * events), int(share * updates), seconds)
            kept.append(least(page, session))
        return max(float(after / before) for before, after in zip(*kept, strict=True))


def fill(live: Live) -> None:
    """Open the campaign ``chat`` and settle some decisions in it."""
    live.open("chat", budget={"usd": "100"}, horizon=1000)
    _, asked = live.call("POST", f"/v1{CAMPAIGN}/exchange", {"ask": 60})
    tells = [{"decision": d["decision"], "reward": 1, "costs": {"usd": "0.05"}} for d in asked["decisions"]]
    live.call("POST", f"/v1{CAMPAIGN}/exchange", {"tells": tells[:50]})
