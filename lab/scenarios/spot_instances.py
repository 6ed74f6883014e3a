"""Batch jobs on spot instances: listed prices that persist, pre-emptions, and capacity that runs out.

5,000 jobs of ten days, four spot pools and on-demand instances. The price list is known at each request and is what a
finished job pays; a job that is pre-empted pays for the time it ran and earns nothing. When a pool is nearly full, its
price rises, pre-emptions become likely, and sometimes it offers nothing. One job in twenty must run.
"""

from __future__ import annotations

import numpy as np

from lab.scenarios.scenario import SKIP, Brief, CatalogueEntry, Floats, Request, Rule, Scenario
from lab.scenarios.shapes import arrivals, day_shape, happens, logistic, persistent, stream

JOBS, DAYS = 5_000, 10
POOLS = ("spot a", "spot b", "spot c", "spot d", "on demand")
LIST = np.array([0.30, 0.36, 0.26, 0.42, 1.00])  # dollars
TROUBLE = np.array([-2.2, -2.8, -1.4, -3.5, -6.0])  # log-odds of a pre-emption
BUDGET = {"usd": 0.30 * JOBS}


def make(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng, m = stream(seed, "spot"), len(POOLS)
    times = arrivals(rng, JOBS, DAYS, day_shape(0.5, 1.5), weekend=0.7)
    working = 0.4 * np.cos((times % 24 - 15.0) / 24.0 * 2.0 * np.pi)
    # How full each pool is decides its price and its failures; the last is on demand.
    full = np.stack([persistent(rng, JOBS, 250.0, 1.0) + working for _ in range(m)], axis=1)
    full[:, 4] = 0.0
    steps = np.maximum.accumulate(np.arange(JOBS) // 25 * 25)  # the list changes every 25 jobs
    price = LIST * np.exp(0.35 * full[steps])
    price[:, 4] = LIST[4]
    failure = logistic(TROUBLE + 1.3 * full)
    failed = happens(rng, failure)
    ran = np.where(failed > 0.0, rng.random((JOBS, m)), 1.0)
    return Scenario(
        name="spot instances",
        arms=POOLS,
        budget=BUDGET,
        cost_max=(LIST * np.array([4.0, 4.0, 4.0, 4.0, 1.0]))[:, None],
        reward_max=1.0,
        rewards=1.0 - failed,
        costs=(price * ran)[:, :, None],
        mean_rewards=1.0 - failure,
        mean_costs=(price * (1.0 - 0.5 * failure))[:, :, None],
        times=times,
        open=full < 2.0,
        must=rng.random(JOBS) < 0.05,
        penalty=1.0,
        prices=price[:, :, None],
        caps=price[:, :, None],
    )


class FinishedPerDollar(Rule):
    """The pool with the most finished jobs for each dollar at the listed price; a price limit holds the budget."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.finished = np.full(brief.arms, 0.9)
        self.spent, self.limit = 0.0, 0.5

    def choose(self, request: Request) -> int:
        assert request.prices is not None
        price = request.prices[:, 0]
        per_job = price / np.maximum(self.finished, 0.05)
        arm = int(min(request.open, key=lambda a: per_job[a]))
        plan = self.brief.budget[0] * request.index / self.brief.horizon
        self.limit *= 1.002 if self.spent < plan else 0.998
        self.finished += 0.001 * (0.9 - self.finished)  # pools recover while nobody looks
        return arm if request.must or per_job[arm] < self.limit else SKIP

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        self.finished[arm] += 0.05 * (reward - self.finished[arm])
        self.spent += float(costs[0])


class PriceSignalsTrouble(Rule):
    """Learn how pre-emptions rise with a pool's price relative to its average, and weigh success against dollars."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.usual: Floats | None = None
        self.base, self.slope = np.full(brief.arms, -2.0), 1.0
        self.value, self.left = 1.0, float(brief.budget[0])

    def trouble(self, request: Request) -> tuple[Floats, Floats]:
        assert request.prices is not None
        price = request.prices[:, 0]
        self.usual = price.copy() if self.usual is None else self.usual
        high = np.log(price / self.usual)
        return logistic(self.base + self.slope * high), high

    def choose(self, request: Request) -> int:
        risk, _ = self.trouble(request)
        assert request.prices is not None
        cost = request.prices[:, 0] * (1.0 - 0.5 * risk)
        net = 1.0 - risk - self.value * cost
        arm = int(max(request.open, key=lambda a: net[a]))
        run = request.must or net[arm] > 0.0
        pace = self.left / max(self.brief.horizon - request.index, 1)
        self.value *= float(np.exp(0.01 * np.clip((cost[arm] if run else 0.0) / max(pace, 1e-9) - 1.0, -1.0, 1.0)))
        return arm if run else SKIP

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        risk, high = self.trouble(request)
        error = (1.0 - reward) - risk[arm]
        self.base[arm] += 0.05 * error
        self.slope += 0.02 * error * high[arm]
        self.left -= float(costs[0])


ENTRY = CatalogueEntry(make, {"finished per dollar": FinishedPerDollar, "price signals trouble": PriceSignalsTrouble})
