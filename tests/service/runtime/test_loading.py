"""Campaigns are loaded after the service listens, damaged ones are set aside, and closed ones leave the memory."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import Campaign
from driftsack.service.domain.config import Config
from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections.watcher import Watcher
from driftsack.service.runtime import keeper as keepers
from driftsack.service.runtime.keeper import Keeper
from driftsack.service.runtime.recovery import Rebuilt, encode_config, rebuild
from driftsack.service.store import open_store
from driftsack.service.store.interface import CampaignRow, Owner, Store
from driftsack.service.store.sqlite import SQLiteStore
from driftsack.service.web.api.keyring import new_key
from tests.service.runtime.test_owner import ME, ask, keeping, run, until
from tests.support.campaigns import small
from tests.support.dashboard_client import Visitor
from tests.support.live_service import serving
from tests.support.local_postgres import LocalPostgres


def flipped(config: bytes) -> bytes:
    """The settings with one byte changed."""
    return b"\xc1" + config[1:]


def unknown_policy(config: bytes) -> bytes:
    """The settings with a policy that this release does not have."""
    return encode_config(msgspec.structs.replace(Config.from_bytes(config), policy={"policy": "OfNextYear"}))


def damage(path: Path, change: Callable[[bytes], bytes], name: str = "bad") -> None:
    """Change the settings of a campaign in a store, and delete its snapshots."""
    with closing(sqlite3.connect(path)) as file, file:
        (config,) = file.execute("SELECT config FROM campaign WHERE name = ?", (name,)).fetchone()
        file.execute("UPDATE campaign SET config = ? WHERE name = ?", (change(config), name))
        file.execute("DELETE FROM snapshot WHERE campaign = ?", (name,))


async def open_two(path: Path) -> None:
    with closing(SQLiteStore(path)) as store:
        async with keeping(store) as keeper:
            for name in ("bad", "good"):
                await keeper.create(name, small())


@pytest.mark.parametrize("change", [flipped, unknown_policy])
def test_a_damaged_campaign_is_set_aside_and_the_others_serve(
    tmp_path: Path, change: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s.db"
    run(open_two(path))
    damage(path, change)
    with serving(str(path)) as live:
        raw = new_admin(live.app.service.keeper.store)  # found in the store by the first request
        assert live.call("POST", "/v1/campaigns/good/decisions", {}, key=raw)[0] == 200
        problem = live.call("POST", "/v1/campaigns/bad/decisions", {}, key=raw)[1]
        assert problem["type"] == "urn:driftsack:damaged"
        assert live.call("GET", "/readyz") == (200, {"ready": True, "damaged": ["bad"]})
        assert 'driftsack_campaign_damaged{campaign="bad"} 1.0' in live.call("GET", "/metrics", key=raw)[1]
        assert set(live.call("GET", "/v1/campaigns", key=raw)[1]["campaigns"]) == {"bad", "good"}
        config = msgspec.to_builtins(small())
        opening = {"name": "third", "config": config}
        assert live.call("POST", "/v1/campaigns", opening, key=raw, idempotency_key="k")[0] == 201
        shown = Visitor(live.url, raw).get("/").text
        assert "damaged" in shown
        assert "good" in shown
    assert "campaign bad is damaged" in caplog.text


def new_admin(store: Store) -> str:
    """Create an administrator's key."""
    raw, row = new_key(("admin",))
    store.add_key(row)
    return raw


def test_without_the_net_one_damaged_campaign_would_not_be_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: only errors of the journal are caught."""
    path = tmp_path / "s.db"
    run(open_two(path))
    damage(path, flipped)

    async def nothing(*_: Any) -> None:
        """Leave the campaign as it is."""

    monkeypatch.setattr(Keeper, "_set_aside", nothing)

    async def play() -> dict[str, str]:
        with closing(SQLiteStore(path)) as store:
            async with keeping(store) as keeper:
                return keeper.damaged

    assert run(play()) == {}


@pytest.mark.parametrize("during", ["start", "recovery"])
def test_any_exception_sets_a_campaign_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, during: str) -> None:
    path = tmp_path / "s.db"
    run(open_two(path))
    failing = during == "start"

    def rebuilt(store: Store, row: CampaignRow) -> Rebuilt:
        if row.name == "bad" and failing:
            raise ZeroDivisionError
        return rebuild(store, row)

    monkeypatch.setattr(keepers, "rebuild", rebuilt)

    async def play() -> None:
        nonlocal failing
        with closing(SQLiteStore(path)) as store:
            async with keeping(store, Owner("me", "http://me", 30.0)) as keeper:
                if during == "recovery":
                    failing = True
                    keeper._drop(keeper.owned["bad"], RuntimeError("half changed"))
                    assert keeper.is_ready  # one campaign that is recovered does not stop the others
                    await ask(keeper, name="good")
                    await until(lambda: "bad" in keeper.damaged)
                with pytest.raises(Refusal, match="ZeroDivisionError") as refusal:
                    await ask(keeper, name="bad")
                assert refusal.value.kind == "damaged"
                await ask(keeper, name="good")
                assert keeper.is_ready

    run(play())


def test_a_service_with_many_campaigns_listens_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request loads its campaign before those that are loaded in the background; its policy is rehearsed once."""
    path, rehearsed = tmp_path / "s.db", list[Campaign]()

    async def fill() -> None:
        with closing(SQLiteStore(path)) as store:
            async with keeping(store) as keeper:
                for k in range(20):
                    await keeper.create(f"c{k:02}", small())

    def slow(store: Store, row: CampaignRow) -> Rebuilt:
        time.sleep(0.1)
        return rebuild(store, row)

    run(fill())
    monkeypatch.setattr(keepers, "rebuild", slow)
    monkeypatch.setattr(keepers, "rehearse", rehearsed.append)

    async def play() -> None:
        with closing(SQLiteStore(path)) as store:
            keeper = Keeper(store, ME)
            await keeper.start()
            assert keeper.is_ready
            assert len(keeper.unloaded) == 20
            with pytest.raises(Refusal) as refusal:
                keeper.find("c19")
            assert refusal.value.status == 503
            await keeper.prepare("c19")
            await ask(keeper, name="c19")
            assert len(keeper.unloaded) > 10
            await keeper.until_loaded()
            assert len(keeper.owned) == 20
            await keeper.stop()

    run(play())
    assert len(rehearsed) <= 2  # of one kind; two are loaded at the same time


def test_closed_campaigns_leave_the_memory_and_are_read_again(tmp_path: Path) -> None:
    async def play() -> None:
        with closing(SQLiteStore(tmp_path / "s.db")) as store:
            async with keeping(store, idle=0.1) as keeper:
                for name in ("chat", "closed"):
                    await keeper.create(name, small())
                decision = await ask(keeper, name="closed")
                await keeper.submit("closed", ms.Patch("closed"))
                await asyncio.sleep(1.0)
                assert "closed" in keeper.owned  # it waits for an outcome
                await keeper.submit("closed", ms.Tell(1.0, {"usd": "0.02"}), number=decision.decision)
                book = keeper.owned["closed"].campaign.book
                assert book.state == "closed"
                await until(lambda: "closed" not in keeper.owned)
                assert "chat" in keeper.owned
                await keeper.prepare("closed")
                assert keeper.find("closed").campaign.book == book
                with pytest.raises(Refusal) as refusal:
                    await keeper.submit("closed", ms.Ask())
                assert refusal.value.kind == "campaign-closed"

    run(play())


def test_leases_end_although_a_closed_campaign_cannot_leave_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_: Any) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(keepers, "sweep", broken)

    async def play() -> None:
        with closing(SQLiteStore(tmp_path / "s.db")) as store:
            async with keeping(store, idle=0.01) as keeper:
                await until(lambda: "could not be removed" in caplog.text)
                await keeper.create("chat", small(lease=1))
                await ask(keeper)
                await until(lambda: keeper.owned["chat"].campaign.book.expired == 1)

    run(play())


def test_a_campaign_that_another_replica_opened_is_found_in_the_store(postgres: LocalPostgres) -> None:
    """Before the next renewal of the leases, which is far away here; a name that nobody has stays unknown."""
    address, slow = postgres.new_database(), 60.0

    async def play() -> None:
        with closing(open_store(address)) as mine, closing(open_store(address)) as theirs:
            me, other = Owner("me", "http://me", slow), Owner("other", "http://other", slow)
            async with keeping(mine, me) as first, keeping(theirs, other) as second:
                await first.create("chat", small())
                with pytest.raises(Refusal) as refusal:
                    second.find("chat")
                assert refusal.value.kind == "unknown-campaign"  # as it was
                await second.prepare("chat")
                assert second.foreign == {"chat": "http://me"}
                await second.prepare("nobody")
                with pytest.raises(Refusal, match="no campaign 'nobody'"):
                    second.find("nobody")

    run(play())


def test_idle_campaigns_write_one_row_at_each_renewal(postgres: LocalPostgres) -> None:
    """Of the process, however many campaigns it owns."""
    address = postgres.new_database()

    async def play() -> None:
        with closing(open_store(address)) as store:
            async with keeping(store, Owner("me", "http://me", 0.5)) as keeper:
                for k in range(20):
                    await keeper.create(f"c{k}", small())
                before = written(address)
                await asyncio.sleep(1.0)
                renewals = written(address)
                assert 0 < renewals["owner"] - before["owner"] < 20
                assert renewals["campaign"] == before["campaign"]

    run(play())


def written(address: str) -> dict[str, int]:
    """The number of updates of each table, from the transaction counters of its rows."""
    with psycopg.connect(address) as connection:
        rows = {}
        for table in ("owner", "campaign"):
            found = connection.execute(f"SELECT sum(xmin::text::bigint) FROM {table}").fetchone()
            rows[table] = int(found[0]) if found else 0
        return rows


@pytest.mark.parametrize("planted", [False, True])
def test_requests_for_unknown_campaigns_leave_no_locks(tmp_path: Path, planted: bool) -> None:
    """The planted fault: locks are kept whether they are used or not."""

    async def play() -> int:
        with closing(SQLiteStore(tmp_path / "s.db")) as store:
            async with keeping(store) as keeper:
                watcher = Watcher(keeper)
                if planted:
                    watcher._locks = {}  # type: ignore[assignment]
                for k in range(20):
                    with pytest.raises(Refusal, match="there is no campaign"):
                        await watcher.track(f"unknown-{k}")
                gc.collect()
                return len(watcher._locks)

    assert asyncio.run(play()) == (20 if planted else 0)
