"""Flood a page of the dashboard with server-sent events over the wire: its heap must not grow.

``python tools/soak_page.py`` sends 100,000 events to one campaign's page in Chromium, which asks for its parts again
3,600 times meanwhile, as in an hour at once a second. tests/test_browser.py has the short form, with a leak that it
finds. Only the time between events and between updates is shortened; the rest is the service and the page as they are.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import CDPSession, Page, Route

from tests.live_service import Live, serving
from tools.chromium import Driver, browsing

EVENTS, UPDATES = 100_000, 3_600
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
"""Pages that keep something at each update."""


@contextmanager
def flooding(live: Live) -> Iterator[None]:
    """Let the streams of a service send event after event."""
    pages: Any = live.app.pages
    counter, usual = itertools.count(), (pages._pulse, pages._latest)

    async def latest(_: str) -> str:
        return str(next(counter))

    pages._pulse, pages._latest = 0.0, latest
    try:
        yield
    finally:
        pages._pulse, pages._latest = usual


def impatient(route: Route) -> None:
    """The page's script, with hardly any time between two updates."""
    answer = route.fetch()
    text = answer.text()
    assert "AT_MOST_EVERY = 1000;" in text
    route.fulfill(response=answer, body=text.replace("AT_MOST_EVERY = 1000;", "AT_MOST_EVERY = 5;"))


def wait_for(page: Page, events: int, updates: int, seconds: float) -> None:
    """Wait until a page has had so many more events and updates."""
    end, first = time.monotonic() + seconds, page.evaluate("counted")
    while True:
        page.wait_for_timeout(50)
        now = page.evaluate("counted")
        if now["events"] - first["events"] >= events and now["updates"] - first["updates"] >= updates:
            return
        if time.monotonic() > end:
            raise TimeoutError(f"expected {events} events and {updates} updates after {first}, got {now}")


def least(page: Page, session: CDPSession) -> tuple[int, int]:
    """The bytes of the heap of scripts and the number of nodes that a page keeps, the least of a few looks."""
    looks = []
    for _ in range(LOOKS):
        page.wait_for_timeout(200)  # what was on its way has come
        session.send("HeapProfiler.collectGarbage")
        used = session.send("Runtime.getHeapUsage")["usedSize"]
        looks.append((used, session.send("Memory.getDOMCounters")["nodes"]))
    heap, nodes = map(min, zip(*looks, strict=True))
    return heap, nodes


def growth(driver: Driver, live: Live, events: int, updates: int, script: str = "", seconds: float = 900.0) -> float:
    """How many times as much a page keeps after some events: of the heap of scripts, or of nodes, whichever grew more.

    Args:
        driver: The browser.
        live: The service, with the campaign ``chat``.
        events: The number of events; a tenth of them comes before the first measurement.
        updates: How often the page must have asked for its parts again meanwhile, at least.
        script: Runs in the page, too: something that leaks, to see that it is found.
        seconds: How long this may take.

    Returns:
        The ratio.
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
    """Open the campaign, and let something happen in it."""
    live.open("chat", budget={"usd": "100"}, horizon=1000)
    _, asked = live.call("POST", f"/v1{CAMPAIGN}/exchange", {"ask": 60})
    tells = [{"decision": d["decision"], "reward": 1, "costs": {"usd": "0.05"}} for d in asked["decisions"]]
    live.call("POST", f"/v1{CAMPAIGN}/exchange", {"tells": tells[:50]})


def main() -> int:
    """Soak the page; return the number of faults."""
    with tempfile.TemporaryDirectory() as folder, serving(f"{folder}/s.db") as live, browsing() as browser:
        fill(live)
        driver, start = Driver(browser, live.url, live.key), time.monotonic()
        ratio = growth(driver, live, EVENTS, UPDATES)
        print(f"after {EVENTS:,} events and {UPDATES:,} updates the page keeps {ratio:.3f} times as much")
        driver.faults += ["the page keeps too much"] if ratio > MOST_GROWTH else []
        print(f"{time.monotonic() - start:.0f} s; faults: {driver.faults or 'none'}")
    return len(driver.faults)


if __name__ == "__main__":
    sys.exit(main() > 0)
