"""Journals are archived and pruned: archives and journal form one chain, and the campaign continues bit for bit."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from driftsack.cli import app
from driftsack.core.errors import SettingError
from driftsack.service.domain import journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.journal import START, JournalError
from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections.beginnings import begun
from driftsack.service.projections.explain import replay, why
from driftsack.service.projections.export import as_csv
from driftsack.service.runtime import recall
from driftsack.service.runtime.archives import Archived, archive, prune
from driftsack.service.runtime.recovery import recover
from driftsack.service.store import open_store
from driftsack.service.store.interface import AuditRow, Store
from driftsack.service.store.sqlite import SQLiteStore
from tests.support.campaigns import START as BEGIN
from tests.support.campaigns import monthly
from tests.support.journals import Written
from tests.support.live_service import serving

ENTRY = AuditRow(BEGIN, "shell", "archive chat", "chat", "")
CHAT = "/v1/campaigns/chat"


def played(store: Store, name: str = "chat") -> Written:
    """A campaign with decisions that are told, pending, expired and told after what will be archived."""
    written = Written(store, name, monthly(budget={"usd": "50"}, slots=3))
    written.do(ms.AddArm("tiny", {"usd": "0.03"}))
    continued(written, 60)
    return written


def continued(written: Written, count: int) -> None:
    """Ask and tell; every fifth decision stays open, and some of these are told much later or expire."""
    for k in range(count):
        number = written.ask()
        if k % 5:
            written.do(ms.Tell(0.5, {"usd": "0.02"}), number)
        if k % 10 == 9:
            written.wait(5_000)
    waiting = [number for number, record in written.owned.campaign.book.open.items() if record.kind == "pending"]
    for number in waiting[::3]:
        written.do(ms.Tell(1.0, {"usd": "0.01"}), number)


def archived_and_pruned(store: Store, file: Path, before: int | None = None) -> Archived:
    found = archive(store, "chat", file, before)
    prune(store, "chat", found, ENTRY)
    return found


def shown(store: Store, numbers: range) -> dict[int, Any]:
    """What is found about decisions."""
    row = store.campaign("chat")
    assert row is not None
    found = {}
    for number in numbers:
        records = recall.recall_some(store, "chat", [number], row.seq, 600).records
        if number in records:
            found[number] = (records[number].kind, records[number].costs, records[number].late)
    return found


def test_archives_and_journal_form_one_chain(store_address: str, tmp_path: Path) -> None:
    """Two parts are archived and pruned; another campaign with the same history keeps everything."""
    with closing(open_store(store_address)) as store:
        written = played(store)
        twin = played(store, "twin")
        first = archived_and_pruned(store, tmp_path / "one.db", before=written.now.at - 20_000)
        continued(written, 40)
        continued(twin, 40)
        second = archived_and_pruned(store, tmp_path / "two.db", before=written.now.at - 8_000)
        assert 1 < first.base.seq < second.base.seq < written.owned.campaign.book.seq
        # The chain goes through both archives to the journal.
        seq, chain = 0, START
        for file, base in (("one.db", first.base), ("two.db", second.base)):
            with closing(SQLiteStore(tmp_path / file, read_only=True)) as part:
                assert replay(part, "chat").same
                seq, chain = journal.verify(list(part.segments("chat", seq)), chain, seq)
                assert (seq, chain) == (base.seq, base.chain)
        rest = list(store.segments("chat", seq))
        row, other = store.campaign("chat"), store.campaign("twin")
        assert row is not None
        assert other is not None
        assert journal.verify(rest, chain, seq) == (row.seq, row.chain)
        assert len(list(store.segments("chat"))) == len(rest) + 1  # and the opening segment
        # The campaign is the same, with and without snapshots, and continues.
        found, whole = recover(store, row, snapshots=False), recover(store, other, snapshots=False)
        assert found.learner.state_hash() == recover(store, row).learner.state_hash()
        assert found.learner.state_hash() == written.owned.campaign.learner.state_hash()
        assert found.book == written.owned.campaign.book
        assert found.book.account == whole.book.account
        assert replay(store, "chat").same
        continued(written, 10)
        assert replay(store, "chat").same


def test_old_decisions_are_in_the_archive(store_address: str, tmp_path: Path) -> None:
    with closing(open_store(store_address)) as store:
        written = played(store)
        everything = range(1, written.owned.campaign.book.number + 1)
        before = shown(store, everything)
        reasons = {number: why(store, "chat", number) for number in (1, 58)}
        base = archived_and_pruned(store, tmp_path / "one.db", before=written.now.at - 20_000).base
        assert 1 < base.number < 58
        # Those that were open or settled lately at the end of the archive are still found.
        assert shown(store, everything) == before
        with pytest.raises(Refusal, match="was archived") as refusal:
            why(store, "chat", 1)
        assert (refusal.value.status, refusal.value.kind) == (410, "archived")
        with closing(SQLiteStore(tmp_path / "one.db", read_only=True)) as part:
            assert why(part, "chat", 1) == reasons[1]
        assert why(store, "chat", 58) == reasons[58]
        # The exports of both parts have every outcome, once.
        with closing(SQLiteStore(tmp_path / "one.db", read_only=True)) as part:
            old = as_csv(part, "chat").splitlines()
        new = as_csv(store, "chat").splitlines()
        told = written.owned.campaign.book.told
        assert len([line for line in (*old[1:], *new[1:]) if line.split(",")[1]]) == told
        assert old[0] == new[0]


def test_a_track_continues_with_the_counts_of_the_archive(store_address: str, tmp_path: Path) -> None:
    with closing(open_store(store_address)) as store:
        written = played(store)

        def tracked(name: str) -> Any:
            row = store.campaign(name)
            assert row is not None
            track = begun(store, row)
            for segment in store.segments(name, track.first):
                track.feed(segment)
            return track

        before = tracked("chat")
        archived_and_pruned(store, tmp_path / "one.db", before=written.now.at - 20_000)
        after = tracked("chat")
        for name in ("seq", "number", "pending", "told", "expired", "overruns", "reward", "state", "arms", "opened_at"):
            assert getattr(after, name) == getattr(before, name), name
        assert after.waiting.keys() == before.waiting.keys()
        assert vars(after.account) == vars(before.account)


@pytest.mark.parametrize("planted", [False, True])
def test_an_archive_of_another_journal_deletes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    """The planted fault: the chain is not compared, and the journal is damaged."""
    with closing(open_store(str(tmp_path / "s.db"))) as store, closing(open_store(str(tmp_path / "t.db"))) as other:
        played(store)
        continued(played(other), 1)
        found = archive(other, "chat", tmp_path / "one.db", before=BEGIN + 20_000)
        count = len(list(store.segments("chat")))
        if planted:
            store.prune("chat", found.base, found.snapshot, ENTRY)
            row = store.campaign("chat")
            assert row is not None
            with pytest.raises(JournalError):
                recover(store, row, snapshots=False)
        else:
            with pytest.raises(JournalError, match="nothing was deleted"):
                prune(store, "chat", found, ENTRY)
            assert len(list(store.segments("chat"))) == count


def test_a_changed_journal_is_not_archived(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    with closing(SQLiteStore(path)) as store:
        played(store)
        with pytest.raises(SettingError, match="no events to archive"):
            archive(store, "chat", tmp_path / "none.db", before=1)
        store._rows("DROP TRIGGER segment_kept")
        store._rows("UPDATE segment SET body = zeroblob(9) WHERE first = 9")
        with pytest.raises(JournalError):
            archive(store, "chat", tmp_path / "one.db")
    assert {path.name for path in tmp_path.iterdir() if "one" in path.name or "none" in path.name} == set()


@pytest.mark.parametrize("snapshots", [False, True])
def test_a_campaign_that_is_rebuilt_during_a_deletion_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshots: bool
) -> None:
    """The part that is deleted is counted, but no longer found."""
    with closing(SQLiteStore(tmp_path / "s.db")) as store:
        written = played(store)
        found = archive(store, "chat", tmp_path / "one.db", before=BEGIN + 20_000)
        row = store.campaign("chat")
        assert row is not None
        usual = store.count_events
        counts: list[Any] = []

        def pruned(*given: Any) -> int:
            if not counts:
                store.prune("chat", found.base, found.snapshot, ENTRY)
            counts.append(given)
            return usual(*given)

        monkeypatch.setattr(store, "count_events", pruned)
        again = recover(store, row, snapshots=snapshots)
        assert again.learner.state_hash() == written.owned.campaign.learner.state_hash()
        assert len(counts) == 2
        # Events that are missing without a deletion are still noticed.
        monkeypatch.setattr(store, "count_events", lambda *given: usual(*given) - 1)
        with pytest.raises(JournalError, match="events are missing"):
            recover(store, row, snapshots=snapshots)


def test_an_interrupted_deletion_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal begins after the archive as soon as that is decided, whatever is left of the earlier part."""
    with closing(SQLiteStore(tmp_path / "s.db")) as store:
        played(store)
        found = archive(store, "chat", tmp_path / "one.db", before=BEGIN + 20_000)
        monkeypatch.setattr(store, "_delete_some", lambda *_: None)
        prune(store, "chat", found, ENTRY)
        assert replay(store, "chat").same
        count = len(list(store.segments("chat")))
        monkeypatch.undo()
        store.prune("chat", found.base, found.snapshot, ENTRY)
        assert len(list(store.segments("chat"))) < count
        assert replay(store, "chat").same


def test_the_command_archives_beside_a_running_service(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    with serving(path) as live:
        live.open(budget={"usd": "100"})
        for _ in range(30):
            number = live.ask()["decision"]
            live.call("POST", f"{CHAT}/decisions/{number}/tell", {"reward": 1, "costs": {"usd": "0.02"}})
        file = str(tmp_path / "chat.db")
        done = CliRunner().invoke(app, ["archive", "chat", file, "--prune", "--store", path])
        assert done.exit_code == 0, done.output
        assert "were deleted" in " ".join(done.output.split())
        again = CliRunner().invoke(app, ["archive", "chat", file, "--prune", "--store", path])
        assert again.exit_code == 1
        last = live.ask()["decision"]
        status, page = live.call("GET", f"{CHAT}/decisions")
        assert (status, page["decisions"][-1]["decision"]) == (200, last)
        assert live.call("GET", f"{CHAT}/decisions/{last}/why")[0] == 200
        assert live.call("GET", f"{CHAT}/decisions/1/why")[1]["type"] == "urn:driftsack:archived"
        assert live.call("GET", "/v1/audit")[1]["entries"][0]["action"] == "archive chat"
    for store in (path, file):
        found = CliRunner().invoke(app, ["replay", "chat", "--store", store])
        assert found.exit_code == 0, found.output
    explained = CliRunner().invoke(app, ["why", "chat", "1", "--store", file])
    assert explained.exit_code == 0, explained.output
    with serving(path) as live:
        assert live.app.service.keeper.damaged == {}
        assert live.app.service.keeper.owned["chat"].campaign.book.number == last
