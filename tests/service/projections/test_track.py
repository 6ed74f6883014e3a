"""What the pages are made of: the track of a journal, forecasts, drift alarms, prices and regret."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from driftsack.service.domain import journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.accounts import RAISED
from driftsack.service.domain.book import Account, deltas
from driftsack.service.domain.config import Limit
from driftsack.service.domain.journal import Segment
from driftsack.service.domain.limits import Limits
from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections import plan
from driftsack.service.projections import track as tracks
from driftsack.service.projections.charts import figures
from driftsack.service.projections.drift import ArmDetector, OutcomeStream
from driftsack.service.projections.plan import best_mix, planned
from driftsack.service.projections.progress import BudgetForecast, axis_of, forecast
from driftsack.service.projections.track import Track
from driftsack.service.web.pages.view import bars, details
from tests.support.campaigns import Desk, monthly, small

LIMIT = Limit("user", {"usd": "3"}, "month")


class Followed(Desk):
    """A campaign whose journal a track follows."""

    def __init__(self, **settings: Any) -> None:
        config = monthly(**settings) if settings.pop("monthly", False) else small(**settings)
        super().__init__(config)
        self.track = Track("chat", config)
        self._accounts: dict[int, Account] = {}
        self.commit()

    def commit(self) -> None:
        """Append what has happened, and let the track read it."""
        events, book = self.campaign.take(), self.campaign.book
        if not events:
            return
        moved = deltas(self._accounts, book.accounts)
        body = journal.encode(events)
        self.track.feed(Segment("chat", book.seq - len(events) + 1, book.seq, book.at, 1, moved, body, b""))
        self._accounts = {season: account.copy() for season, account in book.accounts.items()}

    def live_through(self, seed: int, steps: int) -> None:
        """Many things happen, in any order."""
        rng, waiting = random.Random(seed), list[int]()
        acts = [self.request, self.outcome, self.give_up, self.pass_some_time, self.operate]
        for _ in range(steps):
            (act,) = rng.choices(acts, [60, 20, 5, 5, 10])
            with contextlib.suppress(Refusal):  # told too late, or another arm must stay
                act(rng, waiting)
            if rng.random() < 0.5:
                self.commit()
        self.commit()

    def request(self, rng: random.Random, waiting: list[int]) -> None:
        found = self.do(ms.Ask(labels={"user": rng.choice(["ann", "bob"])} if self.campaign.limits.rules else None))
        waiting += [found.decision] if found.decision and not found.skipped else []

    def outcome(self, rng: random.Random, waiting: list[int]) -> None:
        if not waiting:
            return
        cost, reward = f"0.{rng.randint(1, 12):02d}", rng.random()
        number = waiting[rng.randrange(len(waiting))]
        if rng.random() < 0.3:  # its costs, and the reward later or never
            self.do(ms.Tell(costs={"usd": cost}), number)
            return
        waiting.remove(number)
        record = self.campaign.book.open.get(number)
        if record is not None and record.billed:
            self.do(ms.Tell(reward=reward), number)
        else:
            self.tell(number, cost, reward)

    def give_up(self, _: random.Random, waiting: list[int]) -> None:
        if waiting:
            self.do(ms.Cancel(), waiting.pop(0))

    def pass_some_time(self, rng: random.Random, _: list[int]) -> None:
        self.wait(rng.choice([70, 700]))

    def operate(self, rng: random.Random, _: list[int]) -> None:
        self.do(ms.Grant({"usd": "0.5"}))
        self.do(ms.Charge({"usd": "0.01"}))
        self.do(ms.Patch(state=rng.choice(["active", "active", "paused"])))
        self.do(ms.OfferArm(rng.random() < 0.8), rng.randrange(2))


def without_thresholds(limits: Limits, at: int) -> list[dict[str, list[int]]]:
    """The accounts of limits at a time."""
    accounts = limits.live(at)
    return [{label: [*row[:RAISED], *row[RAISED + 1 :]] for label, row in each.items()} for each in accounts]


def differences(track: Track, desk: Desk) -> list[str]:
    """Where a track does not say what the campaign itself knows."""
    book, account = desk.campaign.book, desk.campaign.book.account
    seen = track.seasons[track.season]
    pairs = {
        "seq": (track.seq, book.seq),
        "number": (track.number, book.number),
        "state": (track.state, book.state),
        "pending": (track.pending, book.pending),
        "told": (track.told, book.told),
        "expired": (track.expired, book.expired),
        "overruns": (track.overruns, book.overruns),
        "reward": (track.reward, book.reward),
        "retired": (sorted(track.retired), book.retired),
        "budgets": (
            [seen.granted, seen.reserved, seen.spent, seen.overrun],
            [account.granted, account.reserved, account.spent, account.overrun],
        ),
        "limits": (without_thresholds(track.limits, book.at), without_thresholds(desk.campaign.limits, book.at)),
        "crossed": (
            sum(count for (limit, _), count in track.crossed.items() if limit is not None),
            sum(row[RAISED].bit_count() for rows in desk.campaign.limits.live(book.at) for row in rows.values()),
        ),
        "chosen": (sum(t.chosen for b in track.buckets for t in b.tallies.values()) + track.skipped, book.number),
        "rewards": (round(sum(b.reward for b in track.buckets), 9), round(book.reward, 9)),
    }
    return [name for name, (ours, theirs) in pairs.items() if ours != theirs]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("settings", [{}, {"pause_on_overrun": True}, {"monthly": True}, {"limits": [LIMIT]}])
def test_a_track_says_what_the_campaign_knows(seed: int, settings: dict[str, Any]) -> None:
    desk = Followed(budget={"usd": "20"}, **settings)
    desk.live_through(seed, 300)
    assert desk.campaign.book.expired > 0
    assert differences(desk.track, desk) == []


def test_the_comparison_notices_a_lost_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Followed(budget={"usd": "20"})
    desk.live_through(0, 100)
    monkeypatch.setattr(desk.track, "feed", lambda _: None)
    desk.live_through(1, 50)
    assert {"seq", "number", "told", "rewards"} <= set(differences(desk.track, desk))


def test_memory_does_not_grow_with_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracks, "MOST_BUCKETS", 16)
    desk = Followed(budget={"usd": "1000"})
    for _ in range(1000):
        desk.tell(desk.ask().decision)
        desk.commit()
    desk.track.close_bucket()
    assert len(desk.track.buckets) <= 16
    assert desk.track.width == 64
    assert differences(desk.track, desk) == []
    assert sum(bucket.rounds for bucket in desk.track.buckets) == desk.campaign.book.number


def walk(seed: int, steps: int = 400) -> tuple[list[float], list[float]]:
    """Spending at a steady rate with noise: places, and what was spent until there."""
    costs = np.random.default_rng(seed).lognormal(-3, 1.2, steps)
    return [float(k) for k in range(0, steps, 5)], np.cumsum(costs)[::5].tolist()


def coverage(narrow: float) -> float:
    """How often a band, made narrower by a factor, holds what is left in the end."""
    inside = []
    for seed in range(150):
        places, spent = walk(seed)
        found = forecast(places[:40], spent[:40], 100.0 - spent[39], places[-1])
        assert isinstance(found, BudgetForecast)
        middle, wide = found.middle[-1], found.high[-1] - found.middle[-1]
        inside.append(abs(100.0 - spent[-1] - middle) <= narrow * wide)
    return float(np.mean(inside))


def test_a_forecast_holds_what_happens() -> None:
    assert 0.88 <= coverage(1.0) <= 0.99
    assert coverage(0.3) < 0.6  # a band that is too narrow is noticed


def test_a_forecast_needs_something_to_go_on() -> None:
    assert forecast([1.0, 2.0], [0.1, 0.2], 1.0, 10.0) is None
    assert forecast([1.0, 2.0, 3.0, 4.0, 5.0], [0.1] * 5, 1.0, None) is None


def alarms_of(means: list[float], seed: int) -> list[Any]:
    detector, rng, found = ArmDetector(0, 1.0, 0), random.Random(seed), []
    for number, mean in enumerate(means, start=1):
        found += detector.observe(0, number, [float(rng.random() < mean)])
    return found


def cost_alarms(factors: list[float], seed: int, spread: float = 0.8) -> list[Any]:
    detector, rng, found = ArmDetector(0, 1.0, 1), random.Random(seed), []
    for number, factor in enumerate(factors, start=1):
        found += detector.observe(0, number, [0.5, factor * rng.lognormvariate(-4, spread)])
    return found


def test_a_price_that_changes_is_found_in_heavy_tails() -> None:
    for seed in range(5):
        (alarm,) = cost_alarms([1.0] * 300 + [0.4] * 200, seed)
        assert alarm.stream == 1
        assert 300 < alarm.decision < 450
        assert alarm.after.mean < alarm.before.mean
    plain, rng = OutcomeStream(0.5), random.Random(0)  # (costs relative to their maximum hide the change)
    assert not any(plain.observe((1.0 if k < 300 else 0.4) * rng.lognormvariate(-4, 0.8)) for k in range(500))
    assert cost_alarms([1.0] * 100 + [0.9] * 50, 0, spread=0.0)[0].decision < 145  # constant costs too
    assert [alarm for seed in range(20) for alarm in cost_alarms([1.0] * 400, seed, spread=1.5)] == []


def test_changes_are_found_and_noise_is_not() -> None:
    for seed in range(5):
        (alarm,) = alarms_of([0.8] * 400 + [0.4] * 400, seed)
        assert 400 < alarm.decision < 520
        assert abs(alarm.before.size - 400) < 40
        assert abs(alarm.before.mean - 0.8) < 0.08
        assert alarm.after.mean < 0.6
    assert [alarm for seed in range(20) for alarm in alarms_of([0.5] * 400, seed)] == []


def played(pick: Any, rounds: int = 600, cost_of_large: Callable[[], str] = lambda: "0.08") -> Followed:
    """A campaign in which a rule chooses: the large arm earns 0.9, the small one 0.5 for 0.01."""
    desk = Followed(budget={"usd": "20"}, horizon=1000)
    for k in range(rounds):
        arm = pick(k)
        found = desk.ask(open=[arm])
        if found.decision is None:
            break  # the budget is used up
        good, cost = (0.9, cost_of_large()) if arm == "large" else (0.5, "0.01")
        desk.tell(found.decision, cost, good)
        desk.commit()
    desk.track.close_bucket()
    return desk


def test_prices_and_regret_are_those_of_the_best_plan() -> None:
    good = played(lambda k: "large" if k % 7 < 2 else "small")  # 0.03 per request: what the budget allows is 0.02
    track = good.track
    mix = best_mix(track, track.buckets[-1], [0.02])
    more = best_mix(track, track.buckets[-1], [0.0201])
    assert mix is not None
    assert more is not None
    assert mix.prices[0] == pytest.approx((more.value - mix.value) / 0.0001, rel=1e-6)
    assert mix.prices[0] == pytest.approx(0.4 / 0.07)
    assert mix.value == pytest.approx(0.5 + 0.4 / 7)
    lazy = played(lambda k: "small" if k % 20 else "large")  # leaves most of the budget
    plans = planned(good.track), planned(lazy.track)
    known = 420  # requests after the tenth outcome of the large arm, before which the plan is without it
    expected = known * (0.5 + 0.4 / 7) + 180 * 0.5 - 600 * 0.52
    assert plans[1].regret[-1] == pytest.approx(expected, abs=2)
    assert plans[1].error[-1] < 1e-9  # outcomes without noise
    assert plans[0].regret[-1] < 0 < plans[1].regret[-1]  # it spends faster than the plan


def test_a_price_does_not_flip_with_the_noise_of_a_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The large arm costs 0.02 on average, which is what the budget allows per request: it only just fits, or not."""
    rng = random.Random(1)
    track = played(lambda k: "large" if k % 20 else "small", cost_of_large=lambda: rng.choice(("0.01", "0.03"))).track

    def flips() -> int:
        prices = planned(track).prices[0][len(track.buckets) // 4 :]
        return sum(abs(after - before) > 20 for before, after in itertools.pairwise(prices))

    assert flips() == 0
    assert 0 < planned(track).prices[0][-1] < 50  # the dual price is 0, or about 0.4 / 0.01
    monkeypatch.setattr(plan, "SMOOTH", 1)  # the dual price itself
    assert flips() > 3


def test_what_is_shown_fits_together() -> None:
    desk = played(lambda _: "large")
    assert axis_of(desk.track).elapsed == 249 / 1000  # 20 dollars, with room for a cost of 0.1
    (bar,) = bars(desk.track)
    assert (bar.left, bar.spent_width) == ("0.08", 99.6)
    assert bar.is_off
    assert "used up after 25%" in bar.pace
    shown = details(desk.track, True)
    assert shown["arms"][0]["reward"] == "no outcome yet"
    data = figures(desk.track)
    for columns in (data["budgets"][0], data["regret"]):
        assert len({len(column) for name, column in columns.items() if name != "name"}) == 1


def test_seasons_begin_again() -> None:
    desk = Followed(monthly=True)
    track_start = axis_of(desk.track).start
    desk.tell(desk.ask().decision)
    desk.wait(40 * 86400)
    desk.ask()
    desk.commit()
    desk.track.close_bucket()
    axis = axis_of(desk.track)
    assert axis.by_time
    assert axis.end is not None
    assert axis.end > axis.now >= axis.start > track_start
    assert differences(desk.track, desk) == []
