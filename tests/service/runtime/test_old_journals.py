"""Journals of format 0, in which a pause after an overrun and the end of draining are not events, are read as before.

``service-journal-0.db`` was written by the last release with that format, and ``service-journal-0.json`` has what that
release recovered from it, how it answered further commands, and the campaigns after them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from driftsack.core import file_format
from driftsack.service.domain import campaign as campaigns
from driftsack.service.domain import journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import Campaign, Now
from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections import track as tracks
from driftsack.service.projections.explain import replay
from driftsack.service.projections.track import Track
from driftsack.service.runtime.owned import Owned, ServiceClock
from driftsack.service.runtime.recovery import recover, snapshot_of
from driftsack.service.store.interface import CampaignRow, Owner
from driftsack.service.store.sqlite import SQLiteStore
from tests.support.learner_files import opened
from tests.support.paths import DATA

EXPECTED = json.loads((DATA / "service-journal-0.json").read_text())
NAMES = sorted(EXPECTED["recovered"])
OLD_FIELDS = 12  # of a record in that release


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    copy = tmp_path / "old.db"
    shutil.copy(DATA / "service-journal-0.db", copy)
    with closing(SQLiteStore(copy)) as opened:
        yield opened


def row_of(store: SQLiteStore, name: str) -> CampaignRow:
    return next(row for row in store.campaigns() if row.name == name)


def content(campaign: Campaign) -> dict[str, Any]:
    """Everything that decides how a campaign continues; the format of its journal does not.

    That release counted no refused outcomes and had no thresholds, and its records ended with the costs.
    """
    book = msgspec.to_builtins(campaign.book, str_keys=True)
    del book["format"]
    assert book.pop("refused") == book.pop("raised") == 0
    for records in (book["open"], book["settled"]):
        records.update({number: record[:OLD_FIELDS] for number, record in records.items()})
    return {"book": json.loads(json.dumps(book)), "state_hash": old_hash(campaign)}


def old_hash(campaign: Campaign) -> str:
    """The hash of the learner's state in that release, which had no mean of the delays and no musts.

    No policy and no request of these campaigns uses them; all other arrays are hashed.
    """
    header, arrays = opened(campaign.learner.to_bytes())
    later = [arrays.pop(name) for name in ("terms.must_share", "overruns.forced", "pending.must")]
    assert not any(each.any() for each in later)
    del header["lineage"], arrays["terms.delay"]
    return file_format.digest(header, {name: each for name, each in arrays.items() if not name.endswith(".epoch")})


def tracked(store: SQLiteStore, campaign: Campaign, name: str) -> Track:
    track = Track(name, campaign.config)
    for segment in store.segments(name):
        track.feed(segment)
    return track


def test_the_fixture_has_what_it_is_for(store: SQLiteStore) -> None:
    states = {name: each["book"]["state"] for name, each in EXPECTED["recovered"].items()}
    assert states == {
        "active": "active",
        "closed": "closed",
        "drained": "closed",
        "draining": "draining",
        "paused": "paused",
    }
    events = [event for name in NAMES for segment in store.segments(name) for event in journal.decode(segment.body)]
    assert {event.format for event in events} == {0}
    assert not any(isinstance(event, journal.StateChanged) and event.reason for event in events)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("snapshots", [True, False])
def test_an_old_journal_recovers_bit_for_bit(store: SQLiteStore, name: str, snapshots: bool) -> None:
    found = recover(store, row_of(store, name), snapshots)
    assert content(found) == EXPECTED["recovered"][name]
    assert found.book.format == 0


@pytest.mark.parametrize("name", NAMES)
def test_an_old_journal_replays_and_is_shown_as_before(store: SQLiteStore, name: str) -> None:
    campaign = recover(store, row_of(store, name))
    replayed = msgspec.to_builtins(replay(store, name))
    assert replayed.pop("state_hash") == campaign.learner.state_hash()
    assert {**replayed, "state_hash": old_hash(campaign)} == EXPECTED["replayed"][name]
    track = tracked(store, campaign, name)
    assert {key: getattr(track, key) for key in EXPECTED["track"][name]} == EXPECTED["track"][name]


def continued(store: SQLiteStore, name: str) -> Campaign:
    """The campaign after the further commands, each committed by itself, as the old release answered them."""
    row = store.claim(name, Owner("test"))
    assert row is not None
    owned = Owned(name, row.epoch, recover(store, row), row.chain, ServiceClock(), grace=0)
    for step in EXPECTED["continued"]:
        if step["campaign"] != name:
            continue
        command = msgspec.convert(step["fields"], getattr(ms, step["command"]))
        try:
            answer = msgspec.to_builtins(owned.campaign.handle(command, Now(*step["at"]), number=step["number"]))
        except Refusal as refusal:
            answer = {"refusal": refusal.kind}
        for later in ("token", "limit"):  # which that release did not have
            answer.pop(later, None)
        assert (answer, owned.campaign.book.state) == (step["answer"], step["state"])
        if owned.campaign.events:
            store.append([owned.collect(10**9)[0]])
    return owned.campaign


@pytest.mark.parametrize("name", NAMES)
def test_an_old_journal_goes_on_as_the_old_release_would_have(store: SQLiteStore, name: str) -> None:
    campaign = continued(store, name)
    new = [e for s in store.segments(name, EXPECTED["replayed"][name]["events"]) for e in journal.decode(s.body)]
    ruled = [event.reason for event in new if isinstance(event, journal.StateChanged) and event.reason]

    # The campaign differs only by the events that are journalled in addition.
    found, expected = content(campaign), EXPECTED["after"][name]
    assert found["book"].pop("seq") == expected["book"]["seq"] + len(ruled)
    assert found == {**expected, "book": {k: v for k, v in expected["book"].items() if k != "seq"}}
    wanted = {"paused": ["overrun", "drained"], "draining": ["drained"], "active": ["overrun"]}
    assert ruled == wanted.get(name, [])

    # The first new event says that they are there, and everything is read again from old and new events.
    assert [event.format for event in new] == [1, *[0] * (len(new) - 1)][: len(new)]
    again = recover(store, row_of(store, name), snapshots=False)
    assert again.book == campaign.book
    assert again.learner.state_hash() == campaign.learner.state_hash()
    assert replay(store, name).same
    assert tracked(store, campaign, name).state == campaign.book.state


def test_rules_are_not_applied_to_new_events_again(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later release may change a rule: what was decided stays. Without its events, another state is found."""
    name = "active"
    campaign = continued(store, name)
    states = ["active", "paused", "active"]

    def states_of(rows: list[journal.Segment]) -> list[str]:
        track, found = Track(name, campaign.config), list[str]()
        for segment in rows:
            track.feed(segment)
            found += [] if found[-1:] == [track.state] else [track.state]
        return found

    assert states_of(list(store.segments(name))) == states
    for module in (campaigns, tracks):
        monkeypatch.setattr(module, "change_after", lambda *_: None)
    assert states_of(list(store.segments(name))) == states
    assert recover(store, row_of(store, name), snapshots=False).book == campaign.book
    without = []
    for segment in store.segments(name):
        events = [e for e in journal.decode(segment.body) if not (isinstance(e, journal.StateChanged) and e.reason)]
        without.append(segment._replace(body=journal.encode(events)))
    assert states_of(without) == ["active"]


def test_a_snapshot_keeps_the_format(store: SQLiteStore) -> None:
    campaign = continued(store, "active")
    row = row_of(store, "active")
    store.save_snapshot("active", snapshot_of(campaign, row.chain))
    assert recover(store, row).book.format == recover(store, row, snapshots=False).book.format == 1
