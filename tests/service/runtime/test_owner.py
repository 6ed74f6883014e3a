"""The owner of campaigns: durable answers, group commit, recovery, failover; with stores that break in between."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import Caller, Campaign
from driftsack.service.domain.journal import Renewed, Segment, decode, verify
from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections.explain import replay
from driftsack.service.runtime.commits import GroupCommit
from driftsack.service.runtime.keeper import LONGEST_WAIT, Keeper
from driftsack.service.runtime.owned import Owned, ServiceClock
from driftsack.service.runtime.recovery import Rebuilt, rebuild, recover
from driftsack.service.runtime.threads import Threads
from driftsack.service.store import open_store
from driftsack.service.store.interface import CampaignRow, FencedError, Owner, Store, UnavailableError
from driftsack.service.store.sqlite import SQLiteStore
from tests.support.campaigns import monthly, small
from tests.support.local_postgres import LocalPostgres
from tests.support.paths import DATA

ME = Owner("me", "http://me", 0.6)
MONTH_END = datetime(2023, 12, 1, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()


@asynccontextmanager
async def keeping(store: Store, owner: Owner = ME, **settings: Any) -> AsyncIterator[Keeper]:
    """A keeper that is stopped in the end."""
    keeper = Keeper(store, owner, **settings)
    await keeper.start()
    await keeper.until_loaded()
    try:
        yield keeper
    finally:
        await keeper.stop()


async def ask(keeper: Keeper, key: str = "", name: str = "chat") -> Any:
    """Ask for a decision that the policy does not skip."""
    for attempt in range(100):
        found = await keeper.submit(name, ms.Ask(), Caller(f"{key}-{attempt}" if key else "", b"x"))
        if found.reason != "policy":
            return found
    raise AssertionError


async def until(check: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for something."""
    for _ in range(int(seconds / 0.01)):
        if check():
            return
        await asyncio.sleep(0.01)
    raise AssertionError


class Breaking(SQLiteStore):
    """A store whose commits fail when they are told to, before or after they are done."""

    broken = ""
    commits = 0

    def append(self, segments: Sequence[Segment]) -> None:
        self.commits += 1
        if self.broken == "before":
            raise UnavailableError("no answer")
        super().append(segments)
        if self.broken == "after":
            raise UnavailableError("the connection was lost after the commit")

    def claim(self, name: str, owner: Owner) -> Any:
        if self.broken:
            raise UnavailableError("no answer")
        return super().claim(name, owner)


def run(work: Any) -> Any:
    return asyncio.run(work)


def test_what_was_answered_is_there_after_a_restart(store_address: str) -> None:
    async def play() -> None:
        with closing(open_store(store_address)) as store:
            async with keeping(store) as keeper:
                await keeper.create("chat", small())
                decision = await ask(keeper, "k")
                await keeper.submit("chat", ms.Tell(1.0, {"usd": "0.02"}), number=decision.decision)
                pending = await ask(keeper)
        with closing(open_store(store_address)) as store:
            async with keeping(store) as keeper:
                book = keeper.owned["chat"].campaign.book
                assert (book.told, book.pending) == (1, 1)
                assert await ask(keeper, "k") == decision
                await keeper.submit("chat", ms.Tell(1.0, {"usd": "0.03"}), number=pending.decision)
                assert store.budgets("chat")[0, 0][1:] == (0, 5 * 10**11, 0)

    run(play())


def test_a_crash_without_a_snapshot_loses_nothing(store_address: str) -> None:
    """The process ends without ``stop``; the next one replays the journal and continues bit for bit."""

    async def play() -> None:
        with closing(open_store(store_address)) as store:
            keeper = Keeper(store, ME)
            await keeper.start()
            await keeper.create("chat", small())
            for k in range(5):
                await ask(keeper, f"k{k}")
            before = keeper.owned["chat"].campaign.learner.state_hash()
            for task in keeper.tasks:
                task.cancel()
            async with keeping(store) as again:
                assert again.owned["chat"].campaign.learner.state_hash() == before
                assert again.owned["chat"].campaign.book.divergences == 0
                verify(store.segments("chat"))

    run(play())


@pytest.mark.parametrize("forgetful", [False, True])
def test_lives_that_are_shorter_than_the_time_between_snapshots_do_not_make_recovery_longer(
    store_address: str, monkeypatch: pytest.MonkeyPatch, forgetful: bool
) -> None:
    """The planted fault: an owner that counts from its recovery on never writes a snapshot."""
    every = 20

    async def life(store: Store, first: bool) -> tuple[int, int]:
        """Ask a few times and die without ``stop``; return how many events were replayed and how many were new."""
        keeper = Keeper(store, ME, snapshot_every=every)
        await keeper.start()
        await keeper.until_loaded()
        if first:
            await keeper.create("chat", small(budget={"usd": "10"}))
        owned = keeper.owned["chat"]
        if forgetful:
            monkeypatch.setattr(owned, "snapshot_at", owned.durable)
        replayed, before = owned.durable - owned.snapshot_at, owned.durable
        for _ in range(5):
            await ask(keeper)
        tasks = list(keeper.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return replayed, owned.durable - before

    async def play() -> None:
        with closing(open_store(store_address)) as store:
            lives = [await life(store, first=k == 0) for k in range(12)]
            assert max(new for _, new in lives) < every
            assert max(replayed for replayed, _ in lives) < 2 * every
            assert (not list(store.snapshots("chat"))) == forgetful
            whole = recover(store, store.campaigns()[0], snapshots=False)
            assert recover(store, store.campaigns()[0]).learner.state_hash() == whole.learner.state_hash()

    run(play())


def test_requests_share_commits(tmp_path: Path) -> None:
    async def play() -> None:
        with closing(Breaking(tmp_path / "s.db")) as store:
            async with keeping(store) as keeper:
                await keeper.create("chat", small(budget={"usd": "100"}))
                await asyncio.gather(*(ask(keeper) for _ in range(200)))
                assert store.commits < 20
                verify(store.segments("chat"))

    run(play())


async def faulty_settled(_: Owned) -> None:
    """The planted fault: answer before the commit."""


@pytest.mark.parametrize("answers_early", [False, True])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_failed_commit_is_not_answered_and_the_campaign_is_rebuilt(
    tmp_path: Path, when: str, answers_early: bool
) -> None:
    """No acknowledged decision is lost; an owner that answers before the commit is caught."""

    async def play() -> bool:
        with closing(Breaking(tmp_path / "s.db")) as store:
            async with keeping(store) as keeper:
                if answers_early:
                    keeper.wait_until_durable = faulty_settled  # type: ignore[assignment, method-assign]
                await keeper.create("chat", small())
                acknowledged = [(await ask(keeper, "first")).decision]
                await asyncio.sleep(0.2)
                store.broken = when
                with suppress(Refusal):
                    acknowledged.append((await ask(keeper, "second")).decision)
                await until(lambda: "chat" not in keeper.owned)
                assert keeper.is_ready is False
                with pytest.raises(Refusal, match="taken over"):
                    await ask(keeper)
                store.broken = ""
                await until(lambda: "chat" in keeper.owned)
                await until(lambda: keeper.owned["chat"].is_durable)
                kept = set(keeper.owned["chat"].campaign.book.open)
                again = await ask(keeper, "second")  # with its key: the same decision if it was made
                assert again.decision is not None
                assert (again.decision in kept) == (when == "after")
                verify(store.segments("chat"))
                return set(acknowledged) <= kept

    nothing_lost = run(play())
    assert nothing_lost == (not answers_early or when == "after")


def test_a_corrupt_snapshot_is_left_out_and_a_cut_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.db"

    async def play() -> None:
        with closing(SQLiteStore(path)) as store:
            async with keeping(store, snapshot_every=5) as keeper:
                await keeper.create("chat", small(budget={"usd": "10"}))
                for _ in range(30):
                    await ask(keeper)
                before = keeper.owned["chat"].campaign.learner.state_hash()
            assert len(list(store.snapshots("chat"))) == 3

        def damage(*statements: str) -> None:
            with closing(sqlite3.connect(path)) as file, file:
                for statement in statements:
                    file.execute(statement)

        damage("UPDATE snapshot SET body = zeroblob(1000) WHERE seq = (SELECT max(seq) FROM snapshot)")
        with closing(SQLiteStore(path)) as store:
            row = store.campaigns()[0]
            assert recover(store, row).learner.state_hash() == before
            assert recover(store, row, snapshots=False).learner.state_hash() == before
        damage("DELETE FROM snapshot", "DELETE FROM segment WHERE first = (SELECT max(first) FROM segment)")
        with closing(SQLiteStore(path)) as store:
            async with keeping(store) as keeper:
                with pytest.raises(Refusal, match="restore it from a backup") as error:
                    await ask(keeper)
                assert error.value.kind == "damaged"
                assert keeper.is_ready

    run(play())


def test_budgets_that_do_not_match_the_journal_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.db"

    async def play() -> None:
        with closing(SQLiteStore(path)) as store:
            async with keeping(store) as keeper:
                await keeper.create("chat", small())
                await ask(keeper)
        with closing(sqlite3.connect(path)) as file, file:
            file.execute("UPDATE budget SET granted = 2 * granted")
        with closing(SQLiteStore(path)) as store:
            async with keeping(store) as keeper:
                assert "budget in the store" in keeper.damaged["chat"]

    run(play())


class Times:
    """Two clocks that a test moves."""

    wall = 1_700_000_000.0
    monotonic = 50.0

    def clock(self) -> ServiceClock:
        return ServiceClock(lambda: self.wall, lambda: self.monotonic)


@pytest.mark.parametrize("jump", [3600, -3600, 86400, -86400])
def test_a_jump_of_the_clock_expires_and_refills_nothing(tmp_path: Path, jump: float) -> None:
    """Twelve hours before the end of a month, while the service runs, and across a restart.

    After the restart leases wait for 30 seconds more, and a month that has ended by the clock of the system has ended.
    """
    times = Times()
    times.wall = MONTH_END - 43_200

    async def play() -> None:
        for life in range(2):
            with closing(SQLiteStore(tmp_path / "s.db")) as store:
                async with keeping(store, clock=times.clock()) as keeper:
                    await keeper.create("chat", monthly(lease=60, late=600))
                    if not life:
                        await ask(keeper)
                    times.wall += jump
                    await asyncio.sleep(0.4)
                    book = keeper.owned["chat"].campaign.book
                    ended = life == 1 and jump > 43_200
                    assert (book.pending, book.expired, book.season) == (1, 0, int(ended))
                    times.monotonic += 59 + 30 * life
                    await asyncio.sleep(0.4 * life)
                    assert book.pending == 1
                    if life:
                        times.monotonic += 61
                        await until(lambda: keeper.owned["chat"].campaign.book.expired == 1)

    run(play())


def test_a_month_that_ends_is_refilled_once_whatever_the_clock_does(tmp_path: Path) -> None:
    """The month ends while the service is down; later lives begin before it, after it, and before it again."""
    times, seasons = Times(), []

    async def play() -> None:
        for seconds in (-60, 60, -3600, -86400, 120):
            times.wall = MONTH_END + seconds
            with closing(SQLiteStore(tmp_path / "s.db")) as store:
                async with keeping(store, clock=times.clock()) as keeper:
                    await keeper.create("chat", monthly())
                    await ask(keeper)
                    book = keeper.owned["chat"].campaign.book
                    seasons.append(book.season)
                    times.monotonic += 10
                    await ask(keeper)
                    assert book.season == seasons[-1]

    run(play())
    assert seasons == [0, 1, 1, 1, 1]
    with closing(SQLiteStore(tmp_path / "s.db", read_only=True)) as store:
        events = [event for segment in store.segments("chat") for event in decode(segment.body)]
        assert sum(isinstance(event, Renewed) for event in events) == 1
        assert [event.at for event in events] == sorted(event.at for event in events)


def test_a_clock_that_follows_jumps_would_be_noticed(tmp_path: Path) -> None:
    """The planted fault: a clock that is read again and again refills while the service runs."""
    times = Times()
    times.wall = MONTH_END - 43_200

    class Jumping(ServiceClock):
        def read(self) -> tuple[int, int]:
            return int(1000 * times.wall), int(1000 * times.monotonic)

    async def seasons(name: str, clock: ServiceClock) -> int:
        with closing(SQLiteStore(tmp_path / name)) as store:
            async with keeping(store, clock=clock) as keeper:
                await keeper.create("chat", monthly())
                times.wall += 86_400
                await asyncio.sleep(0.4)
                return keeper.owned["chat"].campaign.book.season

    assert run(seasons("steady.db", times.clock())) == 0
    times.wall = MONTH_END - 43_200
    assert run(seasons("jumping.db", Jumping())) == 1


def test_a_replica_takes_over_and_the_old_owner_is_fenced(postgres: LocalPostgres) -> None:
    """The owner stops to answer for longer than its lease; when it wakes up, it may write nothing."""
    address = postgres.new_database()
    other = Owner("other", "http://other", 0.6)

    async def play() -> None:
        with closing(open_store(address)) as mine, closing(open_store(address)) as theirs:
            async with keeping(mine) as first:
                await first.create("chat", small())
                decision = await ask(first, "k")
                async with keeping(theirs, other) as second:
                    await asyncio.sleep(1.0)
                    assert not second.owned  # as long as the owner says that it is there
                    assert second.foreign == {"chat": "http://me"}
                    asleep = [task for task in first.tasks if "_lease_renewal_loop" in repr(task)]
                    assert len(asleep) == 1
                    asleep[0].cancel()
                    await until(lambda: "chat" in second.owned)
                    assert await ask(second, "k") == decision
                    with pytest.raises(Refusal) as error:
                        await ask(first)
                    assert error.value.status == 503
                    await second.submit("chat", ms.Tell(1.0, {"usd": "0.1"}), number=decision.decision)
                    await asyncio.sleep(1.0)
                    assert not first.owned  # it does not steal it back
                    assert theirs.campaigns()[0].owner == "other"
            verify(theirs.segments("chat"))

    run(play())


@pytest.mark.parametrize("shared", [False, True])
def test_long_reads_do_not_delay_the_renewal_of_leases(postgres: LocalPostgres, shared: bool) -> None:
    """Four reads that last longer than a lease. The planted fault: they share the threads of the renewal."""
    address, done = postgres.new_database(), threading.Event()

    async def play() -> bool:
        with closing(open_store(address)) as mine, closing(open_store(address)) as theirs:
            pool = ThreadPoolExecutor(2)
            async with keeping(mine, threads=Threads(leases=pool, others=pool) if shared else None) as keeper:
                await keeper.create("chat", small())
                reads = [asyncio.ensure_future(keeper.in_thread(done.wait, 30)) for _ in range(4)]
                await asyncio.sleep(2.5 * ME.lease)
                taken = theirs.claim("chat", Owner("other")) is not None
                done.set()
                await asyncio.gather(*reads)
                return taken

    assert run(play()) == shared


def test_the_database_restarts_and_the_service_goes_on(postgres: LocalPostgres) -> None:
    address = postgres.new_database()

    async def play() -> None:
        with closing(open_store(address)) as store:
            async with keeping(store) as keeper:
                await keeper.create("chat", small())
                first = await ask(keeper, "k")
                await asyncio.to_thread(postgres.restart, True)
                for _ in range(100):
                    try:
                        again = await ask(keeper, "k")
                        other = await ask(keeper, "l")
                        break
                    except Refusal:
                        await asyncio.sleep(0.05)
                assert again == first
                assert other.decision > first.decision
                verify(store.segments("chat"))

    run(play())


def test_the_database_of_an_earlier_release_is_read(tmp_path: Path) -> None:
    """A store with schema 1, as the release that introduced it wrote it, replays bit for bit and goes on."""
    copy = tmp_path / "s.db"
    copy.write_bytes((DATA / "service-schema-1.db").read_bytes())

    async def play() -> None:
        with closing(SQLiteStore(copy)) as store:
            assert replay(store, "chat").divergences == 0
            async with keeping(store) as keeper:
                book = keeper.owned["chat"].campaign.book
                assert (book.number, book.told) == (12, 8)
                assert (await ask(keeper)).decision > 12

    run(play())


async def renew_and_wait(keeper: Keeper, again: bool = False) -> None:
    """The planted fault: whoever takes campaigns over waits until they are rebuilt."""
    await Keeper._renew(keeper, again)
    for name in list(keeper.unloaded):
        task = keeper._load(name)
        if task is not None:
            await task


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("at_start", [False, True])
def test_a_campaign_that_takes_long_to_rebuild_does_not_delay_the_renewal_of_leases(
    postgres: LocalPostgres, monkeypatch: pytest.MonkeyPatch, at_start: bool, waits: bool
) -> None:
    """Its own lease and that of another campaign; at the start of a replica, and when the owner of one goes away."""
    address, done = postgres.new_database(), threading.Event()

    def long_rebuild(store: Store, row: CampaignRow) -> Rebuilt:
        if row.name == "long":
            done.wait(30)
        return rebuild(store, row)

    async def play() -> set[str]:
        with closing(open_store(address)) as mine, closing(open_store(address)) as theirs:
            async with keeping(theirs, Owner("other", "", 30.0)) as before:
                await before.create("chat", small())
                await before.create("long", small())
                if not at_start:
                    theirs.release(["chat"], before.owner)
                keeper = Keeper(mine, ME)
                if waits:
                    keeper._renew = partial(renew_and_wait, keeper)  # type: ignore[method-assign]
                monkeypatch.setattr("driftsack.service.runtime.keeper.rebuild", long_rebuild)
                if not at_start:
                    await keeper.start()
                    await until(lambda: set(keeper.owned) == {"chat"})
            started = asyncio.ensure_future(keeper.start()) if at_start else None  # the other replica is gone
            await asyncio.sleep(3 * ME.lease)
            other = Owner("other")
            taken = {name for name in ("chat", "long") if theirs.claim(name, other) is not None}
            done.set()
            if started is not None:
                await started
            await keeper.stop()
            return taken

    assert run(play()) == ({"chat", "long"} if waits else set())


def test_opening_a_campaign_that_is_being_taken_over_does_not_begin_that_again(tmp_path: Path) -> None:
    """A refused opening removed the mark, so that the campaign was claimed and rebuilt once more."""

    async def play() -> set[str]:
        with closing(open_store(str(tmp_path / "s.db"))) as store:
            async with keeping(store, ME) as keeper:
                await keeper.create("chat", small())
                owned = keeper.owned.pop("chat")  # as it is until it was rebuilt
                keeper.arriving.add("chat")
                with pytest.raises(Refusal, match="there is a campaign"):
                    await keeper.create("chat", small(budget={"usd": "2"}))
                left = set(keeper.arriving)
                keeper.owned["chat"] = owned
                keeper.arriving.clear()
                return left

    assert run(play()) == {"chat"}


@pytest.mark.parametrize("forgetful", [False, True])
def test_a_replica_that_stops_lets_go_of_a_campaign_that_it_was_rebuilding(
    postgres: LocalPostgres, monkeypatch: pytest.MonkeyPatch, forgetful: bool
) -> None:
    """Nobody has to wait until its lease has ended, which is long here; the competitor releases what is in memory."""
    address, begun, done = postgres.new_database(), threading.Event(), threading.Event()

    def long_rebuild(store: Store, row: CampaignRow) -> Rebuilt:
        begun.set()
        done.wait(30)
        return rebuild(store, row)

    async def play() -> tuple[bool, bool]:
        with closing(open_store(address)) as mine, closing(open_store(address)) as theirs:
            async with keeping(theirs, Owner("other", "", 60.0)) as before:
                await before.create("chat", small())
            monkeypatch.setattr("driftsack.service.runtime.keeper.rebuild", long_rebuild)
            keeper = Keeper(mine, Owner("me", "", 60.0))
            if forgetful:
                release = mine.release
                monkeypatch.setattr(mine, "release", lambda _, owner: release(list(keeper.owned), owner))
            started = asyncio.ensure_future(keeper.start())
            await until(begun.is_set)
            during = theirs.claim("chat", Owner("other")) is not None
            threading.Timer(0.3, done.set).start()  # stopping waits for the thread
            await keeper.stop()
            started.cancel()
            return during, theirs.claim("chat", Owner("other")) is not None

    assert run(play()) == (False, not forgetful)


def fail_halfway(owned: Owned, happens: str) -> None:
    """Plant a fault: when something first happens to a campaign, its budget changes, and then an error is raised."""

    def apply(event: Any) -> Any:
        if type(event).__name__ == happens:
            del owned.campaign.apply
            owned.campaign.book.account.spent[0] += 1
            raise RuntimeError("it failed halfway")
        return Campaign.apply(owned.campaign, event)

    owned.campaign.apply = apply  # type: ignore[method-assign]


@pytest.mark.parametrize("trusting", [False, True])
@pytest.mark.parametrize("how", ["tell", "exchange", "expiry"])
def test_a_campaign_that_failed_halfway_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, trusting: bool
) -> None:
    """Otherwise its next commit would write budgets that its journal does not explain: the competitor goes on."""
    times = Times()
    if trusting:
        monkeypatch.setattr(Keeper, "_doubt", lambda *_: None)

    async def play() -> bool:
        with closing(SQLiteStore(tmp_path / "s.db")) as store:
            async with keeping(store, clock=times.clock(), grace=0) as keeper:
                await keeper.create("chat", small(lease=5))
                number = (await ask(keeper)).decision
                owned = keeper.owned["chat"]
                fail_halfway(owned, "Expired" if how == "expiry" else "Told")
                if how == "expiry":
                    times.monotonic += 6
                    await until(lambda: owned.campaign.book.account.spent[0] >= 1)
                elif how == "tell":
                    with pytest.raises(RuntimeError):
                        keeper.carry_out("chat", ms.Tell(1.0, {"usd": "0.02"}), number=number)
                else:
                    with pytest.raises(RuntimeError):
                        await keeper.exchange(
                            "chat", ms.Exchange([ms.TellOne(1.0, {"usd": "0.02"}, decision=number)], 1)
                        )
                if not trusting:
                    await until(lambda: "chat" in keeper.owned and keeper.owned["chat"] is not owned)
                with suppress(RuntimeError):
                    await ask(keeper)
            row = store.campaigns()[0]
            return recover(store, row, snapshots=False).corrections == 0  # the recorded amounts are the computed ones

    assert run(play()) is not trusting


def test_a_campaign_that_fails_does_not_stop_the_expiry_of_others(tmp_path: Path) -> None:
    times = Times()

    async def play() -> None:
        with closing(SQLiteStore(tmp_path / "s.db")) as store:
            async with keeping(store, clock=times.clock()) as keeper:
                for name in ("broken", "chat"):
                    await keeper.create(name, small(lease=5))
                    await ask(keeper, name=name)
                fail_halfway(keeper.owned["broken"], "Expired")
                times.monotonic += 6
                await until(lambda: keeper.owned["chat"].campaign.book.expired == 1)
                times.monotonic += 10
                await ask(keeper)
                times.monotonic += 6
                await until(lambda: keeper.owned["chat"].campaign.book.expired == 2)

    run(play())


def trusting_collect(commits: GroupCommit) -> Any:
    """The planted fault: it expects that no campaign fails."""
    return [(owned, *owned.collect(10_000)) for owned in commits.take_changed()]


@pytest.mark.parametrize("trusting", [False, True])
def test_a_campaign_whose_events_cannot_be_taken_does_not_stop_the_commits_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusting: bool
) -> None:
    if trusting:
        monkeypatch.setattr(GroupCommit, "_collect", trusting_collect)

    def fail(_: int) -> Any:
        raise RuntimeError("no snapshot")

    async def answered(keeper: Keeper, name: str) -> str:
        try:
            await asyncio.wait_for(ask(keeper, name=name), 0.5)
        except TimeoutError:
            return "nothing"
        except Refusal as refusal:
            return refusal.kind
        return "a decision"

    async def play() -> list[str]:
        with closing(SQLiteStore(tmp_path / "s.db")) as store:
            async with keeping(store, grace=0, longest_wait=0.2 if trusting else LONGEST_WAIT) as keeper:
                for name in ("broken", "chat"):
                    await keeper.create(name, small())
                monkeypatch.setattr(keeper.owned["broken"], "collect", fail)
                found = [await answered(keeper, "broken"), await answered(keeper, "chat")]
                if not trusting:
                    await until(lambda: "broken" in keeper.owned)
                    found.append(await answered(keeper, "broken"))
                return found

    assert run(play()) == (["nothing", "nothing"] if trusting else ["unavailable", "a decision", "a decision"])


@pytest.mark.parametrize("planted", [False, True])
def test_the_clock_of_leases_continues_when_a_campaign_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    """A commit that fails at the end of a long lease; the planted fault begins at the latest event, an hour ago."""
    times = Times()

    async def play() -> None:
        with closing(Breaking(tmp_path / "s.db")) as store:
            async with keeping(store, clock=times.clock(), grace=1000, longest_wait=0.05) as keeper:
                await keeper.create("chat", small(lease=3600))
                await ask(keeper)
                times.monotonic += 3590
                store.broken = "before"
                with pytest.raises(Refusal):
                    await ask(keeper)
                if planted:
                    keeper._ticks.clear()
                store.broken = ""
                await until(lambda: "chat" in keeper.owned)
                book = keeper.owned["chat"].campaign.book
                times.monotonic += 10
                await asyncio.sleep(0.6)
                assert book.pending == 1  # the grace of one second
                times.monotonic += 2
                if planted:
                    await asyncio.sleep(0.6)
                    assert book.pending == 1
                else:
                    await until(lambda: book.pending == 0)

    run(play())


def test_a_fenced_clock_of_leases_is_not_continued(tmp_path: Path) -> None:
    """A process that was frozen has counted time in which it answered nobody."""

    async def play() -> None:
        with closing(SQLiteStore(tmp_path / "s.db")) as store:
            async with keeping(store) as keeper:
                await keeper.create("chat", small())
                keeper._drop(keeper.owned["chat"], FencedError("another process owns it now."))
                assert keeper._ticks == {}

    run(play())
