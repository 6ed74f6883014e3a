"""Electricity demand response: call on customers when power is dear, as often as their contracts allow.

4,704 quarter-hours of seven weeks. The price and the temperature are known. A call to air conditioning, car chargers or
a foundry saves the price of the power that is not used, in units of 100 dollars, and takes customer hours from the
contract. Prices are autocorrelated, follow the hours of the day and have spikes. Customers tire: their response falls
over the season, and chargers respond mostly at night. The foundry is closed on weekends. Meters report two hours late.
"""

from __future__ import annotations

import numpy as np

import driftsack as ds
from lab.scenarios.scenario import SKIP, Brief, CatalogueEntry, Context, Floats, Request, Rule, Scenario
from lab.scenarios.shapes import around_one, is_weekend, persistent, stream

QUARTERS, DAYS = 4_704, 49
GROUPS = ("cooling", "chargers", "foundry")
SIZE = np.array([4.0, 2.5, 9.0])  # megawatt-hours in a quarter
HOURS = np.array([1.0, 0.5, 2.5])  # customer hours a call
BUDGET = {"hours": 0.30 * QUARTERS}


def make(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng, n = stream(seed, "electricity"), QUARTERS
    times: Floats = np.arange(n, dtype=np.float64) * 0.25
    hour = times % 24
    # Prices: the shape of the day, weekends, slow drift and rare spikes.
    shape = 0.35 * np.cos((hour - 19.0) / 24.0 * 4.0 * np.pi) + 0.2 * np.cos((hour - 18.0) / 24.0 * 2.0 * np.pi)
    spike = np.maximum(persistent(rng, n, 10.0, 1.0) - 1.9, 0.0) * 3.0
    price = np.exp(4.0 + shape + persistent(rng, n, 200.0, 0.35) + np.minimum(spike, 1.8)) * (
        1.0 - 0.15 * is_weekend(times)
    )
    # Response of the groups: heat, nights, and customers who tire of being asked.
    heat = 26.0 + 6.0 * np.cos((hour - 16.0) / 24.0 * 2.0 * np.pi) + persistent(rng, n, 300.0, 3.0)
    tired = 1.0 - 0.35 * times / times[-1]
    night = (hour >= 21.0) | (hour < 6.0)
    response = np.stack(
        [np.clip((heat - 18.0) / 14.0, 0.0, 1.2) * tired, np.where(night, 1.0, 0.25) * tired, np.full(n, 0.85)], axis=1
    )
    response[:, 2] *= np.exp(persistent(rng, n, 600.0, 0.2))
    saved = price[:, None] * SIZE * response / 100.0
    means = np.broadcast_to(HOURS, (n, 3))
    opened = np.ones((n, 3), dtype=np.bool_)
    opened[is_weekend(times), 2] = False
    contexts: list[Context] = [
        {"price": float(price[t] / 100.0), "heat": float(heat[t]), "time": "night" if night[t] else "day"}
        for t in range(n)
    ]
    return Scenario(
        name="demand response",
        arms=GROUPS,
        budget=BUDGET,
        cost_max=HOURS[:, None] * 2.0,
        reward_max=60.0,
        rewards=np.minimum(saved * around_one(rng, (n, 3), 0.3), 60.0),
        costs=np.minimum(means * around_one(rng, (n, 3), 0.2), HOURS * 2.0)[:, :, None],
        mean_rewards=saved,
        mean_costs=means[:, :, None].copy(),
        times=times,
        delays=rng.integers(6, 11, (n, 3)),
        open=opened,
        contexts=contexts,
        encoder=ds.Encoder(numbers=["price", "heat"], categories={"time": ["day", "night"]}),
        patience=100,
    )


class PriceThreshold(Rule):
    """Call the group with the best response for each hour when the price is in the top share that hours allow."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.response = {(arm, time): 3.0 for arm in range(brief.arms) for time in ("day", "night")}
        self.hours = brief.cost_max[:, 0] / 2.0
        self.prices: list[float] = []
        self.used = 0.0

    def choose(self, request: Request) -> int:
        assert request.context is not None
        price, time = float(request.context["price"]), str(request.context["time"])
        self.prices.append(price)
        arm = max(request.open, key=lambda a: self.response[a, time] / self.hours[a])
        left = (self.brief.budget[0] - self.used) / max(self.brief.horizon - request.index, 1)
        share = float(np.clip(left / self.hours[arm], 0.0, 1.0))
        if price < np.quantile(self.prices[-672:], 1.0 - share):  # of the last week
            return SKIP
        self.used += self.hours[arm]
        return int(arm)

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        assert request.context is not None
        self.hours[arm] += 0.05 * (float(costs[0]) - self.hours[arm])
        key = (arm, str(request.context["time"]))
        self.response[key] += 0.05 * (reward / float(request.context["price"]) - self.response[key])


class ValueOfAnHour(Rule):
    """Response as a line in the temperature for each group and time of day; an hour has a price that is adapted."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.line = {(arm, time): np.array([3.0, 0.0]) for arm in range(brief.arms) for time in ("day", "night")}
        self.hours, self.price = brief.cost_max[:, 0] / 2.0, 2.0
        self.pace, self.rng = float(brief.budget[0]) / brief.horizon, np.random.default_rng(0)

    def choose(self, request: Request) -> int:
        assert request.context is not None
        x = np.array([1.0, (float(request.context["heat"]) - 26.0) / 5.0])
        time, power = str(request.context["time"]), float(request.context["price"])
        value = {a: power * float(self.line[a, time] @ x) - self.price * self.hours[a] for a in request.open}
        arm = max(value, key=lambda a: value[a])
        if self.rng.random() < 0.02:
            arm = int(self.rng.choice(request.open))
        elif value[arm] <= 0.0:
            arm = SKIP
        used = self.hours[arm] if arm != SKIP else 0.0
        self.price *= float(np.exp(0.003 * np.clip(used / self.pace - 1.0, -1.0, 4.0)))
        return arm

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        assert request.context is not None
        self.hours[arm] += 0.05 * (float(costs[0]) - self.hours[arm])
        x = np.array([1.0, (float(request.context["heat"]) - 26.0) / 5.0])
        line = self.line[arm, str(request.context["time"])]
        line += 0.05 * (reward / float(request.context["price"]) - float(line @ x)) * x / float(x @ x)


ENTRY = CatalogueEntry(make, {"price threshold": PriceThreshold, "value of an hour": ValueOfAnHour})
