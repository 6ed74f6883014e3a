"""``Owned``: an in-memory campaign, its durable position and its pending waiters."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from driftsack.service.domain import journal, views
from driftsack.service.domain import messages as ms
from driftsack.service.domain.book import Account, deltas
from driftsack.service.domain.campaign import Campaign, Now
from driftsack.service.domain.journal import Segment
from driftsack.service.domain.refusals import Refusal
from driftsack.service.runtime.recovery import snapshot_of
from driftsack.service.runtime.snapshots import write_milestone
from driftsack.service.store.interface import AuditRow, SnapshotRow

Waiter = Callable[[Refusal | None], None]
"""Called once: with None when the events are durable, with a refusal if that is not known. It must not raise."""
GRACE: Final = 30_000
"""Milliseconds after a recovery in which no lease runs, so that clients have time to reconnect."""


MILESTONE: Final = 2500  # decisions, which an explanation replays in less than 0.1 seconds
ACCOUNTS_AN_EVENT: Final = 10  # accounts of limits for which a snapshot waits one event longer, since it holds them all
MILESTONE_SHARE: Final = 4  # bytes of the journal for each byte of a milestone


class ServiceClock:
    """The time of day, without jumps while the process runs.

    Args:
        wall: The system clock, which is read once.
        monotonic: A monotonic clock.
    """

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._start = wall() - monotonic()

    def read(self) -> tuple[int, int]:
        """Milliseconds since 1970, and on the monotonic clock."""
        now = self._monotonic()
        return int(1000 * (self._start + now)), int(1000 * now)

    def at(self) -> int:
        """Milliseconds since 1970."""
        return self.read()[0]

    def elapsed(self) -> int:
        """Milliseconds on the monotonic clock."""
        return self.read()[1]


class Owned:
    """An in-memory campaign, its durable position and its pending waiters.

    Args:
        epoch: The epoch in which this process owns it.
        chain: The hash after its last durable event.
        grace: Milliseconds in which no lease runs.
        snapshot_at: The number of events in the latest readable snapshot. Replayed events count as events since then,
            so that a process that never runs for long writes snapshots, too.
        milestone: The number of decisions in the latest milestone.
        tick: The clock of leases before the campaign was rebuilt in this process, which continues from there.

    Attributes:
        durable: The number of the last durable event.
        waiting: Waiters for events that are not in a batch yet.
        in_flight: Waiters for the batch that is being written.
        used: Whether a request has used the campaign lately.
        entries: Entries of the audit that are written with the next batch.
        is_held: Whether its events wait until an exchange is done, which is one commit.
        exchanging: Lets one exchange wait for another.
    """

    def __init__(
        self,
        name: str,
        epoch: int,
        campaign: Campaign,
        chain: bytes,
        clock: ServiceClock,
        grace: int = GRACE,
        snapshot_at: int = 0,
        milestone: int = 0,
        tick: int = 0,
    ) -> None:
        self.name, self.epoch, self.campaign, self.chain = name, epoch, campaign, chain
        self.durable, self.snapshot_at = campaign.book.seq, snapshot_at
        self.waiting: list[Waiter] = []
        self.in_flight: list[Waiter] = []
        self.used = True
        self.entries: list[AuditRow] = []
        self.is_held = False
        self.exchanging = asyncio.Lock()
        self._alerts: list[ms.Alert] = []  # of the batch that is being written
        self._clock = clock
        self._since = clock.elapsed() + grace
        self._tick = max(campaign.book.tick, tick)
        self._milestone, self._milestone_size = milestone, 0
        self._written = 0  # bytes since the latest milestone
        self._accounts: dict[int, Account] = {}
        self._keep_accounts()

    def now(self) -> Now:
        """The time of a command; the clock of leases continues from the latest event and runs only with the service."""
        book = self.campaign.book
        at, elapsed = self._clock.read()
        tick = self._tick + elapsed - self._since
        return Now(at if at > book.at else book.at, tick if tick > book.tick else book.tick)

    def is_due(self) -> bool:
        """Whether a lease, a late window or a season has ended."""
        now, campaign = self.now(), self.campaign
        due, following = campaign.leases.next_end(), campaign.book.following
        return (due is not None and due <= now.tick) or (following is not None and following <= now.at)

    @property
    def is_over(self) -> bool:
        """Whether the campaign is closed, all its events are in the store, and no outcome can arrive any more."""
        return self.campaign.book.state == "closed" and not self.campaign.book.open and self.is_durable

    @property
    def is_durable(self) -> bool:
        """Whether all events are in the store."""
        return not self.campaign.events and self.durable == self.campaign.book.seq

    def when_durable(self, waiter: Waiter) -> None:
        """Call a waiter once all events up to now are in the store, immediately if they are."""
        if self.campaign.events:
            self.waiting.append(waiter)
        elif self.durable == self.campaign.book.seq:
            waiter(None)
        else:
            self.in_flight.append(waiter)

    def until_durable(self) -> asyncio.Future[None]:
        """Return a future that is done once all events up to now are in the store."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def finish(refusal: Refusal | None) -> None:
            if not future.done():
                future.set_result(None) if refusal is None else future.set_exception(refusal)

        self.when_durable(finish)
        return future

    def collect(self, snapshot_every: int) -> tuple[Segment, SnapshotRow | None]:
        """Take the events that wait for a commit.

        Args:
            snapshot_every: Events between two snapshots.

        Returns:
            The segment to append, and a snapshot to save after it if one is due.
        """
        # Extend the hash chain by one segment with the events and the changes of the budgets.
        events = self.campaign.take()
        body = journal.encode(events)
        self.chain = journal.chained(self.chain, body)
        book = self.campaign.book
        first = book.seq - len(events) + 1
        moved = deltas(self._accounts, book.accounts)
        entries, self.entries = tuple(self.entries), []
        milestone = self._next_milestone(len(body))
        extra = (entries, milestone, self.campaign.take_contexts())
        segment = Segment(self.name, first, book.seq, book.at, self.epoch, moved, body, self.chain, *extra)
        self.in_flight, self.waiting = self.waiting, []
        if self.campaign.percents:
            self._alerts = [
                views.alert(self.campaign, self.name, number, event)
                for number, event in enumerate(events, start=first)
                if isinstance(event, journal.Crossed)
            ]

        # Take a snapshot before anything else happens to the campaign.
        snapshot = None
        if book.seq - self.snapshot_at >= snapshot_every + self.campaign.limits.size() // ACCOUNTS_AN_EVENT:
            snapshot = snapshot_of(self.campaign, self.chain)
            self.snapshot_at = book.seq
        self._keep_accounts()
        return segment, snapshot

    def _next_milestone(self, size: int) -> tuple[int, bytes] | None:
        """Return a milestone if one is due after a segment of a size: they must not be larger than the journal."""
        self._written += size
        number = self.campaign.book.number
        due = number - self._milestone >= MILESTONE and self._written >= MILESTONE_SHARE * self._milestone_size
        if not due:
            return None
        body = write_milestone(self.campaign)
        self._milestone, self._milestone_size, self._written = number, len(body), 0
        return number, body

    def forget_accounts(self) -> None:
        """Treat the budgets as unknown to the store, because the next segment is the first one."""
        self._accounts = {}

    def _keep_accounts(self) -> None:
        """Copy the budgets as the store will have them after the segment."""
        self._accounts = {season: account.copy() for season, account in self.campaign.book.accounts.items()}

    def done(self, segment: Segment) -> None:
        """Resolve the waiters of a committed segment."""
        self.durable = segment.last
        done, self.in_flight = self.in_flight, []
        for waiter in done:
            waiter(None)

    def take_alerts(self) -> list[ms.Alert]:
        """Return the alerts of the latest committed segment, once."""
        taken, self._alerts = self._alerts, []
        return taken

    def fail(self, reason: str) -> None:
        """Refuse all waiters, because their events may not be durable."""
        failed = (*self.in_flight, *self.waiting)
        self.in_flight, self.waiting = [], []
        for waiter in failed:
            waiter(Refusal.unavailable(reason))
