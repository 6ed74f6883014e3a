"""Look at every page of the dashboard in a real browser, in both themes and at two widths, and save screenshots.

``python tools/browse.py SHOTS`` starts ``driftsack serve`` on a new store and sends most of the demonstration's week of
requests. It lists every fault: a page that is wider than the screen or painted late, a serious finding of axe, a
violation of the content security policy, a script error, a request to another host. Interactions with the pages are
tested in tests/service/web/test_browser.py.
"""

from __future__ import annotations

import io
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Page

from driftsack.client import Client
from driftsack.service.demo.show import CAMPAIGN, open_campaign
from driftsack.service.demo.traffic import Week
from driftsack.service.demo.week import GOOD, simulate_answer

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.chromium import Driver, browsing

WIDTHS = ((1280, 900), (390, 844))
REQUESTS = 9600
OBSERVATIONS = 1200
COLOURS = 256
SERIOUS = ("serious", "critical")
FIRST_PAINT = 1000  # milliseconds
HERE = f"/campaigns/{CAMPAIGN}"
PAGES = {"campaigns": "/", "campaign": HERE, "decision": f"{HERE}/decisions/2500", "act": f"{HERE}/act/grant"}
PAGES |= {"apprentice": "/campaigns/apprentice", "keys": "/keys", "new-key": "/keys/create", "audit": "/audit"}
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def watch(url: str, key: str) -> None:
    """Let a campaign watch a rule that mostly uses one model."""
    open_campaign(url, key, REQUESTS, "apprentice", watch=True)
    rng, (usual, *others) = random.Random(0), list(GOOD)
    with Client(url, key, "apprentice") as client:
        for _ in range(OBSERVATIONS):
            is_usual = rng.random() < 0.6
            arm, probability = (usual, 0.6) if is_usual else (rng.choice(others), 0.4 / len(others))
            found = simulate_answer(arm, 0.0, rng)
            client.observe(arm, found.reward, found.costs, probability)


def save(page: Page, path: Path, whole: bool = True) -> None:
    """Save a screenshot, with few colours since the pages have few."""
    with Image.open(io.BytesIO(page.screenshot(full_page=whole))) as shot:
        shot.convert("RGB").quantize(COLOURS).save(path, optimize=True)


def look(driver: Driver, shots: Path, theme: str, size: tuple[int, int]) -> None:
    """Save the pages in one theme and at one width, and record their faults."""
    with driver.window(theme, size) as page:
        page.goto(f"{driver.url}/login")
        save(page, shots / f"login-{theme}-{size[0]}.png")
        driver.faults += [f"login: {each}" for each in hindrances(page)]
    with driver.page(theme=theme, size=size) as page:
        for name, path in PAGES.items():
            page.goto(driver.url + path)
            if name == "campaign":
                page.wait_for_selector(".u-over")
            page.wait_for_timeout(250)
            paint, wider = page.evaluate(PAINT), page.evaluate(WIDER)
            print(f"{name} ({theme}, {size[0]} px) is painted after {paint:.0f} ms")
            driver.faults += [] if 0 <= paint < FIRST_PAINT else [f"{name} is painted after {paint:.0f} ms"]
            driver.faults += [f"{name} is {wider} px wider than {size[0]} px"] if wider > 1 else []
            save(page, shots / f"{name}-{theme}-{size[0]}.png", name != "campaign")
            if name == "campaign":
                save(page, shots / f"{name}-whole-{theme}-{size[0]}.png")
            driver.faults += [f"{name} ({theme}, {size[0]} px): {each}" for each in hindrances(page)]


def hindrances(page: Page) -> list[str]:
    """List the serious accessibility violations that axe finds."""
    found = Axe().run(page).response["violations"]
    return [f"axe: {each['id']} {each['nodes'][0]!s:.200}" for each in found if each["impact"] in SERIOUS]


def main(shots: Path) -> int:
    """Look at every page in both themes and at both widths; return the number of faults."""
    shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, browsing() as browser:
        command = [sys.executable, "-m", "driftsack", "serve", "--store", f"{directory}/s.db", "--port", "0"]
        service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            key, line = str(service.stdout and service.stdout.readline()).strip(), ""
            while "listening on" not in line:
                line = str(service.stderr and service.stderr.readline())
            url = line.split()[2].rstrip(",")
            open_campaign(url, key, REQUESTS * 5 // 4)
            Week(url, key, CAMPAIGN, REQUESTS * 5 // 4, 0.0, threading.Event(), until=REQUESTS).send()
            watch(url, key)
            driver = Driver(browser, url, key)
            for theme in ("light", "dark"):
                for size in WIDTHS:
                    look(driver, shots, theme, size)
        finally:
            service.terminate()
            service.communicate(timeout=20)
    print(f"{len(driver.faults)} faults", *driver.faults, sep="\n")
    return len(driver.faults)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])) > 0)
