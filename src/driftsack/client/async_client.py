"""``AsyncClient``: a client for ``asyncio``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, TypeVar

from driftsack.client.client import Client, Pending
from driftsack.client.messages import (
    Amount,
    Context,
    ExchangeAnswer,
    ListedAmounts,
    RemoteDecision,
    RemoteOutcome,
    ServiceError,
)
from driftsack.client.operations import State

Result = TypeVar("Result")
MOST_CALLS: Final = 32  # calls at the same time; others wait for a thread


class AsyncClient:
    """A campaign of a service, for ``asyncio``: each call runs in a thread, so that the event loop is not blocked.

    The threads belong to the client, unless others are given; the default executor of the event loop is left to the
    application.

    Args:
        url: The address of the service.
        key: An API key with the scope ``decide``.
        campaign: The campaign.
        threads: The threads in which calls run, if several clients share them; they are left running.
        **settings: Further settings of :class:`Client`.
    """

    def __init__(
        self, url: str, key: str, campaign: str, threads: ThreadPoolExecutor | None = None, **settings: Any
    ) -> None:
        self._client = Client(url, key, campaign, **settings)
        self._threads = threads or ThreadPoolExecutor(MOST_CALLS, "driftsack-client")
        self._running: set[Future[Any]] = set()  # also calls that nobody waits for any more

    def _submit(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Start a call in a thread of this client."""
        call = self._threads.submit(function, *arguments)
        self._running.add(call)
        call.add_done_callback(self._running.discard)
        return call

    async def _call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function in a thread of this client."""
        return await asyncio.wrap_future(self._submit(function, *arguments))

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def ask(
        self,
        open: Sequence[str] | None = None,  # noqa: A002
        caps: Mapping[str, Amount] | None = None,
        lease: int | None = None,
        must: bool = False,
        costs: ListedAmounts | None = None,
        context: Context | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> RemoteDecision:
        """Ask which arm to use; see :meth:`Client.ask`. If the call is cancelled, so is its decision.

        Args:
            open: The arms that this request may use; None for all.
            caps: The request's maximum cost, by resource.
            lease: Seconds within which the outcome will be told.
            must: Whether the request must be served, as for :meth:`Client.ask`.
            costs: The price list of this request, as for :meth:`Client.ask`.
            context: The features of this request, as for :meth:`Client.ask`.
            labels: The labels of this request, as for :meth:`Client.ask`.

        Returns:
            The decision.
        """
        call = self._submit(self._client.ask, open, caps, lease, must, costs, context, labels)
        try:
            return await asyncio.wrap_future(call)
        except BaseException as error:
            failed = call.done() and not call.cancelled() and call.exception() is error
            if not failed:  # such as CancelledError: nobody gets the decision
                self._submit(self._cancel_abandoned, call)
            raise

    def _cancel_abandoned(self, call: Future[RemoteDecision]) -> None:
        """Cancel the decision of a call for which nobody waits any more; if that fails, later calls or closing do."""
        with suppress(CancelledError, ServiceError):
            self._client.abandon(call.result())
        self._client.cancel_lost()

    async def tell(
        self, decision: RemoteDecision | str, reward: float | None = None, costs: Mapping[str, Amount] | None = None
    ) -> None:
        """Tell the outcome of a decision; see :meth:`Client.tell`.

        Args:
            decision: The result of ``ask``, or its ``id``.
            reward: The reward.
            costs: The cost in each resource.
        """
        await self._call(self._client.tell, decision, reward, costs)

    async def exchange(
        self,
        ask: int = 0,
        tells: Iterable[RemoteOutcome] = (),
        terms: Mapping[str, Any] | None = None,
        contexts: Sequence[Context] | None = None,
    ) -> ExchangeAnswer:
        """Tell many outcomes and ask for many decisions; see :meth:`Client.exchange`.

        Args:
            ask: The number of decisions.
            tells: The outcomes.
            terms: The terms of each of these decisions, as arguments of :meth:`ask`.
            contexts: The features of each of these requests.

        Returns:
            The decisions, and the outcomes that were refused.
        """
        return await self._call(self._client.exchange, ask, tells, terms, contexts)

    async def create(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Open the campaign; see :meth:`Client.create`.

        Args:
            config: The settings, as in the API.
        """
        return await self._call(self._client.create, config)

    async def describe(self) -> dict[str, Any]:
        """Return the campaign; see :meth:`Client.describe`."""
        return await self._call(self._client.describe)

    async def budgets(self) -> list[dict[str, Any]]:
        """Return the budgets; see :meth:`Client.budgets`."""
        return await self._call(self._client.budgets)

    async def arms(self) -> list[dict[str, Any]]:
        """Return the arms; see :meth:`Client.arms`."""
        return await self._call(self._client.arms)

    async def set_state(self, state: State) -> dict[str, Any]:
        """Activate, pause or close the campaign; see :meth:`Client.set_state`.

        Args:
            state: ``"active"``, ``"paused"`` or ``"closed"``.
        """
        return await self._call(self._client.set_state, state)

    async def revise(self, rounds_left: int) -> dict[str, Any]:
        """Change the expected number of remaining requests; see :meth:`Client.revise`.

        Args:
            rounds_left: The expected number of remaining requests.
        """
        return await self._call(self._client.revise, rounds_left)

    async def grant(self, amounts: Mapping[str, Amount]) -> None:
        """Add to the budgets; see :meth:`Client.grant`.

        Args:
            amounts: The amount to add to each resource.
        """
        await self._call(self._client.grant, amounts)

    async def charge(self, amounts: Mapping[str, Amount]) -> None:
        """Add spending outside the campaign; see :meth:`Client.charge`.

        Args:
            amounts: The amount that was spent of each resource.
        """
        await self._call(self._client.charge, amounts)

    async def add_arm(self, name: str, cost_max: Mapping[str, Amount] | None = None) -> None:
        """Add an arm; see :meth:`Client.add_arm`.

        Args:
            name: Its name.
            cost_max: Its maximum cost in each resource.
        """
        await self._call(self._client.add_arm, name, cost_max)

    async def retire_arm(self, name: str) -> None:
        """Stop offering an arm; see :meth:`Client.retire_arm`.

        Args:
            name: Its name.
        """
        await self._call(self._client.retire_arm, name)

    async def reopen_arm(self, name: str) -> None:
        """Offer an arm again; see :meth:`Client.reopen_arm`.

        Args:
            name: Its name.
        """
        await self._call(self._client.reopen_arm, name)

    async def observe(
        self,
        arm: str,
        reward: float,
        costs: Mapping[str, Amount],
        probability: float | None = None,
        context: Context | None = None,
    ) -> None:
        """Record what the caller's own rule did; see :meth:`Client.observe`.

        Args:
            arm: The arm that the rule chose.
            reward: The reward.
            costs: The cost in each resource.
            probability: The probability with which the rule chose the arm; None if it is not known.
            context: The features of the request, as for :meth:`Client.ask`.
        """
        await self._call(self._client.observe, arm, reward, costs, probability, context)

    async def forfeit(self, decision: RemoteDecision | str) -> None:
        """Give up a decision whose costs are not known; see :meth:`Client.forfeit`.

        Args:
            decision: The result of ``ask``, or its ``id``.
        """
        await self._call(self._client.forfeit, decision)

    async def cancel(self, decision: RemoteDecision | str, costs: Mapping[str, Amount] | None = None) -> None:
        """Give up a decision whose costs are known; see :meth:`Client.cancel`.

        Args:
            decision: The result of ``ask``, or its ``id``.
            costs: The cost in each resource; zero if omitted.
        """
        await self._call(self._client.cancel, decision, costs)

    async def extend(self, decision: RemoteDecision | str, lease: int) -> None:
        """Extend the lease of a decision; see :meth:`Client.extend`.

        Args:
            decision: The result of ``ask``, or its ``id``.
            lease: Seconds from now within which the outcome will be told.
        """
        await self._call(self._client.extend, decision, lease)

    async def check(self) -> None:
        """Check that the service accepts the key for the campaign; see :meth:`Client.check`."""
        await self._call(self._client.check)

    async def cancel_lost(self) -> None:
        """Wait for calls that still run, and cancel lost decisions; see :meth:`Client.cancel_lost`."""
        running = [asyncio.wrap_future(call) for call in self._running]
        await asyncio.gather(*running, return_exceptions=True)
        await self._call(self._client.cancel_lost, None)

    async def close(self, pending: Pending = "forfeit") -> None:
        """Forfeit decisions that were not told, or keep them; see :meth:`Client.close`.

        Args:
            pending: ``"forfeit"`` or ``"keep"``.
        """
        await self._call(wait, list(self._running))  # including those of cancelled calls, which use connections
        await self._call(self._client.close, pending)

    async def disconnect(self) -> None:
        """Close the connections; see :meth:`Client.disconnect`."""
        await self._call(self._client.disconnect)

    def drop_connections(self) -> None:
        """Close the idle connections at once, without a thread; decisions are not changed."""
        self._client.disconnect()
