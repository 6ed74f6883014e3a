r"""Exact amounts: budgets, costs and reservations as integers, in the grid units of their resource.

A grid unit is a power of ten, :math:`10^{-k}` of the problem's unit, chosen once for each resource and so fine that the
budget has up to :math:`10^{18}` units and the highest cost of a round up to :math:`10^{12}`. Sums of integers have no
rounding errors, so budgets are compared without a tolerance.

A float stands for the decimal number that it was written as: 0.1 is one tenth, and three of them are exactly 0.3. A
number that is not on the grid is rounded up if it is a cost and down if it is a budget, so the ledger never holds less
spending than there was.

*Why* :func:`cost_units` *is exact.* For an amount x of up to :math:`10^{15}` units let n be the integer nearest to
:math:`10^k x`, computed with rounding. Powers of ten up to :math:`10^{22}` are floats, so :math:`q = n / 10^k` is
correctly rounded: it is the float that the grid number :math:`n 10^{-k}` is written as. If q = x, the amount is that
grid number. As rounding is monotonic, q < x means that the amount exceeds it, and is charged as n + 1.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from driftsack.core.arrays import Ints
from driftsack.core.errors import OutOfRangeError
from driftsack.numerics.compiled import kernel

MOST_BUDGET: Final = 10**18  # units of a budget when the grid is chosen
MOST_COST: Final = 10**12  # units of the highest cost of a round when the grid is chosen
MOST_UNITS: Final = 8 * 10**18  # units that a sum may reach; int64 ends at 9.2e18
MOST_EXACT: Final = 2**53  # every integer up to it is a float
FINEST: Final = 22  # 10^22 is the largest power of ten that is a float
_EXACT: Final = Context(prec=400, Emin=-5000, Emax=5000)


@lru_cache(maxsize=1024)
def grid_exponent(budget: float, cost_max: float) -> int:
    """Return k such that a grid unit is 10^-k of the problem's unit.

    Args:
        budget: The budget of the resource.
        cost_max: The maximum cost of a round.

    Returns:
        The exponent, between -22 and 22.

    Raises:
        OutOfRangeError: The amounts are too large for any grid.

    >>> grid_exponent(200.0, 0.25)
    12
    """
    largest = max(Decimal(repr(float(budget))) / MOST_BUDGET, Decimal(repr(float(cost_max))) / MOST_COST)
    exponent = FINEST if largest == 0 else min(-_ceil_log10(largest), FINEST)
    if exponent < -FINEST:
        raise OutOfRangeError(
            f"a budget must be at most 1e40 and cost_max at most 1e34, got {budget:g} and {cost_max:g}; "
            "use a larger unit."
        )
    return exponent


def _ceil_log10(value: Decimal) -> int:
    """The smallest n with 10^n >= value."""
    return value.adjusted() + (value != Decimal((0, (1,), value.adjusted())))


def grid_factors(exponent: int) -> tuple[float, float]:
    """Return (fine, coarse), both powers of ten of which one is 1: a grid unit is coarse/fine of the problem's unit.

    Args:
        exponent: The exponent k.
    """
    return float(10 ** max(exponent, 0)), float(10 ** max(-exponent, 0))


@lru_cache(maxsize=1024)
def whole_units(amount: float, exponent: int, up: bool) -> int:
    """Return an amount of any size in grid units, exactly.

    Args:
        amount: The amount, in the problem's units.
        exponent: The exponent k of the grid.
        up: Whether an amount between two grid numbers is rounded up, as costs are, or down, as budgets are.

    Raises:
        OutOfRangeError: The amount is larger than a ledger can hold.

    >>> whole_units(0.3, 2, up=True), whole_units(1 / 3, 2, up=True), whole_units(1 / 3, 2, up=False)
    (30, 34, 33)
    """
    scaled = _EXACT.scaleb(Decimal(repr(float(amount))), exponent)
    units = int(scaled.to_integral_value(ROUND_CEILING if up else ROUND_FLOOR, _EXACT))
    if units > MOST_UNITS:
        largest = MOST_UNITS / 10.0**exponent
        raise OutOfRangeError(f"the ledger of this budget holds amounts up to {largest:.3g}, got {float(amount):g}.")
    return units


@kernel
def cost_units(amount: float, fine: float, coarse: float) -> int:
    """Return a cost in grid units, rounded up; exact up to 10^15 units, to one part in 10^15 above.

    Args:
        amount: The cost, in the problem's units.
        fine: See :func:`grid_factors`.
        coarse: See :func:`grid_factors`.
    """
    if coarse == 1.0:
        nearest = np.rint(amount * fine)
        return int(nearest) + int(nearest / fine < amount)
    nearest = np.rint(amount / coarse)
    return int(nearest) + int(nearest * coarse < amount)


def in_units_of_problem(units: int, exponent: int) -> float:
    """Return the float nearest to a number of grid units, in the problem's units.

    Args:
        units: The number of grid units.
        exponent: The exponent k of the grid.

    >>> in_units_of_problem(30, 2)
    0.3
    """
    if abs(units) <= MOST_EXACT:  # one operation on two floats without rounding errors
        fine, coarse = grid_factors(exponent)
        return units / fine if coarse == 1.0 else units * coarse
    return float(_EXACT.scaleb(Decimal(int(units)), -exponent))


def share_of(units: Ints, share: float) -> Ints:
    """Return a share of amounts in grid units, rounded down; exact, since a rounding error would be money.

    Args:
        units: (d,) the amounts.
        share: The share, which stands for the decimal number that it was written as.

    Returns:
        (d,) the shares in grid units.

    >>> share_of(np.array([30, 7]), 0.1)
    array([3, 0])
    """
    exact = Fraction(repr(float(share)))
    return np.array([int(exact * amount) for amount in units.tolist()], dtype=np.int64)
