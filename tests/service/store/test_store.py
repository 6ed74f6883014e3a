"""One contract for every store, and the faults that it detects."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from driftsack.game.amounts import MOST_UNITS
from driftsack.service.domain.journal import START, Delta, Segment, chained, verify
from driftsack.service.domain.plans import MOST_OVERRUN
from driftsack.service.store import open_store
from driftsack.service.store.interface import (
    AuditRow,
    FencedError,
    KeyRow,
    NameTakenError,
    NewerSchemaError,
    OverspentError,
    Owner,
    SnapshotRow,
    Store,
    StoreError,
    UnavailableError,
    migrations,
)
from driftsack.service.store.sqlite import SQLiteStore
from tests.support.local_postgres import LocalPostgres

ME, OTHER = Owner("me", "http://me", 0.5), Owner("other", "http://other", 0.5)


def after(last: Segment | None, *deltas: Delta, epoch: int = 1, events: int = 1, name: str = "chat") -> Segment:
    """The segment that follows another one."""
    seq, chain = (last.last, last.chain) if last else (0, START)
    body = bytes([0x90 + events]) + b"\xc0" * events
    return Segment(name, seq + 1, seq + events, 5, epoch, deltas, body, chained(chain, body))


def opened(name: str = "chat") -> Segment:
    return after(None, Delta(0, 0, True, 100, 0, 0, 0), Delta(0, 1, True, 50, 0, 0, 0), name=name)


@pytest.fixture
def store(store_address: str) -> Iterator[Store]:
    with closing(open_store(store_address)) as found:
        yield found


class TestContract:
    """What every store does."""

    def test_segments_come_back_and_move_the_budgets(self, store: Store) -> None:
        first = opened()
        store.create(first, b"config", ME)
        second = after(first, Delta(0, 0, False, 0, 10, 0, 0), events=3)
        third = after(second, Delta(0, 0, False, 0, -10, 4, 0), Delta(1, 0, True, 7, 1, 2, 0))
        store.append([second])
        store.append([third])
        assert list(store.segments("chat")) == [first, second, third]
        assert list(store.segments("chat", after=1)) == [second, third]
        assert store.budgets("chat") == {(0, 0): (100, 0, 4, 0), (0, 1): (50, 0, 0, 0), (1, 0): (7, 1, 2, 0)}
        row = store.campaigns()[0]
        assert (row.name, row.config, row.epoch, row.seq, row.chain) == ("chat", b"config", 1, 5, third.chain)
        assert store.at_once("chat") == (row, store.budgets("chat"))
        with pytest.raises(StoreError, match="no campaign 'nobody'"):
            store.at_once("nobody")

    def test_gaps_repetitions_and_stale_epochs_are_refused(self, store: Store) -> None:
        first = opened()
        store.create(first, b"", ME)
        second = after(first, Delta(0, 0, False, 0, 10, 0, 0))
        for bad in (second._replace(epoch=2), second._replace(first=3, last=3), first, second._replace(epoch=0)):
            with pytest.raises(FencedError):
                store.append([bad])
        store.append([second])
        with pytest.raises(FencedError):
            store.append([second])
        assert store.budgets("chat")[0, 0] == (100, 10, 0, 0)
        assert len(list(store.segments("chat"))) == 2

    @pytest.mark.parametrize(
        "delta",
        [
            Delta(0, 0, False, 0, 101, 0, 0),
            Delta(0, 0, False, 0, 0, 101, 0),
            Delta(0, 0, False, 0, 60, 41, 0),
            Delta(0, 0, False, 0, -1, 0, 0),
            Delta(0, 0, False, -1, 0, 100, 0),
            Delta(1, 0, True, 5, 6, 0, 0),
        ],
    )
    def test_the_database_refuses_to_overspend(self, store: Store, delta: Delta) -> None:
        first = opened()
        store.create(first, b"", ME)
        with pytest.raises(OverspentError):
            store.append([after(first, delta)])
        assert store.campaigns()[0].seq == 1
        assert store.budgets("chat")[0, 0] == (100, 0, 0, 0)
        store.append([after(first, Delta(0, 0, False, 0, 0, 120, 20))])  # an overrun is charged

    def test_the_database_adds_the_largest_amounts(self, store: Store) -> None:
        first = after(None, Delta(0, 0, True, MOST_UNITS, 0, 0, 0))
        store.create(first, b"", ME)
        second = after(first, Delta(0, 0, False, 0, MOST_UNITS, MOST_OVERRUN, MOST_OVERRUN))
        store.append([second])
        assert store.budgets("chat")[0, 0] == (MOST_UNITS, MOST_UNITS, MOST_OVERRUN, MOST_OVERRUN)
        with pytest.raises(OverspentError):
            store.append([after(second, Delta(0, 0, False, 0, 1, 0, 0))])

    def test_several_campaigns_are_committed_wholly_or_not_at_all(self, store: Store) -> None:
        one, two = opened("one"), opened("two")
        store.create(one, b"", ME)
        store.create(two, b"", ME)
        good, bad = after(one, name="one"), after(two, name="two", epoch=9)
        with pytest.raises(FencedError):
            store.append([good, bad])
        assert [row.seq for row in store.campaigns()] == [1, 1]
        store.append([good, after(two, name="two")])
        assert [row.seq for row in store.campaigns()] == [2, 2]

    def test_a_name_is_taken_once(self, store: Store) -> None:
        store.create(opened(), b"first", ME)
        with pytest.raises(NameTakenError):
            store.create(opened(), b"second", ME)
        assert [row.config for row in store.campaigns()] == [b"first"]

    def test_a_new_owner_fences_the_old_one(self, store: Store) -> None:
        first = opened()
        store.create(first, b"", ME)
        row = store.claim("chat", ME)
        assert row is not None
        assert (row.epoch, row.seq, row.owner_url) == (2, 1, "http://me")
        with pytest.raises(FencedError):
            store.append([after(first, epoch=1)])
        store.append([after(first, epoch=2)])
        assert store.claim("nobody", ME) is None
        assert store.extend(["chat", "nobody"], ME) == ["chat"]
        assert store.extend(["chat"], OTHER) == []

    def test_the_latest_snapshots_are_kept(self, store: Store) -> None:
        store.create(opened(), b"", ME)
        for seq in (1, 2, 3, 4, 4):
            store.save_snapshot("chat", SnapshotRow(seq, START, bytes([seq])))
        assert [snapshot.seq for snapshot in store.snapshots("chat")] == [4, 3, 2]

    def test_keys_and_audit(self, store: Store) -> None:
        key = KeyRow("abc", b"\1" * 32, ("read", "decide"), ("chat",), 5, "a note")
        store.add_key(key)
        with pytest.raises(NameTakenError):
            store.add_key(key)
        fixed = KeyRow("abd", b"\2" * 32, ("decide",), None, None, "", (("team", "x"), ("user", "ann")))
        store.add_key(fixed)
        assert store.keys() == [key, fixed]
        assert store.remove_key("abd")
        store.add_key(fixed._replace(labels=()))  # the labels went with the key
        assert store.keys()[1].labels == ()
        assert store.remove_key("abc")
        assert not store.remove_key("abc")

    def test_the_audit_is_read_from_its_end_and_on_from_any_entry(self, store: Store) -> None:
        entries = [AuditRow(at, "abc", "grant", None, "{}") for at in (7, 5, 5, 5, 9)]  # times need not grow
        for k, entry in enumerate(entries):
            store.add_key(KeyRow(f"k{k}", b"\1" * 32, ("read",), None, None, ""), entry)
        latest = store.audit(2)
        assert [entry for _, entry in latest] == [entries[4], entries[3]]
        assert store.remove_key("k0", AuditRow(11, "abc", "grant", "chat", "{}"))
        assert not store.remove_key("k0", AuditRow(12, "abc", "grant", "chat", "{}"))  # nothing changed
        rest = store.audit(9, before=latest[-1][0])
        assert [entry for _, entry in rest] == [entries[2], entries[1], entries[0]]
        numbers = [number for number, _ in (*latest, *rest)]
        assert numbers == sorted(set(numbers), reverse=True)
        assert store.audit(9, before=rest[-1][0]) == []

    def test_it_is_still_there_when_it_is_opened_again(self, store: Store, store_address: str) -> None:
        store.create(opened(), b"", ME)
        store.close()
        with closing(open_store(store_address)) as again:
            assert again.campaigns()[0].seq == 1
            assert verify([]) == (0, START)

    def test_a_newer_schema_is_refused(self, store: Store, store_address: str) -> None:
        store.close()
        if store_address.startswith("postgresql"):
            with psycopg.connect(store_address) as connection:
                connection.execute("INSERT INTO schema_version VALUES (99)")
        else:
            with closing(sqlite3.connect(store_address)) as file:
                file.execute("PRAGMA user_version=99")
        with pytest.raises(NewerSchemaError, match="schema 99"):
            open_store(store_address)


class TestPostgres:
    """What replicas rely on."""

    @pytest.fixture
    def store_address(self, postgres: LocalPostgres) -> str:
        return postgres.new_database()

    def test_nobody_takes_over_before_the_lease_ends(self, store: Store, store_address: str) -> None:
        first = opened()
        store.create(first, b"", ME._replace(lease=30.0))
        with closing(open_store(store_address)) as replica:
            assert replica.claim("chat", OTHER) is None
            store.release(["chat"], ME)
            taken = replica.claim("chat", OTHER._replace(lease=30.0))
            assert taken is not None
            assert taken.epoch == 2
            with pytest.raises(FencedError):
                store.append([after(first)])
            assert store.claim("chat", ME) is None  # a healed replica does not steal it back
            replica.append([after(first, epoch=2)])

    def test_a_lost_connection_is_made_again(self, store: Store, store_address: str) -> None:
        with psycopg.connect(store_address, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                "AND datname = current_database()"
            )
        with pytest.raises(UnavailableError):
            store.campaigns()
        assert store.campaigns() == []


class TestSQLite:
    """What one file relies on."""

    def test_commits_are_durable(self, tmp_path: Path) -> None:
        with closing(SQLiteStore(tmp_path / "s.db")) as store:
            modes = [store.pragma(name) for name in ("journal_mode", "synchronous")]
        assert modes == ["wal", 2]

    def test_a_second_process_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "s.db"
        code = f"from driftsack.service.store import open_store; open_store({str(path)!r})"
        with closing(SQLiteStore(path)):
            found = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
        assert found.returncode == 1
        assert "FileInUseError" in found.stderr

    def test_a_full_disk_is_an_error_and_loses_nothing(self, tmp_path: Path) -> None:
        with closing(SQLiteStore(tmp_path / "s.db")) as store:
            last = opened()
            store.create(last, b"", ME)
            store.pragma("max_page_count", store.pragma("page_count"))
            big = after(last)._replace(body=b"\xc0" * 100_000)
            with pytest.raises(UnavailableError, match="full"):
                store.append([big])
            assert store.campaigns()[0].seq == 1
            store.pragma("max_page_count", 1_000_000)
            store.append([big])
            assert store.campaigns()[0].seq == 2

    def test_backup_is_a_store(self, tmp_path: Path) -> None:
        with closing(SQLiteStore(tmp_path / "s.db")) as store:
            store.create(opened(), b"", ME)
            store.backup(tmp_path / "copy.db")
        with closing(SQLiteStore(tmp_path / "copy.db")) as copy:
            assert copy.campaigns()[0].seq == 1

    @pytest.mark.parametrize("steps", [False, True])
    def test_a_backup_ends_while_another_connection_writes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: bool
    ) -> None:
        """The planted fault: a copy in steps, which begins again at each commit."""
        path, connect, commits = tmp_path / "s.db", sqlite3.connect, 0

        class EndlessError(Exception):
            pass

        class Stepwise(sqlite3.Connection):
            def backup(self, target: sqlite3.Connection, **_: Any) -> None:
                super().backup(target, pages=10, progress=lambda *_: commit())

        with closing(SQLiteStore(path)) as store:
            store.create(opened(), b"", ME)
            store.save_snapshot("chat", SnapshotRow(1, START, b"x" * 2**20))
            last = next(store.segments("chat"))

            def commit() -> None:
                nonlocal last, commits
                last, commits = after(last), commits + 1
                store.append([last])
                if commits == 200:
                    raise EndlessError

            if steps:
                monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Stepwise))
            with closing(SQLiteStore(path, read_only=True)) as reader, suppress(EndlessError):
                reader.backup(tmp_path / "copy.db")
        assert (tmp_path / "copy.db").exists() != steps
        assert commits == (200 if steps else 0)
        assert not (tmp_path / "copy.db.partial").exists()
        if not steps:
            assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
            with closing(SQLiteStore(tmp_path / "copy.db")) as copy:
                assert copy.campaigns()[0].seq == 1

    def test_another_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "s.db").write_bytes(b"not a database at all" * 100)
        with pytest.raises(StoreError, match="not a driftsack store"):
            SQLiteStore(tmp_path / "s.db")


@pytest.mark.parametrize(
    ("check", "without", "test"),
    [
        ("epoch = NEW.epoch", "1", "test_a_new_owner_fences_the_old_one"),
        ("seq = NEW.first - 1", "1", "test_gaps_repetitions_and_stale_epochs_are_refused"),
        ("spent + reserved <= granted + overrun", "1", "test_the_database_refuses_to_overspend"),
    ],
)
def test_a_store_that_forgets_a_check_is_caught(
    check: str, without: str, test: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted faults: the contract fails for a schema without the check."""
    scripts = migrations("sqlite")
    assert check in scripts[0]
    planted = [scripts[0].replace(check, without), *scripts[1:]]
    monkeypatch.setattr("driftsack.service.store.interface.migrations", lambda _: planted)
    arguments = (Delta(0, 0, False, 0, 101, 0, 0),) if "overspend" in test else ()
    with (
        closing(SQLiteStore(tmp_path / "s.db")) as store,
        pytest.raises((pytest.fail.Exception, AssertionError)),
    ):
        getattr(TestContract(), test)(store, *arguments)
