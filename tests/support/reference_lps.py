"""Reference implementations of the LP benchmarks: each written out in full and solved by HiGHS.

They are independent of the compiled implementations and check them. They are slow beyond a few thousand rows.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from driftsack.benchmarks.lp_static import mean_rows
from driftsack.core.arrays import Floats
from driftsack.core.errors import DriftsackError
from driftsack.core.instance import Instance


def lp_dynamic(instance: Instance) -> float:
    """Solve LP({mu_t}, {C_t}, T) with one mix for each distinct row; return the value in the problem's units."""
    rows, arms = instance.rewards.shape
    rounds = instance.rounds.astype(np.float64)
    objective = (instance.rewards * rounds[:, None]).ravel()
    total_costs = (instance.costs * rounds[:, None, None]).transpose(1, 0, 2).reshape(instance.resources, -1)
    mixes = sparse.kron(sparse.eye_array(rows), np.ones((1, arms)))
    matrix = sparse.vstack([sparse.csr_array(total_costs), mixes], format="csr")
    return _maximise(objective, matrix, np.append(instance.problem.budget, np.ones(rows)))


def lp_static(instance: Instance) -> float:
    """Solve for the best single mix over the horizon; return the value in the problem's units."""
    rewards, costs = mean_rows(instance)
    problem = instance.problem
    value = _maximise(rewards, np.vstack([costs, np.ones(problem.arms)]), np.append(problem.rate, 1.0))
    return value * problem.horizon * problem.reward_max


def single_step(instance: Instance) -> float:
    """Return the sum of the step LPs LP(mu_t, C_t) over the rounds, in the problem's units."""
    problem = instance.problem
    limits = np.append(problem.rate, 1.0)
    ones = np.ones(problem.arms)
    values = [
        _maximise(rewards, np.vstack([costs, ones]), limits)
        for rewards, costs in zip(instance.unit_rewards, instance.unit_costs, strict=True)
    ]
    return float(instance.rounds @ np.array(values)) * problem.reward_max


def _maximise(objective: Floats, matrix: Floats, limits: Floats) -> float:
    """Return the maximum of ``objective @ x`` over x >= 0 with ``matrix @ x <= limits``."""
    result = linprog(-objective, A_ub=matrix, b_ub=limits, method="highs")
    if result.status != 0:
        raise DriftsackError(f"HiGHS must solve the linear program, but reports: {result.message}")
    return float(-result.fun)


def with_floors(instance: Instance) -> tuple[float | None, float | None]:
    """Solve the horizon LP with floors: its value, None if no plan reaches them, and the share that a plan reaches.

    Both are None if no plan answers every round within the budgets.
    """
    problem, rounds = instance.problem, instance.rounds.astype(np.float64)
    rows, arms = instance.rewards.shape
    size = rows * arms
    limited = [j for j in range(problem.resources) if np.isfinite(problem.budget[j])]
    spending = [(instance.costs[:, j] * rounds[:, None]).ravel() for j in limited]
    gains, least = [], []
    for arm, (_, floor) in zip(problem.floor_arms.tolist(), problem.floor, strict=True):
        one = instance.rewards if arm < 0 else np.tile(np.arange(arms) == arm, (rows, 1)).astype(np.float64)
        gains.append((one * rounds[:, None]).ravel())
        least.append(floor * instance.horizon)
    mixes = np.kron(np.eye(rows), np.ones((1, arms)))
    budget = [problem.budget[j] for j in limited]
    # The smallest cost.
    cost = (instance.costs[:, problem.minimised] * rounds[:, None]).ravel()
    matrix = np.array([*(-gain for gain in gains), *spending])
    limits = np.array([*(-floor for floor in least), *budget])
    result = linprog(cost, A_ub=matrix, b_ub=limits, A_eq=mixes, b_eq=np.ones(rows), method="highs")
    if result.status == 0:
        return float(result.fun), 1.0
    # The largest share of the floors, with one more variable.
    matrix = np.column_stack([matrix, np.append(least, np.zeros(len(limited)))])
    limits = np.append(np.zeros(len(gains)), budget)
    mixes = np.column_stack([mixes, np.zeros(rows)])
    goal = np.append(np.zeros(size), -1.0)
    result = linprog(goal, A_ub=matrix, b_ub=limits, A_eq=mixes, b_eq=np.ones(rows), method="highs")
    return None, (float(-result.fun) if result.status == 0 else None)
