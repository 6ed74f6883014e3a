"""Contexts that are kept as they were sent: outside the hash chain, for a limited time, and deleted for good."""

from __future__ import annotations

import asyncio
import csv
import io
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import driftsack as ds
from driftsack.service.domain import journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.calendar import DAY_MS
from driftsack.service.domain.campaign import NOBODY
from driftsack.service.domain.exchanges import exchange
from driftsack.service.domain.features import Features
from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections.explain import replay, why
from driftsack.service.projections.export import as_csv
from driftsack.service.runtime.archives import archive, prune
from driftsack.service.store import open_store
from driftsack.service.store.interface import AuditRow, FencedError, Owner, Store
from driftsack.service.store.sqlite import SQLiteStore
from tests.service.runtime.test_owner import keeping, until
from tests.service.web.test_tokens import worker
from tests.support.campaigns import START, small
from tests.support.journals import Written
from tests.support.live_service import serving

CHAT = "/v1/campaigns/chat"
FEATURES = Features(numbers=["age"], categories={"kind": ["chat", "code"]}, optional=["age"])
ENTRY = AuditRow(START, "shell", "forget", "chat", "")
EVERY = (-(10**9), 10**9)


def begun(store: Store, name: str = "chat", **settings: Any) -> Written:
    """A campaign that keeps contexts for 30 days."""
    return Written(store, name, small(**{"features": FEATURES, "keep_raw": 30, "budget": {"usd": "9"}, **settings}))


def asked(written: Written, *names: str) -> list[int]:
    """Ask for one decision for each name, as categories that are not known, and tell the outcome."""
    numbers = []
    for name in names:
        found = written.do(ms.Ask(context={"kind": name}))
        numbers.append(found.decision)
        if not found.skipped:
            written.do(ms.Tell(1.0, {"usd": "0.02"}), found.decision)
    return numbers


def kept(store: Store, name: str = "chat") -> dict[int, bytes]:
    return store.contexts(name, *EVERY)


def test_a_kept_context_is_explained_exported_and_not_in_the_journal(store_address: str, tmp_path: Path) -> None:
    with closing(open_store(store_address)) as store:
        written = begun(store)
        one, two = asked(written, "Ada's question", "chat")
        assert kept(store) == {one: b'{"kind":"Ada\'s question"}', two: b'{"kind":"chat"}'}
        assert why(store, "chat", one).context == {"kind": "Ada's question"}
        assert all(b"Ada" not in segment.body for segment in store.segments("chat"))
        text = as_csv(store, "chat")
        assert next(csv.DictReader(io.StringIO(text)))["raw_context"] == '{"kind":"Ada\'s question"}'
        (tmp_path / "log.csv").write_text(text)
        log = ds.logs.read(tmp_path / "log.csv")
        assert log.features is not None
        assert set(log.features.inputs) == {"age", "age=?", "kind"}
        # Without the setting nothing is kept.
        other = begun(store, "other", keep_raw=None)
        asked(other, "chat")
        assert kept(store, "other") == {}
        assert why(store, "other", 1).context is None
        assert "raw_context" not in as_csv(store, "other")


def test_exchanges_and_observations_keep_theirs(store_address: str) -> None:
    with closing(open_store(store_address)) as store:
        written = begun(store)
        many = ms.Exchange([], 2, contexts=[{"kind": "a"}, {"kind": "b", "age": 7}])
        exchange(written.owned.campaign, many, written.now, NOBODY)
        written.commit()
        assert kept(store) == {1: b'{"kind":"a"}', 2: b'{"kind":"b","age":7}'}
        watching = begun(store, "watching", watch=True)
        for kind in ("a", "b"):
            watching.do(ms.Observe("small", 1.0, {"usd": "0.02"}, context={"kind": kind}))
        assert kept(store, "watching") == {-1: b'{"kind":"a"}', -2: b'{"kind":"b"}'}
        rows = [*csv.DictReader(io.StringIO(as_csv(store, "watching")))]
        assert [row["raw_context"] for row in rows] == ['{"kind":"a"}', '{"kind":"b"}']


def test_they_are_deleted_when_their_time_is_over_and_the_journal_still_verifies(store_address: str) -> None:
    with closing(open_store(store_address)) as store:
        written = begun(store)
        asked(written, "a")
        written.wait(DAY_MS)
        (second,) = asked(written, "b")
        store.forget_old_contexts(START + 30 * DAY_MS - 1)
        assert len(kept(store)) == 2
        store.forget_old_contexts(START + 30 * DAY_MS)
        assert list(kept(store)) == [second]
        store.forget_contexts("chat", *EVERY, ENTRY)
        assert kept(store) == {}
        assert store.audit(1)[0][1] == ENTRY
        assert replay(store, "chat").same
        assert why(store, "chat", second).context is None
        assert as_csv(store, "chat").splitlines()[0].endswith(",raw_context")


def test_an_archive_has_none_and_pruning_deletes_those_of_archived_events(store_address: str, tmp_path: Path) -> None:
    with closing(open_store(store_address)) as store:
        written = begun(store, watch=True)
        written.do(ms.Observe("small", 1.0, {"usd": "0.02"}, context={"kind": "seen"}))
        written.do(ms.Patch("active"))
        asked(written, "a", "b")
        written.wait(1000)
        found = archive(store, "chat", tmp_path / "old.db", written.now.at)
        (later,) = asked(written, "c")
        with closing(SQLiteStore(tmp_path / "old.db", read_only=True)) as old:
            assert kept(old) == {}
            assert why(old, "chat", 1).context is None
        assert len(kept(store)) == 4
        prune(store, "chat", found, ENTRY)
        assert list(kept(store)) == [later]
        # Observations that follow an archived part keep their numbers.
        two = begun(store, "two", watch=True)
        for kind in ("a", "b"):
            two.do(ms.Observe("small", 1.0, {"usd": "0.02"}, context={"kind": kind}))
            two.wait(1000)
        prune(store, "two", archive(store, "two", tmp_path / "two.db", two.now.at - 1000), ENTRY)
        (row,) = csv.DictReader(io.StringIO(as_csv(store, "two")))
        assert row["raw_context"] == '{"kind":"b"}'


def test_they_are_written_with_their_events_or_not_at_all(store_address: str) -> None:
    with closing(open_store(store_address)) as store:
        written = begun(store)
        written.owned.campaign.handle(ms.Ask(context={"kind": "a"}), written.now)
        segment = written.owned.collect(10**9)[0]
        with pytest.raises(FencedError):
            store.append([segment._replace(epoch=segment.epoch + 1)])
        assert kept(store) == {}
        store.append([segment])
        assert len(kept(store)) == 1


@pytest.mark.parametrize("planted", [False, True])
def test_a_deleted_context_is_not_left_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    """The planted fault: rows are deleted in the ordinary way."""
    if planted:
        pragma = SQLiteStore.pragma
        monkeypatch.setattr(SQLiteStore, "pragma", lambda store, name, _=None: pragma(store, name, 0))
    with closing(SQLiteStore(tmp_path / "s.db")) as store:
        asked(begun(store), *(f"secret-{k:03}" * 10 for k in range(100)))
        store.forget_contexts("chat", *EVERY)
    assert (b"secret-0" in (tmp_path / "s.db").read_bytes()) is planted


def test_the_api_deletes_them(tmp_path: Path) -> None:
    settings = {"features": {"categories": {"kind": ["chat"]}}, "budget": {"usd": "9"}, "keep_raw": 1}
    with serving(str(tmp_path / "s.db")) as live:
        store = live.app.service.keeper.store
        for name in ("chat", "other"):
            live.open(name, **settings)
            for _ in range(3):
                live.call("POST", f"/v1/campaigns/{name}/decisions", {"context": {"kind": "chat"}})
        assert live.call("GET", f"{CHAT}/decisions/2/why")[1]["context"] == {"kind": "chat"}
        assert live.call("DELETE", f"{CHAT}/decisions/2/context", key=worker(live))[0] == 403
        assert live.call("DELETE", f"{CHAT}/decisions/2/context") == (200, {"ok": True})
        assert list(kept(store)) == [1, 3]
        assert live.call("DELETE", f"{CHAT}/contexts") == (200, {"ok": True})
        assert (kept(store), len(kept(store, "other"))) == ({}, 3)
        actions = [entry["action"] for entry in live.call("GET", "/v1/audit")[1]["entries"][:2]]
        assert actions == [f"DELETE {CHAT}/contexts", f"DELETE {CHAT}/decisions/2/context"]


def test_the_service_forgets_in_time(store_address: str) -> None:
    async def play(store: Store) -> None:
        async with keeping(store, idle=0.05):
            await until(lambda: kept(store) == {})

    with closing(open_store(store_address)) as store:
        asked(begun(store), "a")  # in 2023
        store.release(["chat"], Owner("writer"))
        asyncio.run(play(store))


def test_the_setting_needs_features(tmp_path: Path) -> None:
    with closing(SQLiteStore(tmp_path / "s.db")) as store, pytest.raises(Refusal, match="keep_raw is for campaigns"):
        begun(store, features=None)


def test_a_replay_needs_no_contexts(tmp_path: Path) -> None:
    """The journals of two campaigns, of which one keeps contexts, differ in the setting only."""
    with closing(SQLiteStore(tmp_path / "s.db")) as store:
        for name, days in (("one", 30), ("two", None)):
            asked(begun(store, name, keep_raw=days), "a", "b")
        one, two = (
            [
                (type(e), getattr(e, "context", None))
                for s in store.segments(name)
                for e in journal.decode(s.body)
                if not isinstance(e, journal.Opened)
            ]
            for name in ("one", "two")
        )
        assert one == two


def test_no_file_of_sqlite_has_a_deleted_context(tmp_path: Path) -> None:
    """Nor has the write-ahead log."""
    secret = b"AdaLovelacesSecretQuestion"
    with closing(open_store(str(tmp_path / "s.db"))) as store:
        asked(begun(store), secret.decode())
        assert any(secret in path.read_bytes() for path in tmp_path.iterdir())
        store.forget_contexts("chat", *EVERY, AuditRow(1, "x", "forget", "chat", ""))
        assert not any(secret in path.read_bytes() for path in tmp_path.iterdir())
