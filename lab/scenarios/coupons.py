"""Coupons by segment and basket: spend a discount budget where it changes what customers buy.

8,000 baskets of five weeks, three coupons and a plain reminder. The reward is the margin of a purchase in units of 10
dollars, the cost is the discount that a buyer redeems. Segments react differently; their taste for discounts drifts,
and after three fifths of the season a competitor's sale makes two segments harder to win.
"""

from __future__ import annotations

import numpy as np

import driftsack as ds
from lab.scenarios.scenario import Brief, CatalogueEntry, Context, Floats, Request, Rule, Scenario
from lab.scenarios.shapes import arrivals, day_shape, happens, is_weekend, logistic, persistent, stream

BASKETS, DAYS = 8_000, 35
COUPONS = ("reminder", "5%", "10%", "20%")
OFF = np.array([0.0, 0.05, 0.10, 0.20])
SEGMENTS = ("new", "loyal", "lapsed", "bargain")
SHARE = np.array([0.35, 0.25, 0.2, 0.2])
BASE = np.array([-1.8, 0.3, -2.6, -1.5])  # log-odds of a purchase without a coupon
TASTE = np.array([5.0, 2.0, 8.0, 12.0])  # log-odds for each unit of discount
MARGIN = 0.035  # of 10 dollars, for each dollar of the basket
BUDGET = {"usd": 0.75 * BASKETS}


def make(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng = stream(seed, "coupons")
    times = arrivals(rng, BASKETS, DAYS, day_shape(0.2, 1.8), weekend=1.5)
    segment = rng.choice(4, size=BASKETS, p=SHARE)
    basket = np.minimum(rng.lognormal(3.8, 0.6, BASKETS), 300.0)
    drift = np.stack([persistent(rng, BASKETS, 2500.0, 0.35) for _ in SEGMENTS], axis=1)
    rows = np.arange(BASKETS)
    # The odds of buying: tastes drift, and a sale elsewhere keeps two segments away.
    taste = TASTE[segment] * np.exp(drift[rows, segment])
    sale = (rows > 0.6 * BASKETS) & np.isin(segment, (0, 3))
    odds = BASE[segment] - 0.9 * sale + 0.3 * is_weekend(times) - 0.3 * np.log(basket / 45.0)
    chance = logistic(odds[:, None] + taste[:, None] * OFF)
    bought = happens(rng, chance)
    contexts: list[Context] = [
        {"basket": float(np.log(basket[t])), "segment": SEGMENTS[segment[t]], "day": "weekend" if late else "week"}
        for t, late in enumerate(is_weekend(times))
    ]
    margin, discount = MARGIN * basket, basket[:, None] * OFF
    return Scenario(
        name="coupons",
        arms=COUPONS,
        budget=BUDGET,
        cost_max=(300.0 * OFF + 0.01)[:, None],
        reward_max=300.0 * MARGIN,
        rewards=bought * margin[:, None],
        costs=(bought * discount)[:, :, None],
        mean_rewards=chance * margin[:, None],
        mean_costs=(chance * discount)[:, :, None],
        times=times,
        contexts=contexts,
        encoder=ds.Encoder(numbers=["basket"], categories={"segment": list(SEGMENTS), "day": ["week", "weekend"]}),
        caps=discount[:, :, None],
    )


class SegmentRates(Rule):
    """Purchase rates by segment and coupon, recent ones count more; a price on discounts holds the pace."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.rate: dict[object, Floats] = {}
        self.rng = np.random.default_rng(0)
        self.price, self.spent, self.margin = 0.2, 0.0, 0.1

    def choose(self, request: Request) -> int:
        assert request.context is not None
        assert request.caps is not None
        rate = self.rate.setdefault(request.context["segment"], np.array([0.2, 0.2, 0.2, 0.2]))
        discount = request.caps[:, 0]
        margin = self.margin * np.exp(float(request.context["basket"]))
        value = rate * (margin - self.price * discount)
        if self.rng.random() < 0.05:
            return int(self.rng.choice(request.open))
        return int(np.argmax(value))

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        assert request.context is not None
        if reward > 0.0:  # the margin is a fixed share of the basket
            self.margin = reward / float(np.exp(float(request.context["basket"])))
        rate = self.rate[request.context["segment"]]
        rate[arm] += 0.01 * (float(reward > 0.0) - rate[arm])
        self.spent += float(costs[0])
        plan = self.brief.budget[0] * (request.index + 1) / self.brief.horizon
        self.price = max(
            0.0, self.price + 0.002 * float(np.clip((self.spent - plan) / (0.02 * self.brief.budget[0]), -1, 1))
        )


class LogisticWithPrice(Rule):
    """One logistic regression of buying, on segment, discount and basket, updated by gradient steps."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.weights = np.zeros(10)
        self.rng = np.random.default_rng(0)
        self.price, self.plan, self.spent, self.margin = 0.2, brief.budget[0] / brief.horizon, 0.0, 0.1

    def features(self, request: Request) -> Floats:
        assert request.context is not None
        kind = np.array([request.context["segment"] == name for name in SEGMENTS], dtype=np.float64)
        same = np.array([float(request.context["basket"]) - 3.8, request.context["day"] == "weekend"], dtype=np.float64)
        return np.array([[*kind, *(10.0 * off * kind), *same] for off in OFF])

    def choose(self, request: Request) -> int:
        assert request.context is not None
        chance = logistic(self.features(request) @ self.weights)
        basket = np.exp(float(request.context["basket"]))
        value = chance * (self.margin - self.price * OFF) * basket
        return int(self.rng.integers(4)) if self.rng.random() < 0.05 else int(np.argmax(value))

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        assert request.context is not None
        if reward > 0.0:
            self.margin = reward / float(np.exp(float(request.context["basket"])))
        row = self.features(request)[arm]
        self.weights += 0.03 * (float(reward > 0.0) - float(logistic(row @ self.weights))) * row
        self.spent = 0.995 * self.spent + 0.005 * float(costs[0])
        self.price = max(0.0, self.price + 0.001 * float(np.clip(self.spent / self.plan - 1.0, -1.0, 1.0)))


ENTRY = CatalogueEntry(make, {"segment rates": SegmentRates, "logistic regression": LogisticWithPrice})
