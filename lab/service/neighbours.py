"""One key hammers explanations, exports and exchanges: how much longer do the requests of other keys take?

The hammering clients run in a process of their own, with eight threads, and do not wait when they are refused. The
process is frozen and woken up in turns, so that a machine that is busy with other things slows down both measurements.
"""

from __future__ import annotations

import http.client
import json
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from lab.service.load import run_load
from lab.service.processes import Process, TrialError, call, open_campaign
from lab.service.speed import row

KINDS: Final = ("why", "export", "exchange", "all")
MOST_SLOWER: Final = 1.5  # p50 beside the key, times that alone
THREADS: Final = 8
TURNS: Final = 5
SETTLING: Final = 3.0  # seconds until the hammering process has started, or its last requests are answered
RATE: Final = 200.0  # requests per second of the others
CONNECTIONS: Final = 8
CREATED: Final = 201
LOUD, SLOW = "/v1/campaigns/loud", "/v1/campaigns/slow"


def measure_neighbours(
    decisions: int, seconds: float, directory: Path, progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Measure the latency of asks and tells alone and beside a key that hammers, in turns.

    Args:
        decisions: The number of decisions in the journal that is explained and exported.
        seconds: The length of each measurement.
        directory: Where the store is written.
        progress: Called with the current step.

    Returns:
        One row for each kind of requests, with its bar and whether it is reached.
    """
    service = Process(directory, str(directory / "neighbours.db"))
    try:
        open_campaign(service.url, service.key)
        open_campaign(service.url, service.key, "loud", policy={"policy": "Adaptive"})
        open_campaign(service.url, service.key, "slow", policy={"policy": "ThompsonBwK"})
        progress(f"making {decisions:,} decisions")
        fill(service, decisions)
        limited = {"scopes": ["read", "decide"], "campaigns": ["loud", "slow"]}
        status, made = call(service.url, service.key, "POST", "/v1/keys", limited)
        if status != CREATED:
            raise TrialError(f"the key could not be created: {status} {made}.")
        run_load(service.url, service.key, seconds, CONNECTIONS, rate=RATE)
        rows = []
        for kind in KINDS:
            progress(f"beside a key that hammers {kind}")
            ratio = _slower(service, made["key"], kind, decisions, seconds)
            rows.append(row(f"p50 beside {kind}, times that alone", "", ratio, MOST_SLOWER, True))
        return rows
    finally:
        service.stop()


def _slower(service: Process, key: str, kind: str, decisions: int, seconds: float) -> float:
    """The median latency beside the hammering key, divided by that while its process is frozen."""
    beside: list[float] = []
    alone: list[float] = []
    command = [sys.executable, "-m", "lab.service.neighbours", service.url, key, kind, str(decisions)]
    hammer = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(TURNS):
            for number, measured in ((signal.SIGCONT, beside), (signal.SIGSTOP, alone)):
                hammer.send_signal(number)
                time.sleep(SETTLING)
                measured.extend(run_load(service.url, service.key, seconds, CONNECTIONS, rate=RATE).latencies)
        if hammer.poll() is not None:
            raise TrialError(f"the process that hammers {kind} ended with code {hammer.returncode}.")
    finally:
        hammer.kill()
        hammer.wait()
    return statistics.median(beside) / statistics.median(alone)


def fill(service: Process, decisions: int) -> None:
    """Make and tell decisions of the campaign that is explained."""
    tells: list[dict[str, Any]] = []
    done = 0
    while done < decisions:
        _, found = call(service.url, service.key, "POST", LOUD + "/exchange", {"tells": tells, "ask": 1000}, 60.0)
        made = [each["decision"] for each in found["decisions"] if not each["skipped"]]
        tells = [{"decision": number, "reward": 1, "costs": {"usd": "0.02"}} for number in made]
        done += len(found["decisions"])


def hammer(url: str, key: str, kind: str, decisions: int) -> None:
    """Send requests of a kind as fast as they are answered, without end."""
    requests: dict[str, tuple[str, str, Any]] = {
        "why": ("GET", f"{LOUD}/decisions/{decisions // 2}/why", None),
        "export": ("GET", f"{LOUD}/export", None),
        "exchange": ("POST", f"{SLOW}/exchange", {"ask": 1000}),
    }
    chosen, parts = list(requests) if kind == "all" else [kind], urllib.parse.urlsplit(url)

    def work(k: int) -> None:
        method, path, body = requests[chosen[k % len(chosen)]]
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        while True:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            connection.getresponse().read()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()


if __name__ == "__main__":
    hammer(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
