"""Decisions that are no longer in memory: repeated outcomes are answered from the journal, as the first time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from driftsack.service.domain import book, effects, journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.journal import START
from driftsack.service.projections.explain import why
from driftsack.service.runtime import recall
from driftsack.service.runtime.owned import Owned, ServiceClock
from driftsack.service.runtime.recovery import encode_config
from driftsack.service.store import open_store
from driftsack.service.store.interface import Owner, Store
from driftsack.service.web.api import paging
from tests.support.campaigns import Desk, small
from tests.support.live_service import Live, serving

CHAT = "/v1/campaigns/chat"
LATE = 100  # seconds


@pytest.fixture
def short_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign remembers eight to eleven settled decisions."""
    monkeypatch.setattr(book, "MOST_CACHED", 8)
    monkeypatch.setattr(book, "EVICTED_AT_ONCE", 4)
    monkeypatch.setattr(recall, "NEAR", 10)


@pytest.fixture
def live(store_address: str, short_memory: None) -> Iterator[Live]:
    with serving(store_address) as service:
        service.open(budget={"usd": "100"})
        yield service


def settle(live: Live, count: int) -> list[tuple[str, dict[str, Any], Any]]:
    """Tell some decisions and cancel others: what was sent, and the answers."""
    done = []
    for k in range(count):
        number = live.ask()["decision"]
        tells = k % 3 != 2
        path = f"{CHAT}/decisions/{number}/{'tell' if tells else 'cancel'}"
        body = {"costs": {"usd": f"0.0{1 + k % 9}"}} | ({"reward": k % 2} if tells else {})
        done.append((path, body, live.call("POST", path, body)))
    return done


def test_a_forgotten_outcome_is_answered_as_the_first_time(live: Live) -> None:
    done = settle(live, 40)
    budgets = live.call("GET", f"{CHAT}/budgets")
    assert len(live.app.service.keeper.owned["chat"].campaign.book.settled) < 12
    for path, body, first in done:
        assert live.call("POST", path, body) == first
        assert first[0] == 200
        other = {**body, "costs": {"usd": "0.011"}}
        assert live.call("POST", path, other)[1]["type"] == "urn:driftsack:already-settled"
    path, body, _ = done[0]
    assert live.call("POST", path.replace("tell", "cancel"), {"costs": body["costs"]})[0] == 409
    assert live.call("POST", path.replace("tell", "extend"), {"lease": 10})[0] == 409
    assert live.call("GET", path.removesuffix("/tell"))[1]["charged"] == body["costs"]
    assert live.call("POST", f"{CHAT}/decisions/999/tell", body)[1]["type"] == "urn:driftsack:unknown-decision"
    assert live.call("GET", f"{CHAT}/budgets") == budgets


def test_an_exchange_recalls_too(live: Live) -> None:
    done = [each for each in settle(live, 30) if each[0].endswith("tell")]
    tells = [{"decision": int(path.split("/")[-2]), **body} for path, body, _ in done]
    _, found = live.call("POST", f"{CHAT}/exchange", {"tells": tells})
    assert [each["settled"] for each in found["told"]] == [answer for _, _, (_, answer) in done]
    tells[0]["reward"] = 0.5
    _, found = live.call("POST", f"{CHAT}/exchange", {"tells": tells})
    assert [each["problem"] is None for each in found["told"]] == [False] + [True] * (len(tells) - 1)


def listed(live: Live, query: str = "", least: int = 1) -> list[Any]:
    """All decisions, page by page."""
    found: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        status, page = live.call("GET", f"{CHAT}/decisions?cursor={cursor}&{query}")
        assert status == 200, page
        assert least <= len(page["decisions"]) <= paging.PAGE
        found += page["decisions"]
        cursor = page["cursor"]
    return found


def test_the_listing_has_every_decision(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old ones come from the journal; decision 1 waits longer than all others, and others are made while one pages."""
    monkeypatch.setattr(paging, "PAGE", 10)
    number = live.ask()["decision"]
    done = settle(live, 35)
    live.call("POST", f"{CHAT}/decisions/{number}/tell", {"reward": 1, "costs": {"usd": "0.05"}})
    settle(live, 15)
    waiting = live.ask()["decision"]
    remembered = live.app.service.keeper.owned["chat"].campaign.book
    assert len(remembered.settled) < 12  # the competitor: a listing of these
    first = live.call("GET", f"{CHAT}/decisions")[1]
    found = listed(live)
    assert [each["decision"] for each in found] == list(range(1, waiting + 1))
    assert found == [live.call("GET", f"{CHAT}/decisions/{each['decision']}")[1] for each in found]
    by_number = {each["decision"]: each for each in found}
    assert {each["state"] for each in found} == {"told", "cancelled", "pending"}
    assert by_number[number]["charged"] == {"usd": "0.05"}
    for path, body, _ in done:
        assert by_number[int(path.split("/")[-2])]["charged"] == body["costs"]
    live.ask()
    assert live.call("GET", f"{CHAT}/decisions")[1] == first  # a cursor means the same whatever has happened since
    assert live.call("GET", f"{CHAT}/decisions?cursor={first['cursor']}")[1]["decisions"] == found[10:20]


def test_decisions_are_filtered_and_have_times(live: Live) -> None:
    """With any size of a page; a page may have few of those that were looked at, or none."""
    begin = int(1000 * time.time()) - 1000
    settle(live, 40)
    live.ask()
    everything = listed(live)
    times = [each["at"] for each in everything]
    assert times == sorted(times)
    assert begin < times[0]
    assert times[-1] < begin + 3_600_000
    filters: list[tuple[str, Callable[[Any], bool]]] = [
        ("state=told&limit=7", lambda each: each["state"] == "told"),
        ("state=pending", lambda each: each["state"] == "pending"),
        ("arm=small&limit=5", lambda each: each["arm"] == "small"),
        ("state=cancelled&arm=large&limit=1", lambda each: each["state"] == "cancelled" and each["arm"] == "large"),
        ("state=expired", lambda each: each["state"] == "expired"),
    ]
    for query, passes in filters:
        assert listed(live, query, least=0) == [each for each in everything if passes(each)], query
    for query in ("state=lost", "arm=nobody", "limit=0", "limit=1001", "limit=x"):
        assert live.call("GET", f"{CHAT}/decisions?{query}")[0] == 422, query


def test_a_page_ends_before_an_outcome_that_takes_long_to_find(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "FAR", 20)
    settle(live, 5)
    number = live.ask()["decision"]
    settle(live, 60)
    live.call("POST", f"{CHAT}/decisions/{number}/tell", {"reward": 1, "costs": {"usd": "0.05"}})
    settle(live, 15)
    _, page = live.call("GET", f"{CHAT}/decisions")
    assert 0 < len(page["decisions"]) < number
    found = listed(live)
    assert [each["decision"] for each in found] == list(range(1, len(found) + 1))
    assert (found[number - 1]["state"], found[number - 1]["charged"]) == ("told", {"usd": "0.05"})


def journal_of(store: Store, seed: int, snapshots: bool = False, lost: float = 0.0) -> Desk:
    """A journal of decisions that are told, cancelled, expired, told late, dropped or skipped, in random segments."""
    rng = random.Random(seed)
    desk = Desk(small(budget={"usd": "100"}, late=LATE))
    owned = Owned("chat", 1, desk.campaign, START, ServiceClock(), grace=0)
    owned.forget_accounts()
    store.create(owned.collect(10**9)[0], encode_config(desk.campaign.config), Owner("test"))
    waiting: list[int] = []
    for _ in range(400):
        for _ in range(rng.randrange(1, 5)):
            asked = desk.do(ms.Ask())
            waiting += [] if asked.skipped else [asked.decision]
        rng.shuffle(waiting)
        for number in [waiting.pop() for _ in range(rng.randrange(len(waiting) + 1))]:
            if number in desk.campaign.book.open and rng.random() >= lost:
                desk.do(ms.Cancel({"usd": "0.03"}), number) if rng.random() < 0.3 else desk.tell(number)
        desk.wait(rng.choice((0, 1, 20)))
        if desk.campaign.events:
            segment, snapshot = owned.collect(100 if snapshots else 10**9)
            store.append([segment])
            if snapshot is not None:
                store.save_snapshot("chat", snapshot)
    return desk


def became(store: Store, number: int, last: int) -> book.Record | None:
    """What became of one decision of ``journal_of``."""
    return recall.recall_some(store, "chat", [number], last, LATE).records.get(number)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_search_finds_what_reading_everything_finds(
    store_address: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(store_address)) as store:
        desk = journal_of(store, seed)
        last = desk.campaign.book.seq
        numbers = range(desk.campaign.book.number + 3)
        plain = [became(store, number, last) for number in numbers]  # NEAR is larger: all is read
        monkeypatch.setattr(recall, "NEAR", 5)
        assert [became(store, number, last) for number in numbers] == plain
        assert (plain[0], plain[-1]) == (None, None)
        kinds = {record.kind for record in plain if record is not None}
        assert kinds >= {"told", "cancelled", "dropped"}
        assert any(record is not None and record.late for record in plain)
        book_of = desk.campaign.book
        for number, record in book_of.settled.items():
            found = plain[number]
            assert found is not None
            assert (found.kind, found.reward, found.costs) == (record.kind, record.reward, record.costs)
            assert (found.late, found.reserved, found.arm) == (record.late, record.reserved, record.arm)


@pytest.mark.slow
def test_a_search_that_begins_too_late_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_store(str(tmp_path / "late.db"))) as store:
        desk = journal_of(store, 1)
        last, numbers = desk.campaign.book.seq, range(1, desk.campaign.book.number + 1)
        right = [became(store, number, last) for number in numbers]
        before = recall._before
        monkeypatch.setattr(recall, "NEAR", 5)
        monkeypatch.setattr(recall, "_before", lambda *given: before(*given) + 10)
        assert [became(store, number, last) for number in numbers] != right


def test_the_search_reads_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "NEAR", 20)
    with closing(open_store(str(tmp_path / "little.db"))) as store:
        desk = journal_of(store, 3)
        read: list[int] = []
        decode = journal.decode

        def noted(body: bytes) -> list[Any]:
            read.append(len(body))
            return decode(body)

        monkeypatch.setattr(journal, "decode", noted)
        assert became(store, 100, desk.campaign.book.seq) is not None
        searched = sum(read)
        read.clear()
        monkeypatch.setattr(recall, "NEAR", 10**9)
        assert became(store, 900, desk.campaign.book.seq) is not None
        assert searched < sum(read) / 4


def pages(store: Store, desk: Desk, size: int) -> dict[int, book.Record]:
    """What became of all settled decisions of a journal, some at a time."""
    found: dict[int, book.Record] = {}
    wanted = [number for number in range(1, desk.campaign.book.number + 1) if number not in desk.campaign.book.open]
    while wanted:
        some = recall.recall_some(store, "chat", wanted[:size], desk.campaign.book.seq, LATE)
        assert wanted[0] in some.records
        found |= some.records
        wanted = [number for number in wanted if number not in found]
    return found


@pytest.mark.parametrize("most_expired", [5000, 12])
def test_pages_find_what_reading_everything_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_expired: int
) -> None:
    """Also if a scan ends soon, and if more decisions expire than a campaign keeps."""
    monkeypatch.setattr(effects, "MOST_EXPIRED", most_expired)
    monkeypatch.setattr(recall, "MOST_EXPIRED", most_expired)
    with closing(open_store(str(tmp_path / "pages.db"))) as store:
        desk = journal_of(store, 5, lost=0.2)
        settled = desk.campaign.book.settled
        for near, far in ((2000, 50_000), (5, 50_000), (5, 30)):
            monkeypatch.setattr(recall, "NEAR", near)
            monkeypatch.setattr(recall, "FAR", far)
            found = pages(store, desk, 20)
            assert {number: shown(record) for number, record in found.items()} == {
                number: shown(record) for number, record in settled.items()
            }
        assert sum(record.kind == "dropped" for record in settled.values()) > 20


def shown(record: book.Record) -> tuple[Any, ...]:
    return record.kind, record.late, record.reward, record.costs, record.reserved, record.arm, record.probability


@pytest.mark.parametrize("searches", [True, False])
def test_an_outcome_that_never_came_is_found_without_reading_its_late_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, searches: bool
) -> None:
    """The competitor reads on to the end of the window."""
    monkeypatch.setattr(recall, "NEAR", 20)
    monkeypatch.setattr(recall, "FAR", 150)
    if not searches:
        monkeypatch.setattr(recall, "_take_drops", lambda *_: None)
    with closing(open_store(str(tmp_path / "lost.db"))) as store:
        desk = Desk(small(budget={"usd": "100000"}, late=LATE))
        owned = Owned("chat", 1, desk.campaign, START, ServiceClock(), grace=0)
        owned.forget_accounts()
        store.create(owned.collect(10**9)[0], encode_config(desk.campaign.config), Owner("test"))
        lost = desk.ask(lease=1).decision
        for second in range(2 * LATE):
            for _ in range(10):
                desk.tell(desk.ask().decision)
            desk.wait(1)
            store.append([owned.collect(10**9)[0]])
            assert (lost in desk.campaign.book.settled) == (second >= LATE)
        decode, count = journal.decode, 0

        def counted(body: bytes) -> list[Any]:
            nonlocal count
            events = decode(body)
            count += len(events)
            return events

        monkeypatch.setattr(journal, "decode", counted)
        found = recall.recall_some(store, "chat", range(lost, lost + 20), desk.campaign.book.seq, LATE).records
        assert found[lost].kind == "dropped"
        assert len(found) == 20
        assert (count < 1000) is searches


def test_why_begins_from_a_snapshot_and_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_store(str(tmp_path / "why.db"))) as store:
        desk = journal_of(store, 4, snapshots=True)
        late, early = desk.campaign.book.number - 1, 20
        shorter = [why(store, "chat", number) for number in (late, early)]
        monkeypatch.setattr(store, "snapshots", lambda _: iter(()))
        assert shorter == [why(store, "chat", number) for number in (late, early)]
        assert all(each.same for each in shorter)
