"""The reference ledger of the soak: seasons, reservations and charges in exact arithmetic.

It does not use the library's ledger. Amounts are Python integers, in grid units. A float stands for its shortest
decimal representation. Costs are rounded up to the grid; budgets and rollovers are rounded down.
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
    overran: bool = field(default=False)  # whether one of its decisions cost more than was reserved

    def balanced(self) -> bool:
        """Whether the budgets cover all spending and all reservations."""
        return all(self.charged[j] + self.reserved[j] <= limit for j, limit in enumerate(self.granted))


class Accounts:
    """The books of a learner.

    Args:
        cost_max: (d,) the maximum costs of a decision, or None if they are unknown.
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
        """The current season."""
        return self.seasons[-1]

    @property
    def number(self) -> int:
        """The number of the current season, from 0."""
        return len(self.seasons) - 1

    def units(self, amounts: Iterable[float], up: bool = False) -> Units:
        """Convert amounts to grid units, rounded up or down."""
        exact = [Fraction(repr(float(amount))) * scale for amount, scale in zip(amounts, self.scale, strict=True)]
        return [math.ceil(amount) if up else math.floor(amount) for amount in exact]

    def amounts(self, units: Iterable[int]) -> list[float]:
        """Convert grid units to the nearest floats."""
        return [float(number / scale) for number, scale in zip(units, self.scale, strict=True)]

    def room(self, books: Season | None = None) -> Units:
        """The budgets of a season, by default the current one, minus charges and reservations."""
        books = books or self.now
        return [books.granted[j] - books.charged[j] - books.reserved[j] for j in range(len(self.scale))]

    def reserve(self, units: Units) -> None:
        """Reserve amounts for decisions of the current season."""
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
        if season < self.number:  # amounts that are released later roll over, too
            gained = [max(now, 0) - max(then, 0) for now, then in zip(self.room(books), before, strict=True)]
            moved = [math.floor(books.rollover * max(amount, 0)) for amount in gained]
            books.granted = list(map(sub, books.granted, moved))
            self.now.granted = list(map(add, self.now.granted, moved))

    def forfeit(self, season: int, reserved: Units) -> None:
        """Charge the reservation of a decision."""
        books = self.seasons[season]
        books.reserved = list(map(sub, books.reserved, reserved))
        books.charged = list(map(add, books.charged, reserved))

    def grant(self, amounts: Iterable[float]) -> None:
        """Add to the budgets of the current season."""
        self.now.granted = list(map(add, self.now.granted, self.units(amounts)))

    def renew(self, budget: Iterable[float], rollover: float) -> None:
        """Begin a season; a share of the remaining budgets rolls over."""
        books = self.now
        books.rollover = Fraction(repr(float(rollover)))
        moved = [math.floor(books.rollover * max(room, 0)) for room in self.room()]
        books.granted = list(map(sub, books.granted, moved))
        self.seasons.append(self._season(list(map(add, self.units(budget), moved))))


def grid_places(budget: float, cost_max: float, finest: int) -> int:
    """The number of decimal places of the finest grid with at most 10^18 units in a budget and 10^12 in a cost.

    >>> grid_places(200.0, 0.25, 22), grid_places(0.0, 1e15, 22)
    (12, -3)
    """
    for places in range(finest, -23, -1):
        unit = Fraction(10) ** -places
        if Fraction(repr(float(budget))) <= unit * 10**18 and Fraction(repr(float(cost_max))) <= unit * 10**12:
            return places
    raise ValueError(f"no grid holds a budget of {budget} and costs of {cost_max}")
