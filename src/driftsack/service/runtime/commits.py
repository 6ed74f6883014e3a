"""``GroupCommit``: write the changes of campaigns in batches, one after the other.

Requests that arrive while a batch is written share the next one. A batch does not begin in the middle of the event
loop's work, because the writing thread would compete with the requests for the interpreter's lock.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from prometheus_client import Histogram

from driftsack.service.domain import messages as ms
from driftsack.service.domain.journal import Segment
from driftsack.service.runtime.owned import Owned
from driftsack.service.store.interface import (
    FencedError,
    OverspentError,
    SnapshotRow,
    Store,
    StoreError,
)

Batch = list[tuple[Owned, Segment, SnapshotRow | None]]
GATHER: Final = 0.001  # maximum seconds in which requests may join a batch
COMMIT_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
log = logging.getLogger("driftsack.service")


class GroupCommit:
    """Writes the changes of campaigns.

    Args:
        owned: The campaigns in memory, by name; others are not written.
        counts: Counters for the metrics.
        snapshot_every: Events between two snapshots.
        drop: Called with a campaign that could not be written, and the error.
        announce: Called with each alert once it is durable.

    Attributes:
        seconds: The durations of commits, for the metrics.
    """

    def __init__(
        self,
        store: Store,
        owned: Mapping[str, Owned],
        counts: Counter[str],
        snapshot_every: int,
        drop: Callable[[Owned, Exception], None],
        announce: Callable[[ms.Alert], None],
    ) -> None:
        self.seconds = Histogram(
            "driftsack_commit_seconds", "How long commits take.", registry=None, buckets=COMMIT_SECONDS
        )
        self._store, self._owned, self._counts = store, owned, counts
        self._snapshot_every, self._drop, self._announce = snapshot_every, drop, announce
        self._changed: dict[str, Owned] = {}
        self._some = asyncio.Event()  # set while there are changed campaigns
        self._latest = 0  # events in the previous batch
        self._thread = ThreadPoolExecutor(1, "commit")

    def changed(self, owned: Owned) -> None:
        """Schedule a campaign for the next batch if it has events, unless it is held."""
        if owned.campaign.events and not owned.is_held:
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

    def close(self, wait: bool = True) -> None:
        """Wait for the writing thread, or abandon it."""
        self._thread.shutdown(wait)

    async def _gather(self) -> None:
        """Let requests that have already arrived join the batch, because writing many costs as much as writing one.

        Half as many events as in the previous batch are enough: on a busy machine, requests that arrive later are
        handled while this batch is written.
        """
        loop, before, waiting = asyncio.get_running_loop(), -1, 0
        end = loop.time() + GATHER
        while waiting != before and 2 * waiting < self._latest and loop.time() < end:
            before = waiting
            await asyncio.sleep(0)  # the bytes of requests are read
            await asyncio.sleep(0)  # and the requests are handled
            waiting = sum(len(owned.campaign.events) for owned in self._changed.values())

    def take_changed(self) -> list[Owned]:
        """Return the campaigns that are scheduled and still in memory, and clear the schedule."""
        changed, self._changed = self._changed, {}
        self._some.clear()
        owned_here = [owned for name, owned in changed.items() if self._owned.get(name) is owned]
        return [owned for owned in owned_here if owned.campaign.events and not owned.is_held]

    def _collect(self) -> Batch:
        """Take the events of changed campaigns."""
        batch: Batch = []
        for owned in self.take_changed():
            try:
                batch.append((owned, *owned.collect(self._snapshot_every)))
            except Exception as error:  # must not affect other campaigns
                log.exception("the events of campaign %s could not be taken", owned.name)
                self._drop(owned, error)
        self._latest = sum(segment.last - segment.first + 1 for _, segment, _ in batch)
        return batch

    def _append(self, batch: Batch, loop: asyncio.AbstractEventLoop) -> None:
        """Commit a batch in the writing thread; if a campaign was refused, commit each by itself."""
        try:
            with self.seconds.time():
                self._store.append([segment for _, segment, _ in batch])
        except Exception as error:
            if len(batch) == 1 or not isinstance(error, (FencedError, OverspentError)):
                for owned, _, _ in batch:
                    loop.call_soon_threadsafe(self._drop, owned, error)
                return
            for one in batch:
                self._append([one], loop)
            return
        loop.call_soon_threadsafe(self._committed, batch)
        for owned, _, snapshot in batch:
            if snapshot is not None:
                self._save_snapshot(owned.name, snapshot)

    def _save_snapshot(self, name: str, snapshot: SnapshotRow) -> None:
        try:
            self._store.save_snapshot(name, snapshot)
            self._counts["snapshots"] += 1
        except StoreError as error:
            log.warning("a snapshot of %s was not saved: %s", name, error)

    def _committed(self, batch: Batch) -> None:
        """Resolve the waiters of committed events."""
        self._counts["commits"] += 1
        for owned, segment, _ in batch:
            self._counts["events"] += segment.last - segment.first + 1
            owned.done(segment)
            for alert in owned.take_alerts():
                self._announce(alert)
