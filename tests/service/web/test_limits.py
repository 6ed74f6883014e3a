"""Limits over HTTP: labels, keys that fix them, concurrent requests, accounts, the page, metrics and webhooks."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from driftsack.client import AsyncClient, Client, ServiceError, read_accounts
from driftsack.core.errors import SettingError
from driftsack.service.domain.config import Limit
from driftsack.service.domain.limits import Limits
from driftsack.service.projections.explain import replay
from driftsack.service.web.json_logs import log_as_json
from driftsack.service.web.server import Settings, webhooks_of
from driftsack.service.web.webhooks import Webhooks, check_address
from tests.support.dashboard_client import Visitor
from tests.support.live_service import Live, serving

ANN = {"user": "ann"}
SECRET = "a secret of sixteen or more"
DECISIONS = "/v1/campaigns/chat/decisions"


def opened(live: Live, amount: str = "0.25", **settings: Any) -> None:
    """Open a campaign with a daily limit for each user."""
    live.open(budget={"usd": "100"}, limits=[Limit("user", {"usd": amount}, "day")], **settings)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serving(str(tmp_path / "s.db")) as found:
        opened(found)
        yield found


def key_for(live: Live, **labels: str) -> str:
    """Create a key that may ask and read, and that fixes labels."""
    status, made = live.call("POST", "/v1/keys", {"scopes": ["decide", "read"], "labels": labels})
    assert (status, made["labels"]) == (201, labels)
    return str(made["key"])


def spend_all(live: Live) -> list[Decimal]:
    """Ask 64 times at once with one label; return what was reserved and what the account says."""

    def ask(_: int) -> Decimal:
        status, answer = live.call("POST", DECISIONS, {"labels": ANN})
        assert status == 200, answer
        assert answer["reason"] in (None, "policy", "limit")
        return Decimal(answer["reserved"].get("usd", "0"))

    with ThreadPoolExecutor(64) as pool:
        granted = list(pool.map(ask, range(64)))
    account = live.call("GET", "/v1/campaigns/chat/limits?by=user&label=ann")[1]["accounts"][0]
    return [sum(granted, Decimal(0)), Decimal(account["reserved"]), Decimal(account["left"])]


def test_64_concurrent_requests_never_overspend_a_limit(store_address: str) -> None:
    with serving(store_address) as live:
        opened(live, "1.05")
        assert spend_all(live) == [Decimal("1"), Decimal("1"), Decimal("0.05")]
        owned = live.app.service.keeper.owned["chat"]
        assert replay(live.app.service.keeper.store, "chat").same
        before = owned.campaign.limits.live(owned.campaign.book.at)
    with serving(store_address) as again:
        found = again.app.service.keeper.owned["chat"].campaign
        assert found.limits.live(found.book.at) == before != [{}]
        status, answer = again.call("POST", DECISIONS, {"labels": ANN}, live.key)
        assert (status, answer["reason"]) == (200, "limit")


def test_an_admission_without_limits_is_noticed(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: every account covers everything."""
    monkeypatch.setattr(Limits, "covers", lambda *_: True)
    assert spend_all(live)[0] > Decimal("0.25")


def test_a_key_fixes_labels(live: Live) -> None:
    key = key_for(live, user="ann")
    for labels in (None, ANN):
        answer = {"reason": "policy"}
        while answer["reason"] == "policy":
            status, answer = live.call("POST", DECISIONS, {"labels": labels}, key)
            assert status == 200, answer
    status, problem = live.call("POST", DECISIONS, {"labels": {"user": "bob"}}, key)
    assert (status, problem["type"]) == (403, "urn:driftsack:forbidden")
    many = {"ask": 2, "labels": [{"run": "r1"}, {"run": "r2"}]}
    made = live.call("POST", "/v1/campaigns/chat/exchange", many, key)[1]["decisions"]
    assert {one["reason"] for one in made} <= {"limit", "policy"}
    made = live.call("POST", "/v1/campaigns/chat/exchange", {"ask": 8}, key)[1]["decisions"]
    assert {one["reason"] for one in made} <= {"limit", "policy"}
    assert not live.ask(labels={"user": "bob"})["skipped"]
    assert live.call("GET", "/v1/campaigns/chat/limits?by=user&label=bob", None, key)[0] == 403
    assert read_accounts(live.url, key, "chat", "user", "ann")[0]["left"] == "0.05"
    keys = live.call("GET", "/v1/keys")[1]["keys"]
    assert sorted(one["labels"] == ANN for one in keys) == [False, True]


def test_wrong_labels_are_refused(live: Live) -> None:
    wrong: Any
    for wrong in ({"user": ""}, {"user": "a\nb"}, {"us er": "a"}, {"user": "x" * 101}, {"user": 7}, [], "ann"):
        assert live.call("POST", DECISIONS, {"labels": wrong})[0] == 422
    for query in ("", "?by=user", "?by=user&label=%0A", "?by=user&label=ann&x=1"):
        assert live.call("GET", f"/v1/campaigns/chat/limits{query}")[0] == 422
    assert live.call("GET", "/v1/campaigns/chat/limits?by=team&label=x")[0] == 404


def test_both_clients_take_labels(live: Live) -> None:
    with Client(live.url, live.key, "chat") as client:
        found = [client.ask(labels=ANN) for _ in range(12)]
        assert found[-1].reason in ("limit", "policy")
        limit = next(one.limit for one in found if one.reason == "limit")
        assert limit is not None
        assert (limit["by"], limit["label"], limit["every"], limit["exhausted"]) == ("user", "ann", "day", False)
        with pytest.raises(ServiceError, match="422"):
            client.ask(labels={"user": ""})
        with pytest.raises(SettingError, match="labels must be a mapping"):
            client.ask(labels=["ann"])  # type: ignore[arg-type]

    async def ask_often() -> set[str | None]:
        async with AsyncClient(live.url, live.key, "chat") as other:
            return {(await other.ask(labels={"user": "bob"})).reason for _ in range(12)}

    assert asyncio.run(ask_often()) >= {None, "limit"}


class Receiver(BaseHTTPRequestHandler):
    """A receiver of alerts that answers with the next of its statuses."""

    statuses: list[int]
    seen: list[tuple[dict[str, str], bytes]]
    gate: threading.Event

    def do_POST(self) -> None:
        """Note a message."""
        body = self.rfile.read(int(self.headers["content-length"]))
        self.gate.wait(10)
        self.seen.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(self.statuses.pop(0) if self.statuses else 204)
        self.send_header("location", "/elsewhere")
        self.end_headers()

    def do_GET(self) -> None:
        """Note a request that follows a redirect."""
        self.seen.append(({}, b""))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *_: Any) -> None:  # noqa: A002
        """Write no log."""


@contextmanager
def receiving(*statuses: int) -> Iterator[tuple[str, type[Receiver]]]:
    """Run a receiver until the end of the block; return its address and what it saw."""

    class One(Receiver):
        """The receiver of this block."""

    made: type[Receiver] = One
    made.statuses, made.seen, made.gate = [*statuses], [], threading.Event()
    made.gate.set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), made)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/alerts", made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def until(true: Any) -> None:
    """Wait until something is true."""
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_alerts_are_signed_retried_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Webhooks.__init__, "__defaults__", (0.02,))
    with (
        receiving(500, 302) as (address, receiver),
        serving(str(tmp_path / "s.db"), webhooks=address, webhook_secret=SECRET) as live,
    ):
        opened(live)
        receiver.gate.clear()  # a receiver that does not answer delays nobody
        for _ in range(3):
            answer = live.ask(labels=ANN)
            if not answer["skipped"]:
                told = {"reward": 1, "costs": {"usd": "0.1"}, "token": answer["token"]}
                assert live.call("POST", f"{DECISIONS}/{answer['decision']}/tell", told)[0] == 200
        assert answer["limit"]["exhausted"]
        assert receiver.seen == []
        receiver.gate.set()
        until(lambda: len(receiver.seen) >= 5)
        bodies = [json.loads(body) for _, body in receiver.seen]
        assert [body["percent"] for body in bodies] == [50, 50, 50, 80, 100]
        headers, body = receiver.seen[-1]
        stamp, number = headers["webhook-timestamp"], headers["webhook-id"]
        said = hmac.new(SECRET.encode(), f"{number}.{stamp}.".encode() + body, hashlib.sha256).digest()
        assert headers["webhook-signature"] == "v1," + base64.b64encode(said).decode()
        assert len({headers["webhook-id"] for headers, _ in receiver.seen[:3]}) == 1
        assert (bodies[0]["by"], bodies[0]["label"], bodies[4]["spent"], bodies[4]["amount"]) == (
            "user",
            "ann",
            "0.2",
            "0.25",
        )
        metrics = live.call("GET", "/metrics")[1]
        assert 'driftsack_thresholds_crossed_total{by="user",campaign="chat",every="day",percent="100"} 1.0' in metrics
        assert 'driftsack_limit_refused_total{by="user",campaign="chat",every="day"} 1.0' in metrics
        assert "driftsack_webhooks_retried_total 2.0" in metrics
        page = Visitor(live.url, live.key).get("/campaigns/chat").text
        assert "user ann reached 100%" in page
        assert "exhausted" in page


def test_only_addresses_of_the_operator_are_called() -> None:
    for wrong in (
        "ftp://x/",
        "http://",
        "https://user:secret@x/",
        "http://x/#a",
        "http://x:99999/",
        "x",
        "http://a b/",
    ):
        with pytest.raises(SettingError, match="a webhook must be"):
            check_address(wrong)
    with pytest.raises(SettingError, match="DRIFTSACK_WEBHOOK_SECRET"):
        webhooks_of(Settings(webhooks="https://example.org/alerts", webhook_secret="short"))
    assert webhooks_of(Settings()) is None


def test_the_log_of_the_service_has_no_addresses_of_webhooks() -> None:
    """The HTTP library logs the address of each call unless it is told not to, and paths may be secrets."""
    levels = {name: logging.getLogger(name).level for name in (None, "httpx", "httpcore")}
    handlers = logging.getLogger().handlers[:]
    try:
        log_as_json("debug")
        assert not logging.getLogger("httpx").isEnabledFor(logging.INFO)
        assert not logging.getLogger("httpcore").isEnabledFor(logging.DEBUG)
    finally:
        logging.getLogger().handlers[:] = handlers
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
