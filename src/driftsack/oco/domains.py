r"""Where decisions live: convex, closed and bounded sets with exact projections.

Each knows three things: the nearest point, :math:`\arg\min_{x \in X} \|x - p\|_2`; the least value of a linear
function, :math:`\min_{x \in X} v^\top x`, which certificates and sup norms are made of; and itself as constraints of
a convex program.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftsack.core.checks import Floats, floats, frozen, number, vector, whole
from driftsack.core.errors import EmptyDomainError, SettingError, UnboundedDomainError
from driftsack.oco.region import BALL, BOX, CAPPED_SIMPLEX, ORTHANT, SIMPLEX, Region, project


@dataclass(frozen=True, eq=False)
class Domain(abc.ABC):
    """A convex, closed, bounded and non-empty set."""

    @property
    @abc.abstractmethod
    def region(self) -> Region:
        """The domain as kernels see it."""

    @property
    def dimension(self) -> int:
        """The length n of its points."""
        return int(self.region.low.size)

    @property
    @abc.abstractmethod
    def centre(self) -> Floats:
        """(n,) a point well inside: where learners begin."""

    @abc.abstractmethod
    def least(self, vectors: Floats) -> Floats:
        """(K,) the least value over the domain of each linear function v·x, vectors (K, n)."""

    @abc.abstractmethod
    def program(self, x: Any) -> list[Any]:
        """The domain as constraints on a cvxpy variable."""

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Name and numbers as plain data; :func:`from_dict` reads them back."""

    def move_inside(self, point: Floats) -> None:
        """Move ``point`` to the nearest point of the domain, in place."""
        project(self.region, point)

    def project(self, point: npt.ArrayLike) -> Floats:
        """(n,) the nearest point of the domain.

        >>> Simplex(3).project([0.9, -0.2, 0.5]).round(12).tolist()
        [0.7, 0.0, 0.3]
        """
        moved = floats(point, "point", (self.dimension,)).copy()
        self.move_inside(moved)
        return moved

    def most(self, vectors: Floats) -> Floats:
        """(K,) the largest value over the domain of each linear function v·x, vectors (K, n)."""
        return -self.least(-vectors)


def _bounded(value: Any, what: str) -> None:
    """Refuse infinite sizes with a word about why."""
    if np.isinf(np.asarray(value, dtype=float)).any():
        raise UnboundedDomainError(
            f"{what} must be finite, so that the domain is bounded, got {value}; give it a bound."
        )


def _not_empty(fits: bool, why: str) -> None:
    """Refuse a domain without points."""
    if not fits:
        raise EmptyDomainError(f"the domain is empty: {why}.")


@dataclass(frozen=True, eq=False)
class Box(Domain):
    """All x between ``low`` and ``high``; a single number stands for every entry, ``size`` of them.

    >>> Box(0, 1, size=2).project([2.0, 0.5]).tolist()
    [1.0, 0.5]
    """

    low: Any
    high: Any
    size: int | None = None

    def __post_init__(self) -> None:
        _bounded(self.low, "low")
        _bounded(self.high, "high")
        size = self.size or max(np.size(self.low), np.size(self.high))
        low, high = (frozen(vector(end, name, size)) for end, name in ((self.low, "low"), (self.high, "high")))
        _not_empty(bool((low <= high).all()), f"low must be at most high in every entry, got low {low}, high {high}")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "size", size)

    @property
    def region(self) -> Region:
        """Two ends."""
        return Region(BOX, self.low, self.high, 0.0)

    @property
    def centre(self) -> Floats:
        """The middle."""
        middle: Floats = 0.5 * (self.low + self.high)
        return middle

    def least(self, vectors: Floats) -> Floats:
        """Each entry at the end that is cheaper."""
        least: Floats = np.minimum(vectors * self.low, vectors * self.high).sum(axis=1)
        return least

    def program(self, x: Any) -> list[Any]:
        """Two inequalities."""
        return [x >= self.low, x <= self.high]

    def to_dict(self) -> dict[str, Any]:
        """Its ends."""
        return {"domain": "Box", "low": self.low.tolist(), "high": self.high.tolist()}


@dataclass(frozen=True, eq=False)
class Simplex(Domain):
    """All x of n = ``size`` entries, none negative, that add up to ``total``."""

    size: int
    total: float = 1.0

    def __post_init__(self) -> None:
        whole(self.size, "size", at_least=1)
        _bounded(self.total, "total")
        object.__setattr__(self, "total", number(self.total, "total"))
        _not_empty(self.total >= 0, f"total must be 0 or more, got {self.total:g}")

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

    def program(self, x: Any) -> list[Any]:
        """One equation, no negative entry."""
        return [x >= 0, sum(x[i] for i in range(self.size)) == self.total]

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
        _bounded(self.caps, "caps")
        _bounded(self.total, "total")
        caps = frozen(vector(self.caps, "caps"))
        object.__setattr__(self, "caps", caps)
        object.__setattr__(self, "total", number(self.total, "total"))
        _not_empty(
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

    def program(self, x: Any) -> list[Any]:
        """Caps and one equation."""
        return [x >= 0, x <= self.caps, sum(x[i] for i in range(self.caps.size)) == self.total]

    def to_dict(self) -> dict[str, Any]:
        """Caps and total."""
        return {"domain": "CappedSimplex", "caps": self.caps.tolist(), "total": self.total}


@dataclass(frozen=True, eq=False)
class Ball(Domain):
    """All x within ``radius`` of ``middle``, in the Euclidean norm."""

    middle: Any
    radius: float = 1.0

    def __post_init__(self) -> None:
        _bounded(self.radius, "radius")
        object.__setattr__(self, "middle", frozen(vector(self.middle, "middle")))
        object.__setattr__(self, "radius", number(self.radius, "radius"))
        _not_empty(self.radius >= 0, f"radius must be 0 or more, got {self.radius:g}")

    @property
    def region(self) -> Region:
        """Middle and radius."""
        return Region(BALL, self.middle, self.middle, self.radius)

    @property
    def centre(self) -> Floats:
        """The middle."""
        return np.array(self.middle)

    def least(self, vectors: Floats) -> Floats:
        """As far against v as the radius allows."""
        least: Floats = vectors @ self.middle - self.radius * np.linalg.norm(vectors, axis=1)
        return least

    def program(self, x: Any) -> list[Any]:
        """One cone."""
        from driftsack.oco.extra import cvxpy  # noqa: PLC0415  (an optional package)

        return [cvxpy().norm(x - self.middle) <= self.radius]

    def to_dict(self) -> dict[str, Any]:
        """Middle and radius."""
        return {"domain": "Ball", "middle": self.middle.tolist(), "radius": self.radius}


@dataclass(frozen=True, eq=False)
class Orthant(Domain):
    """All x of n = ``size`` entries, none negative, that add up to at most ``bound``."""

    size: int
    bound: float = 1.0

    def __post_init__(self) -> None:
        whole(self.size, "size", at_least=1)
        _bounded(self.bound, "bound")
        object.__setattr__(self, "bound", number(self.bound, "bound"))
        _not_empty(self.bound >= 0, f"bound must be 0 or more, got {self.bound:g}")

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

    def program(self, x: Any) -> list[Any]:
        """No negative entry, one bound."""
        return [x >= 0, sum(x[i] for i in range(self.size)) <= self.bound]

    def to_dict(self) -> dict[str, Any]:
        """Size and bound."""
        return {"domain": "Orthant", "size": self.size, "bound": self.bound}


def from_dict(content: dict[str, Any]) -> Domain:
    """The domain that ``to_dict`` wrote down.

    >>> from_dict({"domain": "Simplex", "size": 3, "total": 1.0}).dimension
    3
    """
    from driftsack.oco.polytope import Polytope  # noqa: PLC0415  (it is a Domain itself)

    settings = dict(content)
    known: dict[str, Any] = {kind.__name__: kind for kind in (Box, Simplex, CappedSimplex, Ball, Orthant, Polytope)}
    name = settings.pop("domain", None)
    if name not in known:
        raise SettingError(f"domain must be one of {', '.join(known)}, got {name!r}.")
    domain: Domain = known[name](**settings)
    return domain
