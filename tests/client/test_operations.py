"""The client creates and changes campaigns, exchanges many outcomes, and settles decisions by id in another process."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

import msgspec
import pytest

from driftsack.client import AsyncClient, Client, RemoteOutcome, ServiceError
from driftsack.client.operations import Operations
from driftsack.client.transport import Transport
from driftsack.core.errors import SettingError
from tests.support.campaigns import small
from tests.support.live_service import serving

CONFIG: dict[str, Any] = msgspec.to_builtins(small(slots=4, budget={"usd": "10"}))


def test_a_campaign_is_created_and_changed(tmp_path: Path) -> None:
    with serving(str(tmp_path / "s.db")) as live, Client(live.url, live.key, "chat") as client:
        assert client.create(CONFIG)["name"] == client.create(CONFIG)["name"] == "chat"
        client.add_arm("a/b", cost_max={"usd": 0.05})
        client.retire_arm("small")
        client.retire_arm("a/b")
        client.reopen_arm("a/b")
        found = {arm["name"]: (arm["offered"], arm["cost_max"]["usd"]) for arm in client.arms()}
        assert found == {"small": (False, "0.1"), "large": (True, "0.1"), "a/b": (True, "0.05")}
        client.grant({"usd": "2.5"})
        client.charge({"usd": "0.5"})
        assert [(one["granted"], one["spent"]) for one in client.budgets()] == [("12.5", "0.5")]
        assert client.set_state("paused")["state"] == "paused"
        assert client.ask().reason == "paused"
        client.revise(5000)
        assert client.set_state("active")["state"] == client.describe()["state"] == "active"
        with pytest.raises(ServiceError, match="the arms are"):
            client.retire_arm("none")


def test_outcomes_and_decisions_are_exchanged(tmp_path: Path) -> None:
    with serving(str(tmp_path / "s.db")) as live, Client(live.url, live.key, "chat") as client:
        client.create(CONFIG)
        first, refused = client.exchange(ask=6, terms={"caps": {"usd": 0.02}})
        asked = [decision for decision in first if not decision.skipped]
        assert len(first) == 6
        assert not refused
        assert {decision.reserved["usd"] for decision in asked} == {"0.02"}
        outcomes = [RemoteOutcome(decision, 1.0, {"usd": "0.01"}) for decision in asked]
        found = client.exchange(tells=[*outcomes, RemoteOutcome(asked[0], 0.0, {"usd": "0.01"})])
        assert [(told.reward, error.kind) for told, error in found.refused] == [(0.0, "already-settled")]
        assert client.describe()["told"] == len(asked)


def test_another_process_tells_by_id_what_a_client_kept(tmp_path: Path) -> None:
    """A client that is closed does not forfeit what a webhook will settle; by default it does."""
    with serving(str(tmp_path / "s.db")) as live, Client(live.url, live.key, "chat") as webhook:
        webhook.create(CONFIG)
        for pending, state in (("keep", "pending"), ("forfeit", "expired")):
            with Client(live.url, live.key, "chat") as client:
                decision = client.ask(must=True)
                client.close(pending)  # type: ignore[arg-type]
            assert live.call("GET", f"/v1/campaigns/chat/decisions/{decision.number}")[1]["state"] == state
            webhook.tell(decision.id, costs={"usd": "0.01"})
            webhook.tell(decision.id, reward=1.0)
            assert live.call("GET", f"/v1/campaigns/chat/decisions/{decision.number}")[1]["state"] == "told"
            with pytest.raises(ServiceError, match="token"):
                webhook.cancel(f"{decision.number}-{'0' * 24}")
        with pytest.raises(SettingError, match="its id"):
            webhook.tell("decision 7")
        with pytest.raises(SettingError, match="pending"):
            webhook.close("drop")  # type: ignore[arg-type]


def test_decisions_of_an_exchange_whose_answer_is_lost_are_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, lost = Transport.send, list[Any]()

    def losing(self: Transport, path: str, data: bytes, once: str) -> tuple[int, Any]:
        answer = send(self, path, data, once)
        if path == "/exchange" and not lost:
            lost.append(answer)
            raise OSError("the answer is lost")
        return answer

    with serving(str(tmp_path / "s.db")) as live, Client(live.url, live.key, "chat", patience=0.0) as client:
        live.open(budget={"usd": "10"})
        monkeypatch.setattr(Transport, "send", losing)
        with pytest.raises(ServiceError):
            client.exchange(ask=20)
        assert client.budgets()[0]["reserved"] != "0"
        client.cancel_lost()
        assert client.budgets()[0]["reserved"] == "0"


def test_the_async_client_has_every_call(tmp_path: Path) -> None:
    public = {name for name, _ in inspect.getmembers(Operations, inspect.isfunction) if not name.startswith("_")}
    for name in public | {"exchange", "tell", "close"}:
        own, other = inspect.signature(getattr(AsyncClient, name)), inspect.signature(getattr(Client, name))
        assert list(own.parameters) == list(other.parameters), name

    async def play(url: str, key: str) -> None:
        async with AsyncClient(url, key, "chat") as client:
            await client.create(CONFIG)
            await client.add_arm("third")
            decisions = (await client.exchange(ask=3)).decisions
            told = [RemoteOutcome(each.id, 1.0, {"usd": "0.01"}) for each in decisions if not each.skipped]
            assert not (await client.exchange(tells=told)).refused
            assert (await client.describe())["told"] == len(told)
            kept = await client.ask(must=True)
            await client.close(pending="keep")
            assert (await client.budgets())[0]["reserved"] == "0.1"
            await client.forfeit(kept.id)

    with serving(str(tmp_path / "s.db")) as live:
        asyncio.run(play(live.url, live.key))
