"""A compiled round of online convex optimisation against one that solves its step with cvxpy, in turns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from driftsack.bench.rounds import ratio
from driftsack.core.arrays import Floats
from driftsack.oco import Problem, VirtualQueue, instances
from driftsack.oco.optional_packages import cvxpy


def oco_rows(quick: bool, said: Callable[[str], None]) -> list[dict[str, float | str]]:
    """One row: n = 10, d = 3, a box; the program is built once and solved anew each round, as cvxpy is fastest."""
    said("a round of online convex optimisation")
    short, long, repeats = (50, 100_000, 3) if quick else (200, 1_000_000, 5)
    small = instances.one_switch(dimension=10, constraints=3, horizon=short)
    large = instances.one_switch(dimension=10, constraints=3, horizon=long)
    mine, theirs = VirtualQueue().play(small), by_cvxpy(small)
    fast, slow = [], []
    for _ in range(repeats):
        fast.append(seconds(lambda: VirtualQueue().play(large)) / long)
        slow.append(seconds(lambda: by_cvxpy(small)) / short)
    return [
        {
            "n, d": "10, 3",
            "cvxpy / ours": ratio(slow, fast),
            "required": 1_000.0,
            "ours ns": 1e9 * min(fast),
            "cvxpy ns": 1e9 * min(slow),
            f"seconds for {long:,} rounds": long * min(fast),
            "largest difference": float(np.abs(mine.last_point[0] - theirs).max()),
        }
    ]


def by_cvxpy(problem: Problem) -> Floats:
    """The point after the last round of the virtual queue, each step solved as a program with a parameter."""
    cp = cvxpy()
    x, goal = cp.Variable(problem.dimension), cp.Parameter(problem.dimension)
    step = cp.Problem(cp.Minimize(cp.sum_squares(x - goal)), problem.domain.program(x))
    v, alpha = math.sqrt(problem.horizon), float(problem.horizon)
    point, queues = problem.domain.centre, np.zeros(problem.count)
    for t in range(problem.horizon):
        values, gradients = problem.evaluate(t, point)
        goal.value = point - (v * gradients[0] + queues @ gradients[1:]) / (2 * alpha)
        step.solve(solver="CLARABEL")
        after: Floats = np.array(x.value)
        queues = np.maximum(0.0, queues + values[1:] + gradients[1:] @ (after - point))
        point = after
    return point


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
