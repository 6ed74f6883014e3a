"""Second-price ad auctions in time order: choose a bid level while the competition comes and goes.

10,000 auctions of a week, five bid levels. A bid wins if it is above the highest other bid, pays that bid, and earns
1 if the user then clicks. The competition is autocorrelated over hours and higher in the evening; click rates drift.
Reports arrive about an hour late. A bid is an upper bound of its cost, and the caller knows it.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from lab.scenarios.scenario import SKIP, Brief, CatalogueEntry, Floats, Request, Rule, Scenario
from lab.scenarios.shapes import arrivals, day_shape, delays_in_requests, happens, persistent, stream

AUCTIONS, DAYS = 10_000, 7
BIDS = np.array([0.1, 0.2, 0.4, 0.8, 1.6])  # cents
NOISE = 0.7  # of the logarithm of the highest other bid
BUDGET = {"cents": 0.10 * AUCTIONS}


def make(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng, m = stream(seed, "auction"), len(BIDS)
    times = arrivals(rng, AUCTIONS, DAYS, day_shape(0.4, 1.6))
    evening = 0.5 * np.cos((times % 24 - 20.0) / 24.0 * 2.0 * np.pi)
    # The highest other bid, and clicks.
    level = -1.2 + evening + persistent(rng, AUCTIONS, 400.0, 0.5)
    other = np.exp(level + rng.normal(0.0, NOISE, AUCTIONS))
    click = 0.25 * np.exp(persistent(rng, AUCTIONS, 1500.0, 0.35) + 0.3 * evening)
    click = np.minimum(click, 0.9)
    # The auction: whoever bids most pays the second price; its means by the lognormal formulas.
    won = (other[:, None] < BIDS).astype(np.float64)
    distance = (np.log(BIDS) - level[:, None]) / NOISE
    chance = norm.cdf(distance)
    paid = np.exp(level + 0.5 * NOISE**2)[:, None] * norm.cdf(distance - NOISE)
    clicked = happens(rng, click)
    return Scenario(
        name="ad auction",
        arms=tuple(f"bid {bid:g}" for bid in BIDS),
        budget=BUDGET,
        cost_max=BIDS[:, None],
        reward_max=1.0,
        rewards=won * clicked[:, None],
        costs=(won * other[:, None])[:, :, None],
        mean_rewards=chance * click[:, None],
        mean_costs=paid[:, :, None],
        times=times,
        delays=delays_in_requests(rng, times, m, 1.0),
        patience=1_000,
    )


class MultiplierBidder(Rule):
    """Bid the value of a click divided by a multiplier that is raised when spending is ahead of the plan."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.clicks, self.wins, self.spent = 2.0, 20.0, 0.0
        self.multiplier = 1.0

    def choose(self, request: Request) -> int:
        plan = self.brief.budget[0] * request.index / self.brief.horizon
        self.multiplier *= 1.002 if self.spent < plan else 0.998
        self.multiplier = float(np.clip(self.multiplier, 0.1, 20.0))
        value = self.clicks / self.wins * self.multiplier
        level = int(np.searchsorted(self.brief.cost_max[:, 0], value, side="right")) - 1
        return max(level, 0)  # the lowest bid always runs, to keep the reports coming

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        if costs[0] > 0.0:
            self.clicks = 0.995 * self.clicks + reward
            self.wins = 0.995 * self.wins + 1.0
        self.spent += float(costs[0])


class LevelAverages(Rule):
    """Averages of clicks and cents for each bid level over the last reports, and a price of a cent."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.reward = np.full(brief.arms, 0.2)
        self.cost = 0.5 * brief.cost_max[:, 0]
        self.price, self.spent = 1.0, 0.0
        self.rng = np.random.default_rng(0)

    def choose(self, request: Request) -> int:
        if self.rng.random() < 0.05:
            return int(self.rng.integers(self.brief.arms))
        left = self.brief.budget[0] - self.spent
        pace = left / max(self.brief.horizon - request.index, 1)
        value = self.reward - self.price * self.cost
        arm = int(np.argmax(value))
        cost = self.cost[arm] if value[arm] > 0.0 else 0.0
        self.price *= float(np.exp(0.01 * np.clip(cost / max(pace, 1e-9) - 1.0, -1.0, 1.0)))
        return arm if value[arm] > 0.0 else SKIP

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        self.reward[arm] += 0.02 * (reward - self.reward[arm])
        self.cost[arm] += 0.02 * (float(costs[0]) - self.cost[arm])
        self.spent += float(costs[0])


ENTRY = CatalogueEntry(make, {"multiplier bidder": MultiplierBidder, "averages by level": LevelAverages})
