r"""The horizon LP with floors: the smallest cost at which every round is answered and all floors are reached.

.. math:: \min_{x_1, \dots, x_T} \sum_t c_t^\top x_t \quad
          \text{s.t. } \sum_t (g_{lt} - f_l)^\top x_t \ge 0,\; \sum_t C_t x_t \le B,\; \textstyle\sum_i x_{ti} = 1,

where :math:`g_{lt}` are the mean rewards, or 1 for one arm and 0 for the others, and :math:`f_l` is the floor. The dual
has one more non-negative variable for each floor,

.. math:: \phi(q, \lambda) = B^\top q + \sum_k n_k \max_i \bigl(- c_{k,i} - q^\top C_{k,\cdot,i}
          + \sum_l \lambda_l (g_{l,k,i} - f_l)\bigr),

and the value is :math:`-\min \phi`. It is minimised like the dual of LP-Dynamic
(:mod:`driftsack.benchmarks.lp_dynamic`), with :math:`f - g` as the costs of a resource whose budget is 0. No bound on
:math:`\lambda` is known beforehand, so the search is over a box that grows until the plan reaches the floors.

If no plan does, the largest share :math:`\theta` of all floors that a plan can reach solves an LP of the same kind,

.. math:: \theta = \min_{q, \lambda \ge 0} \; B^\top q + \max\bigl(0, 1 - T f^\top \lambda\bigr)
          + \sum_k n_k \max_i \bigl(\lambda^\top g_{k,i} - q^\top C_{k,\cdot,i}\bigr) .
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from driftsack.benchmarks.benchmark import SMALLEST_VALUE, Benchmark
from driftsack.benchmarks.lp_dynamic import Rows, add_responses, evaluate_responses, group_count
from driftsack.core.arrays import Floats, Ints
from driftsack.core.errors import InfeasibleError
from driftsack.core.floors import QUALITY
from driftsack.core.problem import Problem
from driftsack.numerics.bundle import Minimum, minimise

ANSWERED: Final = -np.inf  # the least score of an arm that is played: every round is answered
FIRST_BOX: Final = 16.0  # of the prices, in largest costs for the whole range of a floor or for a budget
LARGEST_BOX: Final = 1e9
LARGEST_PRICE: Final = 1e4  # of a budget, in shares of the floors for a whole budget
GROWTH: Final = 64.0
FINEST: Final = 1e-13  # the smallest relative gap that rounding errors allow
SLACK: Final = 1e-8  # per round: a plan that lacks more of a floor or a budget has not reached it
DEGENERATE_PASSES: Final = 100
DEGENERATE: Final = 1e-8  # the relative gap of a program for floors that can only just be reached
UNREACHED: Final = 1e-9  # a share of the floors below 1 by more than this is not reached


class GivenRows(NamedTuple):
    """Rows of a linear program over a horizon."""

    problem: Problem
    unit_rewards: Floats  # (K, m)
    unit_costs: Floats  # (K, d, m)
    rounds: Ints | Floats  # (K,)


class Program(NamedTuple):
    """Maximise the total gains of an arm in each round, with a limit on the total of each use."""

    gains: Floats  # (K, m)
    uses: Floats  # (K, p, m) costs with a budget, then what an arm lacks of each floor
    rounds: Ints | Floats  # (K,)
    limits: Floats  # (p,)
    scale: Floats  # (p,) limits per round, or 1 where they are 0: prices times scale are searched
    offset: float  # the total cost minus the total gains of every plan


class CertifiedPlan(NamedTuple):
    """A plan and the prices that certify it."""

    value: float  # the dual value, which bounds the gains of every plan from above
    prices: Floats  # (p,)
    plan: Floats  # (K, m)
    lacks: Floats  # (p,) by how much the plan exceeds each limit, per round
    passes: int


def solve_with_floors(rows: Rows, name: str, tolerance: float, most_passes: int) -> Benchmark:
    """Solve the linear program over rows to a relative gap.

    Args:
        rows: The rows; their problem has floors.
        name: The name of the benchmark.
        tolerance: The relative gap at which to stop.
        most_passes: The largest number of passes over the rows, for each box.

    Returns:
        The benchmark. If no plan reaches the floors, it is that of the largest share of them that a plan reaches.

    Raises:
        InfeasibleError: The budgets do not suffice to answer every request.
    """
    floors, share = rows.problem.unit_floors, 1.0
    program = _program(rows, floors)
    found = _solve(program, tolerance, most_passes, FIRST_BOX)
    if found.lacks.max(initial=0.0) > SLACK:
        share = reachable_share(rows, tolerance, most_passes)
        if share < 1.0:
            program = _program(rows, floors * share * (1.0 - UNREACHED))
            tolerance, most_passes = max(tolerance, DEGENERATE), min(most_passes, DEGENERATE_PASSES)
        found = _grown(program, tolerance, most_passes)
    return _certified(rows, name, program, found, share)


def floor_gains(problem: Problem, rewards: Floats) -> Floats:
    """Return what an answer by each arm is expected to count towards each floor, (K, k, m), for rewards (K, m)."""
    gains = np.zeros((len(rewards), len(problem.floor), rewards.shape[1]))
    for f, arm in enumerate(problem.floor_arms.tolist()):
        if arm == QUALITY:
            gains[:, f] = rewards
        else:
            gains[:, f, arm] = 1.0
    return gains


def _program(rows: Rows, floors: Floats) -> Program:
    """Return the program of smallest costs: its gains are the costs that are saved beside the dearest arm."""
    problem = rows.problem
    costs, limited = rows.unit_costs, np.flatnonzero(np.isfinite(problem.budget))
    own = costs[:, problem.minimised]
    uses = np.empty((len(costs), limited.size + floors.size, problem.arms))
    uses[:, : limited.size] = costs[:, limited]
    uses[:, limited.size :] = floors[:, None] - floor_gains(problem, rows.unit_rewards)
    limits = np.append(problem.unit_budget[limited], np.zeros(floors.size))
    per_round = limits / problem.horizon
    return Program(
        own.max(axis=1, keepdims=True) - own,
        uses,
        rows.rounds,
        limits,
        np.where(per_round > 0.0, per_round, 1.0),
        float(rows.rounds @ own.max(axis=1)),
    )


def _grown(program: Program, tolerance: float, most_passes: int) -> CertifiedPlan:
    """Solve a program that has a solution, in boxes that grow until the plan keeps its limits."""
    box = FIRST_BOX
    while True:
        box *= GROWTH
        found = _solve(program, tolerance, most_passes, box)
        if found.lacks.max(initial=0.0) <= SLACK or box >= LARGEST_BOX:
            return found


def _solve(program: Program, tolerance: float, most_passes: int, box: float) -> CertifiedPlan:
    """Minimise the dual over prices times scale in a box, and mix the best responses into a plan."""
    gains, uses, rounds, limits, scale, offset = program
    rows, size, horizon = len(gains), limits.size, float(rounds.sum())
    groups = group_count(rows, size)
    unit = horizon / groups  # scales the values of the master program to the order of 1
    scores, usage = np.zeros(gains.shape[1]), np.zeros((groups, size))

    def oracle(point: Floats, values: Floats, slopes: Floats) -> None:
        evaluate_responses(gains, uses, rounds, point / scale, scores, ANSWERED, values, usage)
        values /= unit
        slopes[:] = -usage / (scale * unit)

    cheapest = max(offset - float(rounds @ gains.max(axis=1)), SMALLEST_VALUE * horizon)
    fine = max(tolerance * min(cheapest / max(offset, cheapest), 1.0) / 2, FINEST)
    found = minimise(
        oracle,
        np.zeros(size),
        np.full(size, box),
        limits / (scale * unit),
        groups,
        fine,
        most_passes,
    )
    plan = _mixed(program, found, groups)
    return CertifiedPlan(found.upper * unit, found.point / scale, plan, _lacks(program, plan), found.passes)


def _mixed(program: Program, found: Minimum, groups: int) -> Floats:
    """Return the plan (K, m): the mixture of best responses that attains the lower bound."""
    rows, arms = program.gains.shape
    plan, scores = np.zeros((rows, arms)), np.zeros(arms)
    for group, visit, share in found.weights:
        prices = found.visits[visit] / program.scale
        first, last = group * rows // groups, (group + 1) * rows // groups
        add_responses(program.gains, program.uses, first, last, prices, scores, ANSWERED, share, plan)
    return plan


def _lacks(program: Program, plan: Floats) -> Floats:
    """Return by how much a plan exceeds each limit, per round."""
    used = np.einsum("kpi,ki->p", program.uses, plan * program.rounds[:, None])
    excess: Floats = np.maximum(used - program.limits, 0.0) / float(program.rounds.sum())
    return excess


def reachable_share(rows: Rows, tolerance: float, most_passes: int) -> float:
    """Return the largest share of all floors that a plan reaches, at most 1.

    Raises:
        InfeasibleError: The budgets do not suffice to answer every request.
    """
    problem = rows.problem
    horizon, limited = problem.horizon, np.isfinite(problem.budget)
    floors, budget = problem.unit_floors, problem.unit_budget[limited]
    rewards, uses, rounds = floor_gains(problem, rows.unit_rewards), rows.unit_costs[:, limited], rows.rounds
    # The terms of the rows use "costs" C and minus g; prices are in units in which all of them are about 1.
    both = np.ascontiguousarray(np.concatenate([uses, -rewards], axis=1))
    per_round = np.where(budget > 0.0, budget / horizon, 1.0)
    scale = np.append(per_round, floors)
    groups = group_count(len(both), scale.size)
    scores, usage, nothing = np.zeros(problem.arms), np.zeros((groups, scale.size)), np.zeros_like(rows.unit_rewards)

    def oracle(point: Floats, values: Floats, slopes: Floats) -> None:
        evaluate_responses(nothing, both, rounds, point / scale, scores, ANSWERED, values[:groups], usage)
        slopes[:groups] = -usage / (scale * horizon)
        values[:groups] /= horizon
        over = 1.0 - point[budget.size :].sum()
        values[groups], slopes[groups] = max(over, 0.0), 0.0
        slopes[groups, budget.size :] = -1.0 if over > 0.0 else 0.0

    linear = np.append(budget / (horizon * per_round), np.zeros(floors.size))
    high = np.append(np.full(budget.size, LARGEST_PRICE), np.ones(floors.size))
    found = minimise(oracle, np.zeros(scale.size), high, linear, groups + 1, max(tolerance, FINEST), most_passes)
    if found.upper < -SLACK:
        raise InfeasibleError(
            "the budgets do not suffice to answer every request, which a floor asks for; give larger budgets, a "
            "cheaper arm, or no budgets."
        )
    return 1.0 if found.lower > 1.0 - UNREACHED else max(found.lower, 0.0)


def _certified(rows: Rows, name: str, program: Program, found: CertifiedPlan, share: float) -> Benchmark:
    """Return the benchmark in the problem's units, with the gap between the plan and the prices."""
    problem = rows.problem
    unit, limited = np.asarray(problem.cost_max)[problem.minimised], np.isfinite(problem.budget)
    resources = int(limited.sum())
    # The gap of the plan, if what it lacks is bought at the prices.
    value = program.offset - found.value
    cost = program.offset - float(np.einsum("ki,ki->", program.gains, found.plan * program.rounds[:, None]))
    lacking = float(found.prices @ found.lacks) * problem.horizon
    least = max(value, SMALLEST_VALUE * problem.horizon)
    # Prices in the problem's units.
    prices = np.zeros(problem.resources)
    prices[limited] = found.prices[:resources] * unit / np.asarray(problem.cost_max)[limited]
    per_reward = np.where(problem.floor_arms == QUALITY, problem.reward_max, 1.0)
    return Benchmark(
        name,
        value * unit,
        max(cost + lacking - value, 0.0) / least,
        prices,
        found.plan,
        found.passes,
        found.prices[resources:] * unit / per_reward,
        share,
    )
