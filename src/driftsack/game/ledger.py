"""The ledger: spending and reservations of each budget, when a round may begin, and when the game ends.

Amounts are normalised: a unit of a resource is ``cost_max``, the most that one round may cost.

*Stop rule* (the paper's): the round whose costs would exceed a budget is not charged, earns nothing and ends the game.

*Admission* (``safe``): a round begins only if every budget can pay the highest cost of that round and of every
decision whose outcome is still pending. Then no budget is ever overspent.

A budget is broken when the sum of the costs exceeds it. Sums of decimal fractions have rounding errors (three times 0.1
is a little more than 0.3), so an excess of one part in 10^12 of the budget is tolerated and not reported. Sums are
compensated (Kahan), so their error does not grow with the number of rounds.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.numerics.compiled import kernel

TOLERANCE: Final = 1e-12  # relative rounding error that does not count as overspending


class Ledger(NamedTuple):
    """Budgets, spending and reservations of d resources, in units of ``cost_max``.

    Attributes:
        budget: (d,) the budgets.
        limit: (d,) the budgets plus the tolerance for rounding.
        spent: (d,) spending so far.
        carry: (d,) compensation: the part of the sum that ``spent`` cannot hold.
        reserved: (d,) reservations for decisions whose outcome is pending.
    """

    budget: Floats
    limit: Floats
    spent: Floats
    carry: Floats
    reserved: Floats


def open_ledger(budget: Floats) -> Ledger:
    """A ledger without spending and reservations."""
    budget = np.array(budget, dtype=np.float64)
    spent, carry, reserved = np.zeros((3, budget.size))
    return Ledger(budget, budget * (1.0 + TOLERANCE), spent, carry, reserved)


def reported_spending(ledger: Ledger) -> Floats:
    """(d,) spending so far; an excess within the tolerance is not reported, any other excess is."""
    return np.where(ledger.spent <= ledger.limit, np.minimum(ledger.spent, ledger.budget), ledger.spent)


def is_broken(ledger: Ledger) -> bool:
    """Whether the spending of some resource exceeds its budget."""
    return bool((ledger.spent > ledger.limit).any())


@kernel
def reset_account(ledger: Ledger, j: int, budget: float) -> None:
    """Begin to spend resource ``j`` again, with a new budget."""
    ledger.spent[j] = 0.0
    ledger.carry[j] = 0.0
    set_budget(ledger, j, budget)


@kernel
def set_budget(ledger: Ledger, j: int, budget: float) -> None:
    """Change the budget of resource ``j``."""
    ledger.budget[j] = budget
    ledger.limit[j] = budget * (1.0 + TOLERANCE)


@kernel
def breaks_budget(ledger: Ledger, costs: Floats) -> bool:
    """Whether charging ``costs`` would exceed a budget."""
    for j in range(costs.size):
        if ledger.spent[j] + costs[j] > ledger.limit[j]:
            return True
    return False


@kernel
def charge(ledger: Ledger, costs: Floats) -> None:
    """Add ``costs`` to the spending."""
    for j in range(costs.size):
        step = costs[j] - ledger.carry[j]
        total = ledger.spent[j] + step
        ledger.carry[j] = (total - ledger.spent[j]) - step
        ledger.spent[j] = total


@kernel
def charge_or_stop(ledger: Ledger, costs: Floats, overshoot: Floats) -> bool:
    """The stop rule: charge a round, or return False and write by how much it would exceed each budget."""
    if breaks_budget(ledger, costs):
        for j in range(costs.size):
            overshoot[j] = max(ledger.spent[j] + costs[j] - ledger.budget[j], 0.0)
        return False
    charge(ledger, costs)
    return True


@kernel
def can_pay(ledger: Ledger, rounds: float) -> bool:
    """Whether the budgets can pay for ``rounds`` rounds at the highest cost, which is 1 of each resource.

    Args:
        ledger: The ledger.
        rounds: The number of rounds.

    Returns:
        Whether they can; reservations are ignored.
    """
    for j in range(ledger.budget.size):
        if ledger.spent[j] + rounds > ledger.limit[j]:
            return False
    return True


@kernel
def admits(ledger: Ledger) -> bool:
    """The admission rule of ``safe``: budgets cover all reservations and one more round at the highest cost."""
    for j in range(ledger.budget.size):
        if ledger.spent[j] + (ledger.reserved[j] + 1.0) > ledger.limit[j]:
            return False
    return True


def reserve(ledger: Ledger) -> None:
    """Reserve the highest cost of one round."""
    ledger.reserved[:] += 1.0


def release(ledger: Ledger) -> None:
    """Release the reservation of one round."""
    ledger.reserved[:] -= 1.0
