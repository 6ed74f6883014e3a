"""Simplex-like domains: no entry is negative, and the sum of all entries is fixed or bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import frozen, number, vector, whole
from driftsack.oco.domains import Domain, Halfspaces, check_bounded, check_not_empty
from driftsack.oco.region import CAPPED_SIMPLEX, ORTHANT, SIMPLEX, Region


@dataclass(frozen=True, eq=False)
class ScaledSimplex(Domain):
    """All x without negative entries that sum to a total.

    Attributes:
        size: The number n of entries.
        total: The sum of the entries, 0 or more.
    """

    size: int
    total: float = 1.0

    def __post_init__(self) -> None:
        whole(self.size, "size", at_least=1)
        check_bounded(self.total, "total")
        object.__setattr__(self, "total", number(self.total, "total"))
        check_not_empty(self.total >= 0, f"total must be 0 or more, got {self.total:g}")

    @property
    def region(self) -> Region:
        """The simplex as an argument of compiled kernels."""
        unused = frozen(np.zeros(self.size))
        return Region(SIMPLEX, unused, unused, self.total)

    @property
    def centre(self) -> Floats:
        """(n,) equal entries."""
        return np.full(self.size, self.total / self.size)

    def least(self, vectors: Floats) -> Floats:
        """Compute the minimum of linear functions: the total is on the entry with the smallest coefficient."""
        least: Floats = self.total * vectors.min(axis=1)
        return least

    @property
    def halfspaces(self) -> Halfspaces:
        """One equation for the total and one condition per entry."""
        rows = np.vstack([np.ones(self.size), -np.eye(self.size)])
        return Halfspaces(rows, np.append(self.total, np.zeros(self.size)), 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the name, the size and the total as plain data."""
        return {"domain": "ScaledSimplex", "size": self.size, "total": self.total}


@dataclass(frozen=True, eq=False)
class CappedSimplex(Domain):
    """All x between 0 and the caps that sum to a total.

    Attributes:
        caps: (n,) the upper bounds of the entries, 0 or more.
        total: The sum of the entries, at most the sum of the caps.

    >>> CappedSimplex([0.5, 1, 1]).project([2.0, 0.5, 0.0]).round(12).tolist()
    [0.5, 0.5, 0.0]
    """

    caps: Any
    total: float = 1.0

    def __post_init__(self) -> None:
        check_bounded(self.caps, "caps")
        check_bounded(self.total, "total")
        caps = frozen(vector(self.caps, "caps"))
        object.__setattr__(self, "caps", caps)
        object.__setattr__(self, "total", number(self.total, "total"))
        check_not_empty(
            bool((caps >= 0).all()) and 0 <= self.total <= caps.sum(),
            f"total must lie between 0 and the sum of the caps, none negative, got total {self.total:g}, caps {caps}",
        )

    @property
    def region(self) -> Region:
        """The capped simplex as an argument of compiled kernels."""
        return Region(CAPPED_SIMPLEX, frozen(np.zeros(self.caps.size)), self.caps, self.total)

    @property
    def centre(self) -> Floats:
        """(n,) the same share of every cap."""
        largest_total = self.caps.sum()
        centre: Floats = self.caps * (self.total / largest_total if largest_total else 0.0)
        return centre

    def least(self, vectors: Floats) -> Floats:
        """Compute the minimum of linear functions: entries with the smallest coefficients are filled first."""
        order = np.argsort(vectors, axis=1)
        caps = self.caps[order]
        filled = np.clip(self.total - (np.cumsum(caps, axis=1) - caps), 0.0, caps)
        least: Floats = (np.take_along_axis(vectors, order, axis=1) * filled).sum(axis=1)
        return least

    @property
    def halfspaces(self) -> Halfspaces:
        """One equation for the total and two conditions per entry."""
        size = self.caps.size
        rows = np.vstack([np.ones(size), -np.eye(size), np.eye(size)])
        return Halfspaces(rows, np.concatenate([[self.total], np.zeros(size), self.caps]), 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the name, the caps and the total as plain data."""
        return {"domain": "CappedSimplex", "caps": self.caps.tolist(), "total": self.total}


@dataclass(frozen=True, eq=False)
class Orthant(Domain):
    """All x without negative entries that sum to at most a bound.

    Attributes:
        size: The number n of entries.
        bound: The largest sum of the entries, 0 or more.
    """

    size: int
    bound: float = 1.0

    def __post_init__(self) -> None:
        whole(self.size, "size", at_least=1)
        check_bounded(self.bound, "bound")
        object.__setattr__(self, "bound", number(self.bound, "bound"))
        check_not_empty(self.bound >= 0, f"bound must be 0 or more, got {self.bound:g}")

    @property
    def region(self) -> Region:
        """The orthant as an argument of compiled kernels."""
        unused = frozen(np.zeros(self.size))
        return Region(ORTHANT, unused, unused, self.bound)

    @property
    def centre(self) -> Floats:
        """(n,) equal entries, with the unused part of the bound as large as one of them."""
        return np.full(self.size, self.bound / (self.size + 1))

    def least(self, vectors: Floats) -> Floats:
        """Compute the minimum of linear functions: the bound is on the smallest coefficient, if it is negative."""
        least: Floats = self.bound * np.minimum(vectors.min(axis=1), 0.0)
        return least

    @property
    def halfspaces(self) -> Halfspaces:
        """One condition for the bound and one per entry."""
        rows = np.vstack([np.ones(self.size), -np.eye(self.size)])
        return Halfspaces(rows, np.append(self.bound, np.zeros(self.size)), 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the name, the size and the bound as plain data."""
        return {"domain": "Orthant", "size": self.size, "bound": self.bound}
