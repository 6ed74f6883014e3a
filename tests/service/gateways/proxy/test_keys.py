"""Keys are checked before anything else, once; and nothing waits for a service that is away."""

from __future__ import annotations

import asyncio
import socket
import traceback
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest

from driftsack.client.transport import Transport
from driftsack.service.domain.config import Limit
from driftsack.service.gateways.proxy import clients
from driftsack.service.gateways.proxy.rejections import Rejected
from driftsack.service.gateways.proxy.settings import ProxySettings
from tests.support.gateways import HELLO, Gate, gate

WRONG = f"ds_{'0' * 12}_{'0' * 64}"


@pytest.fixture
def found(tmp_path: Any) -> Iterator[Gate]:
    with gate(str(tmp_path), ["fine"]) as one:
        yield one


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the requests that the proxy sends to the service."""
    paths: list[str] = []
    usual = Transport.send

    def noted(self: Transport, path: str, *given: Any) -> Any:
        paths.append(path)
        return usual(self, path, *given)

    monkeypatch.setattr(Transport, "send", noted)
    return paths


def statuses(found: Gate, keys: list[str]) -> set[int]:
    """Send a request with each key at the same time."""
    body = {"model": "fine", "messages": HELLO}
    with ThreadPoolExecutor(32) as threads:
        return set(threads.map(lambda key: found.post("/v1/chat/completions", body, key)[0], keys))


def test_what_is_no_key_never_reaches_the_service(found: Gate, sent: list[str]) -> None:
    assert statuses(found, ["x", "ds_wrong", WRONG + "0", WRONG.upper()]) == {401}
    assert sent == []


def test_a_rejection_that_is_kept_does_not_grow(found: Gate) -> None:
    async def frames() -> list[int]:
        pool, counted = clients.ClientPool(ProxySettings([], "chat", service=found.live.url)), []
        for _ in range(3):
            with pytest.raises(Rejected) as caught:
                await pool.check(WRONG, "chat")
            counted.append(len(list(traceback.walk_tb(caught.value.__traceback__))))
        await pool.close()
        return counted

    first, *others = asyncio.run(frames())
    assert others == [first, first]


def test_a_wrong_key_is_asked_about_once_and_never_again(found: Gate, sent: list[str]) -> None:
    assert statuses(found, [WRONG] * 100) == {401}
    assert sent == ["/exchange"]
    # Many wrong keys are not retried either, although the service soon answers them with 429.
    many = [f"ds_{'0' * 12}_{number:064x}" for number in range(1, 101)]
    assert statuses(found, many) <= {401, 429}
    assert len(sent) == 101
    found.complete("fine")  # and the caller with a key is served


def test_a_proxy_that_retries_wrong_keys_is_found(
    found: Gate, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: the answer to a wrong key is not kept."""
    monkeypatch.setattr(clients, "WRONG", -1.0)
    for _ in range(3):
        statuses(found, [WRONG])
    assert len(sent) == 3


def test_a_key_of_another_campaign_or_scope_is_refused(found: Gate) -> None:
    for body in ({"scopes": ["read"]}, {"scopes": ["decide"], "campaigns": ["other"]}):
        _, created = found.live.call("POST", "/v1/keys", body)
        with pytest.raises(openai.PermissionDeniedError):
            found.openai(api_key=created["key"]).models.list()
    _, created = found.live.call("POST", "/v1/keys", {"scopes": ["decide"], "campaigns": ["chat"]})
    assert found.openai(api_key=created["key"]).chat.completions.create(model="fine", messages=HELLO).choices
    assert found.anthropic(api_key=created["key"]).models.list().data


def test_a_key_that_was_removed_decides_nothing(found: Gate) -> None:
    _, created = found.live.call("POST", "/v1/keys", {"scopes": ["decide"]})
    client = found.openai(api_key=created["key"])
    client.chat.completions.create(model="fine", messages=HELLO)
    found.live.call("DELETE", f"/v1/keys/{created['prefix']}")
    for _ in range(2):
        with pytest.raises(openai.AuthenticationError):
            client.chat.completions.create(model="fine", messages=HELLO)


def test_a_service_that_is_away_is_noticed_once(tmp_path: Any, sent: list[str]) -> None:
    with gate(str(tmp_path), ["fine"], patience=0.3) as found:
        found.complete("fine")
        found.live.app.service.keeper.store.close()
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            away = f"http://127.0.0.1:{nobody.getsockname()[1]}"
            for client in found.proxy._gateway.clients._clients.values():  # type: ignore[union-attr]
                client._client._transport._parts = urllib.parse.urlsplit(away)
                client.drop_connections()
            sent.clear()
            answers = {found.post("/v1/chat/completions", {"model": "fine", "messages": HELLO})[0] for _ in range(20)}
            assert answers == {503}
            assert len(sent) <= 6


def test_a_header_that_is_too_large_is_refused(found: Gate) -> None:
    host = urllib.parse.urlsplit(found.url)
    with socket.create_connection((host.hostname or "", host.port or 0)) as connection:
        connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Large: " + b"x" * 200_000)
        assert connection.recv(100).startswith(b"HTTP/1.1 431")


def test_the_labels_of_a_key_and_of_a_request_limit_it(tmp_path: Any) -> None:
    limits = [Limit("user", {"usd": "0.01"}, "day"), Limit("run", {"usd": "0.004"})]
    with gate(str(tmp_path), ["fine"], campaign={"limits": limits}) as found:
        status, made = found.live.call("POST", "/v1/keys", {"scopes": ["decide"], "labels": {"user": "ann"}})
        assert status == 201
        body = {"model": "fine", "messages": HELLO, "max_tokens": 300}

        def answer(**headers: str) -> tuple[int, str]:
            given = {"authorization": f"Bearer {made['key']}"} | headers
            response = httpx.post(f"{found.url}/v1/chat/completions", json=body, headers=given)
            return response.status_code, response.json().get("error", {}).get("code", "")

        assert answer()[0] == 200
        accounts = found.live.app.service.keeper.owned["chat"].campaign.limits.accounts
        assert [list(each.live(0)) for each in accounts] == [["ann"], []]
        assert answer(**{"x-driftsack-labels": "user=bob"}) == (403, "forbidden")
        assert answer(**{"x-driftsack-labels": "run"}) == (400, "invalid_request")
        assert {answer(**{"x-driftsack-labels": "run=r1"}) for _ in range(30)} == {(200, ""), (402, "limit_exhausted")}
        assert answer()[0] == 200
