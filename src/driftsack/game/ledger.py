"""The ledger: what was spent of each budget, summed without drift, and when a budget counts as broken.

A budget is broken when the sum of the costs exceeds it. Sums of decimal fractions carry rounding (three times
0.1 is a little more than 0.3), so a part in 10^12 of the budget is forgiven, and what is reported never
exceeds the budget because of it. Sums are compensated (Kahan): their error does not grow with T.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.numerics.compiled import kernel

FORGIVEN: Final = 1e-12


class Ledger(NamedTuple):
    """Budgets and spending in units of ``cost_max``."""

    budget: Floats  # (d,)
    limit: Floats  # (d,) budget and the forgiven rounding
    spent: Floats  # (d,)
    carry: Floats  # (d,) the part of the sum that ``spent`` could not hold
    rate: Floats  # (d,) what a round may use on average: b = B/T, or what a spending plan says for today


def open_ledger(budget: Floats, rounds: int) -> Ledger:
    """A ledger for ``rounds`` rounds on which nothing has been spent."""
    budget = np.array(budget, dtype=np.float64)
    return Ledger(budget, budget * (1.0 + FORGIVEN), np.zeros(budget.size), np.zeros(budget.size), budget / rounds)


def without_rounding(ledger: Ledger) -> Floats:
    """(d,) what was spent; an excess that is forgiven as rounding is not reported, any other is."""
    return np.where(ledger.spent <= ledger.limit, np.minimum(ledger.spent, ledger.budget), ledger.spent)


@kernel
def breaks(ledger: Ledger, costs: Floats) -> bool:
    """Whether paying ``costs`` would break a budget."""
    for j in range(costs.size):
        if ledger.spent[j] + costs[j] > ledger.limit[j]:
            return True
    return False


@kernel
def charge(ledger: Ledger, costs: Floats) -> None:
    """Add ``costs`` to what was spent."""
    for j in range(costs.size):
        step = costs[j] - ledger.carry[j]
        total = ledger.spent[j] + step
        ledger.carry[j] = (total - ledger.spent[j]) - step
        ledger.spent[j] = total


@kernel
def affordable(ledger: Ledger, rounds: int) -> bool:
    """Whether ``rounds`` rounds at the highest cost, 1 of each resource, would still break no budget."""
    for j in range(ledger.budget.size):
        if ledger.spent[j] + rounds > ledger.limit[j]:
            return False
    return True


@kernel
def broken(ledger: Ledger) -> bool:
    """Whether more was spent than some budget holds."""
    for j in range(ledger.budget.size):
        if ledger.spent[j] > ledger.limit[j]:
            return True
    return False
