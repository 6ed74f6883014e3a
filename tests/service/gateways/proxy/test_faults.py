"""A fault at every await of a request: every decision is settled, and never below the books of the upstream."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from decimal import Decimal
from typing import Any

import httpx
import pytest

from driftsack.service.gateways.proxy.formats.registry import FORMATS
from driftsack.service.gateways.proxy.gateway import Gateway
from driftsack.service.gateways.proxy.observed import Journey
from driftsack.service.gateways.proxy.offers import CallerRequest, offers
from driftsack.service.gateways.proxy.outcomes import OutcomeTeller
from driftsack.service.gateways.proxy.reply import Reply
from driftsack.service.gateways.proxy.settings import ProxySettings, Upstream
from tests.support.asgi_server import running
from tests.support.gateways import HELLO, PRICE, SECRET
from tests.support.hostile_upstream import HostileUpstream
from tests.support.live_service import Live, serving

MOST_AWAITS = 200
FAULTS = (asyncio.CancelledError, RuntimeError, httpx.ReadError, MemoryError)


class Interrupted:
    """Awaits a coroutine, and throws a fault into it at one of the points at which it waits.

    Args:
        work: The coroutine.
        at: The number of the point, from 0.
        fault: The exception.

    Attributes:
        thrown: Whether there was such a point.
    """

    def __init__(self, work: Any, at: int, fault: type[BaseException]) -> None:
        self._work, self._at, self._fault, self.thrown = work, at, fault, False

    def __await__(self) -> Generator[Any, Any, None]:
        point = 0
        try:
            waits_for = self._work.send(None)
            while True:
                if point == self._at:
                    self.thrown = True
                    waits_for = self._work.throw(self._fault("planted"))
                else:
                    try:
                        yield waits_for
                    except BaseException as error:  # the failure of what it waits for
                        waits_for = self._work.throw(error)
                    else:
                        waits_for = self._work.send(None)
                point += 1
        except StopIteration:
            pass
        except BaseException as error:
            if not self.thrown:
                raise
            assert isinstance(error, self._fault)  # noqa: PT017


class World:
    """A service with the campaign ``chat``, an upstream, and the settings of a proxy."""

    def __init__(self, live: Live, upstream: HostileUpstream, address: str) -> None:
        self.live, self.upstream = live, upstream
        table = [Upstream(name, f"{address}/v1", name, PRICE) for name in ("fine", "fails", "breaks")]
        self.settings = ProxySettings(table, "chat", service=live.url, most_seconds=5.0, rest=0.001)

    def books(self) -> tuple[int, Decimal, Decimal]:
        """Return the number of pending decisions, what the service has charged, and what the upstream has."""
        _, campaign = self.live.call("GET", "/v1/campaigns/chat")
        _, budgets = self.live.call("GET", "/v1/campaigns/chat/budgets")
        return campaign["pending"], Decimal(budgets["budgets"][0]["spent"]), self.upstream.charged()

    async def interrupt(self, at: int, fault: type[BaseException], **body: Any) -> bool:
        """Answer a request with a fault at one point; return whether there was such a point."""
        gateway = Gateway(self.settings)
        request = {"model": "driftsack", "messages": HELLO, "max_tokens": 20, **body}
        asked = CallerRequest(self.live.key, "chat", FORMATS["chat"], request, list(self.settings.upstream))
        work = Interrupted(gateway.answer(asked, offers(asked), Reply(), Journey("r")), at, fault)
        await work
        await asyncio.sleep(0.05)
        await gateway.close()
        return work.thrown


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    upstream = HostileUpstream(most=20)
    with (
        pytest.MonkeyPatch.context() as patch,
        serving(str(tmp_path_factory.mktemp("faults") / "s.db")) as live,
        running(upstream) as address,
    ):
        patch.setenv("UPSTREAM_KEY", SECRET)
        live.open("chat", arms=["fine", "fails", "breaks"], budget={"usd": "100"}, cost_max={"usd": "0.1"})
        yield World(live, upstream, address)


def interrupt_everywhere(world: World, fault: type[BaseException], **body: Any) -> int:
    """Plant a fault at every await, one after the other; return how many there are."""
    for at in range(MOST_AWAITS):
        before = world.books()
        thrown = asyncio.run(world.interrupt(at, fault, **body))
        after = world.books()
        assert after[0] == 0, f"a decision is open after {fault.__name__} at await {at}"
        assert after[1] - before[1] >= after[2] - before[2], f"{fault.__name__} at await {at} is charged too little"
        if not thrown:
            return at
    raise AssertionError("the request does not end")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("stream", [False, True])
def test_every_path_settles(world: World, fault: type[BaseException], stream: bool) -> None:
    assert interrupt_everywhere(world, fault, stream=stream) > 3


def test_a_call_that_does_not_settle_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: outcomes of calls that were cancelled are not told."""
    usual = OutcomeTeller.settle

    def careless(self: OutcomeTeller, client: Any, decision: Any, outcome: Any, seconds: float) -> None:
        if outcome.kind == "answered":
            usual(self, client, decision, outcome, seconds)

    monkeypatch.setattr(OutcomeTeller, "settle", careless)
    with pytest.raises(AssertionError, match="is open"):
        interrupt_everywhere(world, RuntimeError)
    monkeypatch.undo()
    _, page = world.live.call("GET", "/v1/campaigns/chat/decisions")
    for found in page["decisions"]:
        if found["state"] == "pending":
            world.live.call("POST", f"/v1/campaigns/chat/decisions/{found['decision']}/forfeit", {})
