"""``Threads``: the thread pools of a process, separate so that slow calls of one kind do not delay those of another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field


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
