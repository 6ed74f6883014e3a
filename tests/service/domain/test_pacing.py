"""Campaigns with a period and a refill pace their spending until the refill, not for a period of fixed length."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import driftsack as ds
from driftsack.core.errors import SettingError
from driftsack.policies import UniformRandom
from driftsack.policies.learner import Learner
from driftsack.service.domain import journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import Campaign, Now
from driftsack.service.domain.config import Config, Refill
from driftsack.service.runtime.snapshots import read_snapshot, write_snapshot
from tests.support.campaigns import small

BERLIN = ZoneInfo("Europe/Berlin")
DAY_MS = 86_400_000


def millis(*when: int) -> int:
    return int(datetime(*when, tzinfo=BERLIN).timestamp() * 1000)  # type: ignore[arg-type, misc]


def by_month(**settings: Any) -> Config:
    """Ten dollars a month; the better arm alone would use a multiple of it."""
    return small(
        **{
            "budget": {"usd": "10"},
            "cost_max": {"usd": {"small": "0.001", "large": "0.05"}},
            "policy": {"policy": "Adaptive"},
            "horizon": None,
            "period": 30 * 86400,
            "refill": Refill("month", "Europe/Berlin", "0"),
            **settings,
        }
    )


def play(campaign: Campaign, start: int, end: int, every: int) -> dict[int, float]:
    """Let requests come at a steady rate; return what each season spent."""
    spent: dict[int, float] = {}
    for at in range(start, end, every):
        now = Now(at, at - start)
        asked = campaign.handle(ms.Ask(), now)
        if asked.decision is not None and not asked.skipped:
            good = asked.arm == "large"
            told = ms.Tell(1.0 if good else 0.1, {"usd": "0.05" if good else "0.001"})
            campaign.handle(told, now, number=asked.decision)
        spent[campaign.book.season] = campaign.book.account.spent[0] / campaign.book.account.granted[0]
    return spent


class Forgetful(Campaign):
    """The competitor, as it was: seasons have no length of their own."""

    def apply(self, event: Any) -> Any:
        if isinstance(event, (journal.Opened, journal.Renewed)):
            event.period = None
        return super().apply(event)


def test_a_season_spends_its_budget_before_the_refill() -> None:
    """Opened late in April; the refill comes after 11 days, before half of the period of 30 days is over."""
    start, end = millis(2025, 4, 20), millis(2025, 5, 4)
    shares = {}
    for kind in (Campaign, Forgetful):
        campaign = kind.open(by_month(), Now(start, 0))
        shares[kind] = play(campaign, start, end, every=1_800_000)
        assert campaign.book.season == 1
    assert shares[Campaign][0] > 0.85
    assert shares[Forgetful][0] < 0.6


@pytest.mark.parametrize(("opened", "first_hours"), [((2025, 3, 20), 24 * 12 - 1), ((2025, 10, 20), 24 * 12 + 1)])
def test_the_period_ends_with_the_refill_of_the_time_zone(opened: tuple[int, ...], first_hours: int) -> None:
    """Both months have a change of the clocks, and the first request comes two days after the opening."""
    start = millis(*opened)
    campaign = Campaign.open(by_month(horizon=3000), Now(start, 0))
    following = campaign.book.following
    assert following == start + first_hours * 3_600_000
    learner = campaign.learner
    campaign.handle(ms.Ask(), Now(start + 2 * DAY_MS, 0))
    assert learner.rounds_left == pytest.approx(3000 * (first_hours - 48) / 720, rel=0.01)
    campaign.handle(ms.Ask(), Now(following, 0))
    assert campaign.book.season == 1
    assert campaign.book.following == millis(2025, opened[1] + 2, 1)
    assert learner.period_end is not None
    assert 1000 * learner.period_end == campaign.book.following


def test_most_is_spent_over_a_change_of_the_clocks() -> None:
    start, end = millis(2025, 3, 20), millis(2025, 4, 30, 23)
    spent = play(Campaign.open(by_month(), Now(start, 0)), start, end, every=3_600_000)
    assert list(spent) == [0, 1]
    assert min(spent.values()) > 0.85


def test_journals_and_snapshots_keep_the_period() -> None:
    start = millis(2025, 4, 20)
    campaign = Campaign.open(by_month(), Now(start, 0))
    play(campaign, start, millis(2025, 5, 3), every=7_200_000)
    events = journal.decode(journal.encode(campaign.take()))
    replayed = Campaign.new(campaign.config)
    for event in events:
        replayed.apply(event)
    assert replayed.book.divergences == 0
    restored = read_snapshot(campaign.config, write_snapshot(campaign))
    for copy in (replayed, restored):
        assert copy.learner.state_hash() == campaign.learner.state_hash()
        assert copy.learner.period_end == campaign.learner.period_end == millis(2025, 6, 1) / 1000
    later = [one.handle(ms.Ask(), Now(millis(2025, 6, 2), 0)) for one in (campaign, replayed, restored)]
    assert later[0] == later[1] == later[2]
    assert len({one.learner.state_hash() for one in (campaign, replayed, restored)}) == 1


def test_journals_of_earlier_releases_are_replayed_as_they_were() -> None:
    """Their events have no period, and their decisions were made for one of fixed length."""
    start = millis(2025, 4, 20)
    old = Forgetful.open(by_month(), Now(start, 0))
    play(old, start, millis(2025, 5, 3), every=7_200_000)
    body = journal.encode(old.take())
    assert b"period" not in body.replace(b"\xa6period\xce\x00'\x8d\x00", b"")  # only that of the settings
    replayed = Campaign.new(old.config)
    for event in journal.decode(body):
        replayed.apply(event)
    assert replayed.book.divergences == 0
    assert replayed.learner.state_hash() == old.learner.state_hash()
    replayed.handle(ms.Ask(), Now(millis(2025, 6, 2), 0))  # and its next season has its own length
    assert replayed.learner.period_end == (replayed.book.following or 0) / 1000


def test_a_campaign_that_watched_has_until_the_refill() -> None:
    start = millis(2025, 4, 3)
    campaign = Campaign.open(by_month(watch=True, horizon=3000), Now(start, 0))
    campaign.handle(ms.Grant({"usd": "5"}), Now(start, 0))
    assert campaign.learner.period_end is None  # it is shown what it would choose in a whole season
    campaign.handle(ms.Patch(state="active"), Now(millis(2025, 4, 21), 0))
    assert campaign.learner.budget.tolist() == [15.0]
    campaign.handle(ms.Ask(), Now(millis(2025, 4, 22), 0))
    assert campaign.learner.rounds_left == pytest.approx(3000 * 9 / 30, rel=0.01)


def test_a_season_of_a_learner_may_have_a_period_of_its_own() -> None:
    problem = ds.Problem(period=timedelta(days=30), horizon=3000, arms=2, budget=[50.0], cost_max=[1.0])
    learner = UniformRandom().start(problem, seed=1)
    learner.renew(at=datetime.fromisoformat("2025-01-01"), period=timedelta(days=3))
    assert learner.rounds_left == pytest.approx(300, rel=0.01)
    learner.ask(at=datetime.fromisoformat("2025-01-01"))
    learner = Learner.from_bytes(learner.to_bytes())
    learner.renew()  # as long as the last one, after it
    assert learner.period_end == datetime(2025, 1, 7, tzinfo=UTC).timestamp()
    before = learner.state_hash()
    with pytest.raises(SettingError, match="pass its beginning"):
        learner.renew(period=timedelta(days=3))
    fixed = UniformRandom().start(ds.Problem(horizon=10, arms=2, budget=[5.0]), seed=1)
    with pytest.raises(SettingError, match="if the problem has one"):
        fixed.renew(at=1.0, period=timedelta(days=3))
    assert learner.state_hash() == before
