"""Sliding-window UCB in plain Python with NumPy and ``linprog``: the baseline of the speed comparisons."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.core.seeding import Seed, generator


@dataclass(frozen=True)
class PlainSlidingWindowUCB:
    """A policy in plain Python; ``simulate`` accepts any object with ``start``, ``ask`` and ``tell``."""

    windows: tuple[int, int]  # the window lengths of the reward and cost estimates, in rounds

    def start(self, problem: Problem, seed: Seed) -> PlainLearner:
        """Start a learner on a problem."""
        return PlainLearner(problem, self.windows, seed)


class PlainLearner:
    """The learner of :class:`PlainSlidingWindowUCB`: running sums over two queues, and a new LP each round."""

    def __init__(self, problem: Problem, windows: tuple[int, int], seed: Seed) -> None:
        self.rng = generator(seed)
        self.windows = windows
        self.round = 0
        m, d, horizon = problem.arms, problem.resources, problem.horizon
        self.queues: tuple[deque[tuple[int, int, Floats]], ...] = (deque(), deque())
        self.sums = (np.zeros((m, 1)), np.zeros((m, d)))
        self.pulls = (np.zeros(m), np.zeros(m))
        log = math.log(12 * m) + 3 * math.log(horizon)
        self.radii = (math.sqrt(2 * log), math.sqrt(2 * (log + math.log(d))))
        self.rhs = np.append(problem.rate, 1.0)
        self.columns = np.ones((d + 1, m))

    def ask(self) -> int:
        """Solve the LP on optimistic means and draw the arm."""
        self.round += 1
        for queue, window, sums, pulls in zip(self.queues, self.windows, self.sums, self.pulls, strict=True):
            while queue and queue[0][0] < self.round - window:
                _, arm, outcome = queue.popleft()
                sums[arm] -= outcome
                pulls[arm] -= 1
        counts = [pulls + 1 for pulls in self.pulls]
        upper = self.sums[0][:, 0] / counts[0] + self.radii[0] / np.sqrt(counts[0])
        self.columns[:-1] = (self.sums[1] / counts[1][:, None]).T - self.radii[1] / np.sqrt(counts[1])
        mix = linprog(-upper, A_ub=self.columns, b_ub=self.rhs, method="highs").x
        arm = int(np.searchsorted(np.cumsum(mix), self.rng.random(), side="right"))
        return arm if arm < mix.size else SKIP

    def tell(self, arm: int, reward: float, costs: Floats) -> None:
        """Add the outcome of the current round."""
        for k, outcome in enumerate((np.array([reward]), costs.copy())):
            self.queues[k].append((self.round, arm, outcome))
            self.sums[k][arm] += outcome
            self.pulls[k][arm] += 1
