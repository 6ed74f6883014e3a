"""Many clients against upstreams that fail in every way, with budgets that are nearly used up all the time.

Every second call of an upstream is a fault: dead keys, HTML with status 200, streams that break or report errors,
usages that are missing or absurd. The clients ask for too much, leave early and send what is no request. The proxy and
the service are killed (SIGKILL) again and again. In the end no budget may be overspent, no decision may be open after
its lease, and the campaign must have charged at least what the upstreams have in their own books: exactly that for
usages that can be believed, and the worst case for all others.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

from lab.service.processes import START_LIMIT, Process, call, free_port
from tests.support.asgi_server import running
from tests.support.hostile_upstream import SECRET, HostileUpstream

ARMS: Final = {"a": "openai", "b": "openai", "c": "anthropic", "d": "anthropic"}
CHAT: Final = "/v1/campaigns/chat"
HELLO: Final = [{"role": "user", "content": "Hello?"}]
IMAGE: Final = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/x.png"}}]}]
STRANGE: Final[list[dict[str, Any]]] = [
    *([{}] * 12),
    {"max_tokens": 100_000},
    {"max_tokens": 100_000, "n": 5.0},
    {"messages": [{"role": "user", "content": "\ud83d"}]},
    {"messages": IMAGE},
    {"max_tokens": None},
    {"a_field_of_tomorrow": 1},
]
"""Changes to a request; the first ones are none."""
PAUSE: Final = 0.1  # seconds after an answer that asks for it
ATTEMPT_SECONDS: Final = 1.0
MOST_SECONDS: Final = 3.0
GRANT: Final = "0.03"  # dollars, again and again
LEASE: Final = 240.0  # seconds after which no decision may be open: the lease, and the grace after each recovery


class Books(NamedTuple):
    """What a campaign and the upstreams have in their books.

    Attributes:
        granted: The budget.
        spent: What the campaign has charged.
        reserved: What it has reserved.
        pending: The decisions without an outcome.
        charged: What the upstreams have charged.
        silent: The part of it without a usage that can be believed.
    """

    granted: Decimal
    spent: Decimal
    reserved: Decimal
    pending: int
    charged: Decimal
    silent: Decimal

    def faults(self) -> list[str]:
        """Return what is wrong."""
        checks = {
            f"overspent: {self.spent} of {self.granted}": self.spent + self.reserved <= self.granted,
            f"{self.pending} decisions are open, {self.reserved} reserved": not self.pending and not self.reserved,
            f"charged {self.spent}, and the upstreams {self.charged}": self.spent >= self.charged,
            "nothing was spent": self.spent > 0,
        }
        return [text for text, holds in checks.items() if not holds]


class Sender:
    """Sends random requests.

    Args:
        url: The address of the proxy.
        key: The driftsack key.

    Attributes:
        answers: The number of answers by status; 0 for none.
    """

    def __init__(self, url: str, key: str) -> None:
        self._host, self._key = urllib.parse.urlsplit(url), key
        self.answers: Counter[int] = Counter()

    def send_many(self, requests: int, clients: int) -> None:
        """Send requests of several clients at the same time."""
        with ThreadPoolExecutor(clients) as threads:
            self.answers.update(threads.map(self.send, range(requests)))

    def send(self, number: int) -> int:
        """Send a request, and return the status of its answer; 0 if there is none, or if it is not waited for."""
        rng = random.Random(number)  # noqa: S311  (a trial)
        path = rng.choice(["/v1/chat/completions", "/v1/messages"])
        model = rng.choice(["driftsack", *ARMS])
        body = {"model": model, "messages": HELLO, "max_tokens": 30, "stream": rng.random() < 0.5}
        connection = http.client.HTTPConnection(self._host.hostname or "", self._host.port, timeout=30)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            connect(connection)
            connection.request("POST", path, json.dumps({**body, **rng.choice(STRANGE)}), headers)
            if rng.random() < 0.05:
                return 0  # it leaves
            answer = connection.getresponse()
            answer.read()
            time.sleep(PAUSE if answer.status == 503 else 0)
        except (OSError, http.client.HTTPException):
            return 0  # the proxy was killed
        else:
            return answer.status
        finally:
            connection.close()


def connect(connection: http.client.HTTPConnection) -> None:
    """Connect, as soon as the proxy has been started again."""
    end = time.monotonic() + START_LIMIT
    while True:
        try:
            connection.connect()
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
        else:
            return


class ProxyProcess:
    """``driftsack proxy`` in a process, on a port that stays the same.

    Args:
        directory: Where its settings and its output are written.
        service: The address of the service.
        upstream: The address of the upstream.
    """

    def __init__(self, directory: Path, service: str, upstream: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._directory, self._settings = directory, directory / "proxy.toml"
        lines = [f'campaign = "chat"\nservice = "{service}"\nport = {port}\nrest = 0.05']
        lines.append(f"most_seconds = {MOST_SECONDS}\nattempt_seconds = {ATTEMPT_SECONDS}\npatience = 1.0")
        for arm, protocol in ARMS.items():
            table = f'arm = "{arm}"\nurl = "{upstream}/v1"\nmodel = "{arm}"\nprotocol = "{protocol}"'
            lines.append(f'[[upstream]]\n{table}\nkey_env = "UPSTREAM_KEY"\nprice = {{ input = "1", output = "10" }}')
        self._settings.write_text("\n".join(lines))
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [sys.executable, "-m", "driftsack", "proxy", str(self._settings)]
        with (self._directory / "proxy.err").open("ab") as errors:
            environment = {**os.environ, "UPSTREAM_KEY": SECRET}
            self._process = subprocess.Popen(command, stdout=errors, stderr=errors, env=environment)
        while call(self.url, "", "GET", "/healthz")[0] != 200:
            time.sleep(0.05)

    def end(self, number: int) -> None:
        """Send a signal that ends it, and wait until it has."""
        self._process.send_signal(number)
        self._process.wait()


class Disturber:
    """Kills the proxy and the service at random, and tops the budget up, until it is stopped.

    Args:
        service: The service.
        proxy: The proxy.
        store: The store of the service.
    """

    def __init__(self, service: Process, proxy: ProxyProcess, store: str) -> None:
        self.service, self._proxy, self._store = service, proxy, store
        self._key = service.key
        self._port = urllib.parse.urlsplit(service.url).port
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._kill, self._grant)]
        self.kills: Counter[str] = Counter()
        for thread in self._threads:
            thread.start()

    def _kill(self) -> None:
        rng = random.Random(7)  # noqa: S311
        while not self._stop.wait(2 + 6 * rng.random()):
            if rng.random() < 0.6:
                self.kills["proxy"] += 1
                self._proxy.end(signal.SIGKILL)
                self._proxy.start()
            else:
                self.kills["service"] += 1
                self.service.kill()
                self.service = Process(self._store_directory(), self._store, self._port)

    def _store_directory(self) -> Path:
        return Path(self._store).parent

    def _grant(self) -> None:
        while not self._stop.wait(0.5):
            call(self.service.url, self._key, "POST", CHAT + "/grants", {"amounts": {"usd": GRANT}})

    def stop(self) -> None:
        """Stop."""
        self._stop.set()
        for thread in self._threads:
            thread.join()


def books_of(url: str, key: str, upstream: HostileUpstream) -> Books:
    """Read the books."""
    _, view = call(url, key, "GET", CHAT)
    _, found = call(url, key, "GET", CHAT + "/budgets")
    budget = {name: Decimal(found["budgets"][0][name]) for name in ("granted", "spent", "reserved")}
    return Books(**budget, pending=view["pending"], charged=upstream.charged(), silent=upstream.charged(False))


def open_decisions(url: str, key: str) -> list[str]:
    """Describe the decisions that are still open."""
    cursor: str | None = ""
    found: list[Any] = []
    while cursor is not None:
        _, page = call(url, key, "GET", f"{CHAT}/decisions?cursor={cursor}" if cursor else f"{CHAT}/decisions")
        found += [each for each in page["decisions"] if each["state"] == "pending"]
        cursor = page["cursor"]
    return [f"open: {each}" for each in found]


def run_hostile(requests: int, clients: int, directory: Path) -> tuple[dict[str, Any], list[str]]:
    """Return a row with the books after a trial, and what is wrong.

    Args:
        requests: The number of requests of all clients.
        clients: The number of clients.
        directory: Where the store is written.
    """
    upstream, store = HostileUpstream(most=1000), str(directory / "hostile.db")
    upstream.behaviour = upstream.at_random
    service, begin = Process(directory, store), time.monotonic()
    config = {"arms": list(ARMS), "budget": {"usd": "0.1"}, "cost_max": {"usd": "0.005"}, "horizon": 10**6}
    config["policy"] = {"policy": "UniformRandom"}
    call(service.url, service.key, "POST", "/v1/campaigns", {"name": "chat", "config": config})
    with running(upstream) as address:
        proxy = ProxyProcess(directory, service.url, address)
        sender, disturber = Sender(proxy.url, service.key), Disturber(service, proxy, store)
        sender.send_many(requests, clients)
        disturber.stop()
        proxy.end(signal.SIGTERM)
    # Wait until every lease has ended.
    end, books = time.monotonic() + LEASE, books_of(disturber.service.url, service.key, upstream)
    while books.pending and time.monotonic() < end:
        time.sleep(1)
        books = books_of(disturber.service.url, service.key, upstream)
    left = open_decisions(disturber.service.url, service.key) if books.pending else []
    disturber.service.stop()
    row = {
        "requests": requests,
        "clients": clients,
        "answers by status": " ".join(f"{status}:{count}" for status, count in sorted(sender.answers.items())),
        "kills": " ".join(f"{name}:{count}" for name, count in sorted(disturber.kills.items())),
        "granted": str(books.granted),
        "spent": str(books.spent),
        "upstreams' books": str(books.charged),
        "of it without usage": str(books.silent),
        "pending": books.pending,
        "seconds": f"{time.monotonic() - begin:.0f}",
    }
    return row, [*books.faults(), *left]
