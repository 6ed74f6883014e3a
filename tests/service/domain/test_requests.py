"""Requests that must be served and price lists, in campaigns: answers, journal, replay, explanation and refusals."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from driftsack.service.domain import exchanges, journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import NOBODY, Campaign
from driftsack.service.domain.refusals import Refusal
from tests.support.campaigns import Desk, small
from tests.support.learner_parts import terms_of

ADAPTIVE: dict[str, Any] = {"policy": {"policy": "Adaptive"}, "horizon": 100}


def rebuilt(desk: Desk) -> Campaign:
    """The campaign that its journal leads to."""
    campaign = Campaign.new(small(**ADAPTIVE) if desk.campaign.config.policy != small().policy else small())
    for event in journal.decode(journal.encode(desk.campaign.take())):
        campaign.apply(event)
    return campaign


def over_units(desk: Desk) -> list[int]:
    """The maximum cost of a request in grid units, which is what the eleventh of ten reserves beyond the budget."""
    return desk.campaign.worst[0]


def test_a_must_is_served_when_the_budget_is_gone_and_a_replay_comes_to_the_same() -> None:
    desk = Desk(small(**ADAPTIVE))
    for _ in range(10):
        assert desk.do(ms.Ask(must=True)).arm is not None
    assert desk.do(ms.Ask()).reason == "budget"
    over = desk.do(ms.Ask(must=True))
    assert over.arm is not None
    assert desk.campaign.learner.overruns.forced == 1
    account = desk.campaign.book.account
    assert [-account.free(0)] == account.overrun == over_units(desk)
    desk.tell(over.decision, cost="0.1")
    for number in range(1, 11):
        desk.tell(number, cost="0.1")
    assert desk.budget().remaining.startswith("-")
    assert desk.do(ms.Ask()).reason == "budget"
    assert desk.do(ms.Ask(must=True)).arm is not None
    again = rebuilt(desk)
    assert again.learner.state_hash() == desk.campaign.learner.state_hash()
    assert again.book.divergences == 0
    assert again.book.account == desk.campaign.book.account


def test_price_lists_are_in_the_journal() -> None:
    desk = Desk(small(**ADAPTIVE))
    lists: list[Any] = [
        {"usd": {"small": "0.01", "large": "0.04"}},
        {"usd": "0.02"},
        None,
        {"usd": {"large": "0.05"}},
        {},
    ]
    for costs in lists:
        decided = desk.do(ms.Ask(costs=costs, must=True))
        desk.tell(decided.decision, cost="0.01")
    asked = [event for event in desk.campaign.events if isinstance(event, journal.Asked)]
    assert [event.costs for event in asked] == [[[0.01, 0.04]], [[0.02, 0.02]], None, [[None, 0.05]], [None]]
    again = rebuilt(desk)
    assert again.learner.state_hash() == desk.campaign.learner.state_hash()
    assert terms_of(again.learner).prices.lists.tolist() == [[2.0, 3.0]]


def test_an_exchange_has_the_terms_of_its_requests() -> None:
    desk = Desk(small(**ADAPTIVE))
    terms = ms.Ask(must=True, costs={"usd": {"small": "0.01"}})
    answer = exchanges.exchange(desk.campaign, ms.Exchange(ask=12, terms=terms), desk.now, NOBODY)
    assert [decided.skipped for decided in answer.decisions] == [False] * 12


def test_events_of_earlier_releases_have_neither() -> None:
    event = journal.Asked(at=1, tick=1, number=1, until=2, arm=0)
    plain = msgspec.msgpack.encode(event)
    assert b"must" not in plain
    assert b"costs" not in plain
    assert msgspec.msgpack.decode(plain, type=journal.Asked) == event


@pytest.mark.parametrize(
    ("settings", "terms", "message"),
    [
        ({}, {"costs": {"usd": "0.1"}}, "UniformRandom cannot use listed costs"),
        (ADAPTIVE, {"costs": {"eur": "0.1"}}, "costs must be for some of"),
        (ADAPTIVE, {"costs": {"usd": {"medium": "0.1"}}}, "medium"),
        (ADAPTIVE, {"costs": {"usd": {"small": "-0.1"}}}, "usd"),
    ],
)
def test_a_request_that_cannot_be_used_changes_nothing(settings: Any, terms: Any, message: str) -> None:
    desk = Desk(small(**settings))
    before = desk.campaign.learner.state_hash()
    with pytest.raises(Refusal, match=message):
        desk.do(ms.Ask(**terms))
    with pytest.raises(Refusal, match=message):
        exchanges.exchange(desk.campaign, ms.Exchange(ask=2, terms=ms.Ask(**terms)), desk.now, NOBODY)
    assert desk.campaign.learner.state_hash() == before


def test_a_fallback_that_a_request_may_not_use_is_passed_over() -> None:
    desk = Desk(small(fallback=["small", "large"], horizon=10, policy={"policy": "Adaptive"}))
    assert desk.do(ms.Ask(open=["large"])).arm == "large"
    assert desk.campaign.problem.fallbacks == (0, 1)
