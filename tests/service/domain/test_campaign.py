"""A campaign without a server: what commands do, and that its events rebuild it bit for bit."""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

import driftsack as ds
from driftsack.game.amounts import MOST_UNITS
from driftsack.service.domain import journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.book import deltas
from driftsack.service.domain.campaign import Caller, Campaign, Now
from driftsack.service.domain.config import Config, Refill
from driftsack.service.domain.features import Features
from driftsack.service.domain.plans import MOST_OVERRUN
from driftsack.service.domain.refusals import Refusal
from driftsack.service.runtime.snapshots import read_snapshot, write_snapshot
from tests.support.campaigns import START, Desk, monthly, small


def kind_of(error: pytest.ExceptionInfo[Refusal]) -> str:
    return error.value.kind


@pytest.mark.parametrize("late", [0, 600])
def test_a_lease_whose_end_fails_ends_later(monkeypatch: pytest.MonkeyPatch, late: int) -> None:
    """An error while decisions expire, or are dropped, does not lose them: the next request ends their leases."""
    desk = Desk(small(late=600))
    number = desk.ask().decision
    if late:
        desk.wait(61)
        assert desk.campaign.book.open[number].kind == "expired"
    usual = Campaign.happen

    def failing(self: Campaign, event: journal.Event) -> Any:
        if isinstance(event, (journal.Expired, journal.Dropped)):
            raise Refusal.invalid("planted")
        return usual(self, event)

    monkeypatch.setattr(Campaign, "happen", failing)
    with pytest.raises(Refusal, match="planted"):
        desk.wait(late or 61)
    monkeypatch.undo()
    desk.wait(1)
    assert (desk.campaign.book.expired, desk.campaign.book.pending) == (1, 0)
    assert (number in desk.campaign.book.open) == (not late)


def test_ask_and_tell_move_the_budget() -> None:
    desk = Desk()
    asked = desk.ask()
    assert (desk.budget().reserved, desk.budget().remaining) == ("0.1", "0.9")
    told = desk.tell(asked.decision)
    assert (told.state, told.charged, told.overrun) == ("told", {"usd": "0.02"}, {"usd": "0"})
    assert (desk.budget().reserved, desk.budget().spent) == ("0", "0.02")


def test_an_outcome_again_changes_nothing_and_another_one_is_refused() -> None:
    desk = Desk()
    number = desk.ask().decision
    first = desk.tell(number)
    before = desk.campaign.learner.state_hash()
    assert desk.tell(number) == first
    assert desk.do(ms.Tell(1.0, {"usd": "0.0200"}), number) == first  # the same amount, written differently
    with pytest.raises(Refusal) as error:
        desk.tell(number, cost="0.03")
    assert kind_of(error) == "already-settled"
    with pytest.raises(Refusal) as error:
        desk.tell(99)
    assert kind_of(error) == "unknown-decision"
    assert desk.campaign.learner.state_hash() == before


def test_a_key_is_for_one_request() -> None:
    desk = Desk()
    once = Caller("k1", b"body")
    first = desk.do(ms.Ask(open=["small"]), caller=once)
    assert desk.do(ms.Ask(open=["small"]), caller=once) == first
    with pytest.raises(Refusal) as error:
        desk.do(ms.Ask(), caller=Caller("k1", b"another"))
    assert kind_of(error) == "key-reused"
    grant = Caller("k2", b"grant")
    answer = desk.do(ms.Grant({"usd": "5"}), caller=grant)
    assert desk.do(ms.Grant({"usd": "5"}), caller=grant) == answer
    assert desk.budget().granted == "6"


def test_exhaustion_is_an_answer_and_leaves_no_event() -> None:
    desk = Desk()
    for _ in range(10):
        assert desk.ask().reason is None
    count = len(desk.campaign.events)
    assert desk.ask().reason == "budget"
    assert len(desk.campaign.events) == count
    assert desk.ask(caps={"usd": "0"}).reason is None  # a request that is free still fits
    desk.do(ms.Grant({"usd": "0.1"}))
    assert desk.ask().reason is None


def test_an_arm_that_does_not_fit_is_closed() -> None:
    desk = Desk(small(cost_max={"usd": {"small": "0.1", "large": "0.9"}}))
    assert desk.ask(open=["large"]).arm == "large"
    assert {desk.ask().arm} == {"small"}
    assert desk.ask(open=["large"]).reason == "budget"


def test_a_lease_that_ends_charges_the_worst_case_and_a_late_outcome_refunds() -> None:
    desk = Desk()
    number = desk.ask().decision
    desk.wait(59)
    assert desk.campaign.book.expired == 0
    desk.wait(1)
    assert (desk.budget().spent, desk.budget().reserved) == ("0.1", "0")
    late = desk.tell(number)
    assert late.late
    assert desk.budget().spent == "0.02"
    assert desk.campaign.book.told == 1


def test_an_outcome_after_the_late_window_is_refused() -> None:
    desk = Desk()
    number = desk.ask().decision
    desk.wait(60)
    desk.wait(600)
    with pytest.raises(Refusal) as error:
        desk.tell(number)
    assert kind_of(error) == "already-settled"
    assert desk.budget().spent == "0.1"
    assert not desk.campaign.learner.forfeited


def test_extend_cancel_and_forfeit() -> None:
    desk = Desk()
    number = desk.ask().decision
    desk.do(ms.Extend(100), number)
    desk.wait(99)
    assert desk.campaign.book.pending == 1
    assert desk.do(ms.Cancel(), number).charged == {"usd": "0"}
    lost = desk.ask().decision
    assert desk.do(ms.Forfeit(), lost).charged == {"usd": "0.1"}
    assert desk.do(ms.Forfeit(), lost).state == "expired"  # again
    with pytest.raises(Refusal):
        desk.do(ms.Extend(100), lost)


def test_an_overrun_is_charged_recorded_and_may_pause() -> None:
    desk = Desk(small(pause_on_overrun=True))
    number = desk.ask().decision
    told = desk.tell(number, cost="3.5")
    assert told.overrun == {"usd": "3.4"}
    assert (desk.budget().spent, desk.budget().overrun) == ("3.5", "3.4")
    assert desk.campaign.book.state == "paused"
    assert desk.ask().reason == "paused"
    desk.do(ms.Patch(state="active"))
    assert desk.ask().reason == "budget"


def test_closing_waits_for_pending_decisions() -> None:
    desk = Desk()
    number = desk.ask().decision
    desk.do(ms.Patch(state="closed"))
    assert desk.campaign.book.state == "draining"
    with pytest.raises(Refusal) as error:
        desk.ask()
    assert kind_of(error) == "campaign-closed"
    desk.tell(number)
    assert desk.campaign.book.state == "closed"


def ruled(events: list[Any]) -> list[tuple[str, str, str]]:
    """The changes of state by rule, and the type of the event before each, in one batch."""
    pairs = itertools.pairwise(events)
    return [
        (type(cause).__name__, event.state, event.reason)
        for cause, event in pairs
        if isinstance(event, journal.StateChanged) and event.reason
    ]


def test_changes_by_rule_are_written_in_the_batch_of_their_cause() -> None:
    desk = Desk(small(pause_on_overrun=True, budget={"usd": "10"}))
    told, cancelled, expiring = (desk.ask().decision for _ in range(3))
    desk.campaign.take()
    desk.tell(told, cost="3.5")
    assert ruled(desk.campaign.take()) == [("Told", "paused", "overrun")]
    desk.do(ms.Patch(state="active"))
    desk.do(ms.Cancel({"usd": "0.2"}), cancelled)
    desk.do(ms.Patch(state="closed"))
    assert ruled(desk.campaign.take()) == [("Cancelled", "paused", "overrun")]
    assert desk.campaign.book.state == "draining"
    desk.wait(60)
    assert ruled(desk.campaign.take()) == [("Expired", "closed", "drained")]
    assert desk.tell(expiring, cost="0.3").late
    assert ruled(desk.campaign.take()) == []
    idle = Desk()
    idle.do(ms.Patch(state="closed"))
    assert ruled(idle.campaign.take()) == [("StateChanged", "closed", "drained")]


def test_arms_come_and_go() -> None:
    desk = Desk()
    desk.do(ms.AddArm("xl", {"usd": "0.1"}))
    desk.do(ms.OfferArm(False), 0)
    desk.do(ms.OfferArm(False), 1)
    assert desk.ask().arm == "xl"
    with pytest.raises(Refusal) as error:
        desk.do(ms.AddArm("xl"))
    assert kind_of(error) == "name-taken"
    with pytest.raises(Refusal) as error:
        desk.ask(open=["nobody"])
    assert kind_of(error) == "invalid"
    assert desk.ask(open=["small"]).reason == "budget"  # retired


@pytest.mark.parametrize(
    "spec", [{"policy": "LinearBwK"}, {"policy": "SpendingPlan", "base": {"policy": "SquareCBwK"}}]
)
def test_policies_that_decide_by_contexts_need_features(spec: dict[str, Any]) -> None:
    """Also in a wrapper; the same settings with features, or with a policy without contexts, are accepted."""
    config = Config(arms=["small", "large"], budget={"usd": "10"}, cost_max={"usd": "1"}, horizon=100, policy=spec)
    with pytest.raises(Refusal, match="decides by the features of requests; declare them as features") as error:
        config.recipe(config.problem())
    assert kind_of(error) == "invalid"
    seeing = msgspec.structs.replace(config, features=Features(numbers=["tokens"]))
    assert seeing.recipe(seeing.problem()).needs_context
    plain = msgspec.structs.replace(config, policy={"policy": "Adaptive"})
    assert plain.recipe(plain.problem()) == ds.Adaptive()


@pytest.mark.parametrize("amount", ["-1", "1e3", "0.1234567890123456", "NaN", "", "1" * 17, -5])
def test_amounts_that_would_lose_money_are_refused(amount: str | int) -> None:
    desk = Desk()
    number = desk.ask().decision
    with pytest.raises(Refusal):
        desk.do(ms.Tell(1.0, {"usd": amount}), number)
    assert desk.budget().spent == "0"


def test_a_cap_that_the_ledger_cannot_hold_limits_nothing() -> None:
    """Found by generated sequences: it was answered with an error of the service."""
    desk = Desk()
    assert desk.ask(caps={"usd": "26705392"}).reserved == {"usd": "0.1"}
    assert desk.ask(caps={"usd": "0.04"}).reserved == {"usd": "0.04"}


def test_a_float_is_no_amount() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"reward": 1, "costs": {"usd": 0.02}}', type=ms.Tell)


def test_budgets_begin_again_each_month_once() -> None:
    """Over the end of summer time, month ends and a leap day there is one refill for each month."""
    desk = Desk(monthly())
    zone = ZoneInfo("Europe/Berlin")
    begun = []
    for hour in range(0, 24 * 430, 6):
        before = desk.campaign.book.season
        desk.now = Now(START + hour * 3_600_000, desk.now.tick)
        desk.campaign.pass_time(desk.now)
        if desk.campaign.book.season > before:
            begun.append(datetime.fromtimestamp(desk.now.at / 1000, zone))
    assert len(begun) == 14
    assert all(day.day == 1 and day.hour < 6 for day in begun)


def test_what_is_left_rolls_over_and_old_decisions_stay_with_their_season() -> None:
    desk = Desk(monthly())
    spent, straddling = desk.ask().decision, desk.ask(lease=86400 * 30).decision
    desk.tell(spent, cost="0.1")
    desk.wait(86400 * 17)
    assert desk.campaign.book.season == 1
    assert desk.budget().granted == "1.4"  # half of 0.8 that was free
    desk.tell(straddling, cost="0.02")
    assert desk.budget(0).spent == "0.12"
    assert desk.budget().granted == "1.44"  # half of 0.08 that it did not use
    assert desk.campaign.learner.budget.tolist() == [1.44]


def journal_of_everything() -> tuple[Campaign, list[object]]:
    desk = Desk(monthly(policy={"policy": "SlidingWindowUCB", "windows": [50, 60]}, budget={"usd": "50"}))
    for k in range(300):
        asked = desk.do(ms.Ask(caps={"usd": "0.05"} if k % 7 == 0 else None))
        if asked.decision is not None and not asked.skipped and k % 5:
            desk.tell(asked.decision, cost="0.03", reward=float(k % 3 == 0))
        if k % 50 == 49:
            desk.wait(61)
    desk.do(ms.AddArm("xl", {"usd": "0.1"}))
    desk.do(ms.Grant({"usd": "7"}))
    desk.do(ms.OfferArm(False), 0)
    desk.wait(86400 * 20)
    for _ in range(50):
        asked = desk.do(ms.Ask())
        if not asked.skipped:
            desk.tell(asked.decision)
    desk.do(ms.Ask(open=["xl"]))
    return desk.campaign, desk.campaign.take()


def test_events_rebuild_the_campaign_bit_for_bit() -> None:
    campaign, events = journal_of_everything()
    again = Campaign.new(campaign.config)
    for event in journal.decode(journal.encode(events)):
        again.apply(event)
    assert again.book == campaign.book
    assert again.learner.state_hash() == campaign.learner.state_hash()
    assert again.book.divergences == 0


def test_a_snapshot_continues_bit_for_bit() -> None:
    campaign, _ = journal_of_everything()
    again = read_snapshot(campaign.config, write_snapshot(campaign))
    now = Now(campaign.book.at + 5, campaign.book.tick + 5)
    for copy in (campaign, again):
        for _ in range(20):
            asked = copy.handle(ms.Ask(), now)
            if not asked.skipped:
                copy.handle(ms.Tell(0.5, {"usd": "0.01"}), now, number=asked.decision)
    assert again.book == campaign.book
    assert again.learner.state_hash() == campaign.learner.state_hash()


def test_a_recorded_decision_wins_over_a_recomputed_one() -> None:
    desk = Desk()
    number = desk.ask(open=["small"]).decision
    desk.tell(number)
    asked = desk.ask(open=["small", "large"])
    events = journal.decode(journal.encode(desk.campaign.take()))
    last = events[-1]
    last.arm = 1 - last.arm  # as another machine would have decided
    again = Campaign.new(desk.campaign.config)
    for event in events:
        again.apply(event)
    assert again.book.divergences == 1
    assert again.book.open[asked.decision].arm == last.arm
    assert again.book.accounts == desk.campaign.book.accounts
    assert again.learner.reserved.tolist() == desk.campaign.learner.reserved.tolist()
    again.handle(ms.Tell(1.0, {"usd": "0.05"}), desk.now, number=asked.decision)
    assert again.learner.remaining.tolist() == [0.93]


def test_a_changed_missing_or_inserted_event_breaks_the_chain() -> None:
    _, events = journal_of_everything()
    segments, chain, seq = [], journal.START, 0
    for k in range(0, len(events), 40):
        part = events[k : k + 40]
        body = journal.encode(part)
        chain = journal.chained(chain, body)
        segments.append(journal.Segment("c", seq + 1, seq + len(part), 0, 1, (), body, chain))
        seq += len(part)
    assert journal.verify(segments) == (len(events), chain)
    for bad in (
        [*segments[:2], *segments[3:]],
        [*segments[:2], segments[2]._replace(body=segments[1].body), *segments[3:]],
        [segments[0]._replace(last=segments[0].last + 1), *segments[1:]],
        segments[1:],
    ):
        with pytest.raises(journal.JournalError):
            journal.verify(bad)


def test_deltas_add_up() -> None:
    desk = Desk(monthly())
    before = {season: account.copy() for season, account in desk.campaign.book.accounts.items()}
    number = desk.ask(lease=86400 * 30).decision
    desk.wait(86400 * 17)
    desk.tell(number)
    moved = deltas(before, desk.campaign.book.accounts)
    assert {(delta.season, delta.new) for delta in moved} == {(0, False), (1, True)}
    for delta in moved:
        old = before[delta.season].granted[delta.resource] if not delta.new else 0
        assert old + delta.granted == desk.campaign.book.accounts[delta.season].granted[delta.resource]


def test_a_horizon_that_is_reached_is_an_answer() -> None:
    desk = Desk(small(horizon=3))
    for _ in range(3):
        desk.do(ms.Ask())
    assert desk.do(ms.Ask()).reason == "horizon"
    desk.do(ms.Patch(rounds_left=5))
    assert desk.do(ms.Ask()).reason != "horizon"


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": {"policy": "Nobody"}},
        {"policy": {"policy": "SlidingWindowUCB", "windows": [9 * 10**8, 5]}, "horizon": 10**9},
        {"policy": {"policy": "UniformRandom", "nonsense": 1}},
        {"policy": {}},
        {"cost_max": {"eur": "1"}},
        {"cost_max": {"usd": "0"}},
        {"horizon": None},
        {"arms": ["a", "a"]},
        {"fallback": "nobody"},
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(Refusal) as error:
        Desk(small(**settings))
    assert kind_of(error) == "invalid"


def test_late_windows_end_while_too_many_decisions_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest expired decisions are dropped to keep to the limit, but not twice if their windows end then."""
    monkeypatch.setattr("driftsack.service.domain.effects.MOST_EXPIRED", 2)
    desk = Desk(small(late=60))
    early = [desk.ask().decision for _ in range(2)]  # their leases end at 60 s, their late windows at 120 s
    desk.wait(60)
    others = [desk.ask().decision for _ in range(2)]  # their leases end at 120 s
    desk.wait(60)
    book = desk.campaign.book
    assert [book.settled[number].kind for number in early] == ["dropped"] * 2
    assert [book.open[number].kind for number in others] == ["expired"] * 2
    assert (desk.budget().spent, desk.budget().reserved) == ("0.4", "0")
    monkeypatch.setattr("driftsack.service.domain.effects.MOST_EXPIRED", 1)  # a later release with another limit
    again = Campaign.new(desk.campaign.config)
    for event in journal.decode(journal.encode(desk.campaign.take())):
        again.apply(event)
    assert again.book == book


FINE = {"budget": {"usd": "1000"}, "cost_max": {"usd": "0.001"}}  # a budget of 10^18 grid units, the most at first


def test_outcomes_are_accepted_after_budgets_have_grown() -> None:
    """Up to the largest budget; what is refused is an excess that the database could not add to it."""
    desk = Desk(small(**FINE, refuse_above={"usd": "5000"}))
    for granted in range(2000, 9000, 1000):
        assert desk.do(ms.Grant({"usd": "1000"})).budgets[0].granted == str(granted)
        assert desk.tell(desk.ask().decision, "0.001").charged == {"usd": "0.001"}
    with pytest.raises(Refusal, match="may grow up to"):
        desk.do(ms.Grant({"usd": "1000"}))
    number, other = desk.ask().decision, desk.ask().decision
    with pytest.raises(Refusal, match="that the ledger can hold"):
        desk.tell(number, "1001")
    assert desk.tell(number, "1000.001").overrun == {"usd": "1000"}
    with pytest.raises(Refusal, match="that the ledger can hold"):
        desk.tell(other, "0.0011")
    assert desk.tell(other, "0.001").state == "told"
    account = desk.campaign.book.account
    assert account.granted[0] + account.overrun[0] == MOST_UNITS + MOST_OVERRUN < 2**63


def test_what_rolls_over_stops_growing_where_a_ledger_ends() -> None:
    """A campaign that spends little must not be refused from then on."""
    desk = Desk(small(**FINE, refill=Refill("day", "UTC", "1")))
    granted = []
    for _ in range(12):
        desk.wait(86_400)
        desk.tell(desk.ask().decision, "0.001")
        granted.append(float(desk.budget().granted))
    assert granted[:6] == pytest.approx([2000, 3000, 4000, 5000, 6000, 7000], abs=0.01)
    assert granted[6:] == pytest.approx([8000] * 6, abs=0.01)
    assert max(granted) <= 8000
    events = desk.campaign.take()
    assert [event.rollover < 1 for event in events if isinstance(event, journal.Renewed)] == [False] * 7 + [True] * 5
    again = Campaign.new(desk.campaign.config)
    for event in events:
        again.apply(event)
    assert again.book == desk.campaign.book


def test_what_an_overrun_used_up_does_not_roll_over() -> None:
    desk = Desk(small(refill=Refill("day", "UTC", "1"), lease=100_000))
    numbers = [desk.ask().decision for _ in range(10)]
    desk.wait(86_400)
    desk.tell(numbers.pop(), "0.85")
    for number in numbers:
        desk.do(ms.Cancel(), number)
    assert desk.budget().granted == "1.15"  # 1 + 10 * 0.1 - 0.85; adding what each did not use gives 1.9
    assert desk.campaign.learner.budget.tolist() == [1.15]


def test_a_decision_that_was_extended_twice_to_the_same_end_expires_once() -> None:
    """As clients do in the seconds after a recovery, in which the clock of leases stands still."""
    desk = Desk(small(late=60))
    number, other = desk.ask().decision, desk.ask().decision
    for lease in (60, 90, 90, 90):
        desk.do(ms.Extend(lease), number)
    desk.wait(90)
    assert (desk.budget().spent, desk.budget().reserved) == ("0.2", "0")
    book = desk.campaign.book
    assert (book.expired, book.pending) == (2, 0)
    expired = [event for event in desk.campaign.events if isinstance(event, journal.Expired)]
    assert sorted(each for event in expired for each in event.numbers) == [number, other]
    assert desk.tell(number, "0.02").late
    desk.wait(60)
    assert book.settled[other].kind == "dropped"
    assert desk.budget().spent == "0.12"


@pytest.mark.parametrize("policy", ["UniformRandom", "Adaptive"])
def test_a_snapshot_changes_no_bit_of_what_follows(policy: str) -> None:
    """Also where the budget over cost_max is not the float nearest to the quotient: 0.7 / 0.1 is 6.999999999999999."""
    desk = Desk(small(budget={"usd": "0.7"}, policy={"policy": policy}, period=86_400))
    twin = read_snapshot(desk.campaign.config, write_snapshot(desk.campaign))
    for second in range(30):
        now = Now(START + 1000 * second, 1000 * second)
        for each in (desk.campaign, twin):
            asked = each.handle(ms.Ask(), now)
            if not asked.skipped:
                each.handle(ms.Tell(0.5, {"usd": "0.013"}), now, number=asked.decision)
        assert twin.learner.state_hash() == desk.campaign.learner.state_hash()
