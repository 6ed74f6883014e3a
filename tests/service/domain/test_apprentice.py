"""Apprentice mode: a campaign that watches learns, says what it would have earned, and is switched on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftsack as ds
from driftsack.client import AsyncClient, Client, ServiceError
from driftsack.core.errors import CannotAnswerError
from driftsack.game.state_tree import arrays
from driftsack.logs import read
from driftsack.service.domain import journal
from driftsack.service.domain import messages as ms
from driftsack.service.domain.apprentice import BATCH, Past
from driftsack.service.domain.campaign import Campaign
from driftsack.service.domain.config import Refill
from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections.apprentice_report import apprentice
from driftsack.service.projections.explain import replay
from driftsack.service.projections.export import as_csv
from driftsack.service.projections.shadow import Shadow
from driftsack.service.projections.what_if import what_if
from driftsack.service.runtime.snapshots import read_snapshot, write_snapshot
from driftsack.service.store import open_store
from driftsack.service.web.pages.apprentice import verdict
from tests.service.projections.test_track import Followed
from tests.support.campaigns import Desk, small
from tests.support.dashboard_client import Visitor
from tests.support.live_service import Live, serving

REWARD = {"small": 0.2, "large": 0.8}
ADAPTIVE: dict[str, Any] = {"policy": {"policy": "Adaptive"}, "horizon": 2000, "budget": {"usd": "200"}, "watch": True}


class Rule:
    """The user's own rule: it chooses ``large`` with a fixed probability."""

    def __init__(self, large: float = 0.3, seed: int = 0, reward: dict[str, float] | None = None) -> None:
        self._large, self._rng, self._reward = large, np.random.default_rng(seed), reward or REWARD

    def observation(self, **changes: Any) -> ms.Observe:
        """What it did in the next request."""
        arm = "large" if self._rng.random() < self._large else "small"
        probability = self._large if arm == "large" else 1.0 - self._large
        reward = float(self._rng.random() < self._reward[arm])
        given: dict[str, Any] = {"arm": arm, "reward": reward, "costs": {"usd": "0.02"}, "probability": probability}
        return ms.Observe(**{**given, **changes})


def watch(desk: Desk, count: int, rule: Rule | None = None, **changes: Any) -> None:
    """Let a campaign watch a rule."""
    rule = rule or Rule()
    for _ in range(count):
        desk.do(rule.observation(**changes))


# The estimate


def shadow_of(seed: int, count: int) -> tuple[Shadow, float]:
    """A rule that tries two arms, and an apprentice whose mix changes; and what that would earn on average."""
    rng, shadow, earns = np.random.default_rng(seed), Shadow(2, 1), np.array([0.3, 0.6])
    total = 0.0
    for t in range(count):
        mix = [0.1, 0.8] if t % 2 else [0.6, 0.4]
        shadow.study(mix)
        arm = int(rng.random() < 0.3)
        shadow.observe(arm, (0.7, 0.3)[arm], [float(rng.random() < earns[arm]), (0.1, 0.5)[arm]])
        total += float(earns @ mix)
    return shadow, total / count


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Of 400 intervals 95% hold the truth: fewer than 91% or more than 98.5% would be 4 standard errors away."""
    held, naive = np.zeros(2), 0
    for seed in range(400):
        shadow, truth = shadow_of(seed, 500)
        own, would, gain = shadow.compared()[0]
        assert would is not None
        assert gain is not None
        difference = truth - (0.7 * 0.3 + 0.3 * 0.6)
        held += [abs(would.value - truth) < 1.96 * would.error, abs(gain.value - difference) < 1.96 * gain.error]
        naive += abs(own.value - truth) < 1.96 * own.error  # who says that it would earn what the rule earned
        assert shadow.compared()[1].would == pytest.approx((0.335, 0.0), abs=0.05)
    assert np.all((held / 400 > 0.91) & (held / 400 < 0.985)), held
    assert naive < 0.2 * 400


def test_the_estimate_is_that_of_importance_weights() -> None:
    """For a mix that does not change, the library's own estimator on the whole log says the same."""
    rng, shadow = np.random.default_rng(1), Shadow(2, 1)
    shadow.study([0.2, 0.7])
    rows = []
    for _ in range(1000):
        arm = int(rng.random() < 0.4)
        row = (arm, (0.6, 0.4)[arm], [float(rng.random() < 0.5), float(rng.random())])
        shadow.observe(*row)
        rows.append(row)
    log = ds.gather(ds.Instance.stationary([0.5, 0.5], [[0.5, 0.5]], horizon=1000, budget=1000.0))
    log = replace(
        log,
        arm=np.array([arm for arm, _, _ in rows], dtype=np.int32),
        propensity=np.array([probability for _, probability, _ in rows]),
        reward=np.array([outcomes[0] for _, _, outcomes in rows]),
        costs=np.array([outcomes[1:] for _, _, outcomes in rows]),
    )
    twin = ds.logs.evaluate_mix(log, [0.2, 0.7])
    reward, cost = shadow.compared()
    assert reward.would == pytest.approx((twin.reward, twin.reward_se), rel=1e-9)
    assert cost.would is not None
    assert cost.would.value == pytest.approx(twin.costs[0], rel=1e-9)
    assert shadow.effective == pytest.approx(twin.effective, rel=1e-9)


@pytest.mark.parametrize(("peeks", "fair"), [(False, True), (True, False)])
def test_no_outcome_judges_a_choice_that_was_learnt_from_it(peeks: bool, fair: bool) -> None:
    """Arms that are all alike: an apprentice that follows the best of a batch gains nothing, unless it peeks."""
    rng, gains = np.random.default_rng(2), []
    for _ in range(60):
        shadow = Shadow(4, 0)
        for _ in range(20):
            batch = [(int(rng.integers(4)), float(rng.random())) for _ in range(BATCH)]
            best = max(range(4), key=lambda k: np.mean([r for a, r in batch if a == k] or [0.0]))
            lesson = [float(k == best) for k in range(4)]
            if peeks:
                shadow.study(lesson)
            for arm, reward in batch:
                shadow.observe(arm, 0.25, [reward])
            shadow.study(lesson)
        gain = shadow.compared()[0].gain
        assert gain is not None
        gains.append(gain.value)
    error = np.std(gains) / np.sqrt(len(gains))
    assert (abs(np.mean(gains)) < 4 * error) == fair


@pytest.mark.parametrize(
    ("arm", "probability", "words"),
    [
        (lambda _: 0, 1.0, "never tries an arm"),  # a rule without chance, and an apprentice that wants another arm
        (lambda rng: int(rng.random() < 0.1), 0.5, "probabilities that you send are wrong"),
        (lambda rng: int(rng.random() < 0.5), None, "send the probability"),
        (lambda rng: int(rng.random() < 0.5), 0.5, None),
    ],
)
def test_what_the_observations_cannot_say_is_not_said(arm: Any, probability: float | None, words: str | None) -> None:
    rng, shadow = np.random.default_rng(3), Shadow(2, 0)
    assert "only learnt from" in str(shadow.refusal)
    shadow.study([0.2, 0.8])
    for _ in range(400):
        shadow.observe(arm(rng), probability, [1.0])
    assert (shadow.refusal is None) == (words is None)
    assert (words or "None") in str(shadow.refusal)
    assert all((row.would is None) == (words is not None) for row in shadow.compared())
    assert shadow.own[0] + shadow.own[1] == shadow.studied == 400  # what it would have chosen is always known


def test_few_observations_say_nothing() -> None:
    shadow = Shadow(2, 0)
    shadow.study([0.5, 0.5])
    for k in range(20):
        shadow.observe(k % 2, 0.5, [1.0])
    assert "50 are needed" in str(shadow.refusal)


# The campaign


def test_it_learns_by_watching_and_says_that_it_would_earn_more() -> None:
    desk = Followed(**ADAPTIVE)
    watch(desk, 20 * BATCH)
    desk.commit()
    found = apprentice(desk.track)
    own, would = ({row.arm: getattr(row, side) for row in found.shares} for side in ("own", "would"))
    assert own["large"] == pytest.approx(0.3, abs=0.06)
    assert would["large"] > 0.8
    reward, cost = found.compared
    assert reward.gain is not None
    assert reward.would is not None
    assert reward.gain.low > 0
    assert reward.would.low < 0.8 * would["large"] + 0.2 * would["small"] < reward.would.high
    assert cost.would is not None
    assert cost.would.mean == pytest.approx(0.02 * sum(would.values()), rel=1e-6)
    assert cost.would.low == cost.would.high  # no rounding error looks like an interval
    assert verdict(found) == "It would have earned more than your rule."
    assert found.counted == found.observations - BATCH  # the first ones are only learnt from


@pytest.mark.parametrize(
    ("rule", "policy"),
    [
        (Rule(0.5, reward={"small": 0.5, "large": 0.5}), "Adaptive"),  # nothing to gain
        (Rule(0.5), "UniformRandom"),  # nothing is learnt: this competitor does what the rule does
    ],
)
def test_it_does_not_claim_a_gain_that_is_not_there(rule: Rule, policy: str) -> None:
    desk = Followed(**{**ADAPTIVE, "policy": {"policy": policy}})
    watch(desk, 10 * BATCH, rule)
    desk.commit()
    assert "cannot be told yet" in verdict(apprentice(desk.track))


def test_a_rule_that_is_better_is_called_better() -> None:
    desk = Followed(**{**ADAPTIVE, "policy": {"policy": "UniformRandom"}})
    watch(desk, 20 * BATCH, Rule(0.9))
    desk.commit()
    assert verdict(apprentice(desk.track)) == "It would have earned less than your rule."


def first_choices(desk: Desk, count: int = 30) -> float:
    """The share of ``large`` in the first decisions, whose outcomes are not told."""
    arms = [desk.do(ms.Ask()).arm for _ in range(count)]
    return arms.count("large") / count


def test_it_is_switched_on_with_what_it_learnt_and_its_whole_budget() -> None:
    desk = Desk(small(**ADAPTIVE))
    assert desk.do(ms.Ask()).reason == "watching"
    watch(desk, 10 * BATCH + 7)
    book, learner = desk.campaign.book, desk.campaign.learner
    assert (book.observed, book.number, book.told, len(book.unlearnt)) == (10 * BATCH + 7, 0, 0, 7)
    assert (learner.round, learner.remaining.tolist(), desk.budget().spent) == (0, [200.0], "0")
    with pytest.raises(Refusal, match="switch it on"):
        desk.do(ms.Patch(state="paused"))
    desk.do(ms.Patch(state="active"))
    assert (book.state, book.unlearnt, desk.budget().remaining) == ("active", [], "200")
    with pytest.raises(Refusal, match="ask for decisions"):
        watch(desk, 1)
    ignorant = Desk(small(**{**ADAPTIVE, "watch": False}))
    assert first_choices(desk) > 0.9
    assert first_choices(ignorant) < 0.8


@pytest.mark.parametrize(
    "policy",
    [{"policy": "Adaptive"}, {"policy": "SlidingWindowUCB", "windows": [50, 50]}, {"policy": "LagrangeBwK"}],
)
def test_it_knows_what_a_learner_knows_that_was_taught_the_whole_log(policy: dict[str, Any]) -> None:
    """Batches, copies that are asked, and the switch change nothing; a learner that was taught one less differs."""
    config, rule = small(**{**ADAPTIVE, "policy": policy}), Rule()
    desk, seen = Desk(config), [rule.observation() for _ in range(2 * BATCH + 7)]
    for observation in seen:
        desk.do(observation)
    desk.do(ms.Patch(state="active"))
    known = arrays(desk.campaign.learner.state)
    for rows, same in ((seen, True), (seen[:-7], False)):
        learner = config.recipe(config.problem()).start(config.problem(), seed=config.seed, safe=True)
        learner.teach(
            Past(
                ("small", "large"),
                ("usd",),
                np.array([row.arm == "large" for row in rows], dtype=np.int32),
                np.array([row.reward for row in rows]),
                np.full((len(rows), 1), 0.02),
                np.array([row.probability for row in rows]),
            )
        )
        twin = arrays(learner.state)
        assert all(np.array_equal(known[name], twin[name], equal_nan=True) for name in known) == same


def test_a_campaign_with_a_period_watches_too() -> None:
    desk = Followed(**{**ADAPTIVE, "horizon": None, "period": 86400})
    for _ in range(4 * BATCH):
        watch(desk, 1, Rule(seed=desk.campaign.book.observed))
        desk.wait(10)
    desk.commit()
    shares = [row.would for row in apprentice(desk.track).shares]
    assert sum(share or 0.0 for share in shares) > 0.5
    desk.do(ms.Patch(state="active"))
    assert desk.do(ms.Ask()).decision == 1


def test_observations_are_checked() -> None:
    desk = Desk(small(**ADAPTIVE))
    with pytest.raises(Refusal, match="the arms are"):
        watch(desk, 1, arm="none")
    wrong: list[tuple[dict[str, str], str]] = [
        ({}, "costs must be"),
        ({"usd": "1", "eur": "1"}, "costs must be"),
        ({"usd": "9" * 15}, "refused as absurd"),
    ]
    for costs, words in wrong:
        with pytest.raises(Refusal, match=words):
            watch(desk, 1, costs=costs)
    assert desk.campaign.book.observed == 0
    world = ds.Instance.stationary([0.2, 0.8], [[0.1, 0.1]], horizon=2000, budget=200.0)
    forecast = ds.policies.PlanWithForecast(world).to_spec()
    with pytest.raises(Refusal, match="cannot learn by watching"):
        Desk(small(**{**ADAPTIVE, "policy": forecast}))


def test_seasons_without_decisions_leave_nothing_over() -> None:
    """A budget that could not be spent is not added to the next one."""
    left = {}
    for watches in (True, False):
        desk = Desk(small(refill=Refill("day", "UTC", "1"), watch=watches))
        desk.wait(86400)
        left[watches] = desk.budget().granted
    assert left == {True: "1", False: "2"}


def rebuilt(config: Any, events: list[Any], cut: int) -> Campaign:
    """The campaign of some events, by way of a snapshot after ``cut`` of them."""
    campaign = Campaign.new(config)
    for event in journal.decode(journal.encode(events[:cut])):
        campaign.apply(event)
    campaign = read_snapshot(config, write_snapshot(campaign))
    for event in journal.decode(journal.encode(events[cut:])):
        campaign.apply(event)
    return campaign


def test_a_campaign_is_rebuilt_from_its_journal_bit_for_bit() -> None:
    config = small(**ADAPTIVE)
    desk = Desk(config)
    watch(desk, 3 * BATCH + 5)
    desk.do(ms.AddArm("third"))
    watch(desk, BATCH, arm="third", probability=None)
    desk.do(ms.Patch(state="active"))
    for _ in range(20):
        asked = desk.do(ms.Ask())
        if not asked.skipped:
            desk.tell(asked.decision)
    events = desk.campaign.take()
    assert sum(isinstance(event, journal.Studied) for event in events) == 4
    live = (desk.campaign.learner.state_hash(), desk.campaign.book)
    for cut in (1, BATCH + 1, BATCH + 10, len(events) - 3):
        again = rebuilt(config, events, cut)
        assert (again.learner.state_hash(), again.book) == live
    seen = next(event for event in events if isinstance(event, journal.Observed))
    seen.reward = 1.0 - seen.reward  # the planted fault: one outcome is another one
    assert rebuilt(config, events, 1).learner.state_hash() != live[0]


# The service


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """A service with a campaign that watches."""
    with serving(str(tmp_path / "s.db")) as live:
        live.open("chat", **{**ADAPTIVE, "policy": {"policy": "UniformRandom"}})
        yield live


def test_a_client_works_before_and_after_it_is_switched_on(live: Live, tmp_path: Path) -> None:
    path, rule = "/v1/campaigns/chat", Rule()
    with Client(live.url, live.key, "chat") as client:
        assert client.ask().reason == "watching"
        for _ in range(2 * BATCH):
            seen = rule.observation()
            client.observe(seen.arm, seen.reward, {"usd": "0.02"}, seen.probability)
        found = live.call("GET", f"{path}/apprentice")[1]
        assert (found["state"], found["observations"], found["counted"]) == ("watching", 2 * BATCH, BATCH)
        assert sum(row["own"] for row in found["shares"]) == pytest.approx(1.0)
        assert live.call("PATCH", path, {"state": "paused"})[0] == 409
        assert live.call("PATCH", path, {"state": "active"})[1]["observed"] == 2 * BATCH
        with pytest.raises(ServiceError, match="not-watching"):
            client.observe("small", 1.0, {"usd": "0.02"})
        decision = client.ask()
        client.tell(decision, 1.0, {"usd": "0.02"})
        assert decision.number is not None
    with closing(open_store(str(tmp_path / "s.db"), read_only=True)) as store:
        assert replay(store, "chat").same


def test_a_repeated_observation_counts_once(live: Live) -> None:
    path = "/v1/campaigns/chat/observations"
    body = {"arm": "small", "reward": 1.0, "costs": {"usd": "0.02"}}
    answers = [live.call("POST", path, body, idempotency_key="one") for _ in range(2)]
    assert answers == [(200, {"observation": 1})] * 2
    assert live.call("POST", path, {**body, "reward": 0.0}, idempotency_key="one")[0] == 422
    for wrong in ({"probability": 0.0}, {"probability": 1.5}, {"reward": None}, {"arm": "none"}):
        assert live.call("POST", path, {**body, **wrong})[0] == 422
    reader = live.call("POST", "/v1/keys", {"scopes": ["read"]})[1]["key"]
    assert live.call("POST", path, body, key=reader)[0] == 403
    assert live.call("GET", "/v1/campaigns/chat/apprentice", key=reader)[1]["observations"] == 1

    async def once() -> None:
        async with AsyncClient(live.url, live.key, "chat") as client:
            await client.observe("large", 1.0, {"usd": "0.02"}, 0.5)

    asyncio.run(once())
    assert live.call("GET", "/v1/campaigns/chat")[1]["observed"] == 2


def test_the_page_shows_it_and_switches_it_on(live: Live) -> None:
    admin, page = Visitor(live.url, live.key), "/campaigns/chat"
    for _ in range(2):
        live.call("POST", "/v1/campaigns/chat/observations", {"arm": "small", "reward": 1.0, "costs": {"usd": "0.02"}})
    text = admin.get(page).text
    assert "Watching your rule" in text
    assert "only learnt from" in text
    assert "act-switch-on" in text
    assert "act-pause" not in text
    assert "charts" not in text  # there is nothing to draw yet
    assert "cannot watch again" in admin.get(f"{page}/act/switch-on").text
    assert admin.submit(f"{page}/act/switch-on").status == 303
    text = admin.get(page).text
    assert "What it learnt from watching your rule" in text
    assert "charts.js" in text
    assert "act-pause" in text
    live.open("plain")
    assert "watching your rule" not in admin.get("/campaigns/plain").text.lower()


def test_observations_are_exported_and_evaluated(live: Live, tmp_path: Path) -> None:
    rule = Rule(0.5)
    for name, count, known in (("chat", 150, True), ("other", 3, False)):
        if name == "other":
            live.open(name, watch=True)
        for _ in range(count):
            seen = rule.observation()
            body = {"arm": seen.arm, "reward": seen.reward, "costs": {"usd": "0.02"}}
            live.call("POST", f"/v1/campaigns/{name}/observations", {**body, "probability": 0.5} if known else body)
    with closing(open_store(str(tmp_path / "s.db"), read_only=True)) as store:
        file = tmp_path / "log.csv"
        file.write_text(as_csv(store, "chat"))
        log = read(file, arms=["small", "large"], reward_max=1.0)
        assert len(log) == 150
        assert log.propensity is not None
        estimate, own = what_if(store, "chat", {"policy": "AlwaysArm", "arm": 1}, trials=5)
        assert own == pytest.approx(0.5, abs=0.2)
        assert abs(estimate.reward - 0.8) < 5 * max(estimate.reward_se, 0.05)
        with pytest.raises(CannotAnswerError, match="no column propensity"):
            what_if(store, "other", {"policy": "UniformRandom"}, trials=2)
