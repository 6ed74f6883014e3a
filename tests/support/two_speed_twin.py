"""A slow reference implementation of the two-speed pacer."""

from __future__ import annotations

import math

import numpy as np

from driftsack.core.arrays import Bools, Floats
from driftsack.lp.fallback import solve_program

SNAPSHOTS = 32


class SlowWaiting:
    """The pending decisions and the delays of outcomes, from lists of all of them."""

    def __init__(self, arms: int) -> None:
        self.arms, self.pending, self.delays = arms, dict[int, int](), list[int]()

    def ask(self, t: int, arm: int) -> None:
        self.pending[t] = arm

    def settle(self, t: int, now: int, told: bool = True) -> None:
        """The outcome of round ``t`` arrived, or its decision was cancelled, when ``now`` was the latest round."""
        del self.pending[t]
        self.delays += [now - t] if told else []

    def to_come(self) -> Floats:
        """(m,) the pending outcomes that are expected to arrive: in all at most twice the running mean delay."""
        counts = np.bincount(list(self.pending.values()), minlength=self.arms).astype(float)
        mean = 0.0
        for n, delay in enumerate(self.delays, 1):
            mean = mean * (1 - 1 / min(n, 200)) + delay / min(n, 200)
        return np.asarray(counts * min(1.0, 2 * mean / max(counts.sum(), 1.0)))

    def pace(self, left: Floats, expected: Floats, rounds_left: int) -> Floats:
        """What is left of the budgets, less the expected costs (m, d) of pending decisions, over the rounds left."""
        return np.asarray(np.maximum(left - self.to_come() @ expected, 0.0) / rounds_left)


class SlowTwoSpeed:
    """The long-run price from copies of past means, and the two-speed LP written out; costs are in units of b."""

    def __init__(self, horizon: int, resources: int, largest_step: float = 0.4, ending: float = 0.0) -> None:
        self.horizon, self.ending, self.margin = horizon, ending, 0.15
        self.warm_up, self.largest_step = math.ceil(2 * math.sqrt(horizon)), largest_step
        self.price, self.snapshots = np.zeros(resources), list[Floats]()
        self.rounds, self.every = 0, 1

    @property
    def even(self) -> bool:
        return self.rounds <= self.warm_up

    def follow(
        self, means: Floats, pace: Floats, reward: float, is_open: Bools | None = None, rounds_left: int = 0
    ) -> None:
        """Start a round: keep its means (m, 1 + d) if they are due, and update the price and, near the end, the margin.

        Only the arms that are open now can be chosen in the snapshot.
        """
        if self.ending > 0.0:
            self.margin = max(0.15, math.exp(-rounds_left / self.horizon / self.ending))
        if self.rounds % self.every == 0:
            if len(self.snapshots) == SNAPSHOTS:
                self.snapshots, self.every = self.snapshots[::2], 2 * self.every
            self.snapshots.append((means if is_open is None else means[is_open]).copy())
        self.rounds += 1
        if not self.even and self.rounds % 8 == 0:
            self.update_price(pace, min(12 / self.rounds**0.5, self.largest_step), reward)

    def update_price(self, pace: Floats, step: float, reward: float) -> None:
        """Raise the price where the responses of all snapshots to it use more than the pace."""
        used = np.zeros(self.price.size)
        for kept in self.snapshots:
            values = kept[:, 0] - kept[:, 1:] @ self.price
            if values.size and values.max() > 0:
                used += kept[values.argmax(), 1:]
        excess = used / len(self.snapshots) / np.maximum(pace, 1e-100) - 1
        self.price = np.clip(self.price * np.exp(step * np.minimum(excess, 3)), reward / 1e3, reward * 1e3)

    def average(self, prices: Floats) -> None:
        """Average the prices of the LP while the pace is even."""
        if self.even:
            self.price = self.price + (prices - self.price) / self.rounds

    def program(self, means: Floats, pace: Floats, largest: Floats) -> tuple[Floats, Floats, Floats]:
        """The objective, rows and right-hand side over the arms and u, in units of ``largest``."""
        arms, resources = means.shape[0], means.shape[1] - 1
        rewards, costs = means[:, 0] / largest[0], (means[:, 1:] / largest[1:]).T
        scaled = self.price * largest[1:] / largest[0]
        objective = np.concatenate(
            [rewards - (not self.even) * (1.0 - self.margin) * scaled @ costs, -2 * self.margin * scaled]
        )
        above, eye = np.hstack([costs, -np.eye(resources)]), np.eye(resources)
        rows = np.vstack(
            [above, np.hstack([np.ones(arms), np.zeros(resources)]), np.hstack([np.zeros((resources, arms)), eye])]
        )
        limit = np.minimum(pace / largest[1:], 2.0)
        return objective, rows, np.concatenate([limit, [1.0], limit * (0.0 if self.even else 1.0)])

    def error(self, mix: Floats, means: Floats, pace: Floats, largest: Floats) -> float:
        """The larger of a mix's distance from the optimal value and its largest violation of a constraint."""
        arms, resources = means.shape[0], means.shape[1] - 1
        objective, rows, rhs = self.program(means, pace, largest)
        best, _ = solve_program(objective, rows, rhs)
        mine = np.concatenate([mix, np.maximum(rows[:resources, :arms] @ mix - rhs[:resources], 0.0)])
        return float(max(abs(objective @ (best - mine)), (rows @ mine - rhs).max()))
