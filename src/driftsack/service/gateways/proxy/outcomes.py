"""``CallOutcome``: what is to be told about a decision, and ``OutcomeTeller``, which tells it whatever happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple

from driftsack.client import AsyncClient, RemoteDecision, ServiceError, ServiceUnavailableError
from driftsack.service.gateways.proxy.settings import ProxySettings

FIRST_WAIT: Final = 0.1  # seconds before an outcome is told again
LONGEST_WAIT: Final = 5.0
CLOSING: Final = 10.0  # seconds for which a stop waits for outcomes that are being told
SLACK: Final = 60  # seconds of a lease beyond the time in which feedback may arrive
log = logging.getLogger("driftsack.proxy")


class CallOutcome(NamedTuple):
    """The outcome of a call as far as it is known.

    Attributes:
        kind: ``"cancelled"``: the upstream did nothing and is not judged. ``"failed"``: reward 0. ``"answered"``.
        dollars: The charge.
        reward: The reward of an answer.
    """

    kind: Literal["cancelled", "failed", "answered"]
    dollars: Decimal = Decimal(0)
    reward: float = 0.0


CANCELLED: Final = CallOutcome("cancelled")


class OutcomeTeller:
    """Tells outcomes in the background, again and again while the service is away.

    If the proxy ends first, the leases of the decisions end, and the service charges the worst case.

    Args:
        settings: The settings of the proxy.
    """

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.Task[None]] = set()  # of rewards by default

    def settle(self, client: AsyncClient, decision: RemoteDecision, outcome: CallOutcome, seconds: float) -> None:
        """Settle a decision; this never waits and never raises."""
        self._keep(self._settle(client, decision, outcome, seconds), self._tasks)

    def unsettled(self) -> int:
        """Return the number of decisions that are being settled."""
        return len(self._tasks)

    def _keep(self, work: Any, tasks: set[asyncio.Task[None]]) -> None:
        task = asyncio.ensure_future(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _settle(
        self, client: AsyncClient, decision: RemoteDecision, outcome: CallOutcome, seconds: float
    ) -> None:
        """Tell an outcome; with feedback, the reward of an answer comes later."""
        settings, costs = self._settings, {self._settings.money: outcome.dollars}
        if settings.time:
            most = Decimal(decision.reserved.get(settings.time, "0"))
            costs[settings.time] = min(Decimal(f"{seconds:.6f}"), most)
        if outcome.kind == "cancelled":
            await self._insist(decision, lambda: client.cancel(decision))
        elif outcome.kind == "failed":
            await self._insist(decision, lambda: client.tell(decision, 0.0, costs))
        elif not settings.feedback:
            await self._insist(decision, lambda: client.tell(decision, outcome.reward, costs))
        else:
            await self._insist(decision, lambda: client.tell(decision, costs=costs))
            lease = int(settings.feedback) + SLACK
            await self._insist(decision, lambda: client.extend(decision, lease))
            self._keep(self._reward_later(client, decision), self._timers)

    async def _reward_later(self, client: AsyncClient, decision: RemoteDecision) -> None:
        """Tell the reward by default, if no feedback has come."""
        await asyncio.sleep(self._settings.feedback)
        default = self._settings.feedback_default
        if default is None:
            await self._insist(decision, lambda: client.forfeit(decision), quiet=True)
        else:
            await self._insist(decision, lambda: client.tell(decision, default), quiet=True)

    async def _insist(self, decision: RemoteDecision, work: Callable[[], Awaitable[None]], quiet: bool = False) -> None:
        """Call the service until it answers."""
        wait = FIRST_WAIT
        while True:
            try:
                await work()
            except ServiceUnavailableError as error:
                log.info("decision %s will be told again: %s", decision.number, error)
            except ServiceError as error:
                if not quiet:  # feedback has come before
                    log.warning("the outcome of decision %s was refused: %s", decision.number, error)
                return
            else:
                return
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)

    async def close(self) -> None:
        """Wait a while for outcomes that are being told; then the leases end, and the worst case is charged."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSING)
        for task in (*self._tasks, *self._timers):
            task.cancel()
