"""A service with many campaigns: how soon it answers, and whether a viewer of the dashboard delays requests.

On a busy machine the processor time until an answer says more than the time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from driftsack.service.store import open_store
from driftsack.service.web.api.keyring import new_key
from lab.service.endurance import begun
from lab.service.load import run_load
from lab.service.processes import START_LIMIT, TrialError, call, free_port, processor_seconds
from lab.service.speed import row

MOST_HEALTH: Final = 1.0  # seconds from the start until /healthz answers
MOST_FIRST: Final = 3.0  # seconds until a decision of a campaign is answered
MOST_SLOWER: Final = 1.5  # p95 of an ask with a viewer, times that without
REFRESH: Final = 1.0  # seconds between two views of the dashboard, as its event stream causes them
RATE: Final = 200.0  # requests per second


def measure_many(
    campaigns: int, seconds: float, directory: Path, progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Start a service on a store with many campaigns, and measure it.

    Args:
        seconds: The length of each measurement.
        directory: Where the store is written.
        progress: Called with the current step.

    Returns:
        One row for each figure, with its bar and whether it is reached.
    """
    # Fill a store, and start a service on it.
    store_path, port = str(directory / "many.db"), free_port()
    progress(f"opening {campaigns:,} campaigns")
    with closing(open_store(store_path)) as store:
        for k in range(campaigns):
            begun(store, f"c{k:04}")
        key, key_row = new_key(("admin",))
        store.add_key(key_row)
    progress("starting")
    url, begin = f"http://127.0.0.1:{port}", time.monotonic()
    command = [sys.executable, "-m", "driftsack", "serve", "--store", store_path, "--port", str(port)]
    with (directory / "many.err").open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env={**os.environ})
    try:
        # Measure the start.
        health = until_status(url, "", "GET", "/healthz", begin), processor_seconds(process.pid)
        path = f"/v1/campaigns/c{campaigns - 1:04}/decisions"
        first = until_status(url, key, "POST", path, begin), processor_seconds(process.pid)
        progress("waiting until all are loaded")
        while "driftsack_unloaded_campaigns 0.0" not in text_of(url, key, "/metrics"):
            time.sleep(1.0)
        loaded = time.monotonic() - begin
        # Compare requests with and without a viewer, in turns.
        name, ratios = f"c{campaigns // 2:04}", []
        for turn in range(3):
            progress(f"asks with and without a viewer, {turn + 1} of 3")
            alone = run_load(url, key, seconds, 8, rate=RATE, campaign=name)
            with Viewer(url, key):
                viewed = run_load(url, key, seconds, 8, rate=RATE, campaign=name)
            ratios.append(viewed.quantile(0.95) / alone.quantile(0.95))
        listed = time.monotonic()
        text_of(url, key, "/v1/campaigns")
        listed = time.monotonic() - listed
    finally:
        process.terminate()
        process.wait(30)
    return [
        row(f"/healthz after the start, {campaigns:,} campaigns", "seconds", health[0], MOST_HEALTH, most=True),
        row("processor time until then", "seconds", health[1], MOST_HEALTH, most=True),
        row("first decision after the start", "seconds", first[0], MOST_FIRST, most=True),
        row("processor time until then, with loading in the background", "seconds", first[1], MOST_FIRST, most=True),
        row("all campaigns loaded", "seconds", loaded, START_LIMIT * 10, most=True),
        row("GET /v1/campaigns", "seconds", listed, 1.0, most=True),
        row("p95 with a viewer, times that without", "", sorted(ratios)[1], MOST_SLOWER, most=True),
    ]


class Viewer:
    """Request the list of campaigns and the metrics, as an operator would, while the block runs."""

    def __init__(self, url: str, key: str) -> None:
        from tests.support.dashboard_client import Visitor

        self._visitor, self._url, self._key = Visitor(url, key), url, key
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._stop.wait(REFRESH):
            if self._visitor.get("/").status != 200:
                raise TrialError("the dashboard could not be shown.")
            text_of(self._url, self._key, "/metrics")

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def until_status(url: str, key: str, method: str, path: str, begin: float) -> float:
    """Return the seconds from the start until a request is answered with 200."""
    while time.monotonic() - begin < START_LIMIT:
        if call(url, key, method, path, {} if method == "POST" else None, timeout=START_LIMIT)[0] == 200:
            return time.monotonic() - begin
        time.sleep(0.01)
    raise TrialError(f"{path} was not answered within {START_LIMIT:g} seconds.")


def text_of(url: str, key: str, path: str) -> str:
    """Return the body of an answer."""
    request = urllib.request.Request(url + path, headers={"authorization": f"Bearer {key}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        return str(answer.read().decode())
