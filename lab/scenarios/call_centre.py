"""Route calls to teams: paid agent minutes are the budget, and every call is answered, by a bot if need be.

7,000 calls of four weeks. The reward is 1 if the customer does not call again within a day, which is therefore known a
day late. Seniors work on weekdays from 8 to 18, juniors from 7 to 21. Mondays bring harder calls, a product launch in
the third week makes the bot and the juniors worse, and handling times grow. The partner doubles its price at half-time.
"""

from __future__ import annotations

import numpy as np

from lab.scenarios.scenario import Brief, CatalogueEntry, Floats, Request, Rule, Scenario
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

CALLS, DAYS = 7_000, 28
TEAMS = ("bot", "junior", "senior", "partner")
SOLVED = np.array([0.30, 0.62, 0.85, 0.70])
MINUTES = np.array([0.1, 5.0, 9.0, 6.5])  # paid minutes, in the price of a junior's
LONGEST = np.array([0.2, 45.0, 70.0, 60.0])
BUDGET = {"minutes": 4.0 * CALLS}


def make(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng = stream(seed, "calls")
    times = arrivals(rng, CALLS, DAYS, day_shape(0.1, 1.9), weekend=0.45)
    hour, day = times % 24, (times // 24).astype(np.int64)
    # Mondays are hard, and a launch brings new questions for six days.
    hard = 0.12 * (day % 7 == 0) + persistent(rng, CALLS, 250.0, 0.06)
    launch = 0.2 * ((day >= 14) & (day < 20))
    solved = np.clip(SOLVED - np.outer(hard, [1.4, 1.0, 0.3, 0.8]) - np.outer(launch, [1.0, 0.9, 0.1, 0.4]), 0.02, 0.98)
    # Calls get longer, and one team twice as expensive after two weeks.
    growth = 1.0 + 0.3 * times / times[-1]
    minutes = MINUTES * np.stack([np.ones(CALLS), growth, growth, growth * np.where(day >= 14, 2.0, 1.0)], axis=1)
    minutes[:, 1:] *= (1.0 + hard)[:, None]
    taken = np.minimum(minutes * around_one(rng, (CALLS, 4), 0.7), LONGEST * 2.0)
    taken[:, 0] = minutes[:, 0]
    # Working hours.
    opened = np.ones((CALLS, 4), dtype=np.bool_)
    opened[:, 1] = (hour >= 7) & (hour < 21)
    opened[:, 2] = (hour >= 8) & (hour < 18) & ~is_weekend(times)
    return Scenario(
        name="call centre",
        arms=TEAMS,
        budget=BUDGET,
        cost_max=LONGEST[:, None],
        reward_max=1.0,
        rewards=happens(rng, solved),
        costs=taken[:, :, None],
        mean_rewards=solved,
        mean_costs=minutes[:, :, None],
        times=times,
        delays=delays_in_requests(rng, times, 4, 24.0),
        open=opened,
        fallback="bot",
        penalty=0.5,
        patience=2_000,
    )


class TargetMinutes(Rule):
    """Weigh solved calls against minutes, at a price that is corrected once an hour by the day's spending."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        self.solved = np.full(brief.arms, 0.6)
        self.minutes = brief.cost_max[:, 0] / 6.0
        self.price, self.hour, self.used = 0.05, 0, 0.0
        self.booked: dict[int, float] = {}  # expected minutes until the report comes a day later
        self.rng = np.random.default_rng(0)

    def choose(self, request: Request) -> int:
        if int(request.time) > self.hour:
            self.hour = int(request.time)
            plan = self.brief.budget[0] * request.index / self.brief.horizon
            self.price *= float(np.exp(np.clip((self.used - plan) / self.brief.budget[0] * 5.0, -0.1, 0.1)))
        value = self.solved - self.price * self.minutes
        arm = max(request.open, key=lambda a: value[a])
        if self.rng.random() < 0.03:
            arm = int(self.rng.choice(request.open))
        self.booked[request.index] = self.minutes[arm]
        self.used += self.minutes[arm]
        return int(arm)

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        self.solved[arm] += 0.01 * (reward - self.solved[arm])
        self.used += float(costs[0]) - self.booked.pop(request.index)
        self.minutes[arm] += 0.02 * (float(costs[0]) - self.minutes[arm])


class WeeklyQuota(Rule):
    """Each day gets minutes by the usual share of its weekday; when they are used, the bot answers."""

    def __init__(self, brief: Brief) -> None:
        super().__init__(brief)
        days = np.arange(int(brief.hours / 24))
        share = np.where(days % 7 >= 5, 0.5, 1.0)
        self.quota = np.cumsum(brief.budget[0] * share / share.sum())
        self.good, self.time = np.array([3.0, 7.0, 7.0, 7.0]), 10.0 * brief.cost_max[:, 0] / 6.0
        self.used, self.booked = 0.0, np.zeros(brief.horizon)

    def choose(self, request: Request) -> int:
        day = int(request.time // 24)
        start = self.quota[day - 1] if day else 0.0
        # Minutes may be used ahead of the clock within the day, but not ahead of the day.
        allowed = start + (self.quota[day] - start) * min(1.0, (request.time % 24 + 4.0) / 20.0)
        gain = (self.good - self.good[0]) / (self.time - 0.99 * self.time[0])
        people = [arm for arm in request.open if arm > 0]
        arm = max(people, key=lambda a: gain[a]) if people and self.used < allowed else 0
        self.booked[request.index] = self.time[arm] / 10.0
        self.used += self.time[arm] / 10.0
        return int(arm)

    def learn(self, request: Request, arm: int, reward: float, costs: Floats) -> None:
        self.used += float(costs[0]) - self.booked[request.index]
        self.good[arm] += 0.01 * (10.0 * reward - self.good[arm])
        self.time[arm] += 0.01 * (10.0 * float(costs[0]) - self.time[arm])


ENTRY = CatalogueEntry(make, {"target minutes": TargetMinutes, "weekly quota": WeeklyQuota})
