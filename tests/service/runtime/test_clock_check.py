"""A clock that is far ahead of the store is refused at the start, until an operator accepts it.

A store whose events lie in the future, because the clock was wrong, is repaired.
"""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest
from typer.testing import CliRunner

from driftsack.cli import app
from driftsack.service.domain import messages as ms
from driftsack.service.domain.calendar import DAY_MS, next_midnight
from driftsack.service.domain.campaign import Now
from driftsack.service.domain.config import Limit
from driftsack.service.domain.views import label_accounts
from driftsack.service.projections.beginnings import begun
from driftsack.service.projections.explain import replay
from driftsack.service.runtime.clock_check import LONGEST_PAUSE, accept_clock, check_clock, repair_clock
from driftsack.service.runtime.owned import Owned, ServiceClock
from driftsack.service.runtime.recovery import rebuild, snapshot_of
from driftsack.service.store import open_store
from driftsack.service.store.interface import AuditRow, Owner, Store, StoreError
from tests.support.campaigns import START, monthly, small
from tests.support.journals import Written
from tests.support.local_postgres import LocalPostgres


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


BERLIN: Final = ZoneInfo("Europe/Berlin")
YEAR_AHEAD = START + 400 * DAY_MS
HOUR = 3_600_000


def ahead(store: Store, name: str = "chat", **settings: Any) -> Written:
    """A campaign that decided at the right time, and then by a clock that was 400 days ahead."""
    written = Written(store, name, monthly(**{"budget": {"usd": "5"}, "lease": 3600, **settings}))
    written.do(ms.Tell(1.0, {"usd": "0.02"}), written.ask())
    written.wait(HOUR // 4, stopped=400 * DAY_MS)
    written.do(ms.Tell(1.0, {"usd": "0.02"}), written.ask())
    store.release([name], Owner("writer"))
    return written


def again(store: Store, name: str, at: int) -> Written:
    """Continue a campaign at a time, as the service would."""
    row = store.claim(name, Owner("again"))
    assert row is not None
    written = Written.__new__(Written)
    written._store = store
    campaign, *saved = rebuild(store, row)
    written.now = Now(at, campaign.book.tick)
    written.owned = Owned(name, row.epoch, campaign, row.chain, ServiceClock(), 0, *saved)
    return written


@pytest.mark.parametrize("period", [None, 30 * 86_400])
def test_a_store_whose_events_lie_in_the_future_is_repaired(store_address: str, period: int | None) -> None:
    """Refills go on in the present month, and a policy with a period is paced until then."""
    settings: dict[str, Any] = {} if period is None else {"horizon": 1000, "period": period}
    with closing(open_store(store_address)) as store:
        ahead(store, **settings)
        Written(store, "right", small())
        now = START + HOUR
        assert again(store, "chat", now).owned.campaign.book.following == next_midnight(YEAR_AHEAD, "month", BERLIN)
        store.release(["chat"], Owner("again"))
        assert repair_clock(store, now) == {"chat": pytest.approx(400, abs=0.1)}
        assert store.latest_times()["chat"] == now
        assert [entry.action for _, entry in store.audit(2)] == ["clock accept", "clock repair"]
        check_clock(store, now)
        assert replay(store, "chat").same
        # It decides at the present time, and is refilled at the end of the present month.
        written = again(store, "chat", now)
        refill = next_midnight(now, "month", BERLIN)
        assert written.owned.campaign.book.following == refill
        learner = written.owned.campaign.learner
        if period is not None:
            assert learner.period_end == refill / 1000
        season = written.owned.campaign.book.season
        for _ in range(3):
            written.wait(HOUR // 10)
            written.do(ms.Tell(1.0, {"usd": "0.02"}), written.ask())
        written.wait(0, stopped=refill - written.now.at)
        assert written.owned.campaign.book.season == season + 1
        written.ask()
        assert replay(store, "chat").same
        assert repair_clock(store, written.now.at) == {}
        track = begun(store, store.campaigns()[0])
        for segment in store.segments("chat"):
            track.feed(segment)
        assert track.following == next_midnight(refill, "month", BERLIN)
        assert track.season_at == refill


def test_without_the_repair_no_budget_is_refilled(tmp_path: Path) -> None:
    """The planted fault: the service goes on with a clock that is right."""
    with closing(open_store(str(tmp_path / "s.db"))) as store:
        ahead(store)
        written = again(store, "chat", START + HOUR)
        season = written.owned.campaign.book.season
        written.wait(0, stopped=40 * DAY_MS)
        assert written.owned.campaign.book.season == season


def test_a_campaign_that_a_service_uses_is_not_repaired(postgres: LocalPostgres) -> None:
    with closing(open_store(postgres.new_database())) as store:
        ahead(store)
        store.claim("chat", Owner("a service", lease=60.0))
        with pytest.raises(StoreError, match="a service is using chat; stop it first"):
            repair_clock(store, START + HOUR)


def test_an_accepted_clock_that_was_wrong_is_forgotten(tmp_path: Path) -> None:
    with closing(open_store(str(tmp_path / "s.db"))) as store:
        Written(store, "chat", small())
        accept_clock(store, YEAR_AHEAD)
        check_clock(store, YEAR_AHEAD)
        repair_clock(store, START)
        with pytest.raises(StoreError, match="400 days ahead"):
            check_clock(store, YEAR_AHEAD)


def test_the_command_repairs(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    with closing(open_store(path)) as store:
        Written(store, "chat", small(), at=int(1000 * time.time()) + 10 * DAY_MS)
    for said in ("chat was 10.0 days ahead; it continues at the present time.", "no campaign has events in the future"):
        done = CliRunner().invoke(app, ["clock", "repair", "--store", path])
        assert done.exit_code == 0, done.output
        assert said in " ".join(done.output.split())


ANN: Final = {"user": "ann"}


def limited(store: Store) -> Written:
    """A campaign that limits what each user may cost a day."""
    limits = [Limit("user", {"usd": "0.25"}, "day")]
    return Written(store, "chat", small(limits=limits, budget={"usd": "100"}, lease=86_400))


def account(written: Written) -> tuple[str, str, str]:
    """What ann has spent and reserved today, and what is left."""
    found = label_accounts(written.owned.campaign, "user", "ann", written.now.at).accounts[0]
    return found.spent, found.reserved, found.left


def test_a_reservation_after_the_repair_is_released(tmp_path: Path) -> None:
    """The account that was used while the clock was ahead ends with the present day."""
    with closing(open_store(str(tmp_path / "store.db"))) as store:
        written = limited(store)
        written.wait(0, stopped=40 * DAY_MS)
        written.do(ms.Tell(1.0, {"usd": "0.02"}), written.ask(ANN))
        store.release(["chat"], Owner("writer"))
        repair_clock(store, START + HOUR)
        written = again(store, "chat", START + HOUR)
        written.do(ms.Tell(1.0, {"usd": "0.03"}), written.ask(ANN))
        assert account(written) == ("0.05", "0", "0.2")
        written.wait(0, stopped=DAY_MS)
        assert account(written) == ("0", "0", "0.25")
        assert replay(store, "chat").same


def test_no_limit_is_overspent_after_the_repair(tmp_path: Path) -> None:
    """Decisions of the day that ended by the wrong clock do not belong to its account any more."""
    with closing(open_store(str(tmp_path / "store.db"))) as store:
        written = limited(store)
        pending = [written.ask(ANN), written.ask(ANN)]
        written.wait(0, stopped=40 * DAY_MS)
        written.do(ms.Tell(1.0, {"usd": "0.02"}), written.ask({"user": "bob"}))
        written.owned.campaign.limits.sweep(written.owned.campaign.book.at, 1000)
        store.save_snapshot("chat", snapshot_of(written.owned.campaign, written.owned.chain))
        store.release(["chat"], Owner("writer"))
        repair_clock(store, START + HOUR)
        assert replay(store, "chat").same
        written = again(store, "chat", START + HOUR)
        written.ask(ANN)
        for number in pending:
            written.do(ms.Tell(1.0, {"usd": "0.1"}), number)
        assert account(written) == ("0", "0.09", "0.16")
        assert replay(store, "chat").same
