"""``show``: runs the service with simulated traffic, and opens the dashboard in a browser."""

from __future__ import annotations

import json
import tempfile
import threading
import urllib.request
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Final

from driftsack.service.demo.traffic import Week
from driftsack.service.demo.week import settings
from driftsack.service.web.server import Settings, serve

CAMPAIGN: Final = "assistant"


def open_campaign(url: str, key: str, requests: int, name: str = CAMPAIGN, watch: bool = False) -> None:
    """Open the campaign of the demo."""
    body = json.dumps({"name": name, "config": {**settings(requests), "watch": watch}}).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/campaigns", body, headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310
        response.read()


def show(port: int, requests: int, seconds: float, browser: bool, say: Callable[[str], None]) -> None:
    """Run the demo until the process is stopped: a week of requests in ``seconds``, on ``port`` (0 for any)."""
    stop, keys = threading.Event(), list[str]()

    def begin(url: str) -> None:
        def run() -> None:
            open_campaign(url, keys[0], requests)
            link = f"{url}/open#{keys[0]}"
            say(f"the dashboard, logged in: {link}")
            if browser:
                webbrowser.open(link)
            week = Week(url, keys[0], CAMPAIGN, requests, seconds, stop)
            week.send()
            if not stop.is_set():
                say(f"the week is over: {week.answered:,} requests were answered. Ctrl-C ends the service.")

        threading.Thread(target=run, daemon=True).start()

    with tempfile.TemporaryDirectory() as directory:
        store = str(Path(directory) / "demo.db")
        try:
            serve(Settings(store=store, port=port, log_level="warning"), keys.append, begin)
        finally:
            stop.set()
