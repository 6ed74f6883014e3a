"""A change and its entry in the audit are one commit, and requests are forwarded to replicas behind TLS."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

from driftsack.service.store import sqlite
from driftsack.service.web.api import forwarding
from driftsack.service.web.api.keyring import Principal
from driftsack.service.web.api.requests import AuthenticatedRequest, find_target
from tests.support.live_service import Live, serving

GRANT = {"amounts": {"usd": "100"}}
PATH = "/v1/campaigns/chat/grants"


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serving(str(tmp_path / "s.db")) as found:
        found.open()
        yield found


def entries(live: Live) -> list[str]:
    return [entry["action"] for entry in live.call("GET", "/v1/audit")[1]["entries"]]


def granted(live: Live) -> str:
    for _ in range(100):
        status, answer = live.call("GET", "/v1/campaigns/chat/budgets")
        if status == 200:
            return str(answer["budgets"][0]["granted"])
        time.sleep(0.05)
    raise AssertionError


@pytest.mark.parametrize("planted", [False, True])
def test_a_grant_that_cannot_be_audited_is_not_made(live: Live, monkeypatch: pytest.MonkeyPatch, planted: bool) -> None:
    """The planted fault is to commit the segment without its entry."""
    run = live.app.service.keeper.store._rows  # type: ignore[attr-defined]
    run("CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END")
    if planted:
        monkeypatch.setattr(sqlite, "_append", lambda run, segment: run(sqlite.APPEND, sqlite._columns(segment)))
    status, _ = live.call("POST", PATH, GRANT, idempotency_key="g")
    assert status == (200 if planted else 503)
    run("DROP TRIGGER full")
    assert granted(live) == ("101" if planted else "1")
    if planted:
        return
    assert live.call("POST", PATH, GRANT, idempotency_key="g")[0] == 200
    assert granted(live) == "101"
    assert entries(live).count(f"POST {PATH}") == 1


def test_a_repeated_grant_is_in_the_audit_once(live: Live) -> None:
    for _ in range(3):
        assert live.call("POST", PATH, GRANT, idempotency_key="g")[0] == 200
    assert granted(live) == "101"
    assert entries(live) == [f"POST {PATH}", "POST /v1/campaigns"]


class Owner(BaseHTTPRequestHandler):
    """Answers with the path that it was asked for."""

    def do_GET(self) -> None:
        body = self.path.encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write no log."""


class Forwards:
    """The part of a keeper that forwarding uses."""

    def __init__(self, url: str) -> None:
        self.foreign = {"chat": url}

    async def forwarded(self, function: Any) -> Any:
        return await asyncio.to_thread(function)


def test_requests_are_forwarded_to_a_replica_behind_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with a path that is not ASCII, which ASGI has decoded."""
    openssl, pair = shutil.which("openssl"), tmp_path / "pair.pem"
    assert openssl is not None
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    made += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(pair), "-out", str(tmp_path / "cert.pem")]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", pair)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    with HTTPServer(("127.0.0.1", 0), Owner) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        target = find_target("GET", "/v1/campaigns/chat/decisions/é")
        assert target is not None
        scope = {"method": "GET", "path": "/v1/campaigns/chat/decisions/é", "query_string": b"cursor=\xe9"}
        request = AuthenticatedRequest(target, Principal("", frozenset(), None), scope, {})
        keeper = cast("Any", Forwards(f"https://localhost:{server.server_port}"))
        try:
            response = asyncio.run(forwarding.forward(keeper, request, b""))
        finally:
            server.shutdown()
            thread.join()
    assert response is not None
    assert (response.status, response.body) == (200, b"/v1/campaigns/chat/decisions/%C3%A9?cursor=%E9")
