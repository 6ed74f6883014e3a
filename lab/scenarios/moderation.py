"""Content moderation: human-review minutes go where they prevent most harm.

9,000 posts of ten days with a risk score, a language and the age of the account. A post may pass (skip), or be sent to
a classifier, a generalist or a specialist. The reward is the harm prevented, from 0 to 3, and the cost is minutes of
reviewers. Attacks in one language last hours, with posts that look harmless by the score. Reviews take a few hours.
"""

from __future__ import annotations

import numpy as np

import driftsack as ds
from lab.scenarios.scenario import SKIP, Brief, CatalogueEntry, Context, Floats, Request, Rule, Scenario
from lab.scenarios.shapes import (
    around_one,
    arrivals,
    day_shape,
    delays_in_requests,
    happens,
    logistic,
    persistent,
    stream,
    within,
)

POSTS, DAYS = 9_000, 10
REVIEWS = ("classifier", "generalist", "specialist")
LANGUAGES = ("en", "es", "hi", "other")
SHARE = np.array([0.5, 0.25, 0.15, 0.1])
FOUND = np.array([[0.55, 0.8, 0.92], [0.45, 0.75, 0.9], [0.3, 0.55, 0.9], [0.25, 0.4, 0.85]])  # (language, review)
MINUTES = np.array([0.05, 1.5, 4.0])
BUDGET = {"minutes": 0.5 * POSTS}


def make(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng, n = stream(seed, "moderation"), POSTS
    times = arrivals(rng, n, DAYS, day_shape(0.4, 1.6), weekend=1.2)
    # Attacks on one language each, for hours.
    language = rng.choice(4, size=n, p=SHARE)
    young = rng.random(n) < 0.2
    attack = np.zeros(n, dtype=np.bool_)
    for start in np.sort(rng.uniform(24.0, 24.0 * DAYS - 24.0, 4)):
        target = rng.integers(4)
        attack |= within(times, start, rng.uniform(5.0, 14.0)) & (language == target)
    # Harm, how much of it each review finds, and minutes.
    score = rng.beta(1.2, 4.0, n)
    slide = persistent(rng, n, 2000.0, 0.4)  # users learn to avoid what the score looks for
    harmful = logistic(-4.0 + 7.0 * score + 0.9 * young + slide + 2.2 * attack)
    severity = 0.5 + 0.8 * young + 0.7 * attack
    found = FOUND[language] * np.where(attack[:, None], [0.5, 0.9, 1.0], 1.0)
    means = (
        MINUTES * (1.0 + 0.6 * (language == 3)[:, None]) * (1.0 + 0.15 * np.sin(times / 24.0 * 2.0 * np.pi))[:, None]
    )
    chance = harmful[:, None] * found
    contexts: list[Context] = [
        {"score": float(score[t]), "language": LANGUAGES[language[t]], "account": "young" if young[t] else "old"}
        for t in range(n)
    ]
    return Scenario(
        name="moderation",
        arms=REVIEWS,
        budget=BUDGET,
        cost_max=np.array([[0.3], [10.0], [25.0]]),
        reward_max=3.0,
        rewards=np.minimum(happens(rng, chance) * severity[:, None] * around_one(rng, (n, 3), 0.2), 3.0),
        costs=np.minimum(means * around_one(rng, (n, 3), 0.5), [0.3, 10.0, 25.0])[:, :, None],
        mean_rewards=chance * severity[:, None],
        mean_costs=means[:, :, None],
        times=times,
        delays=np.where([True, False, False], 0, delays_in_requests(rng, times, 3, 3.0, lost=0.01)),
        contexts=contexts,
        encoder=ds.Encoder(numbers=["score"], categories={"language": list(LANGUAGES), "account": ["old", "young"]}),
        patience=800,
    )


class ScoreBands(Rule):
    """Harm found by score band, language and review; the bands above a price for minutes are reviewed."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.harm: dict[object, Floats] = {}
        self.minutes = brief.cost_max[:, 0] / 5.0
        self.price, self.used, self.rng = 0.1, 0.0, np.random.default_rng(0)
        self.booked = np.zeros(brief.horizon)

    def band(self, request: Request) -> Floats:
        assert request.context is not None
        score = float(request.context["score"])
        key = (min(int(score * 5), 3), request.context["language"])
        return self.harm.setdefault(key, np.array([0.3, 0.5, 0.6]) * score)

    def choose(self, request: Request) -> int:
        plan = self.brief.budget[0] * (request.index + 50) / self.brief.horizon
        self.price *= 1.003 if self.used > plan else 0.997
        value = self.band(request) - self.price * self.minutes
        arm = int(np.argmax(value))
        if self.rng.random() < 0.02:
            arm = int(self.rng.integers(3))
        elif value[arm] <= 0.0:
            return SKIP
        self.booked[request.index] = self.minutes[arm]
        self.used += self.minutes[arm]
        return arm

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        self.used += float(costs[0]) - self.booked[request.index]
        self.minutes[arm] += 0.02 * (float(costs[0]) - self.minutes[arm])
        self.band(request)[arm] += 0.04 * (reward - self.band(request)[arm])


class RidgeQueue(Rule):
    """Ridge regression of the harm for each review; a post is reviewed if its harm per minute is above a quantile."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.xx, self.xy = np.tile(3.0 * np.eye(7), (brief.arms, 1, 1)), np.zeros((brief.arms, 7))
        self.xy[:, 1] = (1.0, 1.5, 2.0)  # harm grows with the score, to begin with
        self.minutes, self.used = brief.cost_max[:, 0] / 5.0, 0.0
        self.price, self.booked = 0.1, np.zeros(brief.horizon)

    def row(self, request: Request) -> Floats:
        assert request.context is not None
        score, language = float(request.context["score"]), request.context["language"]
        young = float(request.context["account"] == "young")
        return np.array([1.0, score, young, young * score, language == "es", language == "hi", language == "other"])

    def choose(self, request: Request) -> int:
        harm = np.array([self.row(request) @ np.linalg.solve(self.xx[a], self.xy[a]) for a in range(3)])
        value = harm - self.price * self.minutes
        arm = int(np.argmax(value)) if value.max() > 0.0 else SKIP
        expected = self.minutes[arm] if arm != SKIP else 0.0
        left = max(self.brief.budget[0] - self.used, 0.0) / max(self.brief.horizon - request.index, 1)
        self.price = max(0.005, self.price + 0.0005 * (expected - left))
        self.booked[request.index] = expected
        self.used += expected
        return arm

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        self.used += float(costs[0]) - self.booked[request.index]
        self.minutes[arm] += 0.02 * (float(costs[0]) - self.minutes[arm])
        self.xx[arm] += np.outer(self.row(request), self.row(request)) - 0.001 * (self.xx[arm] - 3.0 * np.eye(7))
        self.xy[arm] += reward * self.row(request) - 0.001 * self.xy[arm]


ENTRY = CatalogueEntry(make, {"score bands": ScoreBands, "ridge queue": RidgeQueue})
