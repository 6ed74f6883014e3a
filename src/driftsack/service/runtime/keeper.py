"""``Keeper``: owns the campaigns of a process, and answers a request only when its changes are durable.

Changes are written in batches (:mod:`driftsack.service.runtime.commits`). If a commit fails, or its result is not
known, the campaign is dropped from memory and rebuilt from the store under a new epoch. Until then its requests are
refused and may be retried.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol, TypeVar

import msgspec

from driftsack.core.errors import DriftsackError
from driftsack.service.domain import journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.book import Record, deltas
from driftsack.service.domain.campaign import NOBODY, Caller, Campaign, Now
from driftsack.service.domain.config import Config
from driftsack.service.domain.exchanges import exchange_in_steps
from driftsack.service.domain.journal import START, Segment
from driftsack.service.domain.plans import again
from driftsack.service.domain.refusals import Refusal
from driftsack.service.domain.views import problem
from driftsack.service.runtime.commits import GroupCommit
from driftsack.service.runtime.leaving import forget_old_contexts, sweep
from driftsack.service.runtime.owned import GRACE, Owned, ServiceClock
from driftsack.service.runtime.recall import Recalled, recall_some
from driftsack.service.runtime.recovery import archived, encode_config, rebuild, rehearse, snapshot_of
from driftsack.service.runtime.slices import Meter, in_slices
from driftsack.service.runtime.threads import REQUEST_LIMIT, ThreadedCalls, Threads
from driftsack.service.store.interface import (
    AuditRow,
    CampaignRow,
    FencedError,
    NameTakenError,
    Owner,
    Store,
    StoreError,
)

Result = TypeVar("Result")
SNAPSHOT_EVERY: Final = 10_000
CHECK_DUE: Final = 0.25  # seconds between two checks of leases and seasons
SWEPT: Final = 1000  # accounts of limits that each of these checks looks at
LONGEST_WAIT: Final = 2.0  # seconds between two attempts to recover a campaign
POLL: Final = 0.01  # seconds
LOADING_PAUSE: Final = 1.0  # after loading a campaign in the background, times what it took
IDLE: Final = 60.0  # seconds without a request after which a closed campaign leaves the memory
RENEWALS_MISSED: Final = 2  # intervals after which a renewal is overdue
STOP_LIMIT: Final = 3.0  # seconds in which a process that stops saves its campaigns
log = logging.getLogger("driftsack.service")


class Alerts(Protocol):
    """Sends alerts to users.

    Attributes:
        counts: Counters for the metrics.
    """

    counts: Counter[str]

    def announce(self, alert: ms.Alert) -> None:
        """Note an alert to be sent; this never waits."""

    async def run(self) -> None:
        """Send alerts until the task is cancelled."""


def _ignored(_: ms.Alert) -> None:
    """Do nothing with an alert."""


class Keeper(ThreadedCalls):
    """The campaigns of a process.

    Args:
        owner: The identity of this process.
        snapshot_every: Events between two snapshots.
        grace: Milliseconds after a recovery in which no lease runs.
        longest_wait: The maximum seconds between two attempts to recover a campaign.
        idle: Seconds without a request after which a closed campaign leaves the memory.
        alerts: Sends alerts; None to send none.

    Attributes:
        owner: The identity of this process.
        owned: The campaigns that this process owns and has in memory.
        foreign: The addresses of the owners of other campaigns.
        damaged: Campaigns that cannot be rebuilt, and why.
        alerts: Sends alerts; None to send none.
        unloaded: Campaigns that this process owns and has not loaded yet.
        asleep: Closed campaigns that have left the memory.
        arriving: Campaigns that are being opened.
        counts: Counters for the metrics.
    """

    def __init__(
        self,
        store: Store,
        owner: Owner,
        clock: ServiceClock | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
        grace: int = GRACE,
        threads: Threads | None = None,
        longest_wait: float = LONGEST_WAIT,
        idle: float = IDLE,
        alerts: Alerts | None = None,
    ) -> None:
        super().__init__(threads)
        self.store, self.owner, self.clock = store, owner, clock or ServiceClock()
        self.owned: dict[str, Owned] = {}
        self.foreign: dict[str, str] = {}
        self.damaged: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.alerts = alerts
        announce = _ignored if alerts is None else alerts.announce
        self.commits = GroupCommit(store, self.owned, self.counts, snapshot_every, self._drop, announce)
        self.unloaded: dict[str, CampaignRow] = {}
        self.arriving: set[str] = set()
        self._grace, self._longest_wait, self._idle = grace, longest_wait, idle
        self.asleep: dict[str, CampaignRow] = {}
        self._loads: dict[str, asyncio.Task[None]] = {}
        self._rehearsed: set[tuple[Any, ...]] = set()
        self._recovering: set[str] = set()
        self._ticks: dict[str, int] = {}  # the clocks of leases of campaigns that are being rebuilt
        self._closing = False
        self._renewal_interval = owner.lease / 5
        self._renewed = time.monotonic()

    # Life

    async def start(self) -> None:
        """Become the owner of the campaigns without one, and start the background tasks, which load them."""
        await self._renew(again=True)
        for work in (self.commits.run, self._expiry_loop, self._lease_renewal_loop, self._loading_loop):
            self.spawn(work())
        if self.alerts is not None:
            self.spawn(self.alerts.run())

    async def until_loaded(self) -> None:
        """Wait until no campaign is left to load, except closed ones, which are loaded for requests only."""
        while self.unloaded:
            await asyncio.sleep(POLL)

    async def stop(self) -> None:
        """Commit pending events, write a snapshot of each campaign, and let other processes take over."""
        # Refuse new requests, and wait for the commits of earlier ones.
        self._closing = True
        waiting = [owned.until_durable() for owned in self.owned.values() if not owned.is_durable]
        if waiting:
            await asyncio.wait(waiting, timeout=self._longest_wait)

        # Stop the background tasks.
        claimed = self._mine()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

        # Save what is durable, and release the campaigns, including those that are not in memory yet.
        in_time = True
        try:
            await asyncio.wait_for(self._leave(claimed), STOP_LIMIT)
        except StoreError as error:
            log.warning("the last snapshots were not saved: %s", error)
        except TimeoutError:
            log.warning("the last snapshots were not saved within %g seconds.", STOP_LIMIT)
            in_time = False
            self.store.interrupt()
        self.commits.close(wait=in_time)
        self.threads.shutdown(wait=in_time)

    async def _leave(self, claimed: list[str]) -> None:
        """Save snapshots of what is durable, and let other processes take over."""
        for owned in self.owned.values():
            if owned.is_durable and owned.snapshot_at < owned.durable:
                row = snapshot_of(owned.campaign, owned.chain)
                await self.call_in(self.threads.leases, self.store.save_snapshot, owned.name, row)
        await self.call_in(self.threads.leases, self.store.release, claimed, self.owner)

    @property
    def is_ready(self) -> bool:
        """Whether requests are answered.

        They are not while the service stops, a renewal is overdue, or every campaign in use is being recovered.
        """
        return not self._closing and not self.is_overdue and (bool(self.owned) or not self._recovering)

    @property
    def is_overdue(self) -> bool:
        """Whether the leases of the campaigns should have been renewed by now."""
        return time.monotonic() - self._renewed > RENEWALS_MISSED * self._renewal_interval

    # Requests

    def find(self, name: str) -> Owned:
        """Return a campaign that is in memory.

        Raises:
            Refusal: The campaign does not exist, is damaged, is being rebuilt, or has another owner.
        """
        owned = self.owned.get(name)
        if owned is not None and not self._closing:
            owned.used = True
            return owned
        if name in self.damaged:
            raise Refusal("damaged", self.damaged[name])
        if self._closing or name in self._recovering or name in self.foreign or self._row(name) is not None:
            raise Refusal.unavailable(f"the campaign {name} is being taken over; try again in a moment.")
        raise Refusal("unknown-campaign", f"there is no campaign {name!r:.60}.")

    async def prepare(self, name: str) -> None:
        """Load a campaign that is not in memory yet, or look in the store for one that another replica has opened.

        Afterwards :meth:`find` returns the campaign, or refuses it for the right reason.

        Raises:
            Refusal: The store is unavailable.
        """
        if not name or name in self.owned or name in self.damaged or name in self._recovering or self._closing:
            return
        task = self._load(name)
        if task is not None:
            await asyncio.wait([task], timeout=REQUEST_LIMIT)
        elif name not in self.foreign and name not in self.arriving:
            try:
                row = await self.ask_store(self.store.campaign, name)
            except StoreError as error:
                raise Refusal.unavailable(str(error)) from error
            if row is not None and row.owner != self.owner.name:
                self.foreign[name] = row.owner_url

    def carry_out(self, name: str, command: Any, caller: Caller = NOBODY, number: int = 0) -> tuple[Owned, Any]:
        """Carry out a command; the answer must be withheld until the campaign is durable.

        Args:
            caller: The sender.
            number: The number of the decision or arm that the command is about.

        Returns:
            The campaign and the answer.

        Raises:
            Refusal: The command was not carried out.
        """
        owned = self.find(name)
        try:
            return owned, owned.campaign.handle(command, owned.now(), caller, number)
        except Exception as error:
            self._doubt(owned, error)
            raise
        finally:
            self.commits.changed(owned)

    def _doubt(self, owned: Owned, error: Exception) -> None:
        """Drop a campaign after an error that may have left it half changed; a refusal changes nothing."""
        if not isinstance(error, Refusal):
            self._drop(owned, error)

    async def submit(
        self, name: str, command: Any, caller: Caller = NOBODY, number: int = 0, entry: AuditRow | None = None
    ) -> Any:
        """Carry out a command, and return its answer once its changes are durable; see :meth:`carry_out`.

        The audit entry is written in the same commit. A repeated command, which changes nothing, has none.
        """
        is_new = self.find(name).campaign.seen(caller) is None
        owned, answer = self.carry_out(name, command, caller, number)
        if is_new and entry is not None:
            owned.entries.append(entry)
        await self.wait_until_durable(owned)
        return answer

    async def recall(self, name: str, numbers: Sequence[int]) -> Recalled:
        """Read decisions that were settled too long ago to be in memory from the journal; see :func:`recall_some`.

        Args:
            numbers: The numbers of the decisions, in ascending order.

        Raises:
            Refusal: The store does not answer.
        """
        owned = self.find(name)
        await self.wait_until_durable(owned)  # so that the journal has the events that settled them
        late = owned.campaign.config.late
        try:
            return await self.read_journal(recall_some, self.store, name, numbers, owned.durable, late)
        except StoreError as error:
            raise Refusal.unavailable(str(error)) from error

    async def recall_one(self, name: str, number: int) -> Record:
        """Read one decision from the journal.

        Raises:
            Refusal: The journal does not have it, or the store does not answer.
        """
        found = await self.recall(name, [number])
        if number in found.records:
            return found.records[number]
        if number in found.missing:
            raise Refusal("unknown-decision", f"the journal has no decision {number}.")
        raise archived(name, number)

    async def settle_again(self, name: str, command: Any, number: int) -> ms.Settled:
        """Return the original answer to a command that was refused as ``forgotten``, from the journal."""
        found = await self.recall_one(name, number)
        return again(self.find(name).campaign, command, number, found)

    async def exchange(
        self,
        name: str,
        many: ms.Exchange,
        caller: Caller = NOBODY,
        meter: Meter | None = None,
    ) -> ms.Exchanged:
        """Tell many outcomes and ask for many decisions in one commit.

        A long exchange lets other requests run every few milliseconds. Until it is done, the campaign is not committed.

        Args:
            many: The outcomes, and the number of decisions to make.
            caller: The sender.
            meter: Charges for seconds of the event loop, and says for how long other requests go first.

        Raises:
            Refusal: The exchange was not carried out.
        """
        owned, metered = self.find(name), meter or Meter()

        def charge(seconds: float) -> float:
            pause = metered.charge(seconds)
            return 0.0 if owned.waiting else pause

        async with owned.exchanging:
            self.check_present(owned)
            steps = exchange_in_steps(owned.campaign, many, owned.now, caller)
            try:
                with metered:
                    owned.is_held = True
                    answer = await in_slices(steps, charge, lambda: self.check_present(owned))
            except Exception as error:
                self._doubt(owned, error)
                raise
            except asyncio.CancelledError:  # it must not be committed in part
                self._drop(owned, StoreError("an exchange was interrupted."))
                raise
            finally:
                owned.is_held = False
                self.commits.changed(owned)
        await self.wait_until_durable(owned)
        for k, one in enumerate(answer.told):
            if one.problem is not None and one.problem.type.endswith(":forgotten"):
                answer.told[k] = await self._recalled(name, many.tells[k])
        return answer

    def check_present(self, owned: Owned) -> None:
        """Raise a refusal if a campaign has left the memory meanwhile."""
        if self.owned.get(owned.name) is not owned:
            raise Refusal.unavailable(f"the campaign {owned.name} is being rebuilt; try again in a moment.")

    async def _recalled(self, name: str, outcome: ms.TellOne) -> ms.ToldOne:
        try:
            return ms.ToldOne(settled=await self.settle_again(name, outcome, outcome.decision))
        except Refusal as refusal:
            return ms.ToldOne(problem=problem(refusal))

    async def wait_until_durable(self, owned: Owned) -> None:
        """Wait until a campaign is durable."""
        if not owned.is_durable:
            await owned.until_durable()

    async def create(
        self, name: str, config: Config, caller: Caller = NOBODY, entry: AuditRow | None = None
    ) -> Campaign:
        """Open a campaign, with its audit entry; return the existing one if it has the same settings.

        Raises:
            Refusal: The settings are not valid, or the name is taken.
        """
        if self._closing:
            raise Refusal.unavailable("the service is stopping.")
        await self.prepare(name)
        if name in self.owned and self.owned[name].campaign.config == config:
            return self.owned[name].campaign

        # Open it in memory, and load its kernels.
        campaign = await self.in_thread(Campaign.open, config, Now(self.clock.at(), 0), caller)
        await self._rehearse(self.threads.others, campaign)

        # Write its first segment.
        body = journal.encode(campaign.take())
        chain = journal.chained(START, body)
        segment = Segment(name, 1, 1, campaign.book.at, 1, deltas({}, campaign.book.accounts), body, chain)
        segment = segment._replace(entries=() if entry is None else (entry,))
        new = name not in self.arriving  # otherwise a campaign of this name is being taken over, which continues
        self.arriving.add(name)
        try:
            await self.in_thread(self.store.create, segment, encode_config(campaign.config), self.owner)
        except NameTakenError as error:
            raise Refusal("name-taken", f"there is a campaign {name!r:.60} with other settings.") from error
        except StoreError as error:
            raise Refusal.unavailable(str(error)) from error
        finally:
            if new:
                self.arriving.discard(name)
        self.owned[name] = Owned(name, 1, campaign, chain, self.clock, grace=0)
        return campaign

    def _drop(self, owned: Owned, error: Exception) -> None:
        """Evict a campaign whose state in memory may be ahead of the store, and start rebuilding it."""
        if self.owned.get(owned.name) is not owned:
            return
        log.warning("campaign %s is dropped from memory: %s", owned.name, error)
        self.counts["dropped"] += 1
        del self.owned[owned.name]
        fenced = isinstance(error, FencedError)
        if not fenced:  # otherwise another process runs this clock
            self._ticks[owned.name] = owned.now().tick
        owned.fail(f"the campaign {owned.name} could not be written; try again in a moment.")
        self._recovering.add(owned.name)
        self.spawn(self._recovery_loop(owned.name, fenced))

    # Ownership

    async def _recovery_loop(self, name: str, fenced: bool = False) -> None:
        """Rebuild a campaign as soon as the store answers, unless it has another owner."""
        wait = self._longest_wait / 2 if fenced else 0.05
        while True:
            await asyncio.sleep(wait if fenced else 0)
            try:
                row = await self.call_in(self.threads.leases, self.store.claim, name, self.owner)
                if row is None:  # it has another owner
                    self._ticks.pop(name, None)
                    self.foreign.setdefault(name, "")
                    self._recovering.discard(name)
                else:
                    await self._rebuild(row)
            except (StoreError, OSError, MemoryError) as error:
                log.warning("campaign %s cannot be rebuilt yet: %s", name, error)
            else:
                return
            await asyncio.sleep(wait)
            wait = min(2 * wait, self._longest_wait)

    async def _rebuild(self, row: CampaignRow) -> None:
        """Rebuild a claimed campaign; set it aside if that fails for any reason but the store's availability."""
        name = row.name
        try:
            campaign, at, milestone = await self.call_in(self.threads.rebuilds, rebuild, self.store, row)
            await self._rehearse(self.threads.rebuilds, campaign)
            tick = self._ticks.pop(name, 0)
            owned = Owned(name, row.epoch, campaign, row.chain, self.clock, self._grace, at, milestone, tick)
        except (StoreError, OSError, MemoryError):
            raise
        except Exception as error:
            await self._set_aside(name, error)
            return
        self.counts["recoveries"] += 1
        self.counts["divergences"] += campaign.book.divergences
        self.owned[name] = owned
        self.foreign.pop(name, None)
        self._recovering.discard(name)

    async def _set_aside(self, name: str, error: Exception) -> None:
        """Note a campaign as damaged, and release it, because a replica of another release may be able to read it."""
        known = isinstance(error, DriftsackError)
        log.error("campaign %s is damaged: %s", name, error, exc_info=None if known else error)
        self.damaged[name] = str(error) if known else f"{type(error).__name__}: {error}"
        self._recovering.discard(name)
        with contextlib.suppress(StoreError):  # its lease then ends with this process
            await self.call_in(self.threads.leases, self.store.release, [name], self.owner)

    async def _rehearse(self, pool: ThreadPoolExecutor, campaign: Campaign) -> None:
        """Load the kernels of a campaign, once for each policy and kind of campaign."""
        config = campaign.config
        policy = (msgspec.json.encode(config.policy_spec), config.explore > 0.0)
        kind = (*policy, config.period is None, config.watch, config.fallback is None)
        if kind not in self._rehearsed:
            await self.call_in(pool, rehearse, campaign)
            self._rehearsed.add(kind)

    def _mine(self) -> list[str]:
        """The campaigns that this process owns, in memory or not."""
        return [*self.owned, *self.unloaded, *self.asleep, *self.arriving, *self._recovering]

    def _row(self, name: str) -> CampaignRow | None:
        """The row of an owned campaign that is not in memory; None if there is none."""
        return self.unloaded.get(name) or self.asleep.get(name)

    def _load(self, name: str) -> asyncio.Task[None] | None:
        """Begin to load a campaign, and return the task; None if it is not one of those to be loaded."""
        row = self._row(name)
        if row is not None and name not in self._loads:
            self._loads[name] = self.spawn(self._arrive(row))
        return self._loads.get(name)

    async def _arrive(self, row: CampaignRow) -> None:
        """Rebuild a claimed campaign, and retry in the background if the store does not answer."""
        name = row.name
        try:
            await self._rebuild(row)
        except (StoreError, OSError, MemoryError) as error:
            log.warning("campaign %s cannot be rebuilt yet: %s", name, error)
            self._recovering.add(name)
            self.spawn(self._recovery_loop(name))
        finally:
            for rows in (self.unloaded, self.asleep, self._loads):
                rows.pop(name, None)

    async def _loading_loop(self) -> None:
        """Load campaigns one after the other, and pause in between, because requests load theirs at once."""
        while True:
            name = next(iter(self.unloaded), None)
            begin = time.monotonic()
            task = None if name is None else self._load(name)
            if task is not None:
                await asyncio.wait([task])
            await asyncio.sleep(max(POLL, LOADING_PAUSE * (time.monotonic() - begin)))

    async def _renew(self, again: bool = False) -> None:
        """Renew the leases of all campaigns, and become the owner of those without one.

        Args:
            again: Whether the process has just started and owns, by its name, none of those in the store.
        """
        begin, here, mine = time.monotonic(), dict(self.owned), self._mine()
        kept = set(await self.call_in(self.threads.leases, self.store.extend, mine, self.owner))
        self._renewed = begin
        for name in here.keys() - kept:
            self._drop(here[name], FencedError("another process owns it now."))
        for name in set(mine) - kept - self._loads.keys():
            self.unloaded.pop(name, None)
            self.asleep.pop(name, None)
        without = [*self.damaged, *self._recovering]
        free = await self.call_in(self.threads.leases, self.store.claim_free, self.owner, without, again)
        self.unloaded.update({row.name: row for row in free})
        elsewhere = await self.call_in(self.threads.leases, self.store.elsewhere, self.owner)
        self.foreign = {name: url for name, url in elsewhere.items() if name not in self.owned}
        if self.damaged:  # unless they were deleted meanwhile
            names = set(await self.call_in(self.threads.leases, self.store.names))
            self.damaged = {name: reason for name, reason in self.damaged.items() if name in names}

    async def _lease_renewal_loop(self) -> None:
        """Renew the leases of campaigns that are in memory or being rebuilt, and take over those without an owner."""
        while True:
            await asyncio.sleep(self._renewal_interval)
            try:
                await self._renew()
            except (StoreError, OSError) as error:
                log.warning("ownership could not be extended: %s", error)
            except Exception:  # must not end the renewals
                log.exception("ownership could not be extended")

    async def _expiry_loop(self) -> None:
        """Let leases and seasons end when there are no requests, and closed campaigns leave the memory."""
        swept = time.monotonic()
        while True:
            await asyncio.sleep(CHECK_DUE)
            for owned in list(self.owned.values()):
                owned.campaign.limits.sweep(owned.campaign.book.at, SWEPT)  # a snapshot has no later time
                if owned.is_due():
                    try:
                        owned.campaign.pass_time(owned.now())
                    except Exception as error:  # must not affect other campaigns
                        log.exception("the leases of campaign %s could not end", owned.name)
                        self._doubt(owned, error)
                    self.commits.changed(owned)
            if time.monotonic() - swept > self._idle:
                swept = time.monotonic()
                for clean_up in (sweep, forget_old_contexts):
                    try:
                        await clean_up(self)
                    except Exception:  # must not end the leases of all campaigns
                        log.exception("closed campaigns or old contexts could not be removed")
