"""Limits by label: budgets within the budgets of a campaign."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest

from driftsack.service.domain import exchanges, journal, limits
from driftsack.service.domain import messages as ms
from driftsack.service.domain.accounts import HeldAccount, LabelAccounts
from driftsack.service.domain.campaign import NOBODY, Caller, Campaign
from driftsack.service.domain.config import Limit
from driftsack.service.domain.limits import Limits
from driftsack.service.domain.refusals import Refusal
from driftsack.service.domain.views import label_accounts
from driftsack.service.runtime.snapshots import read_snapshot, write_snapshot
from tests.support.campaigns import START, Desk, small
from tests.support.label_twin import LabelTwin

ANN = {"user": "ann"}
DAILY = Limit("user", {"usd": "0.25"}, "day")
RUN = Limit("run", {"usd": "0.15"}, idle=3600)


def limited(*given: Limit, **settings: Any) -> Desk:
    """A campaign whose budget is no obstacle."""
    return Desk(small(limits=list(given or (DAILY, RUN)), **{"budget": {"usd": "100"}, **settings}))


def account(desk: Desk, by: str = "user", label: str = "ann") -> tuple[str, str, str]:
    """What a label has spent, reserved and left."""
    found = label_accounts(desk.campaign, by, label, desk.now.at).accounts[0]
    return found.spent, found.reserved, found.left


def crossed(desk: Desk) -> list[tuple[int | None, str, int]]:
    """The thresholds that were crossed since the last call."""
    return [(e.limit, e.label, e.percent) for e in desk.campaign.take() if isinstance(e, journal.Crossed)]


def test_a_decision_must_fit_every_limit_that_its_labels_name() -> None:
    desk = limited()
    first = desk.ask(labels=ANN | {"run": "r1"})
    assert account(desk) == ("0", "0.1", "0.15")
    refused = desk.ask(labels=ANN | {"run": "r1"})
    assert (refused.skipped, refused.reason) == (True, "limit")
    assert refused.limit == ms.LimitReached("run", "r1", None, None, False)
    desk.ask(labels=ANN | {"run": "r2"})
    refused = desk.ask(labels=ANN)
    assert refused.limit == ms.LimitReached("user", "ann", "day", START - START % 86_400_000 + 86_400_000, False)
    desk.tell(first.decision, cost="0.02")
    assert account(desk) == ("0.02", "0.1", "0.13")
    assert not desk.ask(labels=ANN).skipped
    assert not desk.ask(labels={"user": "bob", "team": "x"}).skipped
    assert not desk.ask().skipped
    assert desk.campaign.limited == [1, 1]


def test_only_arms_that_fit_a_limit_are_open_and_caps_count() -> None:
    desk = limited(DAILY, cost_max={"usd": {"small": "0.05", "large": "0.3"}})
    for _ in range(5):
        assert desk.ask(labels=ANN).arm == "small"
    assert desk.ask(labels=ANN, open=["large"]).reason == "limit"
    assert desk.ask(labels={"user": "bob"}, open=["large"]).limit.exhausted
    assert desk.ask(labels={"user": "bob"}, open=["large"], caps={"usd": "0.25"}).arm == "large"


def test_must_and_fallback_do_not_pass_a_limit() -> None:
    desk = limited(DAILY, budget={"usd": "0.1"})
    desk.ask(labels=ANN)
    assert desk.ask(labels=ANN).reason == "budget"
    assert not desk.ask(labels=ANN, must=True).skipped  # passes the budget
    assert desk.ask(labels=ANN, must=True).reason == "limit"
    desk = limited(DAILY, fallback="large", cost_max={"usd": {"small": "0.1", "large": "0.2"}}, horizon=100)
    found = [desk.ask(labels=ANN) for _ in range(4)]
    assert [one.arm for one in found[-2:]] == [None, None]
    assert Decimal(account(desk)[1]) <= Decimal("0.25")


@pytest.mark.parametrize(
    ("settle", "spent", "reserved"),
    [
        (lambda desk, n: desk.tell(n, "0.03"), "0.03", "0"),
        (lambda desk, n: desk.tell(n, "0.3"), "0.3", "0"),
        (lambda desk, n: desk.do(ms.Tell(costs={"usd": "0.04"}), n), "0.04", "0"),
        (lambda desk, n: (desk.do(ms.Tell(costs={"usd": "0.04"}), n), desk.do(ms.Tell(reward=1.0), n)), "0.04", "0"),
        (lambda desk, n: (desk.do(ms.Tell(reward=1.0), n), desk.tell(n, "0.02")), "0.02", "0"),
        (lambda desk, n: desk.do(ms.Tell(reward=1.0), n), "0", "0.1"),
        (lambda desk, n: desk.do(ms.Cancel(), n), "0", "0"),
        (lambda desk, n: desk.do(ms.Cancel({"usd": "0.01"}), n), "0.01", "0"),
        (lambda desk, n: desk.do(ms.Forfeit(), n), "0.1", "0"),
        (lambda desk, n: desk.wait(60), "0.1", "0"),
        (lambda desk, n: (desk.do(ms.Extend(120), n), desk.wait(60)), "0", "0.1"),
        (lambda desk, n: (desk.wait(60), desk.tell(n, "0.03")), "0.03", "0"),
        (lambda desk, n: (desk.do(ms.Tell(costs={"usd": "0.04"}), n), desk.wait(60)), "0.04", "0"),
        (lambda desk, n: desk.wait(700), "0.1", "0"),
    ],
)
def test_an_account_moves_as_the_budgets_do(settle: Any, spent: str, reserved: str) -> None:
    desk = limited()
    number = desk.ask(labels=ANN).decision
    settle(desk, number)
    assert account(desk)[:2] == (spent, reserved) == (desk.budget().spent, desk.budget().reserved)


def test_each_period_has_the_amount_again_and_late_outcomes_stay_with_theirs() -> None:
    desk = limited(DAILY, lease=80_000, late=86_400)
    late = desk.ask(labels=ANN).decision
    desk.tell(desk.ask(labels=ANN).decision, cost="0.1")
    assert desk.ask(labels=ANN).reason == "limit"
    desk.wait(86_400 // 2)
    assert account(desk) == ("0", "0", "0.25")
    desk.ask(labels=ANN)
    desk.tell(late, cost="0.1")
    assert account(desk) == ("0", "0.1", "0.15")


def test_a_label_without_a_period_is_forgotten_only_when_nothing_of_it_is_open() -> None:
    desk = limited(RUN, lease=7200)
    labels = {"run": "r1"}
    number = desk.ask(labels=labels).decision
    desk.wait(3601)
    assert desk.ask(labels=labels).reason == "limit"
    desk.tell(number, cost="0.1")
    desk.wait(3599)
    assert desk.ask(labels=labels).reason == "limit"
    desk.wait(1)
    assert not desk.ask(labels=labels).skipped


def test_wrong_limits_and_labels_are_refused_with_a_reason() -> None:
    for wrong, said in (
        (Limit("user", {"eur": "1"}), "must be for some of"),
        (Limit("user", {"usd": "1"}, "day", idle=60), "omit it"),
        (Limit("user", {"usd": "1"}, "day", zone="Mars"), "time zone"),
        (Limit("user", {"usd": "1000000000"}), "holds amounts"),
    ):
        with pytest.raises(Refusal, match=said):
            limited(wrong)
    desk = limited(Limit("user", {"usd": "1"}, "day", required=True))
    with pytest.raises(Refusal, match="need the label 'user'"):
        desk.ask(labels={"team": "x"})
    with pytest.raises(Refusal, match="need the label 'user'"):
        exchanges.exchange(desk.campaign, ms.Exchange(ask=2, labels=[ANN, {}]), desk.now, NOBODY)
    assert desk.campaign.book.number == 0
    with pytest.raises(Refusal, match="the limits of the campaign are by"):
        account(desk, by="team")


def test_each_request_of_an_exchange_has_its_labels() -> None:
    desk = limited()
    many = ms.Exchange(ask=4, labels=[ANN, ANN, ANN, {"user": "bob"}])
    reasons = [one.reason for one in exchanges.exchange(desk.campaign, many, desk.now, NOBODY).decisions]
    assert reasons == [None, None, "limit", None]
    many = ms.Exchange(ask=2, terms=ms.Ask(labels={"run": "r1"}))
    reasons = [one.reason for one in exchanges.exchange(desk.campaign, many, desk.now, NOBODY).decisions]
    assert reasons == [None, "limit"]


def test_more_labels_than_fit_into_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_ACCOUNTS", 2)
    desk = limited(DAILY)
    for user in ("ann", "bob"):
        desk.ask(labels={"user": user})
    with pytest.raises(Refusal, match="accounts for 2 labels"):
        desk.ask(labels={"user": "eve"})
    assert not desk.ask(labels=ANN).skipped


def test_thresholds_are_crossed_once_in_each_period() -> None:
    desk = limited(DAILY, thresholds=None)
    numbers = [desk.ask(labels=ANN).decision for _ in range(2)]
    assert crossed(desk) == []
    desk.tell(numbers[0], cost="0.12")
    assert crossed(desk) == []
    desk.tell(numbers[1], cost="0.1")
    assert crossed(desk) == [(0, "ann", 50), (0, "ann", 80)]
    for _ in range(2):
        assert desk.ask(labels=ANN).reason == "limit"
    assert crossed(desk) == [(0, "ann", 100)]
    desk.wait(86_400)
    desk.tell(desk.ask(labels=ANN).decision, cost="0.3")
    assert crossed(desk) == [(0, "ann", 50), (0, "ann", 80), (0, "ann", 100)]


def test_budgets_have_thresholds_too_if_they_are_asked_for() -> None:
    desk = Desk(small(thresholds=[80, 50], lease=60))
    for _ in range(6):
        desk.ask()
    desk.wait(60)
    assert crossed(desk) == [(None, "", 50)]
    desk.do(ms.Charge({"usd": "0.2"}))
    assert crossed(desk) == [(None, "", 80)]
    desk.do(ms.Charge({"usd": "0.2"}))
    assert crossed(desk) == []
    desk = Desk(small())
    desk.do(ms.Charge({"usd": "2"}))
    assert crossed(desk) == []


def test_accounts_that_have_ended_leave_memory() -> None:
    accounts = LabelAccounts(1)
    for k in range(5000):
        accounts.use(f"u{k}", START, START + (10 if k % 10 else 1000))
    kept = accounts.live(START + 10)
    assert len(kept) == 500
    for _ in range(12):
        accounts.sweep(START + 10, 1000)
    assert len(accounts) == 500
    assert accounts.live(START + 10) == kept
    assert len(accounts.rows) == 500 * 6
    for k in range(20_000):  # requests alone free as many as they open
        accounts.use(f"v{k}", START + 20 + k, START + 30 + k)
        accounts.sweep(START + 20 + k, 2)
    assert len(accounts) < 2000


def play(seed: int) -> str:
    """Play a campaign with limits beside the twin; return the first disagreement."""
    rng = random.Random(seed)
    given = [
        Limit("user", {"usd": "0.7"}, rng.choice(("day", "week")), "Europe/Berlin"),
        Limit("user", {"usd": "2"}, "month"),
        Limit("run", {"usd": "0.4", "sec": "9"}, idle=rng.choice((60, 40_000))),
    ]
    most = {"usd": "0.1", "sec": {"small": "2", "large": "0"}}
    desk = Desk(small(budget={"usd": "30", "sec": "500"}, cost_max=most, late=200_000, limits=given, seed=seed))
    twin, events = LabelTwin(given), desk.campaign.take()
    for _ in range(150):
        labels = {name: f"{name}{rng.randrange(3)}" for name in ("user", "run") if rng.random() < 0.8}
        number = rng.choice([*desk.campaign.book.open, 1])
        cents = rng.choice((0, 5, 10, 10, 40))
        caps: Any = rng.choice((None, {"usd": "0.05"}))
        costs: Any = {"usd": f"{cents / 100:.2f}", "sec": str(cents // 10)}
        command = rng.choice(
            (
                *(ms.Ask(labels=labels, caps=caps, must=rng.random() < 0.1),) * 4,
                ms.Tell(1.0, costs),
                ms.Tell(costs=costs),
                ms.Tell(reward=0.5),
                ms.Cancel(rng.choice((None, costs))),
                ms.Forfeit(),
                ms.Extend(50),
            )
        )
        with suppress(Refusal):
            answer = desk.do(command, 0 if isinstance(command, ms.Ask) else number)
            if isinstance(command, ms.Ask) and answer.reason != "policy":
                found = twin.check(command, answer, desk.now.at)
                if found:
                    return found
        if rng.random() < 0.2:
            desk.wait(rng.choice((1, 60, 3600, 50_000, 700_000)))
        news = desk.campaign.take()
        events += news
        twin.follow(news, desk.campaign)
        found = twin.disagreement(desk.campaign, desk.now.at)
        if found:
            return found
        if rng.random() < 0.05:
            desk.campaign = read_snapshot(desk.campaign.config, write_snapshot(desk.campaign))
    again = Campaign.new(desk.campaign.config)
    for event in journal.decode(journal.encode(events)):
        again.apply(event)
    at = desk.campaign.book.at
    assert again.book == desk.campaign.book
    return "" if again.limits.live(at) == desk.campaign.limits.live(at) else "the replay has other accounts"


@pytest.mark.parametrize("seed", range(8))
def test_random_commands_agree_with_a_slow_twin(seed: int) -> None:
    assert play(seed) == ""


def uncovered(self: Limits, held: HeldAccount, units: Any, at: int, only_spent: bool = False) -> bool:
    """The planted fault: admission ignores limits."""
    return True


def charged_twice(self: Limits, held: Any, kept: Any) -> None:
    """The planted fault: an expired decision keeps its reservation."""
    self.charge(held, [0] * len(kept), kept, pending=True)


def never_replaced(self: LabelAccounts, held: HeldAccount) -> int:
    """The planted fault: late outcomes are charged to the present period."""
    slot = self._slots.get(held.label)
    return -1 if slot is None else slot * self._width


@pytest.mark.parametrize(
    ("owner", "method", "fault"),
    [(Limits, "covers", uncovered), (Limits, "forfeit", charged_twice), (LabelAccounts, "place", never_replaced)],
)
def test_wrong_accounts_are_noticed(owner: type, method: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, method, fault)
    assert any(play(seed) for seed in range(8))


def answer_of(steps: Generator[None, None, ms.Exchanged]) -> ms.Exchanged:
    """Take the remaining steps, and return the answer."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            answer: ms.Exchanged = done.value
            return answer


def test_an_exchange_of_a_campaign_that_is_resumed_meanwhile_is_not_refused_in_part() -> None:
    """Requests that were not checked, because the campaign was paused, are skipped."""
    desk = Desk(small(limits=[Limit("user", {"usd": "1"}, required=True)]))
    first = desk.ask(labels={"user": "ann"})
    desk.do(ms.Patch("paused"))
    tell = ms.TellOne(decision=first.decision, reward=1.0, costs={"usd": "0.02"}, token=first.token)
    many = ms.Exchange([tell], ask=1)
    steps = exchanges.exchange_in_steps(desk.campaign, many, lambda: desk.now, Caller("k", b"d", "w"))
    next(steps)  # the outcome is told
    desk.do(ms.Patch("active"))
    [made] = answer_of(steps).decisions
    assert (made.skipped, made.reason) == (True, "paused")
