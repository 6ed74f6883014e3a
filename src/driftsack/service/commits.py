"""``GroupCommit``: what campaigns changed is written in batches, one after the other.

While a batch is written, requests accumulate, and the next batch takes them all. Batches are not begun in the middle of
the loop's work: the thread that writes would take the interpreter's lock from requests, which costs more than it gains.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from prometheus_client import Histogram

from driftsack.service.journal import Segment
from driftsack.service.owned import Owned
from driftsack.service.store.interface import SnapshotRow, Store, StoreError

Batch = list[tuple[Owned, Segment, SnapshotRow | None]]
GATHER: Final = 0.001  # seconds in which requests may join a batch
COMMIT_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
log = logging.getLogger("driftsack.service")


class GroupCommit:
    """Writes what campaigns changed.

    Args:
        store: Where their journals are.
        owned: The campaigns in memory, by name; others are not written.
        counts: What has happened, for the metrics.
        snapshot_every: Events between two snapshots.
        drop: Called with a campaign that could not be written, and why.

    Attributes:
        seconds: How long commits take, for the metrics.
    """

    def __init__(
        self,
        store: Store,
        owned: Mapping[str, Owned],
        counts: Counter[str],
        snapshot_every: int,
        drop: Callable[[Owned, Exception], None],
    ) -> None:
        self.seconds = Histogram(
            "driftsack_commit_seconds", "How long commits take.", registry=None, buckets=COMMIT_SECONDS
        )
        self._store, self._owned, self._counts = store, owned, counts
        self._snapshot_every, self._drop = snapshot_every, drop
        self._changed: dict[str, Owned] = {}
        self._some = asyncio.Event()  # set while there are such campaigns
        self._latest = 0  # events in the batch before
        self._thread = ThreadPoolExecutor(1, "commit")

    def changed(self, owned: Owned) -> None:
        """Write what has happened to a campaign, soon, if anything has."""
        if owned.campaign.events:
            self._changed[owned.name] = owned
            self._some.set()

    async def run(self) -> None:
        """Write batches, one after the other."""
        loop = asyncio.get_running_loop()
        while True:
            await self._some.wait()
            await self._gather()
            batch = self._collect()
            if batch:
                await loop.run_in_executor(self._thread, self._append, batch, loop)

    def close(self) -> None:
        """Wait for the thread that writes."""
        self._thread.shutdown()

    async def _gather(self) -> None:
        """Let requests that have arrived already join the batch: writing one costs as much as writing many.

        Half as many events as in the last batch are enough: on a busy machine, requests that arrive later are handled
        while this batch is written. Those that have arrived at once share it, be they as many as in the last one.
        """
        loop, before, waiting = asyncio.get_running_loop(), -1, 0
        end = loop.time() + GATHER
        while waiting != before and 2 * waiting < self._latest and loop.time() < end:
            before = waiting
            await asyncio.sleep(0)  # their bytes are read
            await asyncio.sleep(0)  # and they are handled
            waiting = sum(len(owned.campaign.events) for owned in self._changed.values())

    def _collect(self) -> Batch:
        """Take what has happened to campaigns that are still in memory."""
        changed, self._changed = self._changed, {}
        self._some.clear()
        batch: Batch = []
        for name, owned in changed.items():
            if self._owned.get(name) is owned and owned.campaign.events:
                try:
                    batch.append((owned, *owned.collect(self._snapshot_every)))
                except Exception as error:  # of one campaign, which must not stop the others
                    log.exception("the events of campaign %s could not be taken", name)
                    self._drop(owned, error)
        self._latest = sum(segment.last - segment.first + 1 for _, segment, _ in batch)
        return batch

    def _append(self, batch: Batch, loop: asyncio.AbstractEventLoop) -> None:
        """Commit a batch, in a thread; if that fails, each campaign by itself, so that one cannot stop the others."""
        try:
            with self.seconds.time():
                self._store.append([segment for _, segment, _ in batch])
        except Exception as error:
            if len(batch) == 1 or not isinstance(error, StoreError):
                for owned, _, _ in batch:
                    loop.call_soon_threadsafe(self._drop, owned, error)
                return
            for one in batch:
                self._append([one], loop)
            return
        loop.call_soon_threadsafe(self._committed, batch)
        for owned, _, snapshot in batch:
            if snapshot is not None:
                self._keep_snapshot(owned.name, snapshot)

    def _keep_snapshot(self, name: str, snapshot: SnapshotRow) -> None:
        try:
            self._store.save_snapshot(name, snapshot)
            self._counts["snapshots"] += 1
        except StoreError as error:
            log.warning("no snapshot of %s was kept: %s", name, error)

    def _committed(self, batch: Batch) -> None:
        """Let those go on whose events are in the store."""
        self._counts["commits"] += 1
        for owned, segment, _ in batch:
            self._counts["events"] += segment.last - segment.first + 1
            owned.done(segment)
