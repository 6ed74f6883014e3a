"""Short forms of ``python -m lab faults`` and ``serve``, with faults that the audit must detect."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import urllib.request
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from driftsack.service.store.sqlite import SQLiteStore
from lab.service import endurance, faults, speed
from lab.service.backups import checked_backup
from lab.service.load import run_load
from lab.service.processes import Process, call, open_campaign
from lab.service.witness import Witness
from tests.support.local_postgres import LocalPostgres


def quiet(_: str) -> None:
    """No progress."""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store after a kill under load, at the end of which its budget is exhausted."""
    directory = tmp_path_factory.mktemp("kill")
    found = faults.kill_under_load(directory, 1, 6, "3", quiet)
    assert found["clean"] == "yes", found
    assert found["acknowledged"] > 20
    return next(directory.glob("kill-*.db"))


def test_a_campaign_with_features_survives_a_kill(tmp_path: Path) -> None:
    found = faults.kill_under_load(tmp_path, 1, 6, "3", quiet, seeing=True)
    assert found["clean"] == "yes", found
    assert found["acknowledged"] > 0


def test_the_audit_notices_what_is_lost_settled_twice_overspent_or_changed(killed: Path) -> None:
    """The planted faults."""
    witness = Witness("http://localhost", "", "chat", 0)
    assert witness.audit(str(killed)).clean
    witness.asked[10**9] = "small"
    witness.told[10**9] = "0.01"
    assert witness.audit(str(killed)).lost == 2
    with closing(sqlite3.connect(killed)) as file, file:
        query = "SELECT * FROM segment WHERE instr(body, CAST('told' AS BLOB)) ORDER BY first DESC LIMIT 1"
        last = file.execute(query).fetchone()
        seq, epoch = file.execute("SELECT seq, epoch FROM campaign").fetchone()
        count = last[2] - last[1]
        again = ("chat", seq + 1, seq + 1 + count, last[3], epoch, "[]", last[6], last[7])
        file.execute("INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?, ?, ?)", again)
        file.execute("PRAGMA ignore_check_constraints=ON")
        file.execute("UPDATE budget SET spent = granted + 1")
    found = Witness("http://localhost", "", "chat", 0).audit(str(killed))
    assert found.twice
    assert found.overspent
    assert "was changed" in found.damaged


def test_one_of_many_wins_the_last_reservation(tmp_path: Path) -> None:
    found = faults.race_for_the_last(tmp_path, 5, 32, quiet)
    assert found["clean"] == "yes", found


def test_a_full_disk_acknowledges_nothing_and_a_stop_drains(tmp_path: Path) -> None:
    found = faults.fill_disk(tmp_path, 1, 4, quiet)
    assert found["clean"] == "yes", found
    assert found["acknowledged"] > 10


def test_backups_under_load_have_everything_and_are_served(tmp_path: Path) -> None:
    found = faults.backups_under_load(tmp_path, 2, 4, quiet)
    assert found["clean"] == "yes", found
    assert found["acknowledged"] > 10


def test_a_backup_from_before_the_answers_is_noticed(killed: Path, tmp_path: Path) -> None:
    """The planted fault: the copy lacks what was acknowledged before it."""
    witness = Witness("http://localhost", "", "chat", 0)
    measured, findings = checked_backup(str(killed), tmp_path / "copy.db", witness)
    assert findings.lost == 0
    assert measured.size > 0
    witness.told[10**9] = "0.01"
    assert checked_backup(str(killed), tmp_path / "late.db", witness)[1].lost == 1


def test_every_fixture_is_served_and_a_damaged_campaign_is_named(tmp_path: Path) -> None:
    assert faults.upgrade_fixtures(tmp_path, quiet)["clean"] == "yes"
    found = faults.damage_campaigns(tmp_path, 2, 2, quiet)
    assert found["clean"] == "yes", found


@pytest.mark.postgres
def test_a_database_that_swallows_bytes_loses_nothing(tmp_path: Path) -> None:
    found = faults.swallow_bytes(tmp_path, 2, 4, quiet)
    assert found["clean"] == "yes", found
    assert found["acknowledged"] > 0


def test_speed_is_measured_with_answers_that_are_right(tmp_path: Path) -> None:
    service = Process(tmp_path, str(tmp_path / "s.db"))
    try:
        open_campaign(service.url, service.key)
        measured = run_load(service.url, service.key, 0.5, 8)
        assert measured.failures == 0
        assert measured.requests > 50
        assert run_load(service.url, "wrong", 0.2, 2).failures > 0
        assert speed.exchange_rate(service, 0.3) > 100
        told = call(service.url, service.key, "GET", "/v1/campaigns/chat")[1]["told"]
        assert told >= measured.requests // 2 - 8
        service.stop()
        assert service._process.returncode == 0  # and not 143, as if it had not been drained
        with closing(sqlite3.connect(tmp_path / "s.db")) as file:
            (latest,) = file.execute("SELECT max(seq) FROM snapshot").fetchone()
            (seq,) = file.execute("SELECT seq FROM campaign").fetchone()
        assert latest == seq  # SIGTERM keeps a snapshot
        logged = next(tmp_path.glob("*.err")).read_text()
        lines = [json.loads(line) for line in logged.splitlines() if line.startswith("{")]
        assert any("startup complete" in line["message"] for line in lines)
        assert service.key not in logged
    finally:
        service.stop()
    assert speed.recovery_seconds(tmp_path, 3000, 1000) > 0


@pytest.mark.postgres
def test_a_slower_disk_is_slower_with_either_store(tmp_path: Path) -> None:
    """Every commit takes at least 40 ms longer; without that some are faster, on SQLite and on PostgreSQL."""
    server = LocalPostgres(Path(tempfile.mkdtemp(dir=tmp_path)))
    try:
        assert fastest(tmp_path, str(tmp_path / "plain.db")) < 0.04
        assert fastest(tmp_path, str(tmp_path / "slow.db"), slower=40.0) > 0.04
        assert fastest(tmp_path, server.new_database()) < 0.04
        server.slow_down(40.0)
        assert fastest(tmp_path, server.new_database()) > 0.04
    finally:
        server.remove()


def fastest(directory: Path, store: str, slower: float = 0.0) -> float:
    """The shortest time of a request, in seconds, with one connection."""
    service = Process(directory, store, slower=slower)
    try:
        open_campaign(service.url, service.key)
        measured = run_load(service.url, service.key, 0.5, 1)
        assert measured.failures == 0
        return measured.latencies[0]
    finally:
        service.stop()


def test_events_do_not_make_campaigns_larger_or_slower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``python -m lab endurance`` does the same at length, when everything that is remembered is full."""
    monkeypatch.setattr(endurance, "CAMPAIGNS", 2)
    journals, memory, cost = endurance.endure(8_000, tmp_path, quiet)
    assert (journals["kept"], memory["kept"], cost["first"] > 0) == ("yes", "yes", True)
    assert journals["last"] >= 8_000
    for samples, kept in (([1.0] * 20, "yes"), ([1.0 + k for k in range(20)], "no")):
        assert endurance.row("memory", "MiB", samples, 1.05)["kept"] == kept


def test_a_service_that_keeps_nothing_does_not_endure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endurance, "CAMPAIGNS", 1)
    monkeypatch.setattr(SQLiteStore, "append", lambda _store, _segments: None)
    assert endurance.endure(2_000, tmp_path, quiet)[0]["kept"] == "no"


def test_the_application_that_does_nothing_answers_like_the_service(tmp_path: Path) -> None:
    nothing = Process(tmp_path, None)
    try:
        with urllib.request.urlopen(nothing.url + "/x", timeout=5) as answer:
            assert set(msgspec.json.decode(answer.read())) >= {"decision", "arm", "skipped"}
    finally:
        nothing.stop()
