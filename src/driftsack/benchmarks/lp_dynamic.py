r"""OPT_LP-Dynamic: reward of the best plan that knows all means and meets the budgets in expectation.

.. math:: \mathrm{LP}(\{\mu_t\}, \{C_t\}, T) = \max_{x_1, \dots, x_T} \sum_t \mu_t^\top x_t
          \quad \text{s.t. } \sum_t C_t x_t \le B,\; x_t \in \Delta_m \qquad \text{(paper, section 2.2)}

Its dual has only d variables and no constraints except :math:`q \ge 0`: with :math:`n_k` rounds in the distinct row k,

.. math:: \phi(q) = B^\top q + \sum_k n_k \max\bigl(0, \max_i \, \mu_{k,i} - q^\top C_{k,\cdot,i}\bigr).

It is minimised by column generation: each pass over the rows finds the best response to q, and a master program over
the responses seen so far returns the next q. The rows are divided into groups with one response each, and the next q
lies halfway to the best one known (:mod:`driftsack.numerics.bundle`). By Lemma 1 :math:`b^\top q \le 1`, so with
:math:`z_j = q_j b_j` the search is over the unit cube. The plan mixes the responses by the weights of the master
program and is scaled down until it is feasible, which changes it by rounding errors only. Value and gap are computed
from the data. The computation takes about 20 to 60 passes of K m d operations.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from driftsack.benchmarks.benchmark import Benchmark, check_instance, relative_gap
from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.checks import at_least_zero, whole
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.game.units import prices_in_units, units_of
from driftsack.numerics.bundle import Minimum, minimise
from driftsack.numerics.compiled import kernel

GROUPS_PER_RESOURCE: Final = 4


class Rows(Protocol):
    """The rows of a linear program over a horizon; :class:`Instance` is one implementation."""

    @property
    def problem(self) -> Problem:
        """Budgets, horizon and units."""

    @property
    def unit_rewards(self) -> Floats:
        """(K, m) mean rewards, normalised to [0, 1]."""

    @property
    def unit_costs(self) -> Floats:
        """(K, d, m) mean costs, normalised to [0, 1]."""

    @property
    def rounds(self) -> Ints | Floats:
        """(K,) the number of rounds of each row, or its expectation."""


@kernel
def best_response(rewards: Floats, costs: Floats, k: int, prices: Floats, scores: Floats, least: float) -> int:
    """Return the arm of row ``k`` with the largest score mu - q C above ``least``, or -1; write ``scores`` (m,)."""
    resources, arms = costs.shape[1], costs.shape[2]
    for i in range(arms):
        scores[i] = rewards[k, i]
    for j in range(resources):
        price = prices[j]
        if price != 0.0:
            for i in range(arms):
                scores[i] -= price * costs[k, j, i]
    best_arm = -1
    best = least
    for i in range(arms):
        if scores[i] > best:
            best_arm, best = i, scores[i]
    return best_arm


@kernel
def evaluate_responses(
    rewards: Floats,
    costs: Floats,
    rounds: Ints | Floats,
    prices: Floats,
    scores: Floats,
    least: float,
    values: Floats,
    usage: Floats,
) -> None:
    """Write the sum of n_k max(0, best score) of each group, and the resource usage of its best responses.

    Args:
        rewards: (K, m) mean rewards of the distinct rows.
        costs: (K, d, m) mean costs of the distinct rows.
        rounds: (K,) rounds of each row.
        prices: (d,) prices q.
        scores: (m,) scratch space.
        least: The score above which an arm is played: 0 if skipping earns 0, and -inf if every round is answered.
        values: (G,) output: the sum of each group of neighbouring rows.
        usage: (G, d) output: the resource usage of each group.
    """
    groups, rows = values.size, rounds.size
    for g in range(groups):
        total = 0.0
        for j in range(usage.shape[1]):
            usage[g, j] = 0.0
        for k in range(g * rows // groups, (g + 1) * rows // groups):
            arm = best_response(rewards, costs, k, prices, scores, least)
            if arm >= 0:
                total += rounds[k] * scores[arm]
                for j in range(usage.shape[1]):
                    usage[g, j] += rounds[k] * costs[k, j, arm]
        values[g] = total


@kernel
def add_responses(
    rewards: Floats,
    costs: Floats,
    first: int,
    last: int,
    prices: Floats,
    scores: Floats,
    least: float,
    share: float,
    plan: Floats,
) -> None:
    """Add ``share`` of the best responses to ``prices`` to the plan (K, m) of rows ``first`` to ``last`` - 1."""
    for k in range(first, last):
        arm = best_response(rewards, costs, k, prices, scores, least)
        if arm >= 0:
            plan[k, arm] += share


def lp_dynamic(instance: Instance, tolerance: float = 1e-9, most_passes: int = 1000) -> Benchmark:
    """Solve LP({mu_t}, {C_t}, T) to a certified relative gap.

    Args:
        instance: The instance, without contexts.
        tolerance: The relative gap at which to stop.
        most_passes: The largest number of passes over the rows.

    Returns:
        The benchmark, with prices and plan. Its ``gap`` exceeds ``tolerance`` only if the passes ran out.

    >>> import driftsack as ds
    >>> best = lp_dynamic(ds.instances.example_2())
    >>> round(best.value, 6), best.gap <= 1e-9, best.plan.round(6).tolist()
    (5000.0, True, [[0.5, 0.5], [0.0, 1.0]])
    """
    check_instance(instance, "lp_dynamic", floors=True)
    return solve_rows(instance, "LP-Dynamic", tolerance, most_passes)


def solve_rows(rows: Rows, name: str, tolerance: float, most_passes: int) -> Benchmark:
    """Solve the linear program over ``rows`` to a relative gap; return its value, prices and plan."""
    at_least_zero(tolerance, "tolerance")
    whole(most_passes, "most_passes", at_least=1)
    problem = rows.problem
    if problem.floor:
        from driftsack.benchmarks.with_floors import solve_with_floors

        return solve_with_floors(rows, name, tolerance, most_passes)
    # Remove resources without budget: arms that use them are never played.
    budget = problem.unit_budget
    positive = budget > 0
    rate = budget[positive] / problem.horizon
    costs = rows.unit_costs
    rewards = exclude_unaffordable(rows.unit_rewards, costs, ~positive)
    # Minimise the dual, and translate z = q b back to prices.
    minimum = _minimise_dual(rewards, costs, rows.rounds, rate, positive, tolerance, most_passes)
    prices = np.zeros(problem.resources)
    prices[positive] = minimum.point / rate
    prices[~positive] = exclusion_prices(rows.unit_rewards, costs[:, ~positive])
    # Recover the plan, and scale it down until it is feasible.
    plan = _plan(rewards, costs, minimum, rate, positive)
    reward, spent = plan_totals(rows, plan)
    feasible_share = min(1.0, float(np.min(budget[positive] / np.maximum(spent[positive], 1e-300), initial=1.0)))
    plan *= feasible_share
    # Certify: the dual value bounds every plan from above.
    value = dual_value(rows, prices)
    return Benchmark(
        name,
        value * problem.reward_max,
        relative_gap(value, feasible_share * reward, problem.horizon),
        prices_in_units(units_of(problem), prices),
        plan,
        minimum.passes,
    )


def _minimise_dual(
    rewards: Floats,
    costs: Floats,
    rounds: Ints | Floats,
    rate: Floats,
    positive: Bools,
    tolerance: float,
    most_passes: int,
) -> Minimum:
    """Minimise the dual over z = q b in the unit cube, for the resources with a positive budget."""
    rows, arms = rewards.shape
    horizon = float(rounds.sum())
    groups = group_count(rows, rate.size)
    unit = horizon / groups  # scales the values of the master program to the order of 1
    scores, prices = np.zeros(arms), np.zeros(positive.size)
    usage = np.zeros((groups, positive.size))

    def oracle(point: Floats, values: Floats, slopes: Floats) -> None:
        prices[positive] = point / rate
        evaluate_responses(rewards, costs, rounds, prices, scores, 0.0, values, usage)
        values /= unit
        slopes[:] = -usage[:, positive] / (rate * unit)

    linear = np.full(rate.size, horizon / unit)
    return minimise(oracle, np.zeros(rate.size), np.ones(rate.size), linear, groups, tolerance / 2, most_passes)


def _plan(rewards: Floats, costs: Floats, minimum: Minimum, rate: Floats, positive: Bools) -> Floats:
    """Return the plan (K, m): the mixture of best responses that attains the lower bound."""
    rows, arms = rewards.shape
    groups = group_count(rows, rate.size)
    plan, scores, prices = np.zeros((rows, arms)), np.zeros(arms), np.zeros(positive.size)
    for group, visit, share in minimum.weights:
        prices[positive] = minimum.visits[visit] / rate
        first, last = group * rows // groups, (group + 1) * rows // groups
        add_responses(rewards, costs, first, last, prices, scores, 0.0, share, plan)
    return plan


def group_count(rows: int, resources: int) -> int:
    """Return the number of groups of rows, each with its own cut."""
    return min(rows, GROUPS_PER_RESOURCE * max(resources, 1))


def exclude_unaffordable(rewards: Floats, costs: Floats, without_budget: Bools) -> Floats:
    """Return the rewards (K, m) with -1 for arms that use a resource without budget, so that they are never played."""
    if not without_budget.any():
        return rewards
    return np.where((costs[:, without_budget] > 0).any(axis=1), -1.0, rewards)


def exclusion_prices(rewards: Floats, costs: Floats) -> Floats:
    """Return the smallest prices at which no arm that uses a resource without budget has a positive score."""
    ratio = np.divide(rewards[:, None], costs, out=np.zeros(costs.shape), where=costs > 0)
    smallest: Floats = ratio.max(axis=(0, 2), initial=0.0)
    return smallest


def plan_totals(rows: Rows, plan: Floats) -> tuple[float, Floats]:
    """Return the normalised reward and costs (d,) of a plan (K, m) over the horizon."""
    weighted = plan * rows.rounds[:, None]
    return float(np.einsum("ki,ki->", rows.unit_rewards, weighted)), np.einsum("kji,ki->j", rows.unit_costs, weighted)


def dual_value(rows: Rows, prices: Floats) -> float:
    """Return phi(q), which bounds the normalised reward of every plan from above for any prices q >= 0."""
    values, usage = np.zeros(1), np.zeros((1, prices.size))
    rewards, costs = rows.unit_rewards, rows.unit_costs
    evaluate_responses(rewards, costs, rows.rounds, prices, np.zeros(rewards.shape[1]), 0.0, values, usage)
    return float((rows.problem.unit_budget * prices).sum() + values[0])
