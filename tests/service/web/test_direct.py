"""Requests that bypass ASGI get the same responses as all others, and only once their changes are durable."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driftsack.service.store.interface import UnavailableError
from driftsack.service.web.api.app import Application
from driftsack.service.web.api.direct import DirectProtocol
from tests.support.live_service import Live, serving

CHAT = "/v1/campaigns/chat"
TELL = b'{"reward": 1, "costs": {"usd": "0.02"}}'


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serving(str(tmp_path / "direct.db")) as service:
        service.open()
        yield service


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The status of each response that was sent directly."""
    seen: list[int] = []
    reply = DirectProtocol.reply

    def noted(self: DirectProtocol, cycle: Any, answer: Any) -> None:
        seen.append(answer.status)
        reply(self, cycle, answer)

    monkeypatch.setattr(DirectProtocol, "reply", noted)
    return seen


def request(live: Live, path: str, body: bytes = b"{}", method: str = "POST", more: str = "", key: str = "") -> bytes:
    """Return a request as bytes."""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key or live.key}\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def connect(live: Live) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(live.url.rpartition(":")[2])), timeout=20)


def read_answers(connection: socket.socket, count: int) -> list[bytes]:
    """Read complete responses, and remove their dates."""
    data = b""
    found: list[bytes] = []
    while len(found) < count:
        part = connection.recv(65536)
        assert part, f"the connection was closed after {len(found)} answers"
        data += part
        while (end := data.find(b"\r\n\r\n")) >= 0:
            length = re.search(rb"content-length: (\d+)", data[:end])
            assert length is not None
            size = end + 4 + int(length[1])
            if len(data) < size:
                break
            answer = re.sub(rb"date: [^\r]*\r\n", b"", data[:size])
            found.append(re.sub(rb'"token":"[0-9a-f]{24}"', b'"token":"random"', answer))
            data = data[size:]
    return found


def conversation(live: Live) -> list[bytes]:
    """Send requests of all kinds, each on a connection of its own, and return the responses."""
    asked = f"{CHAT}/decisions"
    told = f"{CHAT}/decisions/1/tell"
    requests = [
        request(live, asked),
        request(live, told, TELL),
        request(live, told, TELL),
        request(live, told, TELL.replace(b"1", b"0")),
        request(live, f"{CHAT}/decisions/99/tell", TELL),
        request(live, f"{CHAT}/decisions/x/tell", TELL),
        request(live, told, b'{"reward": "good", "costs": {}}'),
        request(live, asked, b"{,}"),
        request(live, asked, b'{"open": ["nobody"]}'),
        request(live, asked, more="Content-Type: text/xml\r\n"),
        request(live, asked, more="Content-Type: application/json; charset=utf-8\r\n"),
        request(live, asked, more=f"Idempotency-Key: {300 * 'k'}\r\n"),
        request(live, asked, more="Idempotency-Key: one\r\n"),
        request(live, asked, more="Idempotency-Key: one\r\n"),
        request(live, asked, more="Connection: close\r\n"),
        request(live, asked, b" " * 70_000),
        request(live, asked, key="ds_wrong"),
        request(live, "/v1/campaigns/nothing/decisions"),
        request(live, f"{CHAT}/decisions/2/extend", b'{"lease": 20}'),
        request(live, f"{CHAT}/decisions/2/cancel"),
        request(live, f"{CHAT}/decisions/3/forfeit"),
        request(live, f"{CHAT}/observations", b'{"arm": "small", "reward": 1, "costs": {"usd": 1}}'),
        request(live, asked, method="PUT"),
        request(live, asked).replace(b"HTTP/1.1", b"HTTP/1.0"),
    ]
    found = []
    for each in requests:
        with connect(live) as connection:
            connection.sendall(each)
            found += read_answers(connection, 1)
    return found


def usual(tmp_path: Path) -> list[bytes]:
    """Return the conversation with a service without the direct path."""

    def wrapped(app: Application) -> Any:
        async def passed(scope: Any, receive: Any, send: Any) -> None:
            await app(scope, receive, send)

        return passed

    with serving(str(tmp_path / "usual.db"), wrap=wrapped) as service:
        service.open()
        return conversation(service)


def test_direct_answers_are_the_usual_ones(live: Live, replies: list[int], tmp_path: Path) -> None:
    direct = conversation(live)
    assert len(replies) >= 20
    assert {200, 401, 404, 409, 415, 422} <= set(replies)
    assert direct == usual(tmp_path)


def test_a_missing_header_would_be_seen(live: Live, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reply = DirectProtocol.reply

    def shorter(self: DirectProtocol, cycle: Any, answer: Any) -> None:
        reply(self, cycle, answer._replace(headers=[each for each in answer.headers if each[0] != b"cache-control"]))

    monkeypatch.setattr(DirectProtocol, "reply", shorter)
    assert conversation(live) != usual(tmp_path)


def test_a_body_in_two_parts_goes_the_usual_way(live: Live, replies: list[int]) -> None:
    with connect(live) as connection:
        sent = request(live, f"{CHAT}/decisions", b'{"lease": 60}')
        connection.sendall(sent[:-5])
        time.sleep(0.1)
        connection.sendall(sent[-5:])
        (answer,) = read_answers(connection, 1)
        assert answer.startswith(b"HTTP/1.1 200")
        assert replies == []
        connection.sendall(sent)  # and the connection goes on
        assert read_answers(connection, 1)[0].startswith(b"HTTP/1.1 200")
        assert replies == [200]


@pytest.mark.parametrize("path", [f"{CHAT}/decisions", "/v1/campaigns/nothing/decisions"])
def test_pipelined_requests_are_answered_in_order(live: Live, path: str) -> None:
    """Hundreds of requests in one packet are answered in order and without nested calls, immediately or later."""
    keys = [f"Idempotency-Key: {k // 50}\r\n" for k in range(400)]  # 8 decisions, 50 times each
    with connect(live) as connection:
        connection.sendall(b"".join(request(live, path, more=key) for key in keys))
        answers = read_answers(connection, len(keys))
    numbers = [int(found[1]) for each in answers if (found := re.search(rb'"decision":(\d+)', each))]
    assert numbers == sorted(numbers)
    assert len(numbers) == (400 if "chat" in path else 0)


def test_answers_wait_until_they_are_durable(live: Live, replies: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    store = live.app.service.keeper.store
    append, go_on = store.append, threading.Event()

    def slow(segments: Any) -> None:
        assert go_on.wait(20)
        append(segments)

    monkeypatch.setattr(store, "append", slow)
    with connect(live) as connection:
        connection.sendall(request(live, f"{CHAT}/decisions"))
        time.sleep(0.2)
        assert replies == []
        go_on.set()
        assert read_answers(connection, 1)[0].startswith(b"HTTP/1.1 200")


def test_what_could_not_be_written_is_not_acknowledged(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    store = live.app.service.keeper.store
    append = store.append

    def full(_: Any) -> None:
        raise UnavailableError("the disk is full")

    monkeypatch.setattr(store, "append", full)
    with connect(live) as connection:
        connection.sendall(request(live, f"{CHAT}/decisions"))
        assert read_answers(connection, 1)[0].startswith(b"HTTP/1.1 503")
        monkeypatch.setattr(store, "append", append)
        status = b""
        while not status.startswith(b"HTTP/1.1 200"):
            time.sleep(0.05)
            connection.sendall(request(live, f"{CHAT}/decisions"))
            (status,) = read_answers(connection, 1)
    assert b'"decision":1,' in status  # the first one never happened


def test_a_client_that_went_away_loses_only_its_answer(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    store = live.app.service.keeper.store
    append, go_on = store.append, threading.Event()
    monkeypatch.setattr(store, "append", lambda segments: (go_on.wait(20), append(segments)))
    with connect(live) as connection:
        connection.sendall(request(live, f"{CHAT}/decisions", more="Idempotency-Key: once\r\n"))
        time.sleep(0.1)
    go_on.set()
    assert live.call("POST", f"{CHAT}/decisions", {}, idempotency_key="twice")[1]["decision"] == 2


def test_a_client_that_went_away_with_requests_in_line_harms_nobody(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first request waits for a commit, its second for the first; other clients wait for the same commit."""
    store = live.app.service.keeper.store
    append, go_on = store.append, threading.Event()
    monkeypatch.setattr(store, "append", lambda segments: (go_on.wait(20), append(segments)))
    asked = request(live, f"{CHAT}/decisions")
    with connect(live) as first:
        first.sendall(asked)
        time.sleep(0.1)  # the first commit waits, and what follows is in the second one
        with connect(live) as leaves:
            leaves.sendall(asked + asked)
            time.sleep(0.1)
        with connect(live) as stays:
            stays.sendall(asked)
            time.sleep(0.1)
            go_on.set()
            assert read_answers(first, 1)[0].startswith(b"HTTP/1.1 200")
            assert read_answers(stays, 1)[0].startswith(b"HTTP/1.1 200")


def test_a_client_that_reads_nothing_gets_everything_later(live: Live) -> None:
    sent = request(live, "/v1/campaigns/nothing/decisions")
    with connect(live) as connection:
        connection.settimeout(2)
        count = 0
        try:
            for _ in range(30_000):
                connection.sendall(sent)
                count += 1
        except TimeoutError:
            pass  # the client does not read, so writing must stop
        connection.settimeout(20)
        assert all(each.startswith(b"HTTP/1.1 404") for each in read_answers(connection, min(count, 1000)))
