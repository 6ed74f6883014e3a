"""``AsyncClient``: a campaign of a service, for ``asyncio``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from driftsack.client.client import Client
from driftsack.client.messages import Amount, RemoteDecision


class AsyncClient:
    """The same for ``asyncio``: each call waits in a thread, so the loop goes on.

    Args:
        url: Where the service is.
        key: An API key with the scope ``decide``.
        campaign: The campaign.
        **settings: As for :class:`Client`.
    """

    def __init__(self, url: str, key: str, campaign: str, **settings: Any) -> None:
        self._client = Client(url, key, campaign, **settings)

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
    ) -> RemoteDecision:
        """Ask which arm to use; see :meth:`Client.ask`.

        Args:
            open: The arms that this request may use; None for all.
            caps: The most that this request may cost, by resource.
            lease: Seconds within which the outcome will be told.

        Returns:
            The decision.
        """
        return await asyncio.to_thread(self._client.ask, open, caps, lease)

    async def tell(self, decision: RemoteDecision, reward: float, costs: Mapping[str, Amount]) -> None:
        """Tell the outcome of a decision; see :meth:`Client.tell`.

        Args:
            decision: What ``ask`` returned.
            reward: What it earned.
            costs: What it used of each resource.
        """
        await asyncio.to_thread(self._client.tell, decision, reward, costs)

    async def observe(
        self, arm: str, reward: float, costs: Mapping[str, Amount], probability: float | None = None
    ) -> None:
        """Say what the caller's own rule did; see :meth:`Client.observe`.

        Args:
            arm: The arm that the rule chose.
            reward: What it earned.
            costs: What it used of each resource.
            probability: The probability with which the rule chose the arm; None if it is not known.
        """
        await asyncio.to_thread(self._client.observe, arm, reward, costs, probability)

    async def forfeit(self, decision: RemoteDecision) -> None:
        """Give up a decision whose costs are not known; see :meth:`Client.forfeit`.

        Args:
            decision: What ``ask`` returned.
        """
        await asyncio.to_thread(self._client.forfeit, decision)

    async def cancel(self, decision: RemoteDecision, costs: Mapping[str, Amount] | None = None) -> None:
        """Give up a decision whose costs are known; see :meth:`Client.cancel`.

        Args:
            decision: What ``ask`` returned.
            costs: What it used of each resource; nothing if omitted.
        """
        await asyncio.to_thread(self._client.cancel, decision, costs)

    async def extend(self, decision: RemoteDecision, lease: int) -> None:
        """Let a decision wait longer; see :meth:`Client.extend`.

        Args:
            decision: What ``ask`` returned.
            lease: Seconds from now within which the outcome will be told.
        """
        await asyncio.to_thread(self._client.extend, decision, lease)

    async def close(self) -> None:
        """Forfeit what was not told; see :meth:`Client.close`."""
        await asyncio.to_thread(self._client.close)

    async def disconnect(self) -> None:
        """Close the connections; see :meth:`Client.disconnect`."""
        await asyncio.to_thread(self._client.disconnect)
