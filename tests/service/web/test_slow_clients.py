"""Connections of slow, silent and endless clients are closed; all others stay open."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from driftsack.service.web import asgi
from driftsack.service.web.api import limits
from tests.support.live_service import Live, serving

ASK = "/v1/campaigns/chat/decisions"
DEADLINE = 0.6


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    with serving(str(tmp_path / "slow.db")) as service:
        service.open()
        monkeypatch.setattr(asgi, "SLOW", DEADLINE)
        yield service


def connect(live: Live) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(live.url.rpartition(":")[2])), timeout=20)


def head(live: Live, length: int = 2) -> bytes:
    return (
        f"POST {ASK} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {live.key}\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def drip(connection: socket.socket, data: bytes, longest: float = 4 * DEADLINE) -> tuple[bytes, float]:
    """Send bytes one by one until the connection ends; return the response and the elapsed seconds."""
    connection.settimeout(0.05)
    start, answer = time.monotonic(), b""
    sent = 0
    while time.monotonic() - start < longest:
        try:
            if sent < len(data):
                connection.sendall(data[sent : sent + 1])
                sent += 1
            part = connection.recv(65536)
        except TimeoutError:
            continue
        except OSError:
            break
        if not part:
            break
        answer += part
    return answer, time.monotonic() - start


def ended_in_time(seconds: float) -> bool:
    return 0.5 * DEADLINE < seconds < 3 * DEADLINE


def outcomes(live: Live) -> dict[str, tuple[bytes, bool]]:
    """Return the response to each slow client, and whether its connection was closed in time."""
    found: dict[str, tuple[bytes, bool]] = {}

    def note(name: str, answer: bytes, seconds: float) -> None:
        found[name] = (answer[:12], ended_in_time(seconds))

    with connect(live) as connection:
        note("silent", *drip(connection, b""))
    with connect(live) as connection:
        note("slow header", *drip(connection, head(live)))
    with connect(live) as connection:
        note("only line breaks", *drip(connection, b"\r\n" * 100))
    with connect(live) as connection:
        connection.sendall(head(live, 100) + b"{")
        note("slow body", *drip(connection, b" " * 99))
    with connect(live) as connection:
        connection.sendall(head(live) + b"{}")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        note("slow second header", *drip(connection, head(live)))
    with connect(live) as connection:
        connection.sendall(head(live, 100).replace(live.key.encode(), b"ds_wrong"))
        assert connection.recv(65536).startswith(b"HTTP/1.1 401")
        note("body that nobody reads", *drip(connection, b" " * 99))
    return found


CLOSED = {
    "silent": (b"", True),
    "slow header": (b"HTTP/1.1 408", True),
    "only line breaks": (b"", True),
    "slow body": (b"HTTP/1.1 408", True),
    "slow second header": (b"HTTP/1.1 408", True),
    "body that nobody reads": (b"", True),
}


def test_slow_clients_are_closed(live: Live) -> None:
    assert outcomes(live) == CLOSED


@pytest.mark.slow
def test_a_protocol_without_a_deadline_would_be_noticed(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits.LimitedProtocol, "await_head", lambda _: None)
    found = outcomes(live)
    wrong = {name for name, outcome in found.items() if outcome != CLOSED[name]}
    assert wrong == set(CLOSED) - {"slow body"}


def test_a_deadline_for_each_part_would_be_noticed(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the deadline applies to each part of a body, not to the whole."""

    async def patient(receive: Any, limit: int) -> bytes:
        return await asgi.read_parts(lambda: asyncio.wait_for(receive(), DEADLINE), limit)

    monkeypatch.setattr("driftsack.service.web.api.requests.whole_body", patient)
    with connect(live) as connection:
        connection.sendall(head(live, 100) + b"{")
        answer, _ = drip(connection, b" " * 99)
    assert not answer


def test_clients_that_are_not_slow_keep_their_connection(live: Live) -> None:
    with connect(live) as connection:
        for _ in range(6):  # longer than the deadline in all, and idle between requests
            connection.sendall(head(live)[:30])
            time.sleep(DEADLINE / 6)
            connection.sendall(head(live)[30:] + b"{")
            time.sleep(DEADLINE / 6)
            connection.sendall(b"}")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        time.sleep(2 * DEADLINE)  # idle connections have more time
        connection.sendall(head(live) + b"{}")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def endless(live: Live, most: int = 8 * 1024 * 1024) -> tuple[bytes, int]:
    """Return the response to a client whose header does not end, and the number of bytes that it could send."""
    with connect(live) as connection:
        connection.sendall(head(live)[:-4] + b"\r\nX: ")
        sent = 0
        try:
            while sent < most:
                sent += connection.send(b"x" * 4096)
                time.sleep(0.0002)
            connection.settimeout(0.1)
            return connection.recv(65536)[:12], sent
        except TimeoutError:
            return b"", sent
        except OSError:
            return b"closed", sent


def test_headers_have_a_largest_size(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "SLOW", 20.0)
    answer, sent = endless(live)
    assert answer in (b"closed", b"HTTP/1.1 431")
    assert sent < 4 * 1024 * 1024
    for size, status in ((60_000, b"200"), (70_000, b"431")):
        with connect(live) as connection:
            connection.sendall(head(live)[:-4] + b"\r\nX: " + b"x" * size + b"\r\n\r\n{}")
            assert connection.recv(65536).startswith(b"HTTP/1.1 " + status)
    with connect(live) as connection:  # many whole requests are no large header
        connection.sendall((head(live) + b"{}") * 1000)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    monkeypatch.setattr(limits.LimitedProtocol, "data_received", HttpToolsProtocol.data_received)
    assert endless(live)[1] >= 8 * 1024 * 1024  # as it was


def test_trailers_have_a_largest_size(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LARGEST_MESSAGE", 1024 * 1024)
    chunked = head(live).replace(b"Content-Length: 2", b"Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\nX: "
    with connect(live) as connection:
        connection.sendall(chunked)
        with pytest.raises(OSError, match=r"reset|pipe"):
            connection.sendall(b"x" * 16 * 1024 * 1024)
    with connect(live) as connection:
        connection.sendall(chunked + b"y\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_trailers_are_not_headers(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key after the body is ignored; trailers must not change the headers of a request that was checked."""
    key = f"Authorization: Bearer {live.key}\r\n".encode()
    chunked = head(live).replace(b"Content-Length: 2", b"Transfer-Encoding: chunked")
    late = chunked.replace(key, b"") + b"2\r\n{}\r\n0\r\n" + key + b"\r\n"
    assert key in chunked
    with connect(live) as connection:
        connection.sendall(late)
        assert connection.recv(65536).startswith(b"HTTP/1.1 401")
    monkeypatch.setattr(limits.LimitedProtocol, "on_headers_complete", HttpToolsProtocol.on_headers_complete)
    with connect(live) as connection:
        connection.sendall(late)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")  # with trailers among the headers
