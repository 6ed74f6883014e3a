"""Random commands over several seasons: the ledgers of campaign, learner and store agree, and so does a replay."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from driftsack.service.domain import exchanges, journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.book import Account, Book, Record, deltas
from driftsack.service.domain.campaign import NOBODY, Campaign
from driftsack.service.domain.config import Refill
from driftsack.service.domain.refusals import Refusal
from driftsack.service.runtime.snapshots import read_snapshot, write_snapshot
from tests.support.campaigns import Desk, small
from tests.support.learner_parts import engine_of


def disagreement(campaign: Campaign) -> str:
    """Where the two ledgers of a campaign differ, or one of them is not possible; empty if that is nowhere."""
    book, engine = campaign.book, engine_of(campaign.learner)
    offset = int(engine.desk.season[0]) - book.season
    for season, account in book.accounts.items():
        past = engine.past.get(season + offset)
        ledger = engine.ledger if season == book.season else None if past is None else past.ledger
        if ledger is not None:
            learnt = (ledger.granted.tolist(), ledger.reserved.tolist(), ledger.charged.tolist())
            if learnt != (account.granted, account.reserved, account.spent):
                return f"season {season}: {account} and {learnt}"
        pending = [r for r in book.open.values() if r.season == season and r.kind == "pending"]
        waiting = [r.reserved for r in pending if not r.billed]
        if account.reserved != [sum(column) for column in zip([0, 0], *waiting, strict=True)]:
            return f"season {season}: {account} and {waiting}"
    return ""


class Journal:
    """What a store would have: the events, and the budgets that it moved."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.budgets: dict[tuple[int, int], list[int]] = {}
        self._known: dict[int, Account] = {}

    def commit(self, campaign: Campaign) -> None:
        """Append what has happened, and check the budgets as a database does."""
        self.events += campaign.take()
        for delta in deltas(self._known, campaign.book.accounts):
            row = self.budgets.setdefault((delta.season, delta.resource), [0, 0, 0, 0])
            for k, moved in enumerate(delta[3:]):
                row[k] += moved
            granted, reserved, spent, overrun = row
            assert min(reserved, spent, overrun) >= 0
            assert spent + reserved <= granted + overrun
        campaign.book.forget_seasons()
        self._known = {season: account.copy() for season, account in campaign.book.accounts.items()}

    def replayed(self, campaign: Campaign) -> Campaign:
        """The campaign, rebuilt from its first event."""
        again = Campaign.new(campaign.config)
        for event in journal.decode(journal.encode(self.events)):
            again.apply(event)
        again.book.forget_seasons()
        return again


def amount(rng: random.Random, most: float) -> str | int:
    """A decimal string or an integer, sometimes nothing."""
    micro = rng.choice((0, rng.randrange(int(most * 10**6))))
    return rng.choice((micro // 10**6, f"{micro / 10**6:.6f}"))


def command(rng: random.Random, desk: Desk) -> tuple[Any, int]:
    """A command that may make sense, and the decision or arm that it is about."""
    book, arms = desk.campaign.book, list(desk.campaign.arms)
    number = rng.choice([*book.open, *list(book.settled)[-3:], book.number + 1])

    def costs() -> dict[str, Any]:
        return {"usd": amount(rng, 0.3), "sec": amount(rng, 3)}

    asks = ms.Ask(rng.choice((None, [rng.choice(arms)])), rng.choice((None, {"usd": amount(rng, 0.2)})))
    tells = [ms.TellOne(0.5, costs(), decision=rng.choice([*book.open, 1])) for _ in range(2)]
    return rng.choice(
        (
            (asks, 0),
            (asks, 0),
            (asks, 0),
            (ms.Tell(rng.random(), costs()), number),
            (ms.Tell(rng.random(), {"usd": "0", "sec": "0"}), next(iter(book.open), 1)),
            (ms.Tell(costs=costs()), number),
            (ms.Tell(costs=costs()), next(iter(book.open), 1)),
            (ms.Tell(reward=rng.random()), number),
            (ms.Tell(reward=rng.random()), rng.choice([*(n for n, one in book.open.items() if one.billed), 1])),
            (ms.Charge({rng.choice(("usd", "sec")): amount(rng, 0.5)}), 0),
            (ms.Cancel(rng.choice((None, costs()))), number),
            (ms.Extend(rng.choice((1, 50))), number),
            (ms.Extend(50), number),
            (ms.Forfeit(), number),
            (ms.Grant({rng.choice(("usd", "sec")): amount(rng, 2)}), 0),
            (ms.AddArm(f"arm-{book.seq}"), 0),
            (ms.OfferArm(rng.random() < 0.7), rng.randrange(len(arms))),
            (ms.Patch(state=rng.choice(("active", "active", "paused"))), 0),
            (ms.Exchange(tells, 2), 0),
        )
    )


def play(seed: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Play a campaign; return the first disagreement."""
    rng = random.Random(seed)
    monkeypatch.setattr("driftsack.service.domain.effects.MOST_EXPIRED", rng.choice((5000, 4)))
    refill = Refill(rng.choice(("day", "week")), "Europe/Berlin", rng.choice(("0", "1", "0.333333")))
    budget, most = {"usd": rng.choice(("0.7", "3")), "sec": "50"}, {"usd": "0.1", "sec": {"small": "2", "large": "0"}}
    desk = Desk(small(budget=budget, cost_max=most, late=rng.choice((30, 10**6)), slots=40, refill=refill, seed=seed))
    store = Journal()
    store.commit(desk.campaign)
    for _ in range(120):
        given, number = command(rng, desk)
        with suppress(Refusal):
            if isinstance(given, ms.Exchange):
                exchanges.exchange(desk.campaign, given, desk.now, NOBODY)
            else:
                desk.do(given, number)
        if rng.random() < 0.2:
            desk.wait(rng.choice((1, 50, 60, 43_200, 86_400)))
        if rng.random() < 0.3:
            store.commit(desk.campaign)
        found = disagreement(desk.campaign)
        if found:
            return found
        if rng.random() < 0.03:
            store.commit(desk.campaign)
            desk.campaign = read_snapshot(desk.campaign.config, write_snapshot(desk.campaign))
    store.commit(desk.campaign)
    again = store.replayed(desk.campaign)
    assert again.book == desk.campaign.book
    assert again.learner.state_hash() == desk.campaign.learner.state_hash()
    return ""


@pytest.mark.parametrize("seed", range(12))
def test_the_ledgers_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert play(seed, monkeypatch) == ""


def charge_twice(book: Book, record: Record) -> None:
    """The planted fault: what expires is charged again."""
    for j, kept in enumerate(record.reserved):
        book.accounts[record.season].reserved[j] -= kept
        book.accounts[record.season].spent[j] += 2 * kept


def refund_to_the_present(book: Book, past: Account, record: Record, units: list[int]) -> None:
    """The planted fault: what a decision of a past season did not use is given to the present one as a whole."""
    for j, (kept, cost) in enumerate(zip(record.reserved, units, strict=True)):
        past.granted[j] -= max(kept - cost, 0)
        book.account.granted[j] += max(kept - cost, 0)


@pytest.mark.parametrize(("method", "fault"), [("forfeit", charge_twice), ("_roll_over", refund_to_the_present)])
def test_a_wrong_ledger_is_noticed(method: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Book, method, fault)
    assert any(play(seed, monkeypatch) for seed in range(12))
