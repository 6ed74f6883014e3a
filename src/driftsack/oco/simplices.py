"""Domains of amounts: none negative, and their sum fixed, capped, or bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import frozen, number, vector, whole
from driftsack.oco.domains import Domain, Halfspaces, bounded, not_empty
from driftsack.oco.region import CAPPED_SIMPLEX, ORTHANT, SIMPLEX, Region


@dataclass(frozen=True, eq=False)
class Simplex(Domain):
    """All x of n = ``size`` entries, none negative, that add up to ``total``."""

    size: int
    total: float = 1.0

    def __post_init__(self) -> None:
        whole(self.size, "size", at_least=1)
        bounded(self.total, "total")
        object.__setattr__(self, "total", number(self.total, "total"))
        not_empty(self.total >= 0, f"total must be 0 or more, got {self.total:g}")

    @property
    def region(self) -> Region:
        """A total."""
        nothing = frozen(np.zeros(self.size))
        return Region(SIMPLEX, nothing, nothing, self.total)

    @property
    def centre(self) -> Floats:
        """Equal shares."""
        return np.full(self.size, self.total / self.size)

    def least(self, vectors: Floats) -> Floats:
        """Everything on the cheapest entry."""
        least: Floats = self.total * vectors.min(axis=1)
        return least

    @property
    def halfspaces(self) -> Halfspaces:
        """One equation, no negative entry."""
        rows = np.vstack([np.ones(self.size), -np.eye(self.size)])
        return Halfspaces(rows, np.append(self.total, np.zeros(self.size)), 1)

    def to_dict(self) -> dict[str, Any]:
        """Size and total."""
        return {"domain": "Simplex", "size": self.size, "total": self.total}


@dataclass(frozen=True, eq=False)
class CappedSimplex(Domain):
    """All x between 0 and ``caps`` that add up to ``total``.

    >>> CappedSimplex([0.5, 1, 1]).project([2.0, 0.5, 0.0]).round(12).tolist()
    [0.5, 0.5, 0.0]
    """

    caps: Any
    total: float = 1.0

    def __post_init__(self) -> None:
        bounded(self.caps, "caps")
        bounded(self.total, "total")
        caps = frozen(vector(self.caps, "caps"))
        object.__setattr__(self, "caps", caps)
        object.__setattr__(self, "total", number(self.total, "total"))
        not_empty(
            bool((caps >= 0).all()) and 0 <= self.total <= caps.sum(),
            f"total must lie between 0 and the sum of the caps, none negative, got total {self.total:g}, caps {caps}",
        )

    @property
    def region(self) -> Region:
        """Caps and a total."""
        return Region(CAPPED_SIMPLEX, frozen(np.zeros(self.caps.size)), self.caps, self.total)

    @property
    def centre(self) -> Floats:
        """The same share of every cap."""
        most = self.caps.sum()
        share: Floats = self.caps * (self.total / most if most else 0.0)
        return share

    def least(self, vectors: Floats) -> Floats:
        """Fill the cheapest entries first."""
        order = np.argsort(vectors, axis=1)
        caps = self.caps[order]
        filled = np.clip(self.total - (np.cumsum(caps, axis=1) - caps), 0.0, caps)
        least: Floats = (np.take_along_axis(vectors, order, axis=1) * filled).sum(axis=1)
        return least

    @property
    def halfspaces(self) -> Halfspaces:
        """One equation, no negative entry, caps."""
        size = self.caps.size
        rows = np.vstack([np.ones(size), -np.eye(size), np.eye(size)])
        return Halfspaces(rows, np.concatenate([[self.total], np.zeros(size), self.caps]), 1)

    def to_dict(self) -> dict[str, Any]:
        """Caps and total."""
        return {"domain": "CappedSimplex", "caps": self.caps.tolist(), "total": self.total}


@dataclass(frozen=True, eq=False)
class Orthant(Domain):
    """All x of n = ``size`` entries, none negative, that add up to at most ``bound``."""

    size: int
    bound: float = 1.0

    def __post_init__(self) -> None:
        whole(self.size, "size", at_least=1)
        bounded(self.bound, "bound")
        object.__setattr__(self, "bound", number(self.bound, "bound"))
        not_empty(self.bound >= 0, f"bound must be 0 or more, got {self.bound:g}")

    @property
    def region(self) -> Region:
        """A bound."""
        nothing = frozen(np.zeros(self.size))
        return Region(ORTHANT, nothing, nothing, self.bound)

    @property
    def centre(self) -> Floats:
        """Equal shares, and as much left over as one share."""
        return np.full(self.size, self.bound / (self.size + 1))

    def least(self, vectors: Floats) -> Floats:
        """Everything on the cheapest entry, or nothing."""
        least: Floats = self.bound * np.minimum(vectors.min(axis=1), 0.0)
        return least

    @property
    def halfspaces(self) -> Halfspaces:
        """A bound, no negative entry."""
        rows = np.vstack([np.ones(self.size), -np.eye(self.size)])
        return Halfspaces(rows, np.append(self.bound, np.zeros(self.size)), 0)

    def to_dict(self) -> dict[str, Any]:
        """Size and bound."""
        return {"domain": "Orthant", "size": self.size, "bound": self.bound}
