"""The API on a real port: the life cycle of a campaign, errors, keys and scopes, limits, and the OpenAPI document."""

from __future__ import annotations

import asyncio
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import driftsack as ds
from driftsack.client import Client
from driftsack.service.store.interface import StoreError
from driftsack.service.web import asgi
from driftsack.service.web.api import routes
from driftsack.service.web.api.context import Context
from driftsack.service.web.api.keyring import ALLOWS, new_key
from driftsack.service.web.api.openapi import document
from driftsack.service.web.api.paging import write_cursor
from driftsack.service.web.api.routes import ROUTES
from driftsack.service.web.server import Settings, server_config
from tests.support.campaigns import small
from tests.support.live_service import Live, serving
from tests.support.local_postgres import LocalPostgres

CHAT = "/v1/campaigns/chat"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serving(str(tmp_path_factory.mktemp("http") / "s.db"), {"failures": 1e9}) as found:
        found.open("chat", budget={"usd": "1000"})
        found.open("other")
        yield found


def test_the_life_of_a_decision(live: Live) -> None:
    asked = live.ask(caps={"usd": "0.05"})
    path = f"{CHAT}/decisions/{asked['decision']}"
    assert asked["reserved"] == {"usd": "0.05"}
    assert live.call("GET", path)[1]["state"] == "pending"
    assert live.call("POST", f"{path}/extend", {"lease": 90})[1]["state"] == "pending"
    status, told = live.call("POST", f"{path}/tell", {"reward": 1, "costs": {"usd": "0.020"}})
    assert (status, told["charged"]) == (200, {"usd": "0.02"})
    assert live.call("POST", f"{path}/tell", {"reward": 1, "costs": {"usd": "0.02"}}) == (200, told)
    status, problem = live.call("POST", f"{path}/tell", {"reward": 0, "costs": {"usd": "0.02"}})
    assert (status, problem["type"]) == (409, "urn:driftsack:already-settled")
    assert live.call("GET", path)[1]["state"] == "told"
    why = live.call("GET", f"{path}/why")[1]
    assert (why["same"], why["arm"]) == (True, asked["arm"])
    assert abs(sum(why["mix"].values()) - 1) < 1e-9


def test_an_integer_means_the_same_over_http_and_in_python(live: Live) -> None:
    """A budget of 200 is $200, also if it is opened again in the other form, and 1 is a dollar for both callers."""
    given = {**msgspec.to_builtins(small()), "budget": {"usd": 200}, "cost_max": {"usd": 2}}
    assert live.call("POST", "/v1/campaigns", {"name": "whole", "config": given})[0] == 201
    same = {**given, "budget": {"usd": "200"}, "cost_max": {"usd": "2"}}
    status, view = live.call("POST", "/v1/campaigns", {"name": "whole", "config": same})
    assert (status, view["config"]["budget"]) == (201, {"usd": "200"})
    asked = live.ask("whole")["decision"]
    path = f"/v1/campaigns/whole/decisions/{asked}/tell"
    assert live.call("POST", path, {"reward": 1, "costs": {"usd": 1}})[1]["charged"] == {"usd": "1"}
    with Client(live.url, live.key, "whole") as client:
        while (decision := client.ask()).skipped:
            pass
        client.tell(decision, 1.0, {"usd": 1})
    (budget,) = live.call("GET", "/v1/campaigns/whole/budgets")[1]["budgets"]
    assert (budget["granted"], budget["spent"]) == ("200", "2")


def test_a_repeated_request_gets_the_same_decision(live: Live) -> None:
    first = live.call("POST", f"{CHAT}/decisions", {}, idempotency_key="once")
    assert live.call("POST", f"{CHAT}/decisions", {}, idempotency_key="once") == first
    status, problem = live.call("POST", f"{CHAT}/decisions", {"lease": 5}, idempotency_key="once")
    assert (status, problem["type"]) == (422, "urn:driftsack:key-reused")


def test_keys_that_look_like_those_of_an_exchange_are_different_keys(live: Live) -> None:
    status, exchanged = live.call("POST", f"{CHAT}/exchange", {"ask": 2}, idempotency_key="job-2")
    assert status == 200
    status, other = live.call("POST", f"{CHAT}/decisions", {}, idempotency_key="job-2#0")
    assert (status, other["decision"]) == (200, exchanged["decisions"][1]["decision"] + 1)
    assert live.call("POST", f"{CHAT}/exchange", {"ask": 2}, idempotency_key="job-2") == (200, exchanged)


@pytest.mark.parametrize("planted", [False, True])
def test_idempotency_keys_are_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: bool) -> None:
    """The planted fault stores them as they were sent."""
    if planted:
        caller = Context.caller
        monkeypatch.setattr(Context, "caller", lambda self: caller(self)._replace(key=self.key))
    with serving(str(tmp_path / "s.db")) as live:
        live.open()
        live.call("POST", f"{CHAT}/decisions", {}, idempotency_key="mail-of-alice")
        live.call("POST", f"{CHAT}/grants", {"amounts": {"usd": "1"}}, idempotency_key="mail-of-alice-2")
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert (b"mail-of-alice" in stored) is planted


def test_a_grant_needs_a_key_and_happens_once(live: Live) -> None:
    live.open("granted")
    path, body = "/v1/campaigns/granted/grants", {"amounts": {"usd": "100"}}
    status, problem = live.call("POST", path, body)
    assert (status, problem["type"]) == (422, "urn:driftsack:invalid")
    for _ in range(3):
        status, answer = live.call("POST", path, body, idempotency_key="october")
        assert (status, answer["budgets"][0]["granted"]) == (200, "101")


def test_exchange_tells_and_asks_at_once(live: Live) -> None:
    _, first = live.call("POST", f"{CHAT}/exchange", {"ask": 20}, idempotency_key="x1")
    numbers = [d["decision"] for d in first["decisions"] if not d["skipped"]]
    tells = [{"decision": n, "reward": 1, "costs": {"usd": "0.01"}} for n in [*numbers, 10**9]]
    status, second = live.call("POST", f"{CHAT}/exchange", {"tells": tells, "ask": 1})
    assert status == 200
    assert [answer["settled"]["state"] for answer in second["told"][:-1]] == ["told"] * len(numbers)
    assert second["told"][-1]["problem"]["status"] == 404
    assert live.call("POST", f"{CHAT}/exchange", {"ask": 20}, idempotency_key="x1")[1] == first


def test_budgets_grants_arms_and_states(live: Live) -> None:
    live.open("ops")
    path = "/v1/campaigns/ops"
    assert (
        live.call("POST", f"{path}/grants", {"amounts": {"usd": "2.5"}}, idempotency_key="g")[1]["budgets"][0][
            "granted"
        ]
        == "3.5"
    )
    assert live.call("POST", f"{path}/arms", {"name": "big/xl", "cost_max": {"usd": "0.1"}})[0] == 200
    assert live.call("PATCH", f"{path}/arms/small", {"offered": False})[0] == 200
    _, arms = live.call("PATCH", f"{path}/arms/big/xl", {"offered": False})
    assert [arm["offered"] for arm in arms["arms"]] == [False, True, False]
    assert live.call("PATCH", path, {"state": "paused"})[1]["state"] == "paused"
    assert live.call("POST", f"{path}/decisions", {})[1]["reason"] == "paused"
    assert live.call("PATCH", path, {"state": "closed"})[1]["state"] == "closed"
    assert live.call("POST", f"{path}/decisions", {})[0] == 409
    entries = live.call("GET", "/v1/audit")[1]["entries"]
    assert [entry["action"].split()[0] for entry in entries[:2]] == ["PATCH", "PATCH"]


def test_decisions_are_listed_by_pages(live: Live) -> None:
    live.open("pages", budget={"usd": "100"})
    live.call("POST", "/v1/campaigns/pages/exchange", {"ask": 250})
    numbers: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        _, page = live.call("GET", f"/v1/campaigns/pages/decisions?cursor={cursor}")
        numbers += [decision["decision"] for decision in page["decisions"]]
        cursor = page["cursor"]
    assert numbers == list(range(1, 251))
    assert live.call("GET", "/v1/campaigns/pages/decisions?cursor=nonsense")[0] == 422


def test_the_journal_is_exported_as_a_log(live: Live, tmp_path: Path) -> None:
    live.open("log", budget={"usd": "100"})
    _, found = live.call("POST", "/v1/campaigns/log/exchange", {"ask": 30})
    tells = [{"decision": d["decision"], "reward": 0.5, "costs": {"usd": "0.07"}} for d in found["decisions"]]
    live.call("POST", "/v1/campaigns/log/exchange", {"tells": tells})
    status, text = live.call("GET", "/v1/campaigns/log/export")
    assert status == 200
    (tmp_path / "log.csv").write_text(text)
    log = ds.logs.read(tmp_path / "log.csv")
    assert len(log.reward) == 30
    assert log.resources == ("cost_usd",)
    assert log.propensity is not None


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind"),
    [
        ("POST", f"{CHAT}/decisions", {"caps": {"usd": 0.5}}, 422, "invalid"),
        ("POST", f"{CHAT}/decisions", {"nonsense": 1}, 422, "invalid"),
        ("POST", f"{CHAT}/decisions", {"open": ["nobody"]}, 422, "invalid"),
        ("POST", f"{CHAT}/decisions/0/tell", {"reward": 1, "costs": {"usd": "1"}}, 404, "unknown-decision"),
        ("POST", f"{CHAT}/decisions/x/tell", {"reward": 1, "costs": {"usd": "1"}}, 404, "unknown-decision"),
        ("POST", f"{CHAT}/decisions/1/tell", {"reward": 1, "costs": {"eur": "1"}}, 422, "invalid"),
        ("POST", "/v1/campaigns/nobody/decisions", {}, 404, "unknown-campaign"),
        ("PUT", f"{CHAT}/decisions", {}, 405, "method-not-allowed"),
        ("GET", "/v2/everything", None, 404, "not-found"),
        ("POST", "/v1/campaigns", {"name": "chat", "config": {}}, 422, "invalid"),
        ("POST", f"{CHAT}/arms", {"name": "medium\n", "cost_max": {"usd": "0.1"}}, 422, "invalid"),
        ("PATCH", CHAT, {}, 422, "invalid"),
        ("DELETE", "/v1/keys/nobody", None, 404, "not-found"),
    ],
)
def test_errors_are_problem_documents(live: Live, method: str, path: str, body: Any, status: int, kind: str) -> None:
    found, problem = live.call(method, path, body)
    assert (found, problem["type"], problem["status"]) == (status, f"urn:driftsack:{kind}", status)
    assert problem["detail"]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (f"{CHAT}/decisions", "POST, GET"),
        (f"{CHAT}/arms/small", "PATCH"),
        ("/v1/keys", "GET, POST"),
        ("/healthz", "GET"),
    ],
)
def test_a_method_that_is_not_allowed_names_those_that_are(live: Live, path: str, allowed: str) -> None:
    head = raw_request(live, f"PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode()).decode()
    assert head.startswith("HTTP/1.1 405")
    assert f"\r\nallow: {allowed}\r\n" in head
    assert "\r\nallow:" not in raw_request(live, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").decode()


def test_the_audit_has_a_limit_and_unknown_parameters_are_refused(live: Live) -> None:
    for _ in range(3):
        live.call("POST", f"{CHAT}/grants", {"amounts": {"usd": "1"}}, idempotency_key=secrets.token_hex(8))
    entries = live.call("GET", "/v1/audit?limit=2")[1]["entries"]
    assert entries == live.call("GET", "/v1/audit")[1]["entries"][:2]
    of_decisions = write_cursor(1, "after")
    wrong = ("limit=0", "limit=1001", "limit=x", "cursor=5", f"cursor={of_decisions}", "limit=2&before=1")
    for query in wrong:
        status, problem = live.call("GET", f"/v1/audit?{query}")
        assert (status, problem["type"]) == (422, "urn:driftsack:invalid"), query
    assert live.call("GET", f"{CHAT}/decisions?after=2")[0] == 422
    parameters = document()["paths"]["/v1/audit"]["get"]["parameters"]
    assert [each["name"] for each in parameters] == ["limit", "cursor"]


def test_the_audit_is_read_by_pages(live: Live) -> None:
    for _ in range(5):
        live.call("POST", f"{CHAT}/grants", {"amounts": {"usd": "1"}}, idempotency_key=secrets.token_hex(8))
    whole = live.call("GET", "/v1/audit?limit=1000")[1]
    assert whole["cursor"] is None
    page = live.call("GET", "/v1/audit?limit=2")[1]
    entries = page["entries"]
    live.call(
        "POST", f"{CHAT}/grants", {"amounts": {"usd": "2"}}, idempotency_key="p"
    )  # new entries do not move the pages
    while page["cursor"] is not None:
        page = live.call("GET", f"/v1/audit?limit=2&cursor={page['cursor']}")[1]
        assert 0 < len(page["entries"]) <= 2
        entries += page["entries"]
    assert entries == whole["entries"]
    assert len(entries) > 5


def test_views_show_the_next_refill(live: Live) -> None:
    live.open("monthly", refill={"every": "month", "zone": "Europe/Berlin"})
    following = live.app.service.keeper.owned["monthly"].campaign.book.following
    assert following is not None
    assert following > 1000 * time.time()
    for path in ("", "/budgets"):
        assert live.call("GET", f"/v1/campaigns/monthly{path}")[1]["next_refill"] == following
        assert live.call("GET", f"{CHAT}{path}")[1]["next_refill"] is None
    grant = live.call("POST", "/v1/campaigns/monthly/grants", {"amounts": {"usd": "1"}}, idempotency_key="m")[1]
    assert grant["next_refill"] == following
    closed = live.call("PATCH", "/v1/campaigns/monthly", {"state": "closed"})[1]
    assert closed["next_refill"] is None  # it is not refilled again


def raw_request(live: Live, data: bytes) -> bytes:
    host, port = live.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(data)
        return connection.recv(65536)


def test_bodies_are_limited_in_size_type_and_time(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    head = f"POST {CHAT}/decisions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {live.key}\r\n".encode()
    assert b"413" in raw_request(live, head + b"Content-Length: 999999\r\n\r\n").split(b"\r\n")[0]
    assert b"400" in raw_request(live, head + b"Content-Length: 3\r\n\r\n{,}").split(b"\r\n")[0]
    text = head + b"Content-Type: text/xml\r\nContent-Length: 2\r\n\r\n{}"
    assert b"415" in raw_request(live, text).split(b"\r\n")[0]
    monkeypatch.setattr(asgi, "SLOW", 0.1)
    assert b"408" in raw_request(live, head + b"Content-Length: 20\r\n\r\n{").split(b"\r\n")[0]


def test_health_needs_no_key_and_shows_nothing(live: Live) -> None:
    assert live.call("GET", "/healthz", key="")[1] == {"ok": True}
    assert live.call("GET", "/readyz", key="") == (200, {"ready": True, "damaged": []})
    assert live.call("GET", "/metrics", key="")[0] == 401
    assert 'driftsack_campaign_pending{campaign="chat"}' in live.call("GET", "/metrics")[1]


def new_test_key(live: Live, scope: str, campaigns: list[str] | None) -> str:
    status, answer = live.call("POST", "/v1/keys", {"scopes": [scope], "campaigns": campaigns})
    assert status == 201
    return str(answer["key"])


def denied(status: int) -> bool:
    return status in (401, 403)


def wrong_answers(live: Live, keys: dict[tuple[str, bool], str]) -> list[str]:
    """Return the routes of the OpenAPI document that do not answer a key as declared."""
    wrong = []
    for path, methods in document()["paths"].items():
        for method, declared in methods.items():
            if "x-scope" not in declared:
                continue
            for campaign in ("chat", "other"):
                concrete = path.replace("{campaign}", campaign).replace("{decision}", "999999")
                concrete = concrete.replace("{arm}", "nobody").replace("{key}", "0" * 12)
                body = {"nonsense": True} if "requestBody" in declared else None
                assert live.call(method.upper(), concrete, body, key="")[0] == 401
                for (scope, limited), key in keys.items():
                    allowed = declared["x-scope"] in ALLOWS[scope]
                    if limited and ("{campaign}" in path or not declared["x-limited-keys"]):
                        allowed = allowed and "{campaign}" in path and campaign == "chat"
                    status, _ = live.call(method.upper(), concrete, body, key=key)
                    if denied(status) == allowed or status >= 500:
                        wrong.append(f"{method} {concrete} with {scope}, limited {limited}: {status}")
    return wrong


def test_every_route_asks_for_its_scope_and_campaign(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {
        (scope, limited): new_test_key(live, scope, ["chat"] if limited else None)
        for scope in ALLOWS
        for limited in (False, True)
    }
    assert wrong_answers(live, keys) == []
    assert len(ROUTES) == sum("x-scope" in m for methods in document()["paths"].values() for m in methods.values())
    planted: list[tuple[str, str, dict[str, Any]]] = [("POST", "grants", {"scope": "read"})]
    planted.append(("GET", "audit", {"limited_ok": True}))
    for method, last, change in planted:  # a route that asks for less, and one that forgets limits
        place = next(key for key in routes.TABLE if key[0] == method and key[1][-1] == last)
        with monkeypatch.context() as patch:
            patch.setitem(routes.TABLE, place, routes.TABLE[place]._replace(**change))
            assert wrong_answers(live, keys)


def test_keys_expire_are_removed_and_never_shown(live: Live) -> None:
    key = new_test_key(live, "read", None)
    assert live.call("GET", CHAT, key=key)[0] == 200
    shown = live.call("GET", "/v1/keys")[1]["keys"]
    assert key not in str(shown)
    prefix = key.split("_")[1]
    assert prefix in {row["prefix"] for row in shown}
    assert live.call("GET", CHAT, key=key[:-1] + ("0" if key[-1] != "0" else "1"))[0] == 401
    assert live.call("DELETE", f"/v1/keys/{prefix}")[0] == 200
    assert live.call("GET", CHAT, key=key)[0] == 401
    old, row = new_key(("read",), expires=int(1000 * time.time()) - 1)
    live.app.service.keeper.store.add_key(row)
    live.app.service.keyring.load()
    assert live.call("GET", CHAT, key=old)[0] == 401


@pytest.mark.parametrize(("scheme", "status"), [("Bearer", 200), ("bearer", 200), ("Basic ", 401), ("xxxxxx", 401)])
def test_the_authorisation_scheme_is_checked(live: Live, scheme: str, status: int) -> None:
    assert live.call("GET", CHAT, authorization=f"{scheme} {live.key}")[0] == status


def test_requests_without_a_key_and_with_one_are_limited(tmp_path: Path) -> None:
    with serving(str(tmp_path / "s.db"), rate=2.0) as live:
        found = [live.call("GET", "/v1/campaigns", key="nobody")[0] for _ in range(60)]
        assert set(found) == {401, 429}
        allowed = [live.call("GET", "/v1/campaigns")[0] for _ in range(8)]
        assert allowed.count(200) in (4, 5)
        assert 429 in allowed


def test_a_replica_forwards_to_the_owner(postgres: LocalPostgres) -> None:
    address = postgres.new_database()
    with serving(address, lease=2.0) as first:
        first.open("chat")
        with serving(address, lease=2.0) as second:
            other = Live(second.app, second.url, first.key)
            asked = other.ask()
            assert asked["decision"] >= 1
            assert first.call("GET", f"{CHAT}/decisions/{asked['decision']}")[1]["state"] == "pending"
            assert other.call("GET", f"{CHAT}/budgets")[1]["budgets"][0]["reserved"] == "0.1"
            assert not second.app.service.keeper.owned


def test_a_replica_passes_on_what_the_owner_says_about_trying_again(postgres: LocalPostgres) -> None:
    """The owner refuses because of its rate limit, or because it does not know the key."""
    address = postgres.new_database()
    with serving(address, lease=2.0, rate=1e-9) as first:  # one request for each key
        first.open("chat")
        keyring, store = first.app.service.keyring, first.app.service.keeper.store
        key, row = new_key(("decide",))
        store.add_key(row)
        keyring.load()
        with serving(address, lease=2.0) as second:
            ask = f"POST {CHAT}/decisions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n".encode()
            ask += b"Content-Length: 2\r\n\r\n{}"
            other = Live(second.app, second.url, key)
            assert b"HTTP/1.1 200" in raw_request(other, ask)
            limited = raw_request(other, ask)
            assert limited.startswith(b"HTTP/1.1 429")
            assert b"\r\nretry-after: 1\r\n" in limited
            store.remove_key(row.prefix)
            keyring.load()
            unknown = raw_request(other, ask)
            assert unknown.startswith(b"HTTP/1.1 401")
            assert b"\r\nwww-authenticate: Bearer\r\n" in unknown


def test_the_document_is_openapi() -> None:
    found = document()
    assert found["openapi"] == "3.1.0"
    names = re.findall(r"#/components/schemas/(\w+)", str(found))
    assert set(names) <= set(found["components"]["schemas"])
    assert all("summary" in declared for methods in found["paths"].values() for declared in methods.values())


@pytest.mark.parametrize(
    ("proxies", "client", "believed"),
    [("", "10.0.0.1", False), ("10.0.0.1", "10.0.0.1", True), ("10.0.0.1", "10.0.0.2", False)],
)
def test_forwarded_headers_are_believed_only_from_listed_proxies(proxies: str, client: str, believed: bool) -> None:
    """The headers claim that the request came from 6.6.6.6 over HTTPS; any client can send such headers."""
    seen: list[tuple[str, str]] = []

    async def app(scope: Any, *_: Any) -> None:
        seen.append((scope["client"][0], scope["scheme"]))

    config = server_config(app, Settings(proxies=proxies))
    config.load()
    headers = [(b"x-forwarded-for", b"6.6.6.6"), (b"x-forwarded-proto", b"https")]
    scope: Any = {"type": "http", "client": (client, 1), "scheme": "http", "headers": headers}
    asyncio.run(config.loaded_app(scope, None, None))
    assert seen == [("6.6.6.6", "https") if believed else (client, "http")]


@pytest.mark.parametrize("shared", [False, True])
def test_long_reads_leave_threads_for_short_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    """Six reads of a journal do not end. The planted fault: they share the threads of short reads."""
    done, begun = threading.Event(), threading.Semaphore(0)

    def endless(*_: Any) -> Any:
        begun.release()
        done.wait(30)
        raise StoreError("it was an experiment.")

    monkeypatch.setattr("driftsack.service.projections.export.as_csv", endless)
    monkeypatch.setattr("driftsack.service.projections.explain.why", endless)
    with serving(str(tmp_path / "s.db")) as live, ThreadPoolExecutor(8) as pool:
        live.open()
        number = live.ask()["decision"]
        keeper = live.app.service.keeper
        if shared:
            keeper.threads = replace(keeper.threads, readers=keeper.threads.others)
        paths = [f"{CHAT}/export", f"{CHAT}/decisions/{number}/why"] * 3
        keys = [new_test_key(live, "read", None) for _ in paths]  # the reads of one key wait for each other
        long = [pool.submit(live.call, "GET", path, None, key) for path, key in zip(paths, keys, strict=True)]
        for _ in range(2 if shared else 4):  # every thread of the pool is busy
            assert begun.acquire(timeout=20)
        short = pool.submit(live.call, "GET", "/v1/campaigns")
        blocked = not wait([short], timeout=1.0 if shared else 20.0).done
        done.set()
        assert blocked is shared
        assert short.result() == (200, {"campaigns": ["chat"], "after": None})
        assert [each.result()[0] for each in long] == [503] * len(paths)
