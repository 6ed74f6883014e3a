r"""Even allocation: every round solves its own step LP at the rate b, :math:`\sum_t \mathrm{LP}(\mu_t, C_t)`.

By Proposition 1 this is at most LP-Dynamic, and the difference bounds the gain from uneven spending. The prices
:math:`q_t^*` of the step LPs enter :math:`\bar q`. With floors every round answers at the smallest cost at which it
reaches them, or the largest share of them that it can reach; this takes milliseconds for each distinct row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from driftsack.benchmarks.benchmark import Benchmark, check_instance, relative_gap
from driftsack.benchmarks.with_floors import GivenRows, solve_with_floors
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.lp.step import new_step_lp, rescue_failed
from driftsack.numerics.compiled import kernel
from driftsack.numerics.simplex import OPTIMAL, STALE, Simplex, solve

TOLERANCE: Final = 1e-9
MOST_PASSES: Final = 1000


@dataclass(frozen=True, eq=False)
class SingleStep(Benchmark):
    """The sum of the step LPs, and the step LP of each distinct row, in the problem's units.

    Attributes:
        name: The name of the benchmark.
        value: The sum over all rounds of the values of their step LPs.
        gap: The certified relative gap.
        prices: None, because the prices differ between rows; see ``row_prices``.
        plan: (K, m) the mix of each distinct row.
        passes: The number of passes over the rows.
        floor_prices: None, because the prices differ between rows; see ``row_floor_prices``.
        reachable: The smallest share of the floors that the best mix of a row reaches.
        values: (K,) the value LP(mu_k, C_k) of one round of each distinct row.
        row_prices: (K, d) the prices q_k* of each distinct row's step LP.
        row_floor_prices: (K, k) with floors, their prices in each distinct row; ``floor_prices`` is None.
    """

    values: Floats | None = None
    row_prices: Floats | None = None
    row_floor_prices: Floats | None = None


@kernel
def load_row(lp: Simplex, rewards: Floats, costs: Floats, k: int) -> None:
    """Write the means of row ``k`` into the LP and mark its inverse as stale; the basis is kept."""
    for i in range(rewards.shape[1]):
        lp.objective[i] = rewards[k, i]
        for j in range(costs.shape[1]):
            lp.columns[j, i] = costs[k, j, i]
    lp.counts[STALE] = 1


@kernel
def solve_rows(
    lp: Simplex, rewards: Floats, costs: Floats, first: int, plan: Floats, prices: Floats, values: Floats, gaps: Floats
) -> int:
    """Solve the rows from ``first`` on; return the first row that cannot be certified, or K."""
    resources, arms = costs.shape[1], costs.shape[2]
    for k in range(first, len(rewards)):
        load_row(lp, rewards, costs, k)
        if solve(lp) != OPTIMAL:
            return k
        record_row(lp, k, plan, prices, values, gaps, arms, resources)
    return len(rewards)


@kernel
def record_row(
    lp: Simplex, k: int, plan: Floats, prices: Floats, values: Floats, gaps: Floats, arms: int, resources: int
) -> None:
    """Write a row's mix, prices, value and duality gap, computed from the data."""
    value = 0.0
    margin = 0.0
    # Primal value, and alpha = max(0, max_i mu_i - q C_i) for the dual value.
    for i in range(arms):
        plan[k, i] = lp.solution[i]
        value += lp.objective[i] * lp.solution[i]
        net = lp.objective[i]
        for j in range(resources):
            net -= lp.duals[j] * lp.columns[j, i]
        margin = max(margin, net)
    dual_value = margin
    for j in range(resources):
        prices[k, j] = lp.duals[j]
        dual_value += lp.duals[j] * lp.rhs[j]
    values[k] = value
    gaps[k] = dual_value - value


def single_step(instance: Instance) -> SingleStep:
    """Solve the step LP of every distinct row at the rate b, and sum their values over the rounds.

    Args:
        instance: The instance, without contexts.

    Returns:
        The benchmark, with the value and the prices of every row.

    >>> import driftsack as ds
    >>> even = single_step(ds.instances.nonbinding(horizon=300))
    >>> round(even.value, 6), even.row_prices.tolist()      # no budget binds over the horizon, one binds in every round
    (200.0, [[1.0, 0.0], [0.0, 1.0]])
    """
    check_instance(instance, "single_step", floors=True)
    problem = instance.problem
    if problem.floor:
        return _with_floors(instance)
    rows, arms, resources = len(instance.rewards), problem.arms, problem.resources
    rewards, costs = instance.unit_rewards, instance.unit_costs
    plan, prices = np.zeros((rows, arms)), np.zeros((rows, resources))
    values, gaps = np.zeros(rows), np.zeros(rows)
    # Solve all rows in the kernel; HiGHS solves those that it cannot certify.
    lp = new_step_lp(arms, problem.rate)
    done = 0
    while (done := int(solve_rows(lp, rewards, costs, done, plan, prices, values, gaps))) < rows:
        rescue_failed(lp)
        record_row(lp, done, plan, prices, values, gaps, arms, resources)
        done += 1
    # Sum over the rounds and convert to the problem's units.
    total = float(instance.rounds @ values)
    scale = problem.reward_max / np.asarray(problem.cost_max)
    return SingleStep(
        "single steps",
        total * problem.reward_max,
        relative_gap(total + float(instance.rounds @ np.maximum(gaps, 0.0)), total, problem.horizon),
        None,
        plan,
        1,
        values=values * problem.reward_max,
        row_prices=prices * scale,
    )


def _with_floors(instance: Instance) -> SingleStep:
    """Solve every distinct row as if it lasted for the whole horizon, and sum the costs of their rounds."""
    problem, horizon = instance.problem, np.array([instance.horizon])
    rewards, costs = instance.unit_rewards, instance.unit_costs
    rows = [GivenRows(problem, rewards[k : k + 1], costs[k : k + 1], horizon) for k in range(len(rewards))]
    found = [solve_with_floors(row, "a single step", TOLERANCE, MOST_PASSES) for row in rows]
    values = np.array([best.value for best in found]) / instance.horizon
    total = float(instance.rounds @ values)
    missed = float(instance.rounds @ (values * [best.gap for best in found]))
    return SingleStep(
        "single steps",
        total,
        missed / total if total > 0.0 else missed,
        None,
        np.array([best.plan for best in found])[:, 0],
        1,
        reachable=min(best.reachable for best in found),
        values=values,
        row_prices=np.array([best.prices for best in found]),
        row_floor_prices=np.array([best.floor_prices for best in found]),
    )
