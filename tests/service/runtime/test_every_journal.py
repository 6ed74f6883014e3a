"""Every journal in ``tests/data`` is recovered, replayed and continued, also under other rules of accounting.

The latest journal has every kind of event. The journal says what happened: the amounts that were recorded win over
those that this release would compute.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from driftsack.core.errors import BudgetExhaustedError
from driftsack.service.domain import book, effects, journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.book import Book
from driftsack.service.domain.campaign import Campaign, Now
from driftsack.service.domain.config import Config
from driftsack.service.domain.effects import EFFECTS
from driftsack.service.domain.journal import JournalError
from driftsack.service.domain.state import CampaignState
from driftsack.service.projections.explain import replay, why
from driftsack.service.runtime import recovery
from driftsack.service.runtime.owned import Owned, ServiceClock
from driftsack.service.runtime.recovery import rebuild, recover
from driftsack.service.store.interface import CampaignRow, Owner, Store
from driftsack.service.store.sqlite import SQLiteStore
from tests.support import journals
from tests.support.campaigns import small
from tests.support.learner_parts import ledger_of
from tests.support.paths import DATA

FILES = sorted(path.name for path in DATA.glob("service-*.db"))
LATEST = "service-journal-2.db"


def kinds(store: Store) -> set[type]:
    return {type(e) for name in store.names() for s in store.segments(name) for e in journal.decode(s.body)}


@pytest.fixture(params=FILES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SQLiteStore]:
    shutil.copy(DATA / request.param, tmp_path / "old.db")
    with closing(SQLiteStore(tmp_path / "old.db")) as opened:
        yield opened


@pytest.fixture
def latest(tmp_path: Path) -> Iterator[SQLiteStore]:
    shutil.copy(DATA / LATEST, tmp_path / "latest.db")
    with closing(SQLiteStore(tmp_path / "latest.db")) as opened:
        yield opened


def test_the_latest_journal_has_every_kind_of_event(latest: SQLiteStore) -> None:
    """A new kind of event needs a new file, written by ``python -m tests.support.journals``."""
    assert kinds(latest) == set(EFFECTS)
    events = [e for n in latest.names() for s in latest.segments(n) for e in journal.decode(s.body)]
    assert {e.reason for e in events if isinstance(e, journal.StateChanged)} == {"", "overrun", "drained"}
    assert any(e.limited and e.held for e in events if isinstance(e, journal.Asked))


def test_an_event_that_is_missing_is_noticed(latest: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: this release has a kind of event that the file lacks."""
    monkeypatch.setitem(EFFECTS, journal.Event, lambda *_: None)
    assert kinds(latest) != set(EFFECTS)


def test_this_release_writes_the_latest_journal(latest: SQLiteStore, tmp_path: Path) -> None:
    """With the same kinds of events; the bytes may differ."""
    journals.write(tmp_path / "new.db")
    with closing(SQLiteStore(tmp_path / "new.db")) as new:
        assert kinds(new) == kinds(latest)
        for name in new.names():
            assert replay(new, name).same


def continued(store: Store, row: CampaignRow) -> Campaign:
    """Recover a campaign, ask and tell if it is open, and commit."""
    claimed = store.claim(row.name, Owner("test"))
    assert claimed is not None
    campaign = recover(store, claimed)
    owned = Owned(row.name, claimed.epoch, campaign, claimed.chain, ServiceClock(), grace=0)
    now = Now(campaign.book.at, campaign.book.tick)
    for record_number, record in list(campaign.book.open.items()):
        if record.kind == "pending":
            campaign.handle(ms.Tell(1.0, dict.fromkeys(campaign.resources, "0.001")), now, number=record_number)
    if campaign.book.state == "active":
        for _ in range(5):
            found = campaign.handle(ms.Ask(), now)
            if not found.skipped:
                campaign.handle(ms.Tell(1.0, dict.fromkeys(campaign.resources, "0.002")), now, number=found.decision)
    if campaign.events:
        store.append([owned.collect(10**9)[0]])
    return campaign


def test_every_journal_is_recovered_replayed_and_continued(store: SQLiteStore) -> None:
    for row in store.campaigns():
        before = replay(store, row.name)
        assert before.same
        assert before.divergences == 0
        campaign = continued(store, row)
        assert campaign.corrections == 0
        after = replay(store, row.name)
        assert after.same
        assert after.divergences == 0
        assert after.state_hash == campaign.learner.state_hash()


@pytest.mark.parametrize("planted", [False, True])
def test_snapshots_of_earlier_releases_have_no_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    """The planted fault: the times of decisions, which a replay finds, are compared with those of the snapshot."""
    with closing(SQLiteStore(tmp_path / "old.db")) as store:
        written = journals.Written(store, "chat", small())
        written.ask()
        for record in written.owned.campaign.book.open.values():
            record.at = 0
        store.save_snapshot("chat", recovery.snapshot_of(written.owned.campaign, written.owned.chain))
        if planted:
            monkeypatch.setattr(book, "TIME", None)
        assert replay(store, "chat").same != planted


def other_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules of accounting of another release: costs are rounded to cents upwards, and nothing rolls over."""
    units, begin = CampaignState.units, Book.begin_season
    monkeypatch.setattr(CampaignState, "units", lambda self, costs: [-(-u // 7) * 7 + 11 for u in units(self, costs)])
    monkeypatch.setattr(Book, "begin_season", lambda self, budget, _: begin(self, budget, 0.0))
    monkeypatch.setattr(Book, "_roll_over", lambda *_: None)


def test_a_journal_of_other_rules_is_recovered_replayed_and_continued(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_rules(monkeypatch)
    for row in store.campaigns():
        whole = recover(store, row, snapshots=False)
        recovery.check_budgets(store.budgets(row.name), row.name, whole)
        if any(record.kind == "told" for record in whole.book.settled.values()):
            assert whole.corrections > 0
        ledger = ledger_of(whole.learner)
        assert ledger.charged.tolist() == whole.book.account.spent
        assert replay(store, row.name).same
        continued(store, row)
        assert replay(store, row.name).same


def test_accounts_of_limits_keep_the_recorded_amounts(latest: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also under other rules of accounting, and under other calendars; the planted fault forgets the amounts."""
    row = latest.campaign("limits")
    assert row is not None
    before = recover(latest, row, snapshots=False)
    expected = before.limits.live(before.book.at)
    assert sum(map(len, expected)) >= 3
    assert recover(latest, row).limits.live(before.book.at) == expected
    other_rules(monkeypatch)
    monkeypatch.setattr("driftsack.service.domain.limits.next_midnight", lambda *_: 1)
    assert recover(latest, row, snapshots=False).limits.live(before.book.at) == expected
    charge = effects._charge_costs

    def recomputed(state: CampaignState, event: Any, record: Any, units: list[int]) -> None:
        event.units = None
        charge(state, event, record, units)

    monkeypatch.setattr(effects, "_charge_costs", recomputed)
    assert recover(latest, row, snapshots=False).limits.live(before.book.at) != expected


def test_an_arm_that_a_limit_closed_is_explained(latest: SQLiteStore) -> None:
    events = [event for segment in latest.segments("limits") for event in journal.decode(segment.body)]
    asked = next(event for event in events if isinstance(event, journal.Asked) and event.limited)
    found = why(latest, "limits", asked.number)
    assert [(arm.arm, arm.closed) for arm in found.arms] == [("small", None), ("large", "limit")]
    assert (found.same, found.open) == (True, ["small"])


def test_without_the_recorded_amounts_such_a_journal_is_damaged(
    latest: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: the rules of this release are applied to old events."""

    def computed(campaign: Campaign, events: list[Any], _: Any) -> None:
        for event in events:
            campaign.apply(event)

    other_rules(monkeypatch)
    monkeypatch.setattr(recovery, "apply_events", computed)
    with pytest.raises(JournalError, match="budget in the store"):
        recover(latest, latest.campaigns()[0], snapshots=False)


def test_decisions_that_this_release_would_not_make_stay(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The learner of another release finds no arm at all; what was decided, told and charged is kept."""

    def nothing(*_: Any) -> Any:
        raise BudgetExhaustedError("no arm fits")

    monkeypatch.setattr(effects, "_choose", nothing)
    for row in store.campaigns():
        whole = recover(store, row, snapshots=False)
        assert whole.book.divergences == whole.book.number
        recovery.check_budgets(store.budgets(row.name), row.name, whole)
        continued(store, row)
        now = store.campaign(row.name)
        assert now is not None
        again = recover(store, now, snapshots=False)
        recovery.check_budgets(store.budgets(row.name), row.name, again)


def changed_config(store: SQLiteStore, name: str) -> None:
    """Replace the settings by others that can be read."""
    row = store.campaign(name)
    assert row is not None
    config = msgspec.structs.replace(Config.from_bytes(row.config), late=1)
    store._rows("UPDATE campaign SET config = ? WHERE name = ?", recovery.encode_config(config), name)


def cut_early(store: SQLiteStore, name: str) -> None:
    """Delete some segments before the latest snapshot, from which the campaign is recovered."""
    store._rows("DELETE FROM segment WHERE campaign = ? AND first IN (5, 6, 7)", name)


@pytest.mark.parametrize("damage", [changed_config, cut_early])
@pytest.mark.parametrize("checked", [True, False])
def test_changed_settings_and_cut_segments_before_a_snapshot_are_noticed(
    latest: SQLiteStore,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[SQLiteStore, str], None],
    checked: bool,
) -> None:
    """The planted fault: only what follows the snapshot is checked."""
    row = latest.campaign("all")
    assert row is not None
    assert rebuild(latest, row).snapshot_at > 8
    damage(latest, "all")
    row = latest.campaign("all")
    assert row is not None
    if checked:
        with pytest.raises(JournalError, match=r"settings|missing"):
            rebuild(latest, row)
    else:
        monkeypatch.setattr(recovery, "check_beginning", lambda *_: None)
        assert rebuild(latest, row).snapshot_at > 8
