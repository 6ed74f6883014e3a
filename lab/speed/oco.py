"""Speed of a round of online convex optimisation, compared with one that solves its step with cvxpy."""

from __future__ import annotations

import math

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.oco import ConvexProblem, VirtualQueue, instances
from driftsack.oco.optional_packages import cvxpy
from lab.speed.timing import Progress, median_ratio, seconds


def oco_rows(quick: bool, progress: Progress) -> list[dict[str, float | str]]:
    """Compare at n = 10, d = 3, on a box; cvxpy builds its program once, with a parameter, which is its fastest use."""
    progress("a round of online convex optimisation")
    short, long, repeats = (50, 100_000, 3) if quick else (200, 1_000_000, 5)
    small = instances.one_switch(dimension=10, constraints=3, horizon=short)
    large = instances.one_switch(dimension=10, constraints=3, horizon=long)
    compiled, reference = VirtualQueue().play(small), by_cvxpy(small)
    fast, slow = [], []
    for _ in range(repeats):
        fast.append(seconds(lambda: VirtualQueue().play(large)) / long)
        slow.append(seconds(lambda: by_cvxpy(small)) / short)
    return [
        {
            "n, d": "10, 3",
            "cvxpy / ours": median_ratio(slow, fast),
            "required": 1_000.0,
            "ours ns": 1e9 * min(fast),
            "cvxpy ns": 1e9 * min(slow),
            f"seconds for {long:,} rounds": long * min(fast),
            "largest difference": float(np.abs(compiled.last_point[0] - reference).max()),
        }
    ]


def by_cvxpy(problem: ConvexProblem) -> Floats:
    """The point after the last round of the virtual queue, with each step solved by cvxpy."""
    cp = cvxpy()
    x, target = cp.Variable(problem.dimension), cp.Parameter(problem.dimension)
    step = cp.Problem(cp.Minimize(cp.sum_squares(x - target)), problem.domain.program(x))
    v, alpha = math.sqrt(problem.horizon), float(problem.horizon)
    point, queues = problem.domain.centre, np.zeros(problem.count)
    for t in range(problem.horizon):
        values, gradients = problem.evaluate(t, point)
        target.value = point - (v * gradients[0] + queues @ gradients[1:]) / (2 * alpha)
        step.solve(solver="CLARABEL")
        next_point: Floats = np.array(x.value)
        queues = np.maximum(0.0, queues + values[1:] + gradients[1:] @ (next_point - point))
        point = next_point
    return point
