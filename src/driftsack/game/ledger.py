"""The ledger: spending and reservations of each budget, when a round may begin, and when the game ends.

Amounts are integers in grid units (:mod:`driftsack.game.amounts`), so sums and comparisons are exact. Policies
plan with sums of floats beside them, because the next decision would have to wait for the conversion of an exact sum.

*Stop rule* (the paper's): the round whose costs would exceed a budget is not charged, earns nothing and ends the game.

*Admission* (``safe``): an arm may be chosen only if every budget covers its maximum cost and the reservations of
all pending decisions. Then no budget is ever overspent.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import frozen
from driftsack.core.problem import Problem
from driftsack.game.amounts import MOST_UNITS, cost_units, grid_exponent, grid_factors, in_units_of_problem, whole_units
from driftsack.numerics.compiled import kernel

UNBOUNDED: Final = 1000.0  # without a known highest cost, the grid is chosen as for this part of the budget
UNLIMITED: Final = 1e9  # rounds at the maximum cost for which the grid of a resource without a budget is chosen
FINEST_UNBOUNDED: Final = 18  # the finest grid on which a cost of 1, the unit of planning, can be written


class Ledger(NamedTuple):
    """Budgets, spending and reservations of d resources.

    Attributes:
        budget: (d,) the budgets in units of ``cost_max``, for planning; ``granted`` decides.
        spent: (d,) the spending in units of ``cost_max``, a sum of floats for planning; ``charged`` decides.
        granted: (d,) the budgets in grid units.
        charged: (d,) the spending in grid units.
        reserved: (d,) the reservations for decisions whose outcome is pending, in grid units.
        most: (d,) the maximum cost of a round, in grid units.
        cost_max: (d,) the maximum cost of a round, in the problem's units.
        fine: (d,) see :func:`driftsack.game.amounts.grid_factors`.
        coarse: (d,) see there.
        per_cost: (d,) grid units of ``cost_max``, as a float.
    """

    budget: Floats
    spent: Floats
    granted: Ints
    charged: Ints
    reserved: Ints
    most: Ints
    cost_max: Floats
    fine: Floats
    coarse: Floats
    per_cost: Floats


def open_ledger(problem: Problem) -> Ledger:
    """A ledger without spending and reservations."""
    exponents = grid_exponents(problem)
    factors = np.array([grid_factors(k) for k in exponents])
    units = [budget_units(amount, k) for amount, k in zip(problem.budget, exponents, strict=True)]
    granted, per_cost = np.array(units, dtype=np.int64), factors[:, 0] / factors[:, 1] * problem.cost_max
    charged, reserved = np.zeros((2, problem.resources), dtype=np.int64)
    return Ledger(
        budget=granted / per_cost,
        spent=np.zeros(problem.resources),
        granted=granted,
        charged=charged.copy(),
        reserved=reserved.copy(),
        most=frozen(worst_units(problem).max(axis=1)),
        cost_max=frozen(np.array(problem.cost_max)),
        fine=frozen(factors[:, 0]),
        coarse=frozen(factors[:, 1]),
        per_cost=frozen(per_cost),
    )


def grid_exponents(problem: Problem) -> list[int]:
    """The exponent of the grid of each resource."""
    pairs = zip(problem.budget, problem.cost_max, strict=True)
    return [_exponent(amount, most, problem.bounded) for amount, most in pairs]


def _exponent(budget: float, cost_max: float, bounded: bool) -> int:
    """The exponent of the grid of one resource."""
    if math.isinf(budget):
        return grid_exponent(UNLIMITED * cost_max, cost_max)
    if bounded:
        return grid_exponent(budget, cost_max)
    return min(grid_exponent(budget, budget / UNBOUNDED), FINEST_UNBOUNDED)


def budget_units(budget: float, exponent: int) -> int:
    """A budget in grid units, rounded down; the largest amount of the ledger if it is infinite."""
    return MOST_UNITS if math.isinf(budget) else whole_units(budget, exponent, up=False)


def worst_units(problem: Problem) -> Ints:
    """(d, m) the maximum cost of each arm, in grid units; that of ``cost_max`` if it was not given."""
    same = problem.arm_cost_max is None
    most = [[amount] for amount in problem.cost_max] if same else problem.cost_max_by_arm.tolist()
    rows = zip(most, grid_exponents(problem), strict=True)
    units = np.array([[whole_units(amount, k, up=True) for amount in row] for row, k in rows], dtype=np.int64)
    return np.repeat(units, problem.arms, axis=1) if same else units


def exponents_of(ledger: Ledger) -> list[int]:
    """The exponent of the grid of each resource."""
    factors = zip(ledger.fine.tolist(), ledger.coarse.tolist(), strict=True)
    return [round(math.log10(fine / coarse)) for fine, coarse in factors]


def amounts_of(ledger: Ledger, units: Ints) -> Floats:
    """(d,) numbers of grid units in the problem's units."""
    return np.array([in_units_of_problem(n, k) for n, k in zip(units.tolist(), exponents_of(ledger), strict=True)])


def spent_amounts(ledger: Ledger) -> Floats:
    """(d,) the spending in the problem's units."""
    return amounts_of(ledger, ledger.charged)


@kernel
def is_broken(ledger: Ledger) -> bool:
    """Whether the spending of some resource exceeds its budget."""
    for j in range(ledger.granted.size):
        if ledger.charged[j] > ledger.granted[j]:
            return True
    return False


@kernel
def units_of_cost(ledger: Ledger, j: int, cost: float) -> int:
    """A cost of resource ``j``, given in units of ``cost_max``, in grid units."""
    return cost_units(cost * ledger.cost_max[j], ledger.fine[j], ledger.coarse[j])


@kernel
def planning_units(ledger: Ledger, j: int, units: int) -> float:
    """Grid units of resource ``j`` in units of ``cost_max``."""
    return float(units / ledger.per_cost[j])


@kernel
def set_spending(ledger: Ledger, j: int, units: int) -> None:
    """Set the spending of resource ``j``, in grid units."""
    ledger.charged[j] = units
    ledger.spent[j] = planning_units(ledger, j, units)


@kernel
def set_budget(ledger: Ledger, j: int, budget: float) -> None:
    """Change the budget of resource ``j``, given in units of ``cost_max``; rounded to the grid, if that can hold it."""
    ledger.budget[j] = budget
    ledger.granted[j] = units_of_cost(ledger, j, min(max(budget, 0.0), MOST_UNITS / ledger.per_cost[j]))


@kernel
def reset_account(ledger: Ledger, j: int, budget: float) -> None:
    """Reset the spending of resource ``j``, with a new budget in units of ``cost_max``."""
    set_spending(ledger, j, 0)
    set_budget(ledger, j, budget)


@kernel
def add_cost(ledger: Ledger, j: int, units: int, cost: float) -> None:
    """Add a cost to the spending of resource ``j``: ``units`` on the grid, ``cost`` in units of ``cost_max``."""
    ledger.charged[j] += units
    ledger.spent[j] += cost


@kernel
def charge(ledger: Ledger, costs: Floats) -> None:
    """Add ``costs``, in units of ``cost_max``, to the spending."""
    for j in range(costs.size):
        add_cost(ledger, j, units_of_cost(ledger, j, costs[j]), costs[j])


@kernel
def charge_or_stop(ledger: Ledger, costs: Floats, overshoot: Floats) -> bool:
    """The stop rule: charge a round, or return False and write by how much it would exceed each budget."""
    breaks = False
    for j in range(costs.size):
        add_cost(ledger, j, units_of_cost(ledger, j, costs[j]), costs[j])
        breaks |= ledger.charged[j] > ledger.granted[j]
    if not breaks:
        return True
    for j in range(costs.size):
        overshoot[j] = planning_units(ledger, j, max(ledger.charged[j] - ledger.granted[j], 0))
        set_spending(ledger, j, ledger.charged[j] - units_of_cost(ledger, j, costs[j]))
    return False


@kernel
def can_pay(ledger: Ledger, rounds: int) -> bool:
    """Whether the budgets can pay for ``rounds`` rounds at the highest cost; reservations are ignored.

    Args:
        ledger: The ledger.
        rounds: The number of rounds.
    """
    for j in range(ledger.granted.size):
        if ledger.charged[j] + rounds * ledger.most[j] > ledger.granted[j]:
            return False
    return True


@kernel
def reserve(ledger: Ledger, worst: Ints, arm: int) -> None:
    """Reserve the maximum cost of an arm.

    Args:
        ledger: The ledger.
        worst: (d, m) the maximum cost of each arm, in grid units.
        arm: The arm.
    """
    for j in range(ledger.reserved.size):
        ledger.reserved[j] += worst[j, arm]


@kernel
def release(ledger: Ledger, worst: Ints, arm: int) -> None:
    """Release the reservation of :func:`reserve`.

    Args:
        ledger: The ledger.
        worst: (d, m) the maximum cost of each arm, in grid units.
        arm: The arm.
    """
    for j in range(ledger.reserved.size):
        ledger.reserved[j] -= worst[j, arm]
