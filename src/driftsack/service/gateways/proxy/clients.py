"""``ClientPool``: asks and tells for the proxy, in threads, with one client per key."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any, Final

from driftsack.client import Client, RemoteDecision, ServiceError
from driftsack.service.gateways.proxy.table import ProxySettings

MOST_CLIENTS: Final = 256
THREADS: Final = 64
log = logging.getLogger("driftsack.proxy")


class ClientPool:
    """The clients of the decision service, one per caller's key."""

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self._clients: OrderedDict[str, Client] = OrderedDict()
        self._threads = ThreadPoolExecutor(THREADS, "service")
        self._telling: set[asyncio.Task[None]] = set()

    def _client(self, key: str) -> Client:
        """Return the client of a key; the least recently used client is dropped."""
        client = self._clients.pop(key, None) or Client(self._settings.service, key, self._settings.campaign)
        self._clients[key] = client
        if len(self._clients) > MOST_CLIENTS:
            self._clients.popitem(last=False)[1].disconnect()
        return client

    async def ask(self, key: str, arms: list[str], most: Decimal) -> RemoteDecision:
        """Ask which of the arms to use; ``most`` is the request's maximum cost in dollars."""
        settings, client = self._settings, self._client(key)
        caps = {settings.money: most} | ({settings.time: settings.most_seconds} if settings.time else {})
        lease = int(settings.most_seconds) + 30
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, client.ask, arms, caps, lease)

    def tell(self, key: str, decision: RemoteDecision, reward: float, dollars: Decimal, seconds: float) -> None:
        """Tell an outcome in the background."""
        costs = {self._settings.money: dollars}
        if self._settings.time:
            costs[self._settings.time] = Decimal(f"{seconds:.6f}")
        self._spawn(self._settle(key, decision, reward, costs))

    def cancel(self, key: str, decision: RemoteDecision) -> None:
        """Release the reservation in the background: the upstream did no work."""
        self._spawn(self._settle(key, decision, None, {}))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _settle(
        self, key: str, decision: RemoteDecision, reward: float | None, costs: dict[str, Decimal]
    ) -> None:
        client, loop = self._client(key), asyncio.get_running_loop()
        try:
            if reward is None:
                await loop.run_in_executor(self._threads, client.cancel, decision)
            else:
                await loop.run_in_executor(self._threads, client.tell, decision, reward, costs)
        except ServiceError as error:
            log.warning("decision %s could not be told; its lease will end: %s", decision.number, error)

    async def close(self) -> None:
        """Wait for outcomes that are still being told, then disconnect."""
        while self._telling:
            await asyncio.wait(self._telling)
        for client in self._clients.values():
            client.disconnect()
        self._threads.shutdown()
