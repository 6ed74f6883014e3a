"""Ad pacing over two weeks: days have a shape, weekends convert better, and the number of impressions is not known.

About 10,000 chances to show an ad in three placements, and in a fourth that opens on the seventh day. A conversion
earns 1 and is reported up to a few hours later; 3% of the reports are lost. Prices of impressions rise in the evening
and drift. The campaign was told to expect 8,000 impressions.
"""

from __future__ import annotations

import numpy as np

from lab.scenarios.scenario import SKIP, Brief, CatalogueEntry, Floats, Request, Rule, Scenario
from lab.scenarios.shapes import (
    around_one,
    arrivals,
    day_shape,
    delays_in_requests,
    happens,
    is_weekend,
    persistent,
    stream,
)

DAYS, FORECAST = 14, 8_000
PLACEMENTS = ("feed", "search", "banner", "video")
CONVERTS = np.array([0.05, 0.11, 0.02, 0.10])
PRICE = np.array([0.9, 2.4, 0.25, 1.5])  # cents
BUDGET = {"cents": 7_000.0}


def make(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng = stream(seed, "pacing")
    n, m = int(rng.integers(9_500, 10_500)), len(PLACEMENTS)
    times = arrivals(rng, n, DAYS, day_shape(0.15, 1.85), weekend=1.3)
    evening = np.cos((times % 24 - 20.0) / 24.0 * 2.0 * np.pi)
    mood = 0.4 * evening + 0.35 * is_weekend(times) + persistent(rng, n, 1500.0, 0.2)
    taste = np.stack([persistent(rng, n, 2500.0, 0.25) for _ in range(m)], axis=1)
    converts = np.minimum(CONVERTS * np.exp(mood[:, None] + taste), 0.9)
    price = PRICE * np.exp(0.25 * evening + persistent(rng, n, 800.0, 0.2))[:, None]
    return Scenario(
        name="ad pacing",
        arms=PLACEMENTS,
        budget=BUDGET,
        cost_max=PRICE[:, None] * 5.0,
        reward_max=1.0,
        rewards=happens(rng, converts),
        costs=np.minimum(price * around_one(rng, (n, m), 0.4), PRICE * 5.0)[:, :, None],
        mean_rewards=converts,
        mean_costs=price[:, :, None],
        times=times,
        delays=delays_in_requests(rng, times, m, 2.0, lost=0.03),
        added={3: int(np.searchsorted(times, 144.0))},
        expected=FORECAST,
        patience=500,
    )


class DailyBudgets(Rule):
    """A seventh more on weekends, spread by the clock; within the allowance, the best placement by conversion price."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.reward, self.cost = np.full(brief.arms, 1.0), np.full(brief.arms, 15.0)  # sums of recent reports
        self.used, self.pending = 0.0, 0.0

    def allowance(self, hours: float) -> float:
        day = np.arange(int(self.brief.hours / 24))
        share = np.where(day % 7 >= 5, 1.15, 1.0)
        done = share[: int(hours // 24)].sum() + share[int(min(hours // 24, len(day) - 1))] * (hours % 24 / 24.0)
        return float(self.brief.budget[0] * done / share.sum())

    def choose(self, request: Request) -> int:
        if self.used + self.pending > self.allowance(min(request.time + 3.0, self.brief.hours)):
            return SKIP
        if request.index % 25 == 0:
            return int(request.open[request.index // 25 % len(request.open)])
        self.pending = 0.98 * self.pending + 1.0
        return int(max(request.open, key=lambda a: self.reward[a] / self.cost[a]))

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        self.reward[arm] = 0.995 * self.reward[arm] + reward
        self.cost[arm] = 0.995 * self.cost[arm] + float(costs[0])
        self.used += float(costs[0])


class BidPriceByClock(Rule):
    """Averages for each placement and a price of a cent that follows spending against a plan by the clock."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.rate = np.full(brief.arms, 0.06)
        self.cost = np.full(brief.arms, 1.0)
        self.price, self.used = 0.03, 0.0
        self.rng = np.random.default_rng(0)

    def choose(self, request: Request) -> int:
        value = self.rate - self.price * self.cost
        arm = int(max(request.open, key=lambda a: value[a]))
        if self.rng.random() < 0.04:
            arm = int(self.rng.choice(request.open))
        elif value[arm] <= 0.0:
            arm = SKIP
        expected = self.cost[arm] if arm != SKIP else 0.0
        self.used += expected  # lost reports were paid as well
        plan = self.brief.budget[0] * request.time / self.brief.hours
        self.price *= float(np.exp(np.clip((self.used - plan) / self.brief.budget[0], -0.05, 0.05) * 0.1))
        return arm

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        self.rate[arm] += 0.005 * (reward - self.rate[arm])
        self.cost[arm] += 0.02 * (float(costs[0]) - self.cost[arm])


ENTRY = CatalogueEntry(make, {"daily budgets": DailyBudgets, "price by the clock": BidPriceByClock})
