"""Batch jobs to cloud regions: dollars and kilograms of CO2, daily prices, outages, and bills that are hours late.

6,000 jobs of a month, five regions. A job earns 1 if it finishes before its deadline. Prices change daily, the carbon
intensity has the shape of a day, a region is down now and then, and one job in ten must run. Bills arrive about six
hours late and 1% of them never; one bill is 300 times too large.
"""

from __future__ import annotations

import numpy as np

from lab.scenarios.scenario import SKIP, Brief, CatalogueEntry, Floats, Request, Rule, Scenario
from lab.scenarios.shapes import (
    around_one,
    arrivals,
    by_step,
    day_shape,
    delays_in_requests,
    happens,
    persistent,
    stream,
    within,
)

JOBS, DAYS = 6_000, 30
REGIONS = ("virginia", "oregon", "ireland", "stockholm", "mumbai")
ON_TIME = np.array([0.93, 0.90, 0.86, 0.78, 0.60])
DOLLARS = np.array([0.60, 0.46, 0.50, 0.55, 0.22])  # a job
CARBON = np.array([0.38, 0.22, 0.30, 0.03, 0.65])  # kilograms a job
SOLAR = np.array([0.10, 0.35, 0.10, 0.05, 0.25])  # share of the carbon that follows the sun
BUDGET = {"usd": 0.36 * JOBS, "kg": 0.17 * JOBS}


def make(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng, m = stream(seed, "cloud"), len(REGIONS)
    times = arrivals(rng, JOBS, DAYS, day_shape(0.6, 1.4), weekend=0.6)
    sun = np.cos((times % 24 - 13.0) / 24.0 * 2.0 * np.pi)
    # Prices change daily, load every six hours, and carbon with the sun.
    price = np.stack([by_step(np.exp(persistent(rng, DAYS, 6.0, 0.35)), times, 24.0) for _ in range(m)], axis=1)
    load = np.stack([by_step(persistent(rng, DAYS * 4, 12.0, 0.06), times, 6.0) for _ in range(m)], axis=1)
    on_time = np.clip(ON_TIME + load, 0.05, 0.99)
    carbon = CARBON * (1.0 - SOLAR * sun[:, None])
    means = np.stack([DOLLARS * price, carbon], axis=2)
    # Costs of the jobs; one bill is absurd.
    size = around_one(rng, (JOBS, 1, 1), 0.6)
    costs = means * size * around_one(rng, (JOBS, m, 2), 0.15)
    costs[int(rng.integers(JOBS // 4, JOBS // 2)), :, 0] *= 300.0
    # Outages.
    opened = np.ones((JOBS, m), dtype=np.bool_)
    for arm in rng.choice(m, size=3, replace=False):
        opened[within(times, rng.uniform(48.0, 600.0), rng.uniform(6.0, 30.0)), arm] = False
    return Scenario(
        name="cloud regions",
        arms=REGIONS,
        budget=BUDGET,
        cost_max=np.stack([DOLLARS * 8.0, CARBON * 6.0], axis=1),
        reward_max=1.0,
        rewards=happens(rng, on_time),
        costs=costs,
        mean_rewards=on_time,
        mean_costs=means,
        times=times,
        delays=delays_in_requests(rng, times, m, 6.0, lost=0.01),
        open=opened,
        must=rng.random(JOBS) < 0.1,
        penalty=1.0,
        patience=400,
    )


class AveragesAndPrices(Rule):
    """Moving averages for each region, and a price for each resource that follows what the bills say."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.reward = np.full(brief.arms, 0.8)
        self.cost = np.tile(brief.budget / brief.horizon, (brief.arms, 1))
        self.price = 0.5 / (brief.budget / brief.horizon)
        self.rng = np.random.default_rng(0)

    def choose(self, request: Request) -> int:
        if self.rng.random() < 0.03:
            return int(self.rng.choice(request.open))
        value = self.reward - self.cost @ self.price
        arm = max(request.open, key=lambda a: value[a])
        # A budget target is checked on the expected cost at once, since the bill comes hours later.
        pace = self.brief.budget / self.brief.horizon
        run = value[arm] > 0.0 or request.must
        spend = self.cost[arm] if run else np.zeros_like(pace)
        self.price *= np.exp(0.01 * np.clip(spend / pace - 1.0, -1.0, 3.0))
        return int(arm) if run else SKIP

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        self.reward[arm] += 0.02 * (reward - self.reward[arm])
        usual = np.minimum(costs, 10.0 * self.cost[arm])  # a wrong bill must not close a region
        self.cost[arm] += 0.03 * (usual - self.cost[arm])


class CheapestThatFits(Rule):
    """Rank the regions by success for each share of the budgets they use; run a job only while spending is on plan."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.seen = np.zeros(brief.arms)
        self.good = np.zeros(brief.arms)
        self.bill = np.zeros((brief.arms, len(brief.budget)))
        self.planned = np.zeros(len(brief.budget))

    def choose(self, request: Request) -> int:
        untried = [a for a in request.open if self.seen[a] < 10]
        if untried:
            return int(untried[request.index % len(untried)])
        mean = self.bill / np.maximum(self.seen, 1.0)[:, None]
        share: Floats = np.max(mean / self.brief.budget * self.brief.horizon, axis=1)
        rank = self.good / np.maximum(self.seen, 1.0) / share
        arm = max(request.open, key=lambda a: rank[a])
        allowed = self.brief.budget * (request.index + 100) / self.brief.horizon
        if not request.must and np.any(self.planned + mean[arm] > allowed):
            return SKIP
        self.planned += mean[arm]
        return int(arm)

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        for total in (self.seen, self.good, self.bill):
            total[arm] *= 0.99
        self.seen[arm] += 1.0
        self.good[arm] += reward
        self.bill[arm] += np.minimum(costs, self.brief.cost_max[arm])


ENTRY = CatalogueEntry(make, {"averages and prices": AveragesAndPrices, "cheapest that fits": CheapestThatFits})
