"""The reference ledger of the soak: seasons, reservations and charges in exact arithmetic.

It does not use the library's ledger. An amount is a Python integer, a number of grid units. A float stands for the
decimal number that it is written as. Costs are rounded up to the grid, budgets and what rolls over down.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from operator import add, sub

Units = list[int]


@dataclass
class Season:
    """The books of one season, in grid units."""

    granted: Units
    charged: Units
    reserved: Units
    rollover: Fraction = Fraction(0)
    overran: bool = field(default=False)  # whether some decision of it cost more than was reserved

    def balanced(self) -> bool:
        """Whether the budgets cover all spending and all reservations."""
        return all(self.charged[j] + self.reserved[j] <= limit for j, limit in enumerate(self.granted))


class Accounts:
    """The books of a learner.

    Args:
        budget: (d,) the budgets.
        cost_max: (d,) the most that a decision may cost, or None if that is not known.
    """

    def __init__(self, budget: Sequence[float], cost_max: Sequence[float] | None) -> None:
        most = [amount / 1000 for amount in budget] if cost_max is None else cost_max
        finest = 18 if cost_max is None else 22
        self.places = [grid_places(*amounts, finest) for amounts in zip(budget, most, strict=True)]
        self.scale = [Fraction(10) ** places for places in self.places]
        self.seasons = [self._season(self.units(budget))]

    def _season(self, granted: Units) -> Season:
        return Season(granted, [0] * len(granted), [0] * len(granted))

    @property
    def now(self) -> Season:
        """The present season."""
        return self.seasons[-1]

    @property
    def number(self) -> int:
        """The number of the present season, from 0."""
        return len(self.seasons) - 1

    def units(self, amounts: Iterable[float], up: bool = False) -> Units:
        """Amounts in grid units, rounded up or down."""
        exact = [Fraction(repr(float(amount))) * scale for amount, scale in zip(amounts, self.scale, strict=True)]
        return [math.ceil(amount) if up else math.floor(amount) for amount in exact]

    def amounts(self, units: Iterable[int]) -> list[float]:
        """The floats nearest to numbers of grid units."""
        return [float(number / scale) for number, scale in zip(units, self.scale, strict=True)]

    def room(self, books: Season | None = None) -> Units:
        """What the budgets of a season, the present one if omitted, have left after all reservations."""
        books = books or self.now
        return [books.granted[j] - books.charged[j] - books.reserved[j] for j in range(len(self.scale))]

    def reserve(self, units: Units) -> None:
        """Reserve for decisions of the present season."""
        self.now.reserved = list(map(add, self.now.reserved, units))

    def settle(self, season: int, reserved: Units, costs: Units, forfeited: bool = False) -> None:
        """Replace the reservation of a decision, or its charge if it was forfeited, by its costs."""
        books = self.seasons[season]
        before = self.room(books)
        if forfeited:
            books.charged = list(map(sub, books.charged, reserved))
        else:
            books.reserved = list(map(sub, books.reserved, reserved))
        books.charged = list(map(add, books.charged, costs))
        if season < self.number:  # what becomes free rolls over, as the rest of its season did
            gained = [max(now, 0) - max(then, 0) for now, then in zip(self.room(books), before, strict=True)]
            moved = [math.floor(books.rollover * max(amount, 0)) for amount in gained]
            books.granted = list(map(sub, books.granted, moved))
            self.now.granted = list(map(add, self.now.granted, moved))

    def forfeit(self, season: int, reserved: Units) -> None:
        """Charge what was reserved for a decision."""
        books = self.seasons[season]
        books.reserved = list(map(sub, books.reserved, reserved))
        books.charged = list(map(add, books.charged, reserved))

    def grant(self, amounts: Iterable[float]) -> None:
        """Add to the budgets of the present season."""
        self.now.granted = list(map(add, self.now.granted, self.units(amounts)))

    def renew(self, budget: Iterable[float], rollover: float) -> None:
        """Begin a season with a share of what is left."""
        books = self.now
        books.rollover = Fraction(repr(float(rollover)))
        moved = [math.floor(books.rollover * max(room, 0)) for room in self.room()]
        books.granted = list(map(sub, books.granted, moved))
        self.seasons.append(self._season(list(map(add, self.units(budget), moved))))


def grid_places(budget: float, cost_max: float, finest: int) -> int:
    """The most decimal places with which a budget has up to 10^18 units and a cost up to 10^12.

    >>> grid_places(200.0, 0.25, 22), grid_places(0.0, 1e15, 22)
    (12, -3)
    """
    for places in range(finest, -23, -1):
        unit = Fraction(10) ** -places
        if Fraction(repr(float(budget))) <= unit * 10**18 and Fraction(repr(float(cost_max))) <= unit * 10**12:
            return places
    raise ValueError(f"no grid holds a budget of {budget} and costs of {cost_max}")
