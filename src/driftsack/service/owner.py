"""``Keeper``: owns campaigns, and answers a request only when what it changed is durable.

What requests changed is written in batches (:mod:`driftsack.service.commits`). If a commit fails, or its result is not
known, the campaign is dropped from memory and rebuilt from the store under a new epoch, for as long as it takes; until
then its requests are refused and may be tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from driftsack.service import journal
from driftsack.service import messages as ms
from driftsack.service.book import Record, deltas
from driftsack.service.campaign import NOBODY, Caller, Campaign, Now
from driftsack.service.commits import GroupCommit
from driftsack.service.config import Config
from driftsack.service.exchanges import exchange
from driftsack.service.journal import START, JournalError, Segment
from driftsack.service.owned import GRACE, Owned, ServiceClock
from driftsack.service.plans import again
from driftsack.service.recall import recall_some
from driftsack.service.recovery import encode_config, rebuild, rehearse, snapshot_of
from driftsack.service.refusals import Refusal
from driftsack.service.store.interface import (
    CampaignRow,
    FencedError,
    NameTakenError,
    Owner,
    Store,
    StoreError,
)
from driftsack.service.views import problem

Result = TypeVar("Result")
SNAPSHOT_EVERY: Final = 10_000
CHECK_DUE: Final = 0.25  # seconds between looks at the leases
LONGEST_WAIT: Final = 2.0  # seconds between two attempts to recover
log = logging.getLogger("driftsack.service")


class Keeper:
    """The campaigns of a process.

    Args:
        store: Where their journals are.
        owner: Who this process is.
        clock: The time.
        snapshot_every: Events between two snapshots.
        grace: Milliseconds after a recovery in which no lease runs.

    Attributes:
        store: Where the journals are.
        owner: Who this process is.
        owned: The campaigns that it owns and has in memory.
        foreign: Where the owners of other campaigns answer.
        damaged: Campaigns that cannot be rebuilt, and why.
        counts: What has happened, for the metrics.
        commits: What writes their changes.
        clock: The time.
    """

    def __init__(
        self,
        store: Store,
        owner: Owner,
        clock: ServiceClock | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
        grace: int = GRACE,
    ) -> None:
        self.store, self.owner = store, owner
        self.owned: dict[str, Owned] = {}
        self.foreign: dict[str, str] = {}
        self.damaged: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.commits = GroupCommit(store, self.owned, self.counts, snapshot_every, self._drop)
        self.clock = clock or ServiceClock()
        self._grace = grace
        self._recovering: set[str] = set()
        self._arriving: set[str] = set()  # campaigns that are opened or taken over, and not in memory yet
        self._closing = False
        self._leases = ThreadPoolExecutor(1, "lease")  # of campaigns: nothing that takes long may delay them
        self._rebuilds = ThreadPoolExecutor(2, "rebuild")
        self._readers = ThreadPoolExecutor(4, "journal")
        self._others = ThreadPoolExecutor(2, "store")
        self._forwards = ThreadPoolExecutor(32, "forward")
        self._tasks: set[asyncio.Task[Any]] = set()

    # Life

    async def start(self) -> None:
        """Take over the campaigns that have no owner, and begin to commit."""
        rows = await self._call(self._leases, self.store.campaigns)
        taken = [await self._take_over(row) for row in rows]
        for work in (self.commits.run, self._expiry_loop, self._lease_renewal_loop):
            self.spawn(work())
        await asyncio.gather(*(task for task in taken if task is not None))

    async def stop(self) -> None:
        """Commit what waits, keep a snapshot of each campaign, and let others take over."""
        self._closing = True
        for owned in list(self.owned.values()):
            if not owned.is_durable:
                await asyncio.wait([owned.until_durable()], timeout=LONGEST_WAIT)
        claimed = [*self.owned, *self._arriving, *self._recovering]
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            for owned in self.owned.values():
                if owned.is_durable and owned.snapshot_at < owned.durable:
                    row = snapshot_of(owned.campaign, owned.chain)
                    await self._call(self._leases, self.store.save_snapshot, owned.name, row)
            await self._call(self._leases, self.store.release, claimed, self.owner)
        except StoreError as error:
            log.warning("no last snapshot was kept: %s", error)
        self.commits.close()
        for pool in (self._leases, self._rebuilds, self._readers, self._others):
            pool.shutdown()
        self._forwards.shutdown(wait=False, cancel_futures=True)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let a task run until it is done, or the service stops."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def in_thread(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call the store for a request, without blocking the loop."""
        return await self._call(self._others, function, *arguments)

    async def read_journal(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call what may read a whole journal, as ``why`` and exports do, in threads that nothing else waits for."""
        return await self._call(self._readers, function, *arguments)

    async def _call(self, pool: ThreadPoolExecutor, function: Callable[..., Result], *arguments: Any) -> Result:
        return await asyncio.get_running_loop().run_in_executor(pool, function, *arguments)

    async def forwarded(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Wait for another replica in a thread of its own kind: one that does not answer must not block the store."""
        return await self._call(self._forwards, function, *arguments)

    @property
    def is_ready(self) -> bool:
        """Whether every campaign that should be here is here."""
        return not self._closing and not self._recovering

    # Requests

    def find(self, name: str) -> Owned:
        """The campaign of a name.

        Args:
            name: The name.

        Returns:
            The campaign.

        Raises:
            Refusal: It does not exist, is damaged, is being rebuilt, or has another owner.
        """
        owned = self.owned.get(name)
        if owned is not None and not self._closing:
            return owned
        if name in self.damaged:
            raise Refusal("damaged", self.damaged[name])
        if name in self._recovering or name in self.foreign or self._closing:
            raise Refusal.unavailable(f"the campaign {name} is being taken over; try again in a moment.")
        raise Refusal("unknown-campaign", f"there is no campaign {name!r:.60}.")

    def carry_out(self, name: str, command: Any, caller: Caller = NOBODY, number: int = 0) -> tuple[Owned, Any]:
        """Carry out a command. Its answer must be kept back until what has happened to the campaign is durable.

        Args:
            name: The campaign.
            command: The command.
            caller: Who sent it.
            number: The decision or arm that it is about.

        Returns:
            The campaign and the answer.

        Raises:
            Refusal: It was not carried out.
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
        """Forget a campaign after an error that may have changed it halfway; a refusal changes nothing."""
        if not isinstance(error, Refusal):
            self._drop(owned, error)

    async def submit(self, name: str, command: Any, caller: Caller = NOBODY, number: int = 0) -> Any:
        """Carry out a command, and return its answer when it is durable; see :meth:`carry_out`."""
        owned, answer = self.carry_out(name, command, caller, number)
        await self.settled(owned)
        return answer

    async def recall(self, name: str, numbers: Sequence[int]) -> dict[int, Record]:
        """Read from the journal what became of decisions that were settled too long ago to be in memory.

        Args:
            name: The campaign.
            numbers: The numbers of the decisions, in ascending order.

        Returns:
            The decisions by number: the first, and those that are found with it; see
            :func:`driftsack.service.recall.recall_some`.

        Raises:
            Refusal: The journal does not have the first decision, or the store does not answer.
        """
        owned = self.find(name)
        await self.settled(owned)  # or the journal would not say yet that they are settled
        late = owned.campaign.config.late
        try:
            found = await self.read_journal(recall_some, self.store, name, numbers, owned.durable, late)
        except StoreError as error:
            raise Refusal.unavailable(str(error)) from error
        if numbers[0] not in found:
            raise Refusal("unknown-decision", f"the journal has no decision {numbers[0]}.")
        return found

    async def settle_again(self, name: str, command: Any, number: int) -> ms.Settled:
        """Answer a command that was refused as ``forgotten``, as :func:`driftsack.service.plans.again` does."""
        found = await self.recall(name, [number])
        return again(self.find(name).campaign, command, number, found[number])

    async def exchange(self, name: str, many: ms.Exchange, caller: Caller = NOBODY) -> ms.Exchanged:
        """Tell many outcomes and ask for many decisions, in one commit.

        Args:
            name: The campaign.
            many: The outcomes, and how many decisions are wanted.
            caller: Who sent them.

        Returns:
            The answers.
        """
        owned = self.find(name)
        try:
            answer = exchange(owned.campaign, many, owned.now(), caller)
        except Exception as error:
            self._doubt(owned, error)
            raise
        finally:
            self.commits.changed(owned)
        await self.settled(owned)
        for k, one in enumerate(answer.told):
            if one.problem is not None and one.problem.type.endswith(":forgotten"):
                answer.told[k] = await self._recalled(name, many.tells[k])
        return answer

    async def _recalled(self, name: str, outcome: ms.TellOne) -> ms.ToldOne:
        try:
            return ms.ToldOne(settled=await self.settle_again(name, outcome, outcome.decision))
        except Refusal as refusal:
            return ms.ToldOne(problem=problem(refusal))

    async def settled(self, owned: Owned) -> None:
        """Wait until everything that has happened to a campaign is durable."""
        if not owned.is_durable:
            await owned.until_durable()

    async def create(self, name: str, config: Config, caller: Caller = NOBODY) -> Campaign:
        """Open a campaign.

        Args:
            name: Its name.
            config: Its settings.
            caller: Who opens it.

        Returns:
            The campaign; the one that exists if it has the same settings.

        Raises:
            Refusal: The settings are not valid, or the name is taken.
        """
        if self._closing:
            raise Refusal.unavailable("the service is stopping.")
        if name in self.owned and self.owned[name].campaign.config == config:
            return self.owned[name].campaign
        campaign = await self.in_thread(Campaign.open, config, Now(self.clock.at(), 0), caller)
        await self.in_thread(rehearse, campaign)
        body = journal.encode(campaign.take())
        chain = journal.chained(START, body)
        segment = Segment(name, 1, 1, campaign.book.at, 1, deltas({}, campaign.book.accounts), body, chain)
        new = name not in self._arriving  # otherwise one of this name is being taken over, which goes on
        self._arriving.add(name)
        try:
            await self.in_thread(self.store.create, segment, encode_config(config), self.owner)
        except NameTakenError as error:
            raise Refusal("name-taken", f"there is a campaign {name!r:.60} with other settings.") from error
        except StoreError as error:
            raise Refusal.unavailable(str(error)) from error
        finally:
            if new:
                self._arriving.discard(name)
        self.owned[name] = Owned(name, 1, campaign, chain, self.clock, grace=0)
        return campaign

    def _drop(self, owned: Owned, error: Exception) -> None:
        """Forget a campaign whose state is not known to be durable, and rebuild it."""
        if self.owned.get(owned.name) is not owned:
            return
        log.warning("campaign %s is dropped from memory: %s", owned.name, error)
        self.counts["dropped"] += 1
        del self.owned[owned.name]
        owned.fail(f"the campaign {owned.name} could not be written; try again in a moment.")
        self._recovering.add(owned.name)
        self.spawn(self._recovery_loop(owned.name, fenced=isinstance(error, FencedError)))

    # Ownership

    async def _recovery_loop(self, name: str, fenced: bool = False) -> None:
        """Rebuild a campaign as soon as the store answers, unless another owner has it."""
        wait = LONGEST_WAIT / 2 if fenced else 0.05
        while True:
            await asyncio.sleep(wait if fenced else 0)
            try:
                row = await self._claim(name)
                if row is None:  # another owner has it
                    self.foreign.setdefault(name, "")
                    self._recovering.discard(name)
                else:
                    await self._rebuild(row)
            except (StoreError, OSError) as error:
                log.warning("campaign %s cannot be rebuilt yet: %s", name, error)
            else:
                return
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)

    async def _claim(self, name: str) -> CampaignRow | None:
        """Become the owner of a campaign; None if it has another one."""
        return await self._call(self._leases, self.store.claim, name, self.owner)

    async def _rebuild(self, row: CampaignRow) -> None:
        """Rebuild a campaign that was claimed, unless it is damaged."""
        name = row.name
        try:
            campaign, snapshot_at = await self._call(self._rebuilds, rebuild, self.store, row)
            await self._call(self._rebuilds, rehearse, campaign)
        except JournalError as error:
            log.error("campaign %s is damaged: %s", name, error)  # noqa: TRY400  (one line, without a traceback)
            self.damaged[name] = str(error)
            self._recovering.discard(name)
            return
        self.counts["recoveries"] += 1
        self.counts["divergences"] += campaign.book.divergences
        self.owned[name] = Owned(name, row.epoch, campaign, row.chain, self.clock, self._grace, snapshot_at)
        self.foreign.pop(name, None)
        self._recovering.discard(name)

    async def _take_over(self, row: CampaignRow) -> asyncio.Task[None] | None:
        """Become the owner of a campaign if it has none; otherwise remember where its owner answers.

        Args:
            row: The campaign.

        Returns:
            The task that rebuilds it, so that nobody has to wait for that; None if it has another owner.
        """
        self.foreign[row.name] = row.owner_url
        claimed = await self._claim(row.name)
        if claimed is None:
            return None
        self._arriving.add(row.name)
        return self.spawn(self._arrive(claimed))

    async def _arrive(self, row: CampaignRow) -> None:
        """Rebuild a campaign that was taken over."""
        try:
            await self._rebuild(row)
        except (StoreError, OSError) as error:
            log.warning("campaign %s cannot be rebuilt yet: %s", row.name, error)
            self._recovering.add(row.name)
            self.spawn(self._recovery_loop(row.name))
        finally:
            self._arriving.discard(row.name)

    async def _lease_renewal_loop(self) -> None:
        """Renew the leases of campaigns that are here or on their way, and take over campaigns without an owner."""
        while True:
            await asyncio.sleep(self.owner.lease / 5)
            try:
                here = dict(self.owned)
                names = [*here, *self._arriving, *self._recovering]
                kept = await self._call(self._leases, self.store.extend, names, self.owner)
                for name in here.keys() - set(kept):
                    self._drop(here[name], FencedError("another process owns it now."))
                for row in await self._call(self._leases, self.store.campaigns):
                    if row.name not in {*self.owned, *self.damaged, *self._arriving, *self._recovering}:
                        await self._take_over(row)
            except (StoreError, OSError) as error:
                log.warning("ownership could not be extended: %s", error)

    async def _expiry_loop(self) -> None:
        """Let leases and seasons end also when no request comes."""
        while True:
            await asyncio.sleep(CHECK_DUE)
            for owned in list(self.owned.values()):
                if owned.is_due():
                    try:
                        owned.campaign.pass_time(owned.now())
                    except Exception as error:  # of one campaign, which must not stop the others
                        log.exception("the leases of campaign %s could not end", owned.name)
                        self._doubt(owned, error)
                    self.commits.changed(owned)
