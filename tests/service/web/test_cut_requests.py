"""A request that is cut before the end of its body is not carried out, not even as one with an empty body."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.live_service import Live, serving

ASK = "/v1/campaigns/chat/decisions"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serving(str(tmp_path_factory.mktemp("cut") / "s.db")) as service:
        service.open("chat", budget={"usd": "10"})
        yield service


def cut(live: Live, path: str, body: Any, sent: int, chunked: bool) -> None:
    """Send the header of a request and the first bytes of its body, and leave, as a client that is killed."""
    data = json.dumps(body).encode()
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(data)}"
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {live.key}\r\n{length}\r\n\r\n".encode()
    begun = b"%x\r\n" % len(data) + data[:sent] if chunked and sent else data[:sent]
    with socket.create_connection(("127.0.0.1", int(live.url.rpartition(":")[2]))) as connection:
        connection.sendall(head)
        time.sleep(0.05)  # so that the header arrives alone, as a client of http.client sends it
        connection.sendall(begun)
        time.sleep(0.05)


@pytest.mark.parametrize(("sent", "chunked"), [(0, False), (10, False), (0, True), (10, True), (100, True)])
def test_a_cut_request_makes_no_decision(live: Live, sent: int, chunked: bool) -> None:
    _, before = live.call("GET", "/v1/campaigns/chat")
    cut(live, ASK, {"caps": {"usd": "0.01"}, "lease": 5}, sent, chunked)
    _, after = live.call("GET", "/v1/campaigns/chat")
    assert after["decisions"] == before["decisions"]
    assert after["pending"] == before["pending"]


def test_a_cut_cancellation_charges_nothing_and_leaves_the_decision_open(live: Live) -> None:
    """The cancellation would have had costs, and must not be taken for one without."""
    decision = live.ask()
    cut(live, f"{ASK}/{decision['decision']}/cancel", {"costs": {"usd": "0.05"}}, 0, chunked=False)
    _, found = live.call("GET", f"{ASK}/{decision['decision']}")
    assert found["state"] == "pending"
    live.call("POST", f"{ASK}/{decision['decision']}/cancel", {"costs": {"usd": "0.05"}})
