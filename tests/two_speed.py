"""The two-speed pacer, slow and obvious, for tests that compare a policy that uses it with a twin."""

from __future__ import annotations

import math

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.lp.fallback import solve_program

SNAPSHOTS = 32


class SlowTwoSpeed:
    """The long-run price from copies of past means, and the two-speed LP written out; costs are in units of b."""

    def __init__(self, horizon: int, resources: int, largest_step: float = 0.4) -> None:
        self.warm_up, self.largest_step = math.ceil(2 * math.sqrt(horizon)), largest_step
        self.price, self.snapshots = np.zeros(resources), list[Floats]()
        self.rounds, self.every = 0, 1

    @property
    def even(self) -> bool:
        return self.rounds <= self.warm_up

    def follow(self, means: Floats, pace: Floats, reward: float) -> None:
        """A new round: keep its means (m, 1 + d) if they are due, and update the price."""
        if self.rounds % self.every == 0:
            if len(self.snapshots) == SNAPSHOTS:
                self.snapshots, self.every = self.snapshots[::2], 2 * self.every
            self.snapshots.append(means.copy())
        self.rounds += 1
        if not self.even and self.rounds % 8 == 0:
            self.update_price(pace, min(12 / self.rounds**0.5, self.largest_step), reward)

    def update_price(self, pace: Floats, step: float, reward: float) -> None:
        """All snapshots respond to the price, and it rises where they use more than the pace."""
        used = np.zeros(self.price.size)
        for kept in self.snapshots:
            values = kept[:, 0] - kept[:, 1:] @ self.price
            if values.max() > 0:
                used += kept[values.argmax(), 1:]
        excess = used / len(self.snapshots) / pace - 1
        self.price = np.clip(self.price * np.exp(step * np.minimum(excess, 3)), reward / 1e3, reward * 1e3)

    def average(self, prices: Floats) -> None:
        """At the even pace, the mean of the LP's prices."""
        if self.even:
            self.price = self.price + (prices - self.price) / self.rounds

    def program(self, means: Floats, pace: Floats, largest: Floats) -> tuple[Floats, Floats, Floats]:
        """Objective, rows and right-hand side over the arms and u, in units of ``largest``."""
        arms, resources = means.shape[0], means.shape[1] - 1
        rewards, costs = means[:, 0] / largest[0], (means[:, 1:] / largest[1:]).T
        scaled = self.price * largest[1:] / largest[0]
        objective = np.concatenate([rewards - (not self.even) * 0.85 * scaled @ costs, -0.3 * scaled])
        above, eye = np.hstack([costs, -np.eye(resources)]), np.eye(resources)
        rows = np.vstack(
            [above, np.hstack([np.ones(arms), np.zeros(resources)]), np.hstack([np.zeros((resources, arms)), eye])]
        )
        limit = np.minimum(pace / largest[1:], 2.0)
        return objective, rows, np.concatenate([limit, [1.0], limit * (0.0 if self.even else 1.0)])

    def error(self, mix: Floats, means: Floats, pace: Floats, largest: Floats) -> float:
        """By how much a mix misses the optimal value or violates a constraint, whichever is more."""
        arms, resources = means.shape[0], means.shape[1] - 1
        objective, rows, rhs = self.program(means, pace, largest)
        best, _ = solve_program(objective, rows, rhs)
        mine = np.concatenate([mix, np.maximum(rows[:resources, :arms] @ mix - rhs[:resources], 0.0)])
        return float(max(abs(objective @ (best - mine)), (rows @ mine - rhs).max()))
