r"""OPT_LP-Dynamic: what the best plan earns that knows all means and meets the budgets in expectation.

.. math:: \mathrm{LP}(\{\mu_t\}, \{C_t\}, T) = \max_{x_1, \dots, x_T} \sum_t \mu_t^\top x_t
          \quad \text{s.t. } \sum_t C_t x_t \le B,\; x_t \in \Delta_m \qquad \text{(paper, section 2.2)}

Its dual has only d variables and no constraint but :math:`q \ge 0`: with :math:`n_k` rounds in the distinct row k,

.. math:: \phi(q) = B^\top q + \sum_k n_k \max\bigl(0, \max_i \, \mu_{k,i} - q^\top C_{k,\cdot,i}\bigr).

Column generation: each pass over the rows finds the best response to q; a master program over the responses seen
so far gives the next q. Rows are cut into groups with a response each, and the next q is taken halfway to the best
one known (:mod:`driftsack.numerics.bundle`). By Lemma 1 :math:`b^\top q \le 1`, so with :math:`z_j = q_j b_j` the
search is in the unit cube. The plan mixes the responses by the master's weights and is scaled down, by rounding at
most, until it is feasible; value and gap come from the data. Cost: some 20 to 60 passes of K m d operations.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from driftsack.benchmarks.result import Benchmark, relative_gap
from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.instance import Instance
from driftsack.numerics.bundle import Minimum, minimise
from driftsack.numerics.compiled import kernel

GROUPS_PER_RESOURCE: Final = 4


@kernel
def respond(rewards: Floats, costs: Floats, k: int, prices: Floats, scores: Floats) -> int:
    """The arm of row ``k`` with the largest reward net of prices, into ``scores``; -1 if none is positive."""
    resources, arms = costs.shape[1], costs.shape[2]
    for i in range(arms):
        scores[i] = rewards[k, i]
    for j in range(resources):
        price = prices[j]
        if price != 0.0:
            for i in range(arms):
                scores[i] -= price * costs[k, j, i]
    chosen = -1
    best = 0.0
    for i in range(arms):
        if scores[i] > best:
            chosen, best = i, scores[i]
    return chosen


@kernel
def pass_over_rows(
    rewards: Floats, costs: Floats, rounds: Ints, prices: Floats, scores: Floats, values: Floats, uses: Floats
) -> None:
    """For each group of rows: sum of n_k max(0, best score), and the resources its best responses use."""
    groups, rows = values.size, rounds.size
    for g in range(groups):
        total = 0.0
        for j in range(uses.shape[1]):
            uses[g, j] = 0.0
        for k in range(g * rows // groups, (g + 1) * rows // groups):
            arm = respond(rewards, costs, k, prices, scores)
            if arm >= 0:
                total += rounds[k] * scores[arm]
                for j in range(uses.shape[1]):
                    uses[g, j] += rounds[k] * costs[k, j, arm]
        values[g] = total


@kernel
def add_responses(
    rewards: Floats, costs: Floats, first: int, last: int, prices: Floats, scores: Floats, share: float, plan: Floats
) -> None:
    """Add ``share`` of the best responses to ``prices`` to the plan of rows first to last."""
    for k in range(first, last):
        arm = respond(rewards, costs, k, prices, scores)
        if arm >= 0:
            plan[k, arm] += share


def lp_dynamic(instance: Instance, tolerance: float = 1e-9, most_passes: int = 1000) -> Benchmark:
    """Solve LP({mu_t}, {C_t}, T) to a certified relative gap.

    >>> import driftsack as ds
    >>> best = lp_dynamic(ds.instances.example_2())
    >>> round(best.value, 6), best.gap <= 1e-9, best.plan.round(6).tolist()
    (5000.0, True, [[0.5, 0.5], [0.0, 1.0]])
    """
    problem = instance.problem
    budget = problem.unit_budget
    positive = budget > 0
    rewards, costs = forbid(instance.unit_rewards, instance.unit_costs, ~positive)
    found, search = _search(rewards, costs, instance.rounds, budget[positive], positive, tolerance, most_passes)
    prices = np.zeros(problem.resources)
    prices[positive] = found.point / search
    plan = _plan(rewards, costs, found, search, positive)
    prices[~positive] = shut_out(instance.unit_rewards, instance.unit_costs[:, ~positive])
    earned, spent = weigh(instance, plan)
    shrink = min(1.0, float(np.min(budget[positive] / np.maximum(spent[positive], 1e-300), initial=1.0)))
    plan *= shrink
    value = dual_value(instance, prices)
    return Benchmark(
        "LP-Dynamic",
        value * problem.reward_max,
        relative_gap(value, shrink * earned, problem.horizon),
        prices * problem.reward_max / np.asarray(problem.cost_max),
        plan,
        found.passes,
    )


def _search(
    rewards: Floats,
    costs: Floats,
    rounds: Ints,
    budget: Floats,
    positive: Bools,
    tolerance: float,
    most_passes: int,
) -> tuple[Minimum, Floats]:
    """Minimise the dual over z = q b in the unit cube; returns what was found and b."""
    rows, arms = rewards.shape
    horizon = int(rounds.sum())
    groups = group_count(rows, budget.size)
    unit = horizon / groups  # values of order 1 for the master
    rate = budget / horizon
    scores, prices = np.zeros(arms), np.zeros(positive.size)
    uses = np.zeros((groups, positive.size))

    def oracle(point: Floats, values: Floats, slopes: Floats) -> None:
        prices[positive] = point / rate
        pass_over_rows(rewards, costs, rounds, prices, scores, values, uses)
        values /= unit
        slopes[:] = -uses[:, positive] / (rate * unit)

    linear = np.full(budget.size, horizon / unit)
    cube = np.ones(budget.size)
    found = minimise(oracle, np.zeros(budget.size), cube, linear, groups, tolerance / 2, most_passes)
    return found, rate


def _plan(rewards: Floats, costs: Floats, found: Minimum, rate: Floats, positive: Bools) -> Floats:
    """The mix of best responses behind the lower bound."""
    rows, arms = rewards.shape
    groups = group_count(rows, rate.size)
    plan, scores, prices = np.zeros((rows, arms)), np.zeros(arms), np.zeros(positive.size)
    for group, visit, share in found.weights:
        prices[positive] = found.visits[visit] / rate
        first, last = group * rows // groups, (group + 1) * rows // groups
        add_responses(rewards, costs, first, last, prices, scores, share, plan)
    return plan


def group_count(rows: int, resources: int) -> int:
    """How many groups of rows have a response of their own."""
    return min(rows, GROUPS_PER_RESOURCE * max(resources, 1))


def forbid(rewards: Floats, costs: Floats, shut: Bools) -> tuple[Floats, Floats]:
    """Rewards in which no arm that uses a resource without budget is worth playing."""
    if not shut.any():
        return rewards, costs
    return np.where((costs[:, shut] > 0).any(axis=1), -1.0, rewards), costs


def shut_out(rewards: Floats, costs: Floats) -> Floats:
    """For resources without budget, the least price at which no arm that uses them is worth playing."""
    ratio = np.divide(rewards[:, None], costs, out=np.zeros(costs.shape), where=costs > 0)
    least: Floats = ratio.max(axis=(0, 2), initial=0.0)
    return least


def weigh(instance: Instance, plan: Floats) -> tuple[float, Floats]:
    """What a plan (K, m) earns and uses (d,) over the horizon, as kernels see it."""
    weighted = plan * instance.rounds[:, None]
    return float(np.vdot(instance.unit_rewards, weighted)), np.einsum("kji,ki->j", instance.unit_costs, weighted)


def dual_value(instance: Instance, prices: Floats) -> float:
    """phi(q), an upper bound on every plan for any prices q >= 0, as kernels see it."""
    values, uses = np.zeros(1), np.zeros((1, prices.size))
    rewards, costs = instance.unit_rewards, instance.unit_costs
    pass_over_rows(rewards, costs, instance.rounds, prices, np.zeros(instance.arms), values, uses)
    return float(instance.problem.unit_budget @ prices + values[0])
