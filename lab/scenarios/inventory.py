"""Replenish a shop's shelves: cash and storage are short, and what an order earned is known after its lead time.

3,600 stock reviews of twelve weeks. A review shows the days of cover, the logarithm of the weekly demand and the kind
of product. It may order nothing, a small or a large lot from a cheap and slow supplier, or a small lot from a fast and
dear one. The reward is the margin of the extra units sold in units of 100 dollars. The slow supplier is on strike for
nine days, and demand drifts by kind.
"""

from __future__ import annotations

import numpy as np

import driftsack as ds
from lab.scenarios.scenario import SKIP, Brief, CatalogueEntry, Context, Floats, Request, Rule, Scenario
from lab.scenarios.shapes import around_one, delays_in_requests, persistent, stream, within

REVIEWS, DAYS = 3_600, 84
ORDERS = ("slow small", "slow large", "fast small")
KINDS = ("grocery", "household", "seasonal")
LOT = np.array([1.0, 2.5, 1.0])  # weeks of demand
LEAD = np.array([9.0, 9.0, 2.0])  # days
MARKUP = np.array([0.45, 0.45, 0.25])  # margin for each dollar of goods
BUDGET = {"usd": 110.0 * REVIEWS, "pallets": 0.9 * REVIEWS}


def make(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng, n, m = stream(seed, "inventory"), REVIEWS, len(ORDERS)
    times = np.sort(rng.random(n)) * 24.0 * DAYS
    kind = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    demand = np.minimum(rng.lognormal(4.6, 0.7, n), 900.0)  # dollars of goods a week
    cover = np.minimum(rng.gamma(2.0, 5.0, n), 40.0)  # days
    level = np.stack([persistent(rng, n, 900.0, 0.25) for _ in KINDS], axis=1)
    level[:, 2] += 0.7 * np.sin(times / times[-1] * np.pi) - 0.3  # the season comes and goes
    pull = np.exp(level[np.arange(n), kind])
    # Sold within two weeks of the order: what the shelf lacks between the delivery and the end of that time.
    open_days = np.clip(14.0 - np.maximum(LEAD, cover[:, None]), 0.0, 14.0) / 7.0
    sold = np.minimum(LOT, pull[:, None] * open_days) * demand[:, None]
    spent = np.broadcast_to(LOT * demand[:, None] * (1.0 + np.array([0.0, -0.05, 0.12])), (n, m))
    pallets = LOT * demand[:, None] / 130.0 * np.array([0.7, 1.4, 0.7])[kind][:, None]
    mean_rewards = sold * MARKUP / 100.0
    means = np.stack([spent, pallets], axis=2)
    opened = np.ones((n, m), dtype=np.bool_)
    opened[within(times, rng.uniform(500.0, 1200.0), 216.0), :2] = False
    contexts: list[Context] = [
        {"cover": float(cover[t]), "demand": float(np.log(demand[t])), "kind": KINDS[kind[t]]} for t in range(n)
    ]
    wait = delays_in_requests(rng, times, m, 24.0 * 3.0)
    return Scenario(
        name="inventory",
        arms=ORDERS,
        budget=BUDGET,
        cost_max=np.stack([LOT * 900.0 * 1.5, LOT * 900.0 / 130.0 * 2.0], axis=1),
        reward_max=10.0,
        rewards=np.minimum(mean_rewards * around_one(rng, (n, m), 0.4), 10.0),
        costs=means * np.clip(around_one(rng, (n, m, 2), 0.08), 0.7, 1.3),
        mean_rewards=mean_rewards,
        mean_costs=means,
        times=times,
        delays=wait + np.rint(LEAD * n / DAYS).astype(np.int64),
        open=opened,
        contexts=contexts,
        encoder=ds.Encoder(numbers=["cover", "demand"], categories={"kind": list(KINDS)}),
        prices=means,
        caps=means * 1.3,
        patience=1_500,
        bills_at_once=True,
    )


class CoverRule(Rule):
    """The buyer's rule: order when the cover is short, from the fast supplier if it is very short, within the plan."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.spent = np.zeros(len(brief.budget))
        self.low = 8.0

    def choose(self, request: Request) -> int:
        assert request.context is not None
        assert request.prices is not None
        cover = float(request.context["cover"])
        ahead = self.spent / (self.brief.budget * (request.index + 40) / self.brief.horizon)
        self.low = float(np.clip(self.low + (0.05 if ahead.max() < 1.0 else -0.05), 2.0, 14.0))
        if cover > self.low or ahead.max() > 1.1:
            return SKIP
        wish = (2, 0, 1) if cover < 3.0 else (1, 0, 2) if cover < 6.0 else (0, 2)
        arm = next((a for a in wish if a in request.open), SKIP)
        if arm != SKIP:
            self.spent += request.prices[arm]
        return arm


class MarginPerDollar(Rule):
    """Margin of past orders by supplier, kind and band of cover, for each dollar; two prices hold the budgets."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.margin: dict[object, float] = {}
        self.pace = brief.budget / brief.horizon
        self.price = np.full(2, 0.15)  # reward for each unit of pace

    def key(self, request: Request, arm: int) -> object:
        assert request.context is not None
        return arm, request.context["kind"], min(int(float(request.context["cover"]) // 4), 4)

    def choose(self, request: Request) -> int:
        assert request.prices is not None
        cost, best, gain = request.prices, SKIP, 0.0
        for arm in request.open:
            hope = max(0.0, 0.3 - 0.1 * min(int(float(request.context["cover"]) // 4), 4)) if request.context else 0.0
            value = self.margin.get(self.key(request, arm), hope) * cost[arm, 0] / 100.0
            value -= float(self.price @ (cost[arm] / self.pace))
            if value > gain:
                best, gain = arm, value
        used = cost[best] / self.pace if best != SKIP else np.zeros(2)
        self.price = np.maximum(self.price + 0.002 * np.clip(used - 1.0, -1.0, 3.0), 0.0)
        return best

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        key = self.key(request, arm)
        old = self.margin.get(key, 100.0 * reward / float(costs[0]))
        self.margin[key] = old + 0.1 * (100.0 * reward / float(costs[0]) - old)


ENTRY = CatalogueEntry(make, {"cover rule": CoverRule, "margin per dollar": MarginPerDollar})
