"""The same LPs as HiGHS solves them, written out in full: for tests and for doubt. Slow beyond some thousand rows."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from driftsack.benchmarks.lp_static import mean_rows
from driftsack.core.arrays import Floats
from driftsack.core.errors import DriftsackError
from driftsack.core.instance import Instance


def lp_dynamic(instance: Instance) -> float:
    """LP({mu_t}, {C_t}, T) with a mix for each distinct row."""
    rows, arms = instance.rewards.shape
    weight = instance.rounds.astype(np.float64)
    gains = (instance.rewards * weight[:, None]).ravel()
    uses = (instance.costs * weight[:, None, None]).transpose(1, 0, 2).reshape(instance.resources, -1)
    mixes = sparse.kron(sparse.eye_array(rows), np.ones((1, arms)))
    matrix = sparse.vstack([sparse.csr_array(uses), mixes], format="csr")
    return _maximum(gains, matrix, np.append(instance.problem.budget, np.ones(rows)))


def lp_static(instance: Instance) -> float:
    """The best single mix over the horizon."""
    rewards, costs = mean_rows(instance)
    problem = instance.problem
    value = _maximum(rewards, np.vstack([costs, np.ones(problem.arms)]), np.append(problem.rate, 1.0))
    return value * problem.horizon * problem.reward_max


def single_step(instance: Instance) -> float:
    """The sum of LP(mu_t, C_t) over the rounds."""
    problem = instance.problem
    rhs = np.append(problem.rate, 1.0)
    ones = np.ones(problem.arms)
    values = [
        _maximum(rewards, np.vstack([costs, ones]), rhs)
        for rewards, costs in zip(instance.unit_rewards, instance.unit_costs, strict=True)
    ]
    return float(instance.rounds @ np.array(values)) * problem.reward_max


def _maximum(gains: Floats, matrix: Floats, limits: Floats) -> float:
    answer = linprog(-gains, A_ub=matrix, b_ub=limits, method="highs")
    if answer.status != 0:
        raise DriftsackError(f"HiGHS must solve the program, but it says: {answer.message}")
    return float(-answer.fun)
