"""Requests by segment: counts, what their features earned, and changes of the requests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from driftsack.service.domain import messages as ms
from driftsack.service.domain.features import Features
from driftsack.service.projections import context_worth
from driftsack.service.projections.context_worth import ContextWorth
from driftsack.service.web.pages.view import details
from tests.service.projections.test_track import Followed
from tests.support.contextual_campaigns import FEATURES, Traffic

SEEING: dict[str, Any] = {"features": Features(**FEATURES), "policy": None, "budget": {"usd": "100"}, "horizon": 3000}


def lived(
    rounds: int, seed: int = 0, **settings: Any
) -> tuple[Followed, list[tuple[dict[str, Any], str | None, float]]]:
    """A campaign that has decided some requests, and what each of them was."""
    desk, traffic, seen = Followed(**{**SEEING, **settings}), Traffic(seed), []
    for _ in range(rounds):
        row = traffic.context()
        found = desk.do(ms.Ask(context=row))
        reward = 0.0
        if not found.skipped:
            reward, cost = traffic.outcome(row, found.arm)
            desk.tell(found.decision, cost, reward)
        seen.append((row, found.arm, reward))
        desk.commit()
    return desk, seen


def test_segments_are_counted() -> None:
    desk, seen = lived(400)
    shown = details(desk.track, True)["contexts"]
    tables = {feature["name"]: {row["label"]: row for row in feature["rows"]} for feature in shown["features"]}
    assert tables.keys() == {"tokens", "age", "kind", "tier"}
    for kind, label in (("chat", "chat"), ("code", "code"), ("poem", "unknown")):
        own = [(arm, reward) for row, arm, reward in seen if row["kind"] == kind]
        row = tables["kind"][label]
        assert row["requests"] == len(own)
        assert row["chosen"][1] == f"{sum(arm == 'large' for arm, _ in own) / len(own):.0%}"
        told = [reward for arm, reward in own if arm]
        assert row["reward"] == f"{np.mean(told):.3g}"
    missing = sum(row.get("tier") is None for row, _, _ in seen)
    assert tables["tier"]["unknown or missing"]["requests"] == missing
    # The quarters of numbers are known after the first values.
    ages = [row.get("age") for row, _, _ in seen]
    known = [k for k, age in enumerate(ages) if age is not None]
    rest = ages[known[199] :]
    assert tables["age"]["missing"]["requests"] == rest.count(None)
    assert sum(row["requests"] for row in tables["age"].values()) == len(rest)
    assert len(tables["tokens"]) == 4


def test_a_lost_outcome_leaves_nothing_behind() -> None:
    desk, _ = lived(30)
    number = next(
        found.decision for _ in range(50) if not (found := desk.do(ms.Ask(context=Traffic(9).context()))).skipped
    )
    desk.commit()
    assert desk.track.contexts is not None
    assert number in desk.track.contexts._waiting
    desk.wait(60 + 600 + 1)
    desk.do(ms.Ask(context=Traffic(9).context()))
    desk.commit()
    assert number not in desk.track.contexts._waiting


def worths(effect: float, trials: int, seed: int = 0) -> np.ndarray:
    """Differences between estimates and the truth, in half intervals: a rule sees a kind, which matters or not."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(trials):
        sums = ContextWorth(2, 2, 1)
        n, truth = 1500, 0.0
        for _ in range(n):
            kind = int(rng.random() < 0.5)
            own = rng.random() < 0.9  # follows the kind, and explores now and then
            arm = kind if own else 1 - kind
            vector = np.eye(2)[kind]
            means = 0.5 + effect * (np.arange(2) == kind)
            sums.ask(vector, False)
            sums.tell(arm, vector, [float(rng.random() < means[arm]), 0.1])
            truth += means[arm] - (0.5 + effect / 2)  # either arm, without knowing the kind
        worth = sums.estimate()
        assert worth is not None
        found.append((worth.gain - truth) / (1.96 * worth.error))
    return np.array(found)


def test_intervals_cover_what_the_features_earned() -> None:
    """With and without an effect; a smaller share than 0.88 of 60 intervals fails once in fifty by chance."""
    for effect in (0.0, 0.3):
        errors = worths(effect, 30)
        assert (np.abs(errors) <= 1.0).mean() > 0.85
        assert np.abs(errors).mean() > 0.1  # the intervals are not far too wide


def test_means_that_are_not_adjusted_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: the plain means of the arms, which served the requests that suit them."""

    def plain(self: Any, arm: int) -> tuple[Any, Any]:
        mean = self._moments[arm][-1] / self._gram[arm, -1, -1]
        return mean, np.full_like(mean, 0.01)

    monkeypatch.setattr(ContextWorth, "_adjusted", plain)
    assert (np.abs(worths(0.3, 5)) <= 1.0).mean() < 0.5


def test_what_is_not_known_yet_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, _ = lived(20)
    assert "is not known yet" in details(desk.track, True)["contexts"]["worth"]
    monkeypatch.setattr(context_worth, "ENOUGH", 1)
    assert "Knowing tokens, age, kind and tier earned" in details(desk.track, True)["contexts"]["worth"]


def test_changes_of_the_requests_are_found_apart_from_those_of_the_arms() -> None:
    desk, traffic = Followed(**{**SEEING, "policy": {"policy": "UniformRandom"}}), Traffic(4)
    for k in range(900):
        row = traffic.context()
        if k >= 500:
            row["kind"] = "code"
        found = desk.do(ms.Ask(context=row))
        if not found.skipped:
            desk.tell(found.decision, "0.02", 0.5)
    desk.commit()
    shown = details(desk.track, True)
    titles = [change["title"] for change in shown["contexts"]["changes"]]
    assert "kind=code is more frequent" in titles
    assert "kind=chat is less frequent" in titles
    assert not any("tokens" in title for title in titles)
    assert shown["alarm_list"] == []
    still, _ = lived(900, seed=5)
    assert details(still.track, True)["contexts"]["changes"] == []


def test_a_watching_campaign_is_compared_at_the_contexts() -> None:
    """The user's rule always plays each arm half of the time; the campaign would see that code needs the large one."""
    desk, traffic, rng = (
        Followed(**{**SEEING, "watch": True, "budget": {"usd": "300"}}),
        Traffic(6),
        np.random.default_rng(6),
    )
    for _ in range(800):
        row, arm = traffic.context(), str(rng.choice(["small", "large"]))
        reward, cost = traffic.outcome(row, arm)
        desk.do(ms.Observe(arm=arm, reward=reward, costs={"usd": cost}, probability=0.5, context=row))
        desk.commit()
    shadow = desk.track.shadow
    assert shadow.studied == 768  # whole batches
    own, would, gain = shadow.compared()[0]
    assert would is not None
    assert gain is not None
    assert gain.value > 2 * gain.error
    assert details(desk.track, True)["contexts"]["features"]
    assert own.value < would.value
