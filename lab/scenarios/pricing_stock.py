"""Price a season's stock: 1,200 coats for 6,000 visitors in thirteen weeks, with no second delivery.

The arms are five prices, the cost of a sale is one coat, and the reward is the price in units of 100 dollars. Demand
has the shape of a season, falls to clearance level at the end, and moves with the weather. Weekend visitors are more
likely to buy. From the second third on, a sixth price, an outlet price, may be offered as well.
"""

from __future__ import annotations

import numpy as np

from lab.scenarios.scenario import SKIP, Brief, CatalogueEntry, Floats, Request, Rule, Scenario
from lab.scenarios.shapes import arrivals, day_shape, is_weekend, logistic, persistent, stream

VISITORS, DAYS, STOCK = 6_000, 91, 1_200
PRICES = np.array([1.49, 1.29, 1.09, 0.89, 0.69, 0.49])  # the last one opens later
OUTLET = VISITORS // 3
BUDGET = {"coats": float(STOCK)}


def make(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng = stream(seed, "pricing")
    times = arrivals(rng, VISITORS, DAYS, day_shape(0.1, 1.9), weekend=1.6)
    progress = times / (24.0 * DAYS)
    weather = persistent(rng, VISITORS, 300.0, 0.12)
    worth = 0.55 + 0.55 * np.exp(-(((progress - 0.35) / 0.3) ** 2)) + weather + 0.06 * is_weekend(times)
    interest = 0.75 - 0.25 * progress
    chance = interest[:, None] * logistic((worth[:, None] - PRICES) / 0.22)
    limit = rng.random(VISITORS)  # one visitor, one willingness to pay: a lower price never loses the sale
    bought = (limit[:, None] < chance).astype(np.float64)
    return Scenario(
        name="pricing with stock",
        arms=tuple(f"{price:.2f}" for price in PRICES),
        budget=BUDGET,
        cost_max=np.ones((len(PRICES), 1)),
        reward_max=float(PRICES.max()),
        rewards=bought * PRICES,
        costs=bought[:, :, None],
        mean_rewards=chance * PRICES,
        mean_costs=chance[:, :, None],
        times=times,
        added={5: OUTLET},
    )


class SellThrough(Rule):
    """Follow a straight sell-through curve: one price step down when behind the plan, one up when ahead."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.sold, self.step, self.changed = 0.0, 2, 0

    def choose(self, request: Request) -> int:
        weekly = self.brief.horizon // 26
        if request.index - self.changed >= weekly:
            plan = self.brief.budget[0] * request.index / self.brief.horizon
            ahead = (self.sold - plan) / self.brief.budget[0]
            self.step += int(ahead < -0.01) - int(ahead > 0.01)
            self.step = int(np.clip(self.step, 0, max(request.open)))
            self.changed = request.index
        return self.step

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        self.sold += float(costs[0])


class DemandByPrice(Rule):
    """Estimate the chance of a sale at each price from recent offers, and charge each coat its replacement value."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.offers, self.sales, self.charged = np.full(brief.arms, 4.0), np.full(brief.arms, 1.0), np.zeros(brief.arms)
        self.value, self.left = 0.5, brief.budget[0]
        self.rng = np.random.default_rng(0)

    def choose(self, request: Request) -> int:
        rate = self.sales / self.offers
        if self.rng.random() < 0.06:
            return int(self.rng.choice(request.open))
        price = np.where(self.charged > 0.0, self.charged, 1.0)
        gain = {arm: rate[arm] * (price[arm] - self.value) for arm in request.open}
        arm = max(gain, key=lambda a: gain[a])
        pace = self.left / max(self.brief.horizon - request.index, 1)
        self.value = float(np.clip(self.value + 0.01 * (rate[arm] - pace), 0.0, 1.4))
        return arm if gain[arm] > 0.0 else SKIP

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        self.offers[arm] = 0.99 * self.offers[arm] + 1.0
        self.sales[arm] = 0.99 * self.sales[arm] + float(costs[0])
        self.charged[arm] = max(self.charged[arm], reward)
        self.left -= float(costs[0])


ENTRY = CatalogueEntry(make, {"sell-through": SellThrough, "demand by price": DemandByPrice})
