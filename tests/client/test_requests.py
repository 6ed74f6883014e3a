"""Musts and price lists from the clients to the journal: online, offline from the stock, over HTTP, and explained."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from driftsack.client import AsyncClient, Client
from driftsack.client.messages import ServiceUnavailableError
from driftsack.client.transport import Transport
from driftsack.core.errors import SettingError
from driftsack.service.web.api.openapi import document
from tests.support.live_service import Live, serving

ADAPTIVE = {"policy": "Adaptive"}
LISTS: dict[str, Any] = {"usd": {"small": 0.01, "large": "0.04"}}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serving(str(tmp_path_factory.mktemp("requests") / "s.db"), {"failures": 1e9}) as found:
        yield found


def test_both_clients_pass_musts_and_lists(live: Live) -> None:
    live.open("chat", policy=ADAPTIVE, horizon=100)
    with Client(live.url, live.key, "chat") as client:
        for _ in range(11):  # the budget covers ten
            decision = client.ask(must=True, costs=LISTS)
            assert not decision.skipped
            client.tell(decision, 1.0, {"usd": "0.1"})
        assert client.ask().reason == "budget"

    async def one_more() -> bool:
        async with AsyncClient(live.url, live.key, "chat") as client:
            return (await client.ask(must=True, costs={"usd": 0.02})).skipped

    assert not asyncio.run(one_more())
    why = live.call("GET", "/v1/campaigns/chat/decisions/7/why")[1]
    assert why["same"]
    status, answer = live.call(
        "POST", "/v1/campaigns/chat/exchange", {"ask": 2, "terms": {"must": True, "costs": {"usd": "0.02"}}}
    )
    assert status == 200
    assert [decided["skipped"] for decided in answer["decisions"]] == [False, False]
    assert {"must", "costs"} <= document()["components"]["schemas"]["Ask"]["properties"].keys()


def test_a_wrong_list_is_refused_with_a_reason(live: Live) -> None:
    live.open("wrong")
    body = {"costs": {"usd": "0.1"}}
    status, problem = live.call("POST", "/v1/campaigns/wrong/decisions", body)
    assert (status, "cannot use listed costs" in problem["detail"]) == (422, True)
    client = Client("http://localhost:1", "k", "c")
    for given in ([0.02], {"usd": {"small": "two"}}, {"usd": "two"}):
        with pytest.raises(SettingError, match="costs"):
            client.ask(costs=given)  # type: ignore[arg-type]


def test_a_must_may_be_served_from_the_stock_and_a_list_may_not(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision in stock is one to serve; but it was made without the list of this request."""
    live.open("stock", policy=ADAPTIVE, horizon=100)
    with Client(live.url, live.key, "stock", offline="stock", stock=2) as client:
        client.ask()

        def away(*_: Any, **__: Any) -> Any:
            raise ServiceUnavailableError(503, "unavailable", "away")

        with monkeypatch.context() as patch:
            patch.setattr(Transport, "post", away)
            assert not client.ask(must=True).skipped
            with pytest.raises(ServiceUnavailableError):
                client.ask(must=True, costs=LISTS)
