"""No reservation is left without an owner, however calls end: the short form of ``python -m lab orphans``."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path
from typing import Any

import pytest

from driftsack.client import AsyncClient, Client, ServiceUnavailableError
from driftsack.client.transport import Transport
from tests.client.test_client import budget, client_of
from tests.support.live_service import Live, serving

CLIENTS, ASKS = 6, 15


class Lossy:
    """Lets a share of all answers be lost after the service has sent them, and delays others."""

    def __init__(self, seed: int) -> None:
        self._rng, self._send = random.Random(seed), Transport.send

    def install(self, patch: pytest.MonkeyPatch) -> None:
        def send(transport: Transport, path: str, data: bytes, once: str) -> Any:
            found = self._send(transport, path, data, once)
            if self._rng.random() < 0.15:
                raise ConnectionResetError("the answer was lost")
            time.sleep(0.02 * self._rng.random())
            return found

        patch.setattr(Transport, "send", send)


async def ask_and_give_up(live: Live, seed: int) -> None:
    """Ask, cancel calls at random, and tell half of the decisions."""
    rng = random.Random(seed)
    async with AsyncClient(live.url, live.key, "chat", patience=5.0) as client:

        async def once() -> None:
            decision = await client.ask()
            if not decision.skipped and rng.random() < 0.5:
                await client.tell(decision, 1.0, {"usd": "0.01"})
            elif not decision.skipped:
                await client.cancel(decision)

        for _ in range(ASKS):
            call = asyncio.ensure_future(once())
            await asyncio.sleep(0.03 * rng.random())
            if rng.random() < 0.5:
                call.cancel()
            await asyncio.gather(call, return_exceptions=True)


@pytest.mark.parametrize("planted", [False, True])
def test_nothing_is_left_of_clients_that_were_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    """The planted fault is to forget the key of a request whose answer was lost."""
    if planted:
        monkeypatch.setattr(Client, "cancel_lost", lambda self, patience=0.0: None)

    async def play(live: Live) -> None:
        await asyncio.gather(*(ask_and_give_up(live, seed) for seed in range(CLIENTS)))

    with serving(str(tmp_path / "s.db")) as live:
        live.open(budget={"usd": "1000"})
        Lossy(1).install(monkeypatch)
        asyncio.run(play(live))
        monkeypatch.undo()
        left = live.call("GET", "/v1/campaigns/chat")[1]["pending"]
        assert (left > 0) == planted
        assert planted or budget(live)["reserved"] == "0"


def test_a_stock_on_a_frozen_service_is_never_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ask of a client with a stock loses its answer; the decisions are found and cancelled afterwards."""
    send = Transport.send
    frozen = False

    def late(transport: Transport, path: str, data: bytes, once: str) -> Any:
        found = send(transport, path, data, once)
        if frozen:
            raise TimeoutError("timed out")
        return found

    monkeypatch.setattr(Transport, "send", late)
    with serving(str(tmp_path / "s.db")) as live:
        live.open(fallback="small", horizon=10_000, budget={"usd": "1000"})
        client = client_of(live, offline="stock", stock=3)
        client.cancel(client.ask())
        frozen = True
        used = [client.ask() for _ in range(3)]
        for _ in range(4):
            with pytest.raises(ServiceUnavailableError):
                client.ask()
        assert live.call("GET", "/v1/campaigns/chat")[1]["pending"] == 10
        frozen = False
        for held in used:
            client.tell(held, 1.0, {"usd": "0.01"})
        client.close()
        assert (budget(live)["spent"], budget(live)["reserved"]) == ("0.03", "0")


def test_an_interrupted_call_is_cancelled_not_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal handler raises while the answer is on its way."""
    send = Transport.send

    def interrupted(transport: Transport, path: str, data: bytes, once: str) -> Any:
        found = send(transport, path, data, once)
        if path == "/decisions":
            monkeypatch.setattr(Transport, "send", send)
            raise KeyboardInterrupt
        return found

    with serving(str(tmp_path / "s.db")) as live:
        live.open(fallback="small", horizon=10)
        client = client_of(live)
        monkeypatch.setattr(Transport, "send", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.ask()
        assert budget(live)["reserved"] == "0.1"
        client.close()
        assert (budget(live)["spent"], budget(live)["reserved"]) == ("0", "0")
