"""Measure what ``driftsack proxy`` costs, with the service, the upstream and the proxies in processes of their own.

Calls of the upstream itself, of the proxy and of the same proxy without asking are interleaved, so that other programs
on the machine disturb all of them alike. Processor time is disturbed least.
"""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from lab.service.processes import Process, call, free_port, open_campaign, processor_seconds

BODY: Final = json.dumps({"model": "fine", "messages": [{"role": "user", "content": "Hello?"}], "max_tokens": 50})
CLIENTS: Final = 16
ROUNDS: Final = 5
PROXY: Final = ["-m", "driftsack", "proxy"]
WITHOUT: Final = ["-m", "lab.service.proxy_without_asking"]


class Program(NamedTuple):
    """A running program."""

    url: str
    pid: int


class ProxyConnection:
    """A persistent connection that sends the same request again and again.

    Args:
        url: The address.
        key: The API key.
    """

    def __init__(self, url: str, key: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def send(self) -> float:
        """Send the request, and return the seconds until its answer."""
        begin = time.perf_counter()
        self._connection.request("POST", "/v1/chat/completions", BODY, self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"status {answer.status}: {content[:200]!r}")
        return time.perf_counter() - begin


@contextmanager
def program(arguments: list[str], url: str) -> Iterator[Program]:
    """Run a Python program that answers at an address."""
    process = subprocess.Popen([sys.executable, *arguments], stderr=subprocess.DEVNULL)
    try:
        while call(url, "", "GET", "/healthz")[0] == 0:
            time.sleep(0.05)
        yield Program(url, process.pid)
    finally:
        process.terminate()
        process.wait()


@contextmanager
def proxy(directory: Path, command: list[str], service: str, upstream: str) -> Iterator[Program]:
    """Run a proxy."""
    port = free_port()
    path = directory / f"{port}.toml"
    price = 'price = { input = "1", output = "2" }'
    arm = f'[[upstream]]\narm = "fine"\nurl = "{upstream}/v1"\nmodel = "m"\n{price}\n'
    path.write_text(f'campaign = "chat"\nservice = "{service}"\nport = {port}\n{arm}')
    with program([*command, str(path)], f"http://127.0.0.1:{port}") as found:
        yield found


def per_second(url: str, key: str, requests: int) -> float:
    """Return the requests per second of several clients."""

    def client(_: int) -> None:
        connection = ProxyConnection(url, key)
        for _ in range(requests // CLIENTS):
            connection.send()

    begin = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as threads:
        list(threads.map(client, range(CLIENTS)))
    return requests // CLIENTS * CLIENTS / (time.perf_counter() - begin)


def measure(pairs: int, say: Callable[[str], None] = print) -> None:
    """Measure the latency of one connection and the throughput of several, and print both.

    Args:
        pairs: The number of calls of each kind.
        say: Prints a line.
    """
    with tempfile.TemporaryDirectory() as name:
        directory, port = Path(name), free_port()
        service = Process(directory, f"{name}/s.db")
        open_campaign(service.url, service.key, arms=["fine"])
        quick = ["-m", "uvicorn", "lab.service.quick_upstream:app", "--port", str(port), "--no-access-log"]
        with (
            program([*quick, "--log-level", "error"], f"http://127.0.0.1:{port}") as upstream,
            proxy(directory, PROXY, service.url, upstream.url) as asking,
            proxy(directory, WITHOUT, service.url, upstream.url) as silent,
        ):
            urls = {"the upstream itself": upstream.url, "without asking": silent.url, "with asking": asking.url}
            connections = {kind: ProxyConnection(url, service.key) for kind, url in urls.items()}
            seconds: dict[str, list[float]] = {kind: [] for kind in urls}
            for _ in range(pairs):
                for kind, connection in connections.items():
                    seconds[kind].append(connection.send())
            medians = {kind: statistics.median(found) for kind, found in seconds.items()}
            rates = {kind: [] for kind in ("without asking", "with asking")}  # type: dict[str, list[float]]
            begun = [processor_seconds(silent.pid), processor_seconds(asking.pid), service.processor_seconds()]
            for _ in range(ROUNDS):
                for kind, found in rates.items():
                    found.append(per_second(urls[kind], service.key, pairs))
            ended = [processor_seconds(silent.pid), processor_seconds(asking.pid), service.processor_seconds()]
        service.stop()
    for kind, median in medians.items():
        say(f"{kind}: {1000 * median:.1f} ms at the median")
    say(f"the proxy adds {1000 * (medians['with asking'] - medians['the upstream itself']):.1f} ms")
    each = {kind: statistics.median(found) for kind, found in rates.items()}
    share = each["with asking"] / each["without asking"]
    say(f"{CLIENTS} clients: {each['with asking']:.0f} requests per second, {share:.2f} of those without asking")
    count = ROUNDS * (pairs // CLIENTS * CLIENTS)
    without, with_asking, served = (1000 * (end - begin) / count for begin, end in zip(begun, ended, strict=True))
    say(f"processor time of a request: proxy {with_asking:.2f} ms, {without:.2f} without asking; service {served:.2f}")
