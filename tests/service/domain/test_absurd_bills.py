"""Absurd bills: refused with a reason and an alarm; the decision stays open for a corrected outcome."""

from __future__ import annotations

from typing import Any

import pytest

from driftsack.service.domain import journal, plans
from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import NOBODY, Campaign
from driftsack.service.domain.exchanges import exchange
from driftsack.service.domain.journal import Segment
from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections.track import Track
from driftsack.service.web.pages.view import details
from tests.support.campaigns import Desk, small


def absurd(desk: Desk, number: int, cost: str) -> Refusal:
    """The refusal of an outcome."""
    with pytest.raises(Refusal) as found:
        desk.tell(number, cost)
    return found.value


def test_an_absurd_bill_is_refused_and_can_be_corrected() -> None:
    desk = Desk()
    number = desk.ask().decision
    refusal = absurd(desk, number, "300000")
    assert (refusal.kind, refusal.status) == ("absurd-cost", 422)
    assert "300000 usd (at most 100)" in refusal.detail
    assert (desk.budget().spent, desk.budget().reserved) == ("0", "0.1")
    assert desk.tell(number, "0.02").charged == {"usd": "0.02"}
    assert (desk.budget().spent, desk.budget().reserved) == ("0.02", "0")


def test_the_first_refusal_of_a_decision_is_an_event() -> None:
    """So a worker that repeats its absurd outcome fills no journal."""
    desk = Desk()
    number, other = desk.ask().decision, desk.ask().decision
    desk.campaign.take()
    for _ in range(5):
        absurd(desk, number, "300000")
    with pytest.raises(Refusal, match="absurd"):
        desk.do(ms.Cancel({"usd": "1000"}), other)
    events = desk.campaign.take()
    assert [(type(event), event.number) for event in events] == [(journal.Refused, number), (journal.Refused, other)]
    assert desk.campaign.book.refused == 2


def test_the_limit_may_be_set() -> None:
    desk = Desk(small(refuse_above={"usd": "0.5"}))
    number = desk.ask().decision
    absurd(desk, number, "0.51")
    desk.tell(number, "0.5")
    assert Campaign.new(small(refuse_above={"usd": "0.05"})).cost_limit == [0.1]  # the maximum cost is never absurd
    with pytest.raises(Refusal, match="refuse_above must be for some of"):
        Campaign.new(small(refuse_above={"eur": "1"}))


def test_exchanges_and_observations_are_checked() -> None:
    desk = Desk()
    number = desk.ask().decision
    answer = exchange(
        desk.campaign, ms.Exchange([ms.TellOne(1.0, {"usd": "300000"}, decision=number)]), desk.now, NOBODY
    )
    assert answer.told[0].problem is not None
    assert answer.told[0].problem.type == "urn:driftsack:absurd-cost"
    watching = Desk(small(watch=True))
    with pytest.raises(Refusal, match="absurd"):
        watching.do(ms.Observe("small", 1.0, {"usd": "300000"}))
    assert watching.campaign.book.observed == 0


def replayed(desk: Desk) -> Campaign:
    """The campaign, rebuilt from its encoded events."""
    again = Campaign.new(desk.campaign.config)
    for event in journal.decode(journal.encode(desk.campaign.take())):
        again.apply(event)
    return again


def test_a_replay_refuses_the_same() -> None:
    desk = Desk()
    number = desk.ask().decision
    absurd(desk, number, "300000")
    desk.tell(number)
    again = replayed(desk)
    assert again.book == desk.campaign.book
    assert again.learner.state_hash() == desk.campaign.learner.state_hash()


def test_a_journal_with_a_bill_that_would_be_refused_now_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier release charged stays charged."""
    desk = Desk()
    number = desk.ask().decision
    with monkeypatch.context() as patch:  # an earlier release
        patch.setattr(plans, "is_absurd", lambda *_: False)
        desk.tell(number, "200")
    again = replayed(desk)
    assert again.book == desk.campaign.book
    assert again.book.account.spent == desk.campaign.book.account.spent


def shown(desk: Desk) -> Any:
    """What the dashboard shows of the campaign."""
    track = Track("chat", desk.campaign.config)
    events = desk.campaign.take()
    track.feed(Segment("chat", 1, len(events), events[-1].at, 1, (), journal.encode(events), b""))
    track.close_bucket()
    return track


def test_an_alarm_is_raised() -> None:
    desk = Desk()
    number = desk.ask().decision
    absurd(desk, number, "300000")
    track = shown(desk)
    assert track.refused == 1
    found = details(track, done=True)
    assert [row["costs"] for row in found["refusals"]] == ["300000 usd"]
