"""Requests that are repeated, and those that are refused: nothing happens twice, and nothing halfway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from driftsack.service.domain import exchanges, journal, plans
from driftsack.service.domain import messages as ms
from driftsack.service.domain.book import EVICTED_AT_ONCE, MOST_CACHED
from driftsack.service.domain.campaign import Caller, Campaign
from driftsack.service.domain.refusals import Refusal
from driftsack.service.runtime.snapshots import read_snapshot, write_snapshot
from tests.support.campaigns import Desk, small
from tests.support.live_service import Live, serving
from tests.support.local_postgres import LocalPostgres

CHAT = "/v1/campaigns/chat"
REUSED = (422, "urn:driftsack:key-reused")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with serving(str(tmp_path_factory.mktemp("repeats") / "s.db")) as found:
        found.open("chat", budget={"usd": "1000"})
        yield found


def refused(answer: tuple[int, Any]) -> tuple[int, str]:
    """Status and type of a refusal."""
    return answer[0], answer[1].get("type", "")


def outcome(number: int, reward: float = 1.0) -> dict[str, Any]:
    return {"decision": number, "reward": reward, "costs": {"usd": "0.02"}}


def state_of(live: Live, name: str = "chat") -> tuple[Any, Any]:
    """All that a refused request must leave as it is."""
    return live.call("GET", f"/v1/campaigns/{name}"), live.call("GET", f"/v1/campaigns/{name}/budgets")


def test_an_exchange_that_is_refused_changes_nothing(live: Live) -> None:
    number = live.ask()["decision"]
    before = state_of(live)
    bad = {"tells": [outcome(number)], "ask": 1, "terms": {"open": ["nobody"]}}
    assert live.call("POST", f"{CHAT}/exchange", bad)[0] == 422
    assert live.call("POST", f"{CHAT}/exchange", {**bad, "terms": {"caps": {"eur": "1"}}})[0] == 422
    assert state_of(live) == before
    live.open("drains", budget={"usd": "10"})
    last = live.ask("drains")["decision"]
    live.call("PATCH", "/v1/campaigns/drains", {"state": "closed"})
    before = state_of(live, "drains")
    assert live.call("POST", "/v1/campaigns/drains/exchange", {"tells": [outcome(last)], "ask": 1})[0] == 409
    assert state_of(live, "drains") == before
    answer = live.call("POST", "/v1/campaigns/drains/exchange", {"tells": [outcome(last)]})
    assert answer[1]["told"][0]["settled"]["state"] == "told"


def told_first(campaign: Campaign, many: ms.Exchange, now: Any, caller: Caller) -> ms.Exchanged:
    """The competitor: it tells, and finds out later that it cannot decide."""
    told = [exchanges.tell_one(campaign, each, now, caller) for each in many.tells]
    return ms.Exchanged(told, [campaign.handle(many.terms or ms.Ask(), now, caller) for _ in range(many.ask)])


@pytest.mark.parametrize(
    ("settings", "terms"),
    [({}, ms.Ask(open=["nobody"])), ({}, ms.Ask(costs={"usd": "0.1"})), ({}, ms.Ask(caps={"eur": "1"}))],
)
def test_terms_are_refused_before_outcomes_are_told(settings: dict[str, Any], terms: ms.Ask) -> None:
    for carry_out, changed in ((exchanges.exchange, False), (told_first, True)):
        desk = Desk(small(horizon=5, **settings) if settings else None)
        number = desk.ask().decision
        desk.campaign.take()
        with pytest.raises(Refusal):
            carry_out(
                desk.campaign,
                ms.Exchange([ms.TellOne(1.0, {"usd": "0"}, decision=number)], 1, terms),
                desk.now,
                Caller(),
            )
        assert bool(desk.campaign.events) is changed


def test_outcomes_of_an_exchange_make_room_for_its_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(small(budget={"usd": "100"}))
    numbers = [desk.ask().decision for _ in range(4)]
    monkeypatch.setattr(plans, "MOST_PENDING", 4)
    tells = [ms.TellOne(1.0, {"usd": "0"}, decision=number) for number in numbers[:2]]
    bad = ms.TellOne(1.0, {"eur": "0"}, decision=numbers[2])
    for many in (ms.Exchange([], 1), ms.Exchange(tells, 3), ms.Exchange([*tells[:1], *tells[:1], bad], 2)):
        count = len(desk.campaign.events)
        with pytest.raises(Refusal, match="4 decisions wait"):
            exchanges.exchange(desk.campaign, many, desk.now, Caller())
        assert len(desk.campaign.events) == count
    assert len(exchanges.exchange(desk.campaign, ms.Exchange(tells, 2), desk.now, Caller()).decisions) == 2


def test_a_repeated_exchange_decides_nothing_more() -> None:
    """Its first time the budget was enough for one of three decisions; later there is more, and then it is closed."""
    desk = Desk(small(budget={"usd": "0.2"}))
    many = ms.Exchange([ms.TellOne(1.0, {"usd": "0.1"}, decision=desk.ask().decision)], 3)
    caller = Caller("exchange", b"1")
    first = exchanges.exchange(desk.campaign, many, desk.now, caller)
    assert [each.reason for each in first.decisions] == [None, "budget", "budget"]
    desk.do(ms.Grant({"usd": "5"}))
    number = desk.campaign.book.number
    assert exchanges.exchange(desk.campaign, many, desk.now, caller) == first
    desk.do(ms.Patch(state="closed"))
    assert exchanges.exchange(desk.campaign, many, desk.now, caller) == first
    assert desk.campaign.book.number == number


def writes(live: Live, number: int) -> list[tuple[str, str, Any, Any]]:
    """Method, path, body and another body of every write to a campaign that needs no special state."""
    decision = f"{CHAT}/decisions/{number}"
    return [
        ("POST", f"{CHAT}/decisions", {}, {"lease": 7}),
        ("POST", f"{decision}/extend", {"lease": 50}, {"lease": 51}),
        ("POST", f"{CHAT}/grants", {"amounts": {"usd": "1"}}, {"amounts": {"usd": "2"}}),
        ("PATCH", f"{CHAT}/arms/large", {"offered": False}, {"offered": True}),
        ("PATCH", CHAT, {"state": "active"}, {"state": "paused"}),
        ("POST", f"{CHAT}/exchange", {"tells": [outcome(live.ask()["decision"])]}, {"tells": [outcome(1)]}),
        ("POST", f"{CHAT}/exchange", {"ask": 2}, {"tells": [outcome(1)]}),
        ("POST", f"{decision}/tell", {"reward": 1, "costs": {"usd": "0.01"}}, {"reward": 0, "costs": {"usd": "0.01"}}),
        ("POST", f"{CHAT}/decisions/{live.ask()['decision']}/cancel", {}, {"costs": {"usd": "0.01"}}),
        ("POST", f"{CHAT}/decisions/{live.ask()['decision']}/forfeit", {}, None),
    ]


def test_a_key_is_for_one_body_on_every_write(live: Live) -> None:
    number = live.ask()["decision"]
    done = writes(live, number)
    for k, (method, path, body, other) in enumerate(done):
        key = f"write {k}"
        first = live.call(method, path, body, idempotency_key=key)
        assert first[0] == 200, (path, first)
        if method == "POST":  # a patch shows the campaign as it is
            assert live.call(method, path, body, idempotency_key=key) == first
        if other is not None:
            assert refused(live.call(method, path, other, idempotency_key=key)) == REUSED, path
        assert refused(live.call("POST", f"{CHAT}/decisions", {"lease": 9}, idempotency_key=key)) == REUSED, path
    late = live.call("POST", f"{CHAT}/decisions/{number}/extend", {"lease": 50}, idempotency_key="write 1")
    assert late[1]["state"] == "pending"  # the first answer, although the outcome was told since
    assert live.call("POST", f"{CHAT}/decisions/{number}/extend", {"lease": 50}, idempotency_key="new")[0] == 409


def test_a_key_opens_one_campaign(live: Live) -> None:
    def opened(name: str, budget: str) -> tuple[int, Any]:
        config = msgspec.to_builtins(small(budget={"usd": budget}))
        return live.call("POST", "/v1/campaigns", {"name": name, "config": config}, idempotency_key="opening")

    assert opened("one", "1")[0] == 201
    assert opened("one", "1")[0] == 201
    assert refused(opened("one", "2")) == REUSED
    assert refused(opened("two", "1")) == REUSED
    assert live.call("GET", "/v1/campaigns/two")[0] == 404


def test_a_campaign_is_opened_again_on_another_replica(postgres: LocalPostgres) -> None:
    address = postgres.new_database()
    with serving(address, lease=2.0) as first, serving(address, lease=2.0) as second:
        other = Live(second.app, second.url, first.key)
        config = msgspec.to_builtins(small())
        opened = first.call("POST", "/v1/campaigns", {"name": "chat", "config": config}, idempotency_key="k")
        assert opened[0] == 201
        assert other.call("POST", "/v1/campaigns", {"name": "chat", "config": config}, idempotency_key="k") == opened
        assert other.call("POST", "/v1/campaigns", {"name": "chat", "config": config}) == opened
        changed = {"name": "chat", "config": msgspec.to_builtins(small(seed=5))}
        assert refused(other.call("POST", "/v1/campaigns", changed, idempotency_key="k")) == REUSED
        assert refused(other.call("POST", "/v1/campaigns", changed)) == (409, "urn:driftsack:name-taken")


def test_keys_are_known_after_a_crash_and_in_snapshots() -> None:
    """A grant that is repeated after a crash is not granted twice."""
    desk = Desk()
    number, other = desk.ask().decision, desk.ask().decision
    grant, tell = Caller("grant", b"1"), Caller("tell", b"2")
    granted = desk.do(ms.Grant({"usd": "5"}), caller=grant)
    desk.do(ms.Extend(500), number, Caller("extend", b"3"))
    told = desk.do(ms.Tell(1.0, {"usd": "0.02"}), number, tell)
    desk.do(ms.Forfeit(), other, Caller("forfeit", b"4"))
    events = journal.decode(journal.encode(desk.campaign.events))
    replayed = Campaign.new(desk.campaign.config)
    for event in events:
        replayed.apply(event)
    for campaign in (desk.campaign, replayed, read_snapshot(desk.campaign.config, write_snapshot(desk.campaign))):
        assert campaign.book.keys == desk.campaign.book.keys
        assert campaign.book.writes == desk.campaign.book.writes == ["extend", "forfeit"]
        assert campaign.book.changes == desk.campaign.book.changes == ["grant"]
        assert campaign.handle(ms.Grant({"usd": "5"}), desk.now, grant) == granted
        assert campaign.handle(ms.Tell(1.0, {"usd": "0.02"}), desk.now, tell, number) == told
        assert campaign.handle(ms.Extend(500), desk.now, Caller("extend", b"3"), number).state == "pending"
        assert campaign.book.account.granted == desk.campaign.book.account.granted


def test_frequent_writes_do_not_displace_the_key_of_a_grant() -> None:
    """Otherwise a grant that is repeated after some seconds of extensions, each with its key, is granted twice."""
    desk = Desk()
    number, grant = desk.ask().decision, Caller("grant", b"1")
    granted = desk.do(ms.Grant({"usd": "5"}), caller=grant)
    for k in range(2 * MOST_CACHED):
        desk.do(ms.Extend(500), number, Caller(f"e{k}", b""))
    book = desk.campaign.book
    assert desk.do(ms.Grant({"usd": "5"}), caller=grant) == granted
    assert desk.budget().granted == "6"
    assert len(book.keys) <= len(book.writes) + 1 <= MOST_CACHED + EVICTED_AT_ONCE
    for k in range(2 * MOST_CACHED):
        desk.do(ms.Patch(state="active"), caller=Caller(f"p{k}", b""))
    assert "grant" not in book.keys  # they are limited too
    assert len(book.keys) <= len(book.writes) + len(book.changes) <= 2 * (MOST_CACHED + EVICTED_AT_ONCE)


def test_books_differ_by_what_they_say_but_not_by_keys() -> None:
    one, two = Desk(), Desk()
    one.do(ms.Ask(), caller=Caller("key", b"1"))
    two.do(ms.Ask())
    one.campaign.book.open[1].key = ""
    assert one.campaign.book == two.campaign.book
    two.campaign.book.account.spent[0] += 1
    assert one.campaign.book != two.campaign.book


def test_the_keys_of_outcomes_are_forgotten_with_their_decisions() -> None:
    desk = Desk(small(budget={"usd": "1"}))
    for k in range(2 * MOST_CACHED):
        asked = desk.do(ms.Ask(), caller=Caller(f"a{k}", b""))
        if not asked.skipped:
            desk.do(ms.Tell(1.0, {"usd": "0"}), asked.decision, Caller(f"t{k}", b""))
    book = desk.campaign.book
    assert len(book.tellers) <= len(book.settled)
    assert len(book.keys) <= 2 * len(book.settled)
    assert not book.writes
