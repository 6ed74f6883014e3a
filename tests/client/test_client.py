"""The client: ask and tell, retries, and the behaviour while the service is unavailable."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from driftsack.client import AsyncClient, Client, RemoteDecision, ServiceError, ServiceUnavailableError
from driftsack.client.transport import Transport
from driftsack.core.errors import SettingError
from tests.support.live_service import Live, serving


def client_of(live: Live, **settings: Any) -> Client:
    return Client(live.url, live.key, "chat", **{"patience": 0.2, **settings})


def decide(client: Client) -> Any:
    while True:
        decision = client.ask()
        if decision.reason != "policy":
            return decision


def budget(live: Live) -> Any:
    return live.call("GET", "/v1/campaigns/chat/budgets")[1]["budgets"][0]


def test_ask_tell_and_forfeit_what_was_not_told(tmp_path: Path) -> None:
    with serving(str(tmp_path / "s.db")) as live:
        live.open()
        with client_of(live) as client:
            decision = decide(client)
            client.tell(decision, 1.0, {"usd": 0.02})
            client.tell(decision, 1.0, {"usd": "0.02"})  # again
            with pytest.raises(ServiceError, match="already-settled"):
                client.tell(decision, 0.0, {"usd": 0.02})
            client.cancel(decide(client))
            client.extend(decide(client), 90)
            assert budget(live)["reserved"] == "0.1"
        assert (budget(live)["reserved"], budget(live)["spent"]) == ("0", "0.12")


def test_the_parts_of_an_outcome_and_charges(tmp_path: Path) -> None:
    """A decision that was only billed is forfeited at the end, at no further charge; one that is complete is not."""
    with serving(str(tmp_path / "s.db")) as live:
        live.open()
        with client_of(live) as client:
            decision, billed = decide(client), decide(client)
            client.tell(decision, costs={"usd": 0.02})
            client.tell(billed, costs={"usd": 0.03})
            assert (budget(live)["reserved"], budget(live)["spent"]) == ("0", "0.05")
            client.tell(decision, reward=1.0)
            client.tell(decision, costs={"usd": 0.02})
            with pytest.raises(ServiceError, match="told before, with another value"):
                client.tell(billed, costs={"usd": 0.02})
            with pytest.raises(ServiceError, match="tell needs the reward, the costs, or both"):
                client.tell(billed)
            client.charge({"usd": "0.1"})
        numbers = {number: live.call("GET", f"/v1/campaigns/chat/decisions/{number}")[1] for number in (1, 2, 3)}
        states = [one["state"] for one in numbers.values() if one.get("arm")]
        assert states.count("told") == states.count("expired") == 1
        assert (budget(live)["reserved"], budget(live)["spent"]) == ("0", "0.15")
        status, answer = live.call("POST", "/v1/campaigns/chat/charges", {"amounts": {"usd": "0.1"}})
        assert (status, "Idempotency-Key" in answer["detail"]) == (422, True)
        exchanged = live.call(
            "POST", "/v1/campaigns/chat/exchange", {"tells": [{"decision": billed.number, "reward": 1}]}
        )
        assert exchanged[1]["told"][0]["settled"]["state"] == "told"


def test_async(tmp_path: Path) -> None:
    async def play(live: Live) -> None:
        async with AsyncClient(live.url, live.key, "chat") as client:
            for _ in range(5):
                decision = await client.ask()
                await client.tell(decision, 1.0, {"usd": "0.02"})
            await client.cancel(await client.ask())
            decision = await client.ask()
            while decision.skipped:
                decision = await client.ask()
            await client.extend(decision, 5000)
            status, found = live.call("GET", f"/v1/campaigns/chat/decisions/{decision.number}")
            assert status == 200
            assert found["seconds_left"] > 4000
            await client.forfeit(decision)

    with serving(str(tmp_path / "s.db")) as live:
        live.open()
        asyncio.run(play(live))
        assert budget(live)["reserved"] == "0"


def test_the_default_executor_is_left_to_the_application(tmp_path: Path) -> None:
    """Calls go on while every thread of the default executor is busy, which name look-ups use, too."""
    free = threading.Event()

    async def play(live: Live) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        blocked = asyncio.ensure_future(asyncio.to_thread(free.wait, 20))
        async with AsyncClient(live.url, live.key, "chat") as client:
            await client.tell(await client.ask(), 1.0, {"usd": "0.02"})
        assert not blocked.done()
        free.set()
        await blocked

    with serving(str(tmp_path / "s.db")) as live:
        live.open()
        asyncio.run(play(live))


@pytest.mark.parametrize("planted", [False, True])
def test_a_cancelled_call_leaves_no_reservation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: bool) -> None:
    """The decision is cancelled without a charge. The planted fault, to leave it alone, is charged on closing."""
    asked, send = threading.Event(), Transport.send

    def slow(self: Transport, path: str, data: bytes, once: str) -> Any:
        found = send(self, path, data, once)
        if path == "/decisions":
            asked.wait(20)
        return found

    async def play(live: Live) -> None:
        async with AsyncClient(live.url, live.key, "chat") as client:
            calls = [asyncio.ensure_future(client.ask()) for _ in range(3)]
            while live.call("GET", "/v1/campaigns/chat")[1]["decisions"] < 3:
                await asyncio.sleep(0.01)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            asked.set()

    monkeypatch.setattr(Transport, "send", slow)
    if planted:
        monkeypatch.setattr(AsyncClient, "_cancel_abandoned", lambda self, call: call.result() and None)
    with serving(str(tmp_path / "s.db")) as live:
        live.open(fallback="small", horizon=10)
        asyncio.run(play(live))
        assert (budget(live)["reserved"], budget(live)["spent"]) == ("0", "0.3" if planted else "0")


def losing_answers(times: int, of: str = "") -> Callable[..., Any]:
    """Return a replacement for ``Transport.send`` that loses the first responses, of paths that end with ``of``."""
    send = Transport.send
    left = [times]

    def lossy(self: Transport, path: str, data: bytes, once: str) -> Any:
        answer = send(self, path, data, once)
        if left[0] and path.endswith(of):
            left[0] -= 1
            raise ConnectionResetError("the answer was lost")
        return answer

    return lossy


def test_a_lost_answer_is_no_second_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(str(tmp_path / "s.db")) as live:
        live.open()
        client = client_of(live, patience=5.0)
        monkeypatch.setattr(Transport, "send", losing_answers(2))
        decision = decide(client)
        assert budget(live)["reserved"] == "0.1"
        client.cancel(decision)
        client.close()


@pytest.mark.parametrize("closing", [False, True])
@pytest.mark.parametrize("planted", [False, True])
def test_a_decision_whose_answer_was_lost_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closing: bool, planted: bool
) -> None:
    """By the next call that gets through, or on closing. The planted fault is to forget the key of the request."""
    if planted:
        monkeypatch.setattr(Client, "cancel_lost", lambda self, patience=0.0: None)
    with serving(str(tmp_path / "s.db")) as live:
        live.open(fallback="small", horizon=10)
        client = client_of(live, patience=0.0)
        monkeypatch.setattr(Transport, "send", losing_answers(1, "/decisions"))
        with pytest.raises(ServiceUnavailableError):
            client.ask()
        assert budget(live)["reserved"] == "0.1"
        if not closing:
            client.cancel(client.ask())
            assert budget(live)["reserved"] == ("0.1" if planted else "0")
        client.close()
        assert (budget(live)["reserved"], budget(live)["spent"]) == ("0.1" if planted else "0", "0")


@pytest.mark.parametrize("closing", [False, True])
def test_a_stock_whose_answer_was_lost_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closing: bool
) -> None:
    with serving(str(tmp_path / "s.db")) as live:
        live.open(fallback="small", horizon=10)
        client = client_of(live, offline="stock", stock=3, patience=0.0)
        monkeypatch.setattr(Transport, "send", losing_answers(1, "/exchange"))
        client.cancel(client.ask())
        assert budget(live)["reserved"] == "0.3"
        if not closing:
            client.cancel(client.ask())
            assert budget(live)["reserved"] == "0.3"  # with another key there would be three more
        client.close()
        assert (budget(live)["reserved"], budget(live)["spent"]) == ("0", "0")


def test_a_client_that_repeats_without_its_key_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: each attempt has its own idempotency key, so a lost response reserves twice."""
    with serving(str(tmp_path / "s.db")) as live:
        live.open()
        client = client_of(live, patience=5.0)
        lossy, count = losing_answers(2), iter(range(100))
        monkeypatch.setattr(Transport, "send", lambda self, path, data, _: lossy(self, path, data, f"k{next(count)}"))
        decide(client)
        assert budget(live)["reserved"] != "0.1"
        client.close()


def test_offline(tmp_path: Path) -> None:
    """While the service is away, closed raises, open uses the default arm, and stock uses its decisions."""
    with serving(str(tmp_path / "s.db")) as live:
        live.open()
        closed, open_ = client_of(live), client_of(live, offline="open", default="small")
        stock = client_of(live, offline="stock", stock=3)
        first = decide(stock)
        assert budget(live)["reserved"] == "0.4"
    with pytest.raises(ServiceUnavailableError):
        closed.ask()
    decision = open_.ask()
    assert (decision.name, decision.number) == ("small", None)
    open_.tell(decision, 1.0, {"usd": 1})
    used = [stock.ask() for _ in range(3)]
    assert all(held.number is not None for held in used)
    with pytest.raises(ServiceUnavailableError, match="no decision is in stock"):
        stock.ask()
    for held in (first, *used):
        stock.tell(held, 1.0, {"usd": "0.05"})
    with serving(str(tmp_path / "s.db"), port=int(live.url.rpartition(":")[2])) as again:
        for client in (stock, closed, open_):
            client.close()
        here = Live(again.app, again.url, live.key)
        assert (budget(here)["spent"], budget(here)["reserved"]) == ("0.2", "0")


@pytest.mark.parametrize("given", [[0.02], 0.02, None, "0.02", {"usd": "two"}, {"usd": None}])
def test_amounts_must_be_a_mapping_by_resource(given: Any) -> None:
    client, decision = Client("http://localhost:1", "k", "c"), RemoteDecision(1, "small", skipped=False)
    calls: list[Callable[[], Any]] = [
        lambda: client.tell(decision, 1.0, [0.02] if given is None else given),  # type: ignore[arg-type]
        lambda: client.observe("small", 1.0, given),
        lambda: client.cancel(decision, [0.02] if given is None else given),  # type: ignore[arg-type]
        lambda: client.ask(caps=[0.02] if given is None else given),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(SettingError, match=r"(costs|caps) must be .* by resource"):
            call()


@pytest.mark.parametrize(
    "settings", [{"url": "localhost"}, {"offline": "maybe"}, {"offline": "open"}, {"default": "small"}]
)
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        Client(**{"url": "http://localhost:1", "key": "k", "campaign": "c", **settings})
