"""E-mail offers: contact a tenth of the customers, and hear of their orders days later.

12,000 customers come up for contact in three weeks, in five segments and with the days since their last order. A
mailing slot is the unit of the budget, which pays for a newsletter to about one customer in ten; a printed catalogue
takes more. An order earns its margin in units of 20 dollars, is reported within two days, and 4% of them cannot be
attributed. The seasonal offer loses its appeal in the last week.
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
    is_weekend,
    logistic,
    persistent,
    stream,
)

CUSTOMERS, DAYS = 12_000, 21
OFFERS = ("newsletter", "seasonal", "catalogue")
SEGMENTS = ("student", "family", "senior", "business", "unknown")
SHARE = np.array([0.2, 0.3, 0.15, 0.1, 0.25])
APPEAL = np.array(
    [[-3.6, -2.6, -4.2], [-3.0, -2.2, -2.0], [-3.8, -3.4, -1.6], [-2.4, -3.6, -2.8], [-4.0, -3.8, -3.7]]
)  # log-odds of an order
SLOTS = np.array([1.0, 1.0, 3.0])
BUDGET = {"slots": 0.1 * CUSTOMERS}


def make(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng, n = stream(seed, "email"), CUSTOMERS
    times = arrivals(rng, n, DAYS, day_shape(0.2, 1.8), weekend=0.5)
    segment = rng.choice(5, size=n, p=SHARE)
    since = np.minimum(rng.gamma(1.3, 60.0, n), 500.0)
    # Odds of an order: segments drift, one offer goes out of season, and customers tire of e-mails.
    drift = np.stack([persistent(rng, n, 4000.0, 0.3) for _ in range(5)], axis=1)[np.arange(n), segment]
    late = times > 24.0 * 14
    odds = APPEAL[segment] + drift[:, None] - np.outer(late, [0.0, 1.3, 0.0])
    odds = odds + (0.25 * is_weekend(times) - 0.9 * np.log1p(since / 30.0) + 1.2)[:, None]
    chance = logistic(odds)
    margin = np.array([0.8, 1.4, 1.2, 2.5, 1.0])[segment]
    contexts: list[Context] = [
        {"recency": float(np.log1p(since[t])), "segment": SEGMENTS[segment[t]]} for t in range(n)
    ]
    slots = np.broadcast_to(SLOTS[:, None], (n, 3, 1)).copy()
    return Scenario(
        name="e-mail offers",
        arms=OFFERS,
        budget=BUDGET,
        cost_max=SLOTS[:, None],
        reward_max=5.0,
        rewards=np.minimum(happens(rng, chance) * margin[:, None] * around_one(rng, (n, 3), 0.3), 5.0),
        costs=slots,
        mean_rewards=chance * margin[:, None],
        mean_costs=slots,
        times=times,
        delays=delays_in_requests(rng, times, 3, 20.0, lost=0.04),
        contexts=contexts,
        encoder=ds.Encoder(numbers=["recency"], categories={"segment": list(SEGMENTS)}),
        prices=slots,
        caps=slots,
        patience=3_000,
        bills_at_once=True,
    )


class ResponseTable(Rule):
    """Response by segment and recency band, tested on the first customers; then the best tenth is contacted."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.sent: dict[object, float] = {}
        self.earned: dict[object, float] = {}
        self.scores: list[float] = []
        self.used, self.rng = 0.0, np.random.default_rng(0)

    def cell(self, request: Request, arm: int) -> tuple[object, ...]:
        assert request.context is not None
        return arm, request.context["segment"], int(float(request.context["recency"]) > 4.0)

    def choose(self, request: Request) -> int:
        slots = self.brief.cost_max[:, 0]
        cells = [self.cell(request, arm) for arm in range(3)]
        rate = [(self.earned.get(cell, 0.0) + 1.0) / (self.sent.get(cell, 0.0) + 8.0) for cell in cells]
        arm = int(np.argmax(rate / slots))
        self.scores.append(rate[arm] / slots[arm])
        left = (self.brief.budget[0] - self.used) / max(self.brief.horizon - request.index, 1)
        chosen = self.scores[-1] >= np.quantile(self.scores[-1000:], 1.0 - float(np.clip(left / slots[arm], 0.0, 1.0)))
        if not chosen or self.rng.random() < 0.1 * (request.index < 500):
            return SKIP
        self.used += slots[arm]
        return arm

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        cell = self.cell(request, arm)
        self.sent[cell] = self.sent.get(cell, 0.0) + 1.0
        self.earned[cell] = self.earned.get(cell, 0.0) + reward


class ScoreWithPrice(Rule):
    """A linear score for each offer by stochastic gradient, contacts above a price for a slot, a few at random."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.weights = np.zeros((brief.arms, 6))
        self.weights[:, 0] = 0.2
        self.price, self.used, self.rng = 0.2, 0.0, np.random.default_rng(0)

    def row(self, request: Request) -> Floats:
        assert request.context is not None
        kind = [request.context["segment"] == name for name in ("student", "family", "senior", "business")]
        return np.array([1.0, float(request.context["recency"]) - 4.0, *kind])

    def choose(self, request: Request) -> int:
        slots = self.brief.cost_max[:, 0]
        net = self.weights @ self.row(request) - self.price * slots
        arm = int(np.argmax(net)) if net.max() > 0.0 else SKIP
        if self.rng.random() < 0.01:
            arm = int(self.rng.integers(3))
        self.used += slots[arm] if arm != SKIP else 0.0
        plan = self.brief.budget[0] * (request.index + 1) / self.brief.horizon
        self.price *= 1.003 if self.used > plan else 0.997
        return arm

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        row = self.row(request)
        self.weights[arm] += 0.02 * (reward - float(self.weights[arm] @ row)) * row


ENTRY = CatalogueEntry(make, {"response table": ResponseTable, "score with price": ScoreWithPrice})
