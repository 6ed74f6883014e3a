"""Budgets of work: a key that hammers explanations, exports and exchanges does not hold up the others."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from driftsack.service.domain import exchanges
from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import Campaign
from driftsack.service.domain.refusals import Refusal
from driftsack.service.runtime import slices
from driftsack.service.runtime.slices import Meter
from driftsack.service.store.sqlite import SQLiteStore
from driftsack.service.web.api.work import AT_ONCE, REFUSED, WorkBudgets
from tests.service.runtime.test_owner import keeping
from tests.service.web.test_tokens import worker
from tests.support.campaigns import small
from tests.support.live_service import Live, serving

EXCHANGE = "/v1/campaigns/chat/exchange"


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def read(self) -> float:
        return self.now


def test_a_key_in_debt_is_refused_while_others_are_active() -> None:
    clock = Clock()
    budgets = WorkBudgets(0.1, clock.read)
    budgets.note("a")
    budgets.charge("a", AT_ONCE + 0.5)
    budgets.check("a")  # it is alone
    budgets.note("b")
    with pytest.raises(Refusal, match="seconds of work") as found:
        budgets.check("a")
    assert (found.value.status, found.value.retry_after) == (429, 5)
    budgets.check("b")
    clock.now += 5.01
    budgets.note("b")
    budgets.check("a")
    budgets.charge("a", 1.0)
    clock.now += 3.0
    budgets.check("a")  # the others have gone
    WorkBudgets(0.0, clock.read).check("a")


@pytest.mark.parametrize("planted", [False, True])
def test_a_key_that_does_not_wait_is_refused_slowly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    """The planted fault: refusals without a pause, hundreds of which a second take as long as the work."""
    if planted:
        monkeypatch.setattr("driftsack.service.web.api.work.PAUSE", 0.0)
    with serving(str(tmp_path / "s.db")) as live:
        live.open(fallback="small", horizon=10_000, budget={"usd": "1000"})
        number = live.ask()["decision"]
        _, made = live.call("POST", "/v1/keys", {"scopes": ["read", "decide"]})
        requests: list[tuple[str, str, Any]] = [
            ("GET", f"/v1/campaigns/chat/decisions/{number}/why", None),
            ("GET", "/v1/campaigns/chat/export", None),
            ("POST", EXCHANGE, {"ask": 1}),
        ]
        for method, path, body in requests:
            live.app.service.keyring.work.charge(made["prefix"], AT_ONCE + 10.0)
            live.ask()  # with another key, which is active
            begin = time.monotonic()
            assert live.call(method, path, body, made["key"])[0] == 429
            assert (time.monotonic() - begin > 0.9) != planted


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serving(str(tmp_path / "s.db"), rate=50.0) as found:
        found.open(fallback="small", horizon=10_000, budget={"usd": "1000"})
        found.open("other", fallback="small", horizon=10_000, budget={"usd": "1000"})
        yield found


def slow(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let each decision of an exchange take some time."""
    handle = Campaign.handle

    def handled(*arguments: Any, **named: Any) -> Any:
        time.sleep(seconds)
        return handle(*arguments, **named)

    ask_one = exchanges.ask_one

    def asked(*arguments: Any) -> Any:
        monkeypatch.setattr(Campaign, "handle", handled)
        try:
            return ask_one(*arguments)
        finally:
            monkeypatch.setattr(Campaign, "handle", handle)

    monkeypatch.setattr(exchanges, "ask_one", asked)


@pytest.mark.parametrize("planted", [False, True])
def test_a_long_exchange_lets_others_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: bool) -> None:
    """An exchange of 2 seconds; the planted fault is one slice for all of it."""
    slow(monkeypatch, 0.02)
    if planted:
        monkeypatch.setattr("driftsack.service.runtime.slices.SLICE", 100.0)
    with serving(str(tmp_path / "s.db")) as live:
        live.open(fallback="small", horizon=10_000, budget={"usd": "1000"})
        live.open("other", fallback="small", horizon=10_000, budget={"usd": "1000"})
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(live.call("POST", EXCHANGE, {"ask": 100})))
        thread.start()
        time.sleep(0.3)
        begin = time.monotonic()
        live.ask("other")
        took = time.monotonic() - begin
        thread.join()
        assert (took > 1.0) == planted
        status, answer = found[0]
        assert status == 200
        assert [each["decision"] for each in answer["decisions"]] == list(range(1, 101))


def test_a_repeated_exchange_waits_for_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that gave up waiting sends the same request again, and gets the same decisions."""
    slow(monkeypatch, 0.01)
    with serving(str(tmp_path / "s.db")) as live:
        live.open(fallback="small", horizon=10_000, budget={"usd": "1000"})
        found: list[Any] = []
        threads = [
            threading.Thread(
                target=lambda: found.append(live.call("POST", EXCHANGE, {"ask": 30}, idempotency_key="same"))
            )
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found[0] == found[1] == found[2]
        assert live.call("GET", "/v1/campaigns/chat")[1]["decisions"] == 30


def test_the_parts_of_an_exchange_count_as_requests(live: Live) -> None:
    """With --rate 50, an exchange of 300 uses up six seconds."""
    key = worker(live)
    assert live.call("POST", EXCHANGE, {"ask": 300}, key)[0] == 200
    status, problem = live.call("POST", "/v1/campaigns/chat/decisions", {}, key)
    assert (status, problem["type"]) == (429, "urn:driftsack:rate-limited")
    assert live.call("POST", "/v1/campaigns/chat/decisions", {})[0] == 200  # another key


def test_others_go_first_between_the_parts_of_exchanges() -> None:
    """However many exchanges a key has at once, they use the same share of the time."""
    clock = Clock()
    budgets = WorkBudgets(0.1, clock.read)
    one, two = budgets.meter("a"), budgets.meter("a")
    with one:
        assert one.charge(0.25) == 0.0  # it is alone
        budgets.note("b")
        assert one.charge(0.004) == pytest.approx(0.02)
        with two:
            assert one.charge(0.004) == pytest.approx(0.04)
    budgets.charge("a", AT_ONCE)
    with pytest.raises(Refusal, match="seconds of work"), one:
        pass
    assert not budgets.running
    free = WorkBudgets(0.0, clock.read).meter("a")
    with free:
        assert free.charge(0.5) == 0.0


@pytest.mark.parametrize("planted", [False, True])
def test_exchanges_that_wait_for_each_other_are_checked_again(tmp_path: Path, planted: bool) -> None:
    """The first one uses up the budget of the key; the planted fault checks no key when its turn comes."""
    budgets = WorkBudgets(0.1, Clock().read)
    budgets.note("b")
    budgets.charge("a", AT_ONCE - 1e-6)
    many = ms.Exchange([], 20)

    async def play() -> list[Any]:
        with closing(SQLiteStore(tmp_path / "s.db")) as store:
            async with keeping(store) as keeper:
                await keeper.create("chat", small(budget={"usd": "100"}))
                meters = [budgets.meter("a"), Meter() if planted else budgets.meter("a")]
                exchanges = [keeper.exchange("chat", many, meter=meter) for meter in meters]
                return await asyncio.gather(*exchanges, return_exceptions=True)

    first, second = asyncio.run(play())
    assert len(first.decisions) == 20
    assert isinstance(second, Refusal) is not planted


@pytest.mark.parametrize("waiting", [False, True])
def test_an_exchange_hurries_if_another_request_waits_for_its_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waiting: bool
) -> None:
    """It pauses after each part, but for other campaigns only."""
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    class Patient(Meter):
        def charge(self, seconds: float) -> float:
            return 7.0

    async def play() -> None:
        with closing(SQLiteStore(tmp_path / "s.db")) as store:
            async with keeping(store) as keeper:
                for name in ("chat", "other"):
                    await keeper.create(name, small(budget={"usd": "100"}))
                monkeypatch.setattr(slices, "SLICE", -1.0)
                monkeypatch.setattr(slices, "asyncio", SimpleNamespace(sleep=pause))
                one = asyncio.ensure_future(keeper.exchange("chat", ms.Exchange([], 20), meter=Patient()))
                while len(pauses) < 5:
                    await sleep(0)
                await asyncio.gather(one, keeper.submit("chat" if waiting else "other", ms.Ask()))

    asyncio.run(play())
    assert set(pauses[:5]) == {7.0}
    assert (pauses[-1] == 0.0) is waiting


def test_refused_exchanges_are_charged() -> None:
    clock = Clock()
    budgets = WorkBudgets(0.1, clock.read)
    budgets.note("b")
    meter = budgets.meter("a")
    budgets.charge("a", AT_ONCE - 1.5 * REFUSED)
    for _ in range(2):
        with pytest.raises(Refusal, match="are pending"), meter:
            raise Refusal("too-many-pending", "100,000 decisions are pending.")
    with pytest.raises(Refusal, match="seconds of work"), meter:
        pass
