"""Drive every page of the dashboard in a real browser, and save screenshots in both themes and at two widths.

``python tools/browse.py SHOTS`` starts ``driftsack serve`` on a new store, sends a simulated week of requests, and uses
the pages as a person would: log in, watch a number change, pause, grant, read why, follow a read-only link, lose the
connection. It lists every fault: a violation of the content security policy, an error of a script, a request to
elsewhere, a page that is wider than the screen, a serious finding of axe, a heap that grows. It needs Playwright,
axe-playwright-python and the machine's Chromium; ``make browse`` installs the first two.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from driftsack.client import Client
from driftsack.service.demo.show import CAMPAIGN, open_campaign
from driftsack.service.demo.traffic import Week
from driftsack.service.demo.week import GOOD, answer

WIDTHS = ((1280, 900), (390, 844))
REQUESTS = 9600
OBSERVATIONS = 1200
FIRST_PAINT = 1000  # milliseconds
SOAK_EVENTS = 100_000
SOAK_GROWTH = 1.2
HERE = f"/campaigns/{CAMPAIGN}"
PAGES = {"campaigns": "/", "campaign": HERE, "decision": f"{HERE}/decisions/2500", "act": f"{HERE}/act/grant"}
PAGES |= {"keys": "/keys", "new-key": "/keys/create", "audit": "/audit"}
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Streams a compressed hour of events into the page through the same handler as real ones.
SOAK = """async (events) => {
  const sources = window.__sources;
  for (let k = 0; k < events; k += 500) {
    for (let j = 0; j < 500; j++) sources[0].onmessage(new MessageEvent("message", { data: String(k + j) }));
    await new Promise((go) => setTimeout(go, 50));
  }
}"""
KEEP_SOURCES = """
window.__sources = [];
window.EventSource = class extends EventSource { constructor(...a) { super(...a); window.__sources.push(this); } };
"""


class Driver:
    """A browser that notes what goes wrong.

    Args:
        browser: Of Playwright.
        url: Where the service is.
        key: The administrator's key.
    """

    def __init__(self, browser: Any, url: str, key: str) -> None:
        self.browser, self.url, self.key = browser, url, key
        self.faults: list[str] = []

    def page(self, theme: str = "light", width: int = 1280, height: int = 900, log_in: bool = True) -> Any:
        """A new window of somebody who is logged in."""
        size = {"width": width, "height": height}
        context = self.browser.new_context(viewport=size, color_scheme=theme, reduced_motion="reduce")
        context.add_init_script(KEEP_SOURCES)
        page = context.new_page()
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        page.on("console", self._console)
        page.on("request", self._request)
        if log_in:
            page.goto(f"{self.url}/login")
            page.fill("#key", self.key)
            page.keyboard.press("Enter")
            page.wait_for_selector("#cards")
        return page

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning") and "ERR_CONNECTION_REFUSED" not in message.text:
            self.faults.append(f"console: {message.text[:200]}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.faults.append(f"fetched: {request.url}")

    def expect(self, holds: bool, what: str) -> None:
        """Note a fault unless something holds."""
        print(f"{'ok   ' if holds else 'FAULT'} {what}")
        if not holds:
            self.faults.append(what)


def watch(driver: Driver) -> dict[str, str]:
    """Let a campaign watch a rule that mostly uses one model; return its page."""
    open_campaign(driver.url, driver.key, REQUESTS, "apprentice", watch=True)
    rng, (usual, *others) = random.Random(0), list(GOOD)  # noqa: S311
    with Client(driver.url, driver.key, "apprentice") as client:
        for _ in range(OBSERVATIONS):
            is_usual = rng.random() < 0.6  # noqa: PLR2004
            arm, probability = (usual, 0.6) if is_usual else (rng.choice(others), 0.4 / len(others))
            found = answer(arm, 0.0, rng)
            client.observe(arm, found.reward, found.costs, probability)
    return {"apprentice": "/campaigns/apprentice"}


def look(driver: Driver, shots: Path, pages: dict[str, str]) -> None:
    """Save pages in both themes and at both widths."""
    for theme in ("light", "dark"):
        for width, height in WIDTHS:
            page = driver.page(theme, width, height)
            for name, path in pages.items():
                page.goto(driver.url + path)
                if name == "campaign":
                    page.wait_for_selector(".u-over")
                page.wait_for_timeout(250)
                paint = page.evaluate(PAINT)
                page.screenshot(path=str(shots / f"{name}-{theme}-{width}.png"), full_page=name != "campaign")
                if name == "campaign":
                    page.screenshot(path=str(shots / f"{name}-whole-{theme}-{width}.png"), full_page=True)
                driver.expect(page.evaluate(WIDER) <= 1, f"{name} fits into {width} px ({theme})")
                driver.expect(0 <= paint < FIRST_PAINT, f"{name} is painted after {paint:.0f} ms")
            page.context.close()


def check_with_axe(driver: Driver, pages: dict[str, str]) -> None:
    """Let axe look for what hinders people with a screen reader or without a mouse."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415  (not a dependency)

    for theme in ("light", "dark"):
        page = driver.page(theme)
        for name, path in pages.items():
            page.goto(driver.url + path)
            page.wait_for_timeout(200)
            found = Axe().run(page).response["violations"]
            serious = [
                f"{v['id']} ({v['nodes'][0]['html'][:80]})" for v in found if v["impact"] in ("serious", "critical")
            ]
            driver.expect(not serious, f"axe finds nothing serious on {name} ({theme}) {'; '.join(serious)}")
        page.context.close()


def act(driver: Driver) -> None:
    """Use the pages by keyboard: a number changes by itself; pause, grant, why, a read-only link."""
    page = driver.page()
    page.goto(driver.url + HERE)
    before = page.inner_text("#n-decisions")
    client = Client(driver.url, driver.key, CAMPAIGN)
    decision = client.ask()
    if not decision.skipped:
        client.cancel(decision)
    end = time.monotonic() + 8
    while page.inner_text("#n-decisions") == before and time.monotonic() < end:
        page.wait_for_timeout(50)
    driver.expect(page.inner_text("#n-decisions") != before, "a number changes by server-sent events")
    for name, state in (("pause", "paused"), ("resume", "active")):
        page.focus(f"#act-{name}")
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog[open]")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog:not([open])", state="attached")
        page.focus(f"#act-{name}")
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog[open] form")
        page.focus("dialog button")
        page.keyboard.press("Enter")
        page.wait_for_selector(f".state-{state}")
        driver.expect(page.inner_text(".state") == state, f"{name} by keyboard")
    page.click("#act-grant")
    page.wait_for_selector("dialog[open] form")
    page.fill("dialog input[name=amount]", "10")
    page.click("dialog button")
    page.wait_for_selector("#act-grant")
    driver.expect("of 76" in page.inner_text("#numbers"), "a grant is shown")
    page.click("#tables .latest a >> nth=0")
    page.wait_for_selector("#h-draw")
    driver.expect("recomputed, the same" in page.inner_text("main"), "why is recomputed")
    page.goto(f"{driver.url}/keys/share")
    page.check(f"input[value={CAMPAIGN}]")
    page.click("button.primary")
    link = page.input_value("#made")
    guest = driver.page(log_in=False)
    guest.goto(link)
    guest.wait_for_selector("#cards")
    driver.expect("ds_" not in guest.url, "a read-only link leaves no key in the address")
    guest.goto(driver.url + HERE)
    driver.expect(guest.locator("#act-pause").count() == 0, "a guest cannot act")
    guest.context.close()
    page.context.close()


def soak(driver: Driver) -> None:
    """An hour of events, compressed: the heap of the page must not grow."""
    page = driver.page()
    page.goto(driver.url + HERE)
    page.wait_for_selector(".u-over")
    session = page.context.new_cdp_session(page)

    def heap() -> float:
        session.send("HeapProfiler.collectGarbage")
        return float(session.send("Runtime.getHeapUsage")["usedSize"])

    page.evaluate(SOAK, 10_000)
    before = heap()
    page.evaluate(SOAK, SOAK_EVENTS)
    page.wait_for_timeout(1500)
    growth = heap() / before
    driver.expect(growth < SOAK_GROWTH, f"the heap is {growth:.3f} times as large after {SOAK_EVENTS:,} events")
    page.context.close()


def lose_connection(driver: Driver, service: subprocess.Popen[str]) -> None:
    """The page stays usable when the service is gone, and says so."""
    page = driver.page()
    page.goto(driver.url + HERE)
    page.wait_for_selector(".u-over")
    service.terminate()
    service.wait(20)
    page.wait_for_selector("#live.off", timeout=10_000)
    page.click("#theme")
    driver.expect("Connection lost" in page.inner_text("#live"), "a lost connection is said")
    driver.expect(page.locator(".u-over").count() > 0, "the charts stay")
    page.context.close()


def main(shots: Path) -> int:
    """Drive everything; return the number of faults."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  (not a dependency)

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("Chromium is needed: apt-get install chromium")
        return 1
    shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "driftsack", "serve", "--store", f"{folder}/s.db", "--port", "8799"]
        service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # noqa: S603
        try:
            key, url = str(service.stdout and service.stdout.readline()).strip(), "http://127.0.0.1:8799"
            time.sleep(3)
            open_campaign(url, key, REQUESTS * 5 // 4)
            Week(url, key, CAMPAIGN, REQUESTS, 0.0, threading.Event()).send()
            with sync_playwright() as play:
                options = ["--no-sandbox", "--disable-background-networking", "--enable-precise-memory-info"]
                browser = play.chromium.launch(executable_path=chromium, args=options)
                driver = Driver(browser, url, key)
                look(driver, shots, PAGES)
                check_with_axe(driver, {**PAGES, "login": "/open"})
                act(driver)
                watching = watch(driver)
                look(driver, shots, watching)
                check_with_axe(driver, watching)
                soak(driver)
                lose_connection(driver, service)
                browser.close()
        finally:
            service.terminate()
            service.wait(20)
    print(f"{len(driver.faults)} faults", *driver.faults, sep="\n")
    return len(driver.faults)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])) > 0)
