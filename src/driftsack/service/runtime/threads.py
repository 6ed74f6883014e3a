"""``Threads``: the thread pools of a process, separate so that slow calls of one kind do not delay those of another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from driftsack.service.store.interface import UnavailableError

Result = TypeVar("Result")
REQUEST_LIMIT: Final = 8.0  # seconds in which the store must answer a request


@dataclass(frozen=True)
class Threads:
    """The thread pools of a keeper.

    Attributes:
        leases: Renewal of the leases of campaigns; nothing slow may run here.
        rebuilds: Recovery of campaigns.
        readers: Reads of whole journals.
        others: Other calls of the store.
        forwards: Requests that are forwarded to other replicas.
    """

    leases: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "lease"))
    rebuilds: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "rebuild"))
    readers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4, "journal"))
    others: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "store"))
    forwards: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(32, "forward"))

    def shutdown(self, wait: bool = True) -> None:
        """Wait for the threads that use the store, or abandon them; forwarded requests are abandoned."""
        for pool in (self.leases, self.rebuilds, self.readers, self.others):
            pool.shutdown(wait, cancel_futures=not wait)
        self.forwards.shutdown(wait=False, cancel_futures=True)


class ThreadedCalls:
    """Background tasks, and calls in threads, each purpose in a pool of its own, so that slow ones do not delay others.

    Args:
        threads: The thread pools; None for new ones.

    Attributes:
        tasks: The running background tasks.
    """

    def __init__(self, threads: Threads | None = None) -> None:
        self.tasks: set[asyncio.Task[Any]] = set()
        self.threads = threads or Threads()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a task until it is done or the service stops."""
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def in_thread(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function for a request, without blocking the loop."""
        return await self.call_in(self.threads.others, function, *arguments)

    async def ask_store(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a short function of the store for a request.

        Raises:
            UnavailableError: The store did not answer in time.
        """
        try:
            return await asyncio.wait_for(self.in_thread(function, *arguments), REQUEST_LIMIT)
        except TimeoutError as error:
            raise UnavailableError(f"the store did not answer within {REQUEST_LIMIT:g} seconds.") from error

    async def read_journal(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function that may read a whole journal, such as ``why`` or an export, in threads for this purpose."""
        return await self.call_in(self.threads.readers, function, *arguments)

    async def call_in(self, pool: ThreadPoolExecutor, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function in a pool."""
        return await asyncio.get_running_loop().run_in_executor(pool, function, *arguments)

    async def forwarded(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call another replica in threads for this purpose, so that one that does not answer cannot block the store."""
        return await self.call_in(self.threads.forwards, function, *arguments)
