"""Outcomes of a campaign that are told in two parts, and spending outside it."""

from __future__ import annotations

from typing import Any

import pytest

from driftsack.service.domain import journal, views
from driftsack.service.domain import messages as ms
from driftsack.service.domain.book import deltas
from driftsack.service.domain.campaign import Caller, Campaign
from driftsack.service.domain.plans import MOST_OVERRUN
from driftsack.service.domain.refusals import Refusal
from driftsack.service.runtime.snapshots import read_snapshot, write_snapshot
from tests.support.campaigns import Desk, monthly, small
from tests.support.learner_parts import ledger_of

BILL = ms.Tell(costs={"usd": "0.02"})
REWARD = ms.Tell(reward=1.0)


def rebuilt(desk: Desk) -> Campaign:
    """The campaign from its journal alone."""
    events = journal.decode(journal.encode(desk.campaign.events))
    copy = Campaign.new(desk.campaign.config)
    for event in events:
        copy.apply(event)
    return copy


def check(desk: Desk) -> None:
    """The learner, the book, a replay and a snapshot agree, and the budgets may be stored."""
    campaign = desk.campaign
    account, ledger = campaign.book.account, ledger_of(campaign.learner)
    assert account.reserved == ledger.reserved.tolist()
    assert account.spent == ledger.charged.tolist()
    for one in campaign.book.accounts.values():
        for j in range(len(one.granted)):
            assert one.spent[j] + one.reserved[j] <= one.granted[j] + one.overrun[j]
            assert min(one.spent[j], one.reserved[j]) >= 0
    copy = rebuilt(desk)
    assert copy.book == campaign.book
    assert copy.learner.state_hash() == campaign.learner.state_hash()
    again = read_snapshot(campaign.config, write_snapshot(campaign))
    assert again.book == campaign.book
    assert again.learner.state_hash() == campaign.learner.state_hash()


def refused(desk: Desk, command: Any, number: int) -> str:
    before = desk.campaign.learner.state_hash(), len(desk.campaign.events)
    with pytest.raises(Refusal) as error:
        desk.do(command, number)
    assert (desk.campaign.learner.state_hash(), len(desk.campaign.events)) == before
    return error.value.kind


def test_a_bill_is_charged_at_once_and_the_reward_completes_the_outcome() -> None:
    desk, twin = Desk(), Desk()
    number = desk.ask().decision
    billed = desk.do(BILL, number)
    assert (billed.state, billed.charged, billed.overrun) == ("pending", {"usd": "0.02"}, {"usd": "0"})
    assert (desk.budget().reserved, desk.budget().spent, desk.campaign.book.pending) == ("0", "0.02", 1)
    check(desk)
    assert desk.do(BILL, number) == billed
    told = desk.do(REWARD, number)
    assert (told.state, told.charged) == ("told", {"usd": "0.02"})
    assert desk.tell(number) == desk.do(BILL, number) == desk.do(REWARD, number) == told
    twin.tell(twin.ask().decision)
    assert desk.campaign.learner.state_hash() == twin.campaign.learner.state_hash()
    kinds = [type(event).__name__ for event in desk.campaign.events if getattr(event, "number", 0) == number]
    assert kinds == ["Asked", "Billed", "Told"]
    check(desk)


def test_the_reward_may_come_first() -> None:
    desk = Desk()
    number = desk.ask().decision
    assert desk.do(REWARD, number).state == "pending"
    assert desk.budget().reserved == "0.1"
    check(desk)
    assert refused(desk, ms.Tell(reward=0.5), number) == "already-settled"
    assert desk.do(BILL, number).state == "told"
    assert desk.campaign.book.reward == 1.0
    check(desk)


@pytest.mark.parametrize(
    "command", [ms.Tell(costs={"usd": "0.03"}), ms.Tell(1.0, {"usd": "0.03"}), ms.Cancel({"usd": "0.03"})]
)
def test_another_bill_is_refused(command: Any) -> None:
    desk = Desk()
    number = desk.ask().decision
    desk.do(BILL, number)
    assert refused(desk, command, number) == "already-settled"
    desk.do(REWARD, number)
    assert refused(desk, ms.Tell(costs={"usd": "0.03"}), number) == "already-settled"


def test_nothing_is_not_an_outcome() -> None:
    desk = Desk()
    assert refused(desk, ms.Tell(), desk.ask().decision) == "invalid"


def test_a_billed_decision_is_not_charged_again() -> None:
    """It expires and is dropped, is forfeited, or is cancelled; and it may be told late."""
    for end in ("dropped", "told late", "forfeit", "cancel"):
        desk = Desk()
        number = desk.ask().decision
        desk.do(BILL, number)
        if end == "cancel":
            cancelled = desk.do(ms.Cancel(), number)
            assert (cancelled.state, cancelled.charged) == ("cancelled", {"usd": "0.02"})
            assert desk.do(ms.Cancel(), number) == cancelled
        elif end == "forfeit":
            assert desk.do(ms.Forfeit(), number).charged == {"usd": "0.02"}
        else:
            desk.wait(61)
            assert desk.campaign.book.open[number].kind == "expired"
            check(desk)
        if end == "told late":
            late = desk.do(REWARD, number)
            assert (late.state, late.late) == ("told", True)
        if end == "dropped":
            desk.wait(601)
            assert desk.campaign.record(number).kind == "dropped"
            assert views.decision(desk.campaign, number, desk.campaign.record(number)).charged == {"usd": "0.02"}
        assert (desk.budget().reserved, desk.budget().spent) == ("0", "0.02")
        check(desk)


def test_a_bill_after_the_lease_gives_back_the_difference() -> None:
    desk = Desk()
    number = desk.ask().decision
    desk.wait(61)
    assert desk.budget().spent == "0.1"
    assert desk.do(BILL, number).state == "expired"
    assert desk.budget().spent == "0.02"
    check(desk)
    desk.wait(601)
    assert desk.budget().spent == "0.02"
    check(desk)


def test_a_bill_above_its_reservation_is_an_overrun_and_pauses_once() -> None:
    desk = Desk(small(pause_on_overrun=True))
    number = desk.ask().decision
    assert desk.do(ms.Tell(costs={"usd": "0.3"}), number).overrun == {"usd": "0.2"}
    assert desk.campaign.book.state == "paused"
    desk.do(ms.Patch("active"))
    desk.do(REWARD, number)
    assert (desk.campaign.book.state, desk.campaign.book.overruns) == ("active", 1)
    check(desk)


def test_a_bill_of_the_last_season_is_charged_to_it() -> None:
    desk = Desk(monthly())
    number = desk.ask().decision
    desk.do(ms.Extend(30 * 86400), number)
    desk.wait(40 * 86400)
    if number in desk.campaign.book.open:
        desk.do(BILL, number)
        desk.do(REWARD, number)
    check(desk)


def test_the_key_of_a_part_gives_its_answer() -> None:
    desk = Desk()
    number = desk.ask().decision
    first = desk.do(BILL, number, Caller("k1", b"bill"))
    desk.do(REWARD, number, Caller("k2", b"reward"))
    assert desk.do(BILL, number, Caller("k1", b"bill")) == first
    assert desk.do(REWARD, number, Caller("k2", b"reward")).state == "told"


def test_charges_count_as_spent_and_beyond_the_budget_as_an_overrun() -> None:
    desk = Desk()
    desk.ask()
    once = Caller("k1", b"charge")
    answer = desk.do(ms.Charge({"usd": "0.3"}), caller=once)
    assert desk.do(ms.Charge({"usd": "0.3"}), caller=once) == answer
    assert (desk.budget().spent, desk.budget().overrun, desk.budget().remaining) == ("0.3", "0", "0.6")
    check(desk)
    desk.do(ms.Charge({"usd": "0.8"}))
    assert (desk.budget().spent, desk.budget().overrun) == ("1.1", "0.2")
    check(desk)
    assert desk.ask().reason == "budget"
    assert refused(desk, ms.Charge({"eur": "1"}), 0) == "invalid"
    assert refused(desk, ms.Charge({"usd": str(MOST_OVERRUN)}), 0) == "invalid"
    desk.do(ms.Grant({"usd": "5"}))
    assert not desk.ask().skipped
    check(desk)
    assert deltas({}, desk.campaign.book.accounts)


def test_requests_that_reservations_alone_block_are_counted() -> None:
    desk = Desk()
    numbers = [desk.ask().decision for _ in range(10)]
    for _ in range(3):
        assert desk.do(ms.Ask()).reason == "budget"
    assert desk.campaign.blocked == 3
    for number in numbers:
        desk.do(ms.Tell(costs={"usd": "0.1"}), number)
    assert desk.do(ms.Ask()).reason == "budget"  # the money is spent
    assert desk.campaign.blocked == 3


def test_the_statistical_mode_is_refused_by_name() -> None:
    with pytest.raises(Refusal, match="safe must be true, got 'statistical'"):
        Desk(small(safe="statistical"))
    assert Desk(small(safe=True)).campaign.config == Desk().campaign.config
