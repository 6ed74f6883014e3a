"""Load from connections that ask and tell as fast as they are answered, or at a constant rate."""

from __future__ import annotations

import asyncio
import itertools
import time
import urllib.parse
from typing import Any, NamedTuple

import msgspec

TELL = b'{"reward":1,"costs":{"usd":"0.02"}}'


class Load(NamedTuple):
    """The measurements of a load."""

    requests: int  # answered
    failures: int  # answers other than 200
    seconds: float
    latencies: list[float]  # seconds from when each request was due, sorted

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds

    def quantile(self, share: float) -> float:
        """The quantile of the latencies at ``share``."""
        return self.latencies[min(int(share * len(self.latencies)), len(self.latencies) - 1)]


class Connection(asyncio.Protocol):
    """A connection that asks and tells in turns."""

    def __init__(
        self, head: str, campaign: str, end: float, interval: float, asks: tuple[bytes, ...], told: bytes
    ) -> None:
        self._head, self._path = head, f"/v1/campaigns/{campaign}/decisions"
        self._end, self._interval = end, interval
        self._asks, self._told = itertools.cycle(asks), told
        self._buffer = b""
        self._due = self._sent = time.perf_counter()
        self.latencies: list[float] = []
        self.failures = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        """Send the first request."""
        self._transport = transport
        self._request(self._path, next(self._asks))

    def _request(self, path: str, body: bytes) -> None:
        self._sent = max(self._due, 0.0) if self._interval else time.perf_counter()
        self._transport.write(f"POST {path} {self._head}{len(body)}\r\n\r\n".encode() + body)

    def data_received(self, data: bytes) -> None:
        """Receive an answer and send the next request."""
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        self._buffer = b""
        self.latencies.append(time.perf_counter() - self._sent)
        self.failures += not head.startswith(b"HTTP/1.1 200")
        if self.latencies[-1] + self._sent > self._end:
            self._transport.close()
            return
        self._next(body)

    def _next(self, body: bytes) -> None:
        answer = msgspec.json.decode(body)
        number = answer.get("decision") if "arm" in answer and not answer["skipped"] else None
        path, sent = (self._path, next(self._asks)) if number is None else (f"{self._path}/{number}/tell", self._told)
        self._due += self._interval
        wait = self._due - time.perf_counter()
        if self._interval and wait > 0:
            asyncio.get_running_loop().call_later(wait, self._request, path, sent)
        else:
            self._request(path, sent)

    def connection_lost(self, error: Exception | None) -> None:
        """Stop."""
        if not self.done.done():
            self.done.set_result(None)


async def load(
    url: str,
    key: str,
    seconds: float,
    connections: int,
    rate: float = 0.0,
    campaign: str = "chat",
    asks: tuple[bytes, ...] = (b"{}",),
    told: bytes = TELL,
) -> Load:
    """Ask and tell on many connections.

    Args:
        url: The address of the service.
        seconds: The duration.
        rate: Requests per second on all connections together; 0 for as many as are answered.
        asks: The bodies of requests for decisions, sent in turns.
        told: The body of each outcome.
    """
    parts, loop = urllib.parse.urlsplit(url), asyncio.get_running_loop()
    head = f"HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: "
    begin = time.perf_counter()
    interval = connections / rate if rate else 0.0
    made = []
    for _ in range(connections):
        _, protocol = await loop.create_connection(
            lambda: Connection(head, campaign, begin + seconds, interval, asks, told),
            parts.hostname or "",
            parts.port or 80,
        )
        made.append(protocol)
        if interval:
            await asyncio.sleep(interval / connections)
    await asyncio.wait([protocol.done for protocol in made], timeout=seconds + 20)
    latencies = sorted(latency for protocol in made for latency in protocol.latencies)
    failures = sum(protocol.failures for protocol in made)
    return Load(len(latencies), failures, time.perf_counter() - begin, latencies)


def run_load(*arguments: Any, **settings: Any) -> Load:
    """Run :func:`load` with uvloop."""
    import uvloop

    return uvloop.run(load(*arguments, **settings))
