"""Informed ceilings: rules that know the true present means and their exact account, but not the future.

Both choose, among the open arms and skipping, the largest true mean reward minus the prices times the true mean costs.
The even pace takes the prices at which the latest requests would spend what is left over the rounds left. The
two-speed pace takes the prices of the whole history, and spends at most twice the even pace on the latest requests.
Present rewards get 1% of noise in the choice, so that mixtures of equally good arms are found by a price alone.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from lab.scenarios.scenario import SKIP, Bools, Floats, Ints, Request, Rule, Scenario

RECENT: Final = 200  # requests
HISTORY: Final = 400  # requests, evenly taken from the whole past
EVERY: Final = 20  # requests between two solutions
NOISE: Final = 0.01
CLOSED: Final = -1e12
SPEED: Final = 2.0


def spending(rewards: Floats, costs: Floats, prices: Floats, base: Floats, resource: int) -> float:
    """Mean cost of one resource if every request of a sample takes its best arm at the prices, or none."""
    values = rewards - costs @ prices
    best = np.argmax(values, axis=1)
    rows = np.arange(len(best))
    return float(np.mean(costs[rows, best, resource] * (values[rows, best] > base)))


def market_prices(rewards: Floats, costs: Floats, base: Floats, pace: Floats, start: Floats) -> Floats:
    """Prices at which a sample spends the pace of each resource, by bisection of one price after the other.

    >>> rewards, costs = np.array([[1.0], [2.0], [3.0], [4.0]]), np.ones((4, 1, 1))
    >>> float(market_prices(rewards, costs, np.zeros(4), np.array([0.5]), np.array([0.1]))[0].round())
    2.0
    """
    prices = start.copy()
    for _ in range(1 if len(pace) == 1 else 3):
        for i in range(len(pace)):
            prices[i] = 0.0
            if spending(rewards, costs, prices, base, i) <= pace[i]:
                continue
            low, high = 0.0, max(2.0 * start[i], 1e-6)
            prices[i] = high
            while spending(rewards, costs, prices, base, i) > pace[i] and high < 1e9:
                low, high = high, 4.0 * high
                prices[i] = high
            for _ in range(14):
                prices[i] = 0.5 * (low + high)
                if spending(rewards, costs, prices, base, i) > pace[i]:
                    low = float(prices[i])
                else:
                    high = float(prices[i])
            prices[i] = high
    return prices


class EvenPace(Rule):
    """Spend what is left evenly over the requests left, at the true means of the latest requests."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario.brief)
        self._costs = scenario.costs
        self._means = scenario.mean_costs
        self._open: Bools = np.array([scenario.is_open(t) for t in range(len(scenario))])
        noise = np.random.default_rng(1).normal(0.0, NOISE, scenario.mean_rewards.shape)
        self._rewards: Floats = np.where(self._open, scenario.mean_rewards * (1.0 + noise), CLOSED)
        must = np.zeros(len(scenario), dtype=np.bool_) if scenario.must is None else scenario.must
        self._base: Floats = np.where(must | (scenario.fallback is not None), -scenario.penalty, 0.0)
        self._left = self.brief.budget.copy()
        self.prices = np.full(len(self._left), 1e-3)

    def choose(self, request: Request) -> int:
        """The best arm at the present prices."""
        t = request.index
        if t < 2 * EVERY or t % EVERY == 0:
            self.prices = self.solve(t, self._left / (len(self._rewards) - t))
        fits = np.all(self._means[t] <= self._left, axis=1)
        values = np.where(fits, self._rewards[t] - self._means[t] @ self.prices, CLOSED)
        arm = int(np.argmax(values))
        if values[arm] <= self._base[t]:
            return SKIP
        self._left -= self._costs[t, arm]
        return arm

    def solve(self, t: int, pace: Floats) -> Floats:
        """Prices for the present request."""
        return self.prices_of(np.arange(max(0, t - RECENT + 1), t + 1), pace)

    def prices_of(self, sample: Ints, pace: Floats) -> Floats:
        """Prices at which a sample of requests spends the pace."""
        start = np.maximum(self.prices, 1e-6)
        return market_prices(self._rewards[sample], self._means[sample], self._base[sample], pace, start)

    def refused(self, request: Request, arm: int) -> None:
        """Nothing was charged."""
        self._left += self._costs[request.index, arm]


class TwoSpeed(EvenPace):
    """Spend at the price of the whole history, at most twice the even pace."""

    def solve(self, t: int, pace: Floats) -> Floats:
        """The larger of the history's prices and those that spend twice the pace now."""
        history = np.unique(np.linspace(0, t, min(t + 1, HISTORY)).astype(np.int64))
        long_run = self.prices_of(history, pace)
        return np.maximum(long_run, super().solve(t, SPEED * pace))
