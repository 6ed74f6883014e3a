"""A clock that is far ahead of the store is refused at the start, until an operator accepts it."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from driftsack.cli import app
from driftsack.service.domain.calendar import DAY_MS
from driftsack.service.runtime.clock_check import LONGEST_PAUSE, check_clock
from driftsack.service.store import open_store
from driftsack.service.store.interface import AuditRow, StoreError
from tests.support.campaigns import START, small
from tests.support.journals import Written


def test_a_clock_that_is_far_ahead_is_refused_until_it_is_accepted(store_address: str) -> None:
    with closing(open_store(store_address)) as store:
        check_clock(store, START)  # an empty store says nothing about the time
        Written(store, "chat", small())
        check_clock(store, START + LONGEST_PAUSE * DAY_MS)
        ahead = START + 400 * DAY_MS
        with pytest.raises(StoreError, match="400 days ahead"):
            check_clock(store, ahead)
        store.add_audit(AuditRow(ahead, "shell", "another action", None, ""))
        with pytest.raises(StoreError, match="400 days ahead"):
            check_clock(store, ahead)
        store.add_audit(AuditRow(ahead, "shell", "clock accept", None, ""))
        check_clock(store, ahead + DAY_MS)


def test_a_clock_that_is_behind_is_reported(store_address: str, caplog: pytest.LogCaptureFixture) -> None:
    with closing(open_store(store_address)) as store:
        Written(store, "chat", small())
        check_clock(store, START)
        assert not caplog.text
        check_clock(store, START - 3 * DAY_MS)
        assert "3 days behind" in caplog.text


def test_serve_refuses_and_the_command_accepts(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    with closing(open_store(path)) as store:
        Written(store, "chat", small(), at=int(1000 * time.time()) - 400 * DAY_MS)
    refused = CliRunner().invoke(app, ["serve", "--store", path, "--port", "0"])
    assert refused.exit_code == 1
    assert "driftsack clock accept" in " ".join(refused.output.split())
    accepted = CliRunner().invoke(app, ["clock", "accept", "--store", path])
    assert accepted.exit_code == 0, accepted.output
    with closing(open_store(path)) as store:
        check_clock(store)
