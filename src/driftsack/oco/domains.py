r"""Where decisions live: convex, closed and bounded sets with exact projections.

Each knows three things: the nearest point, :math:`\arg\min_{x \in X} \|x - p\|_2`; the least value of a linear
function, :math:`\min_{x \in X} v^\top x`, which certificates and sup norms are made of; and itself as constraints of
a convex program.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats
from driftsack.core.checks import floats, frozen, number, vector
from driftsack.core.errors import EmptyDomainError, SettingError, UnboundedDomainError
from driftsack.oco.region import BALL, BOX, Region, project


class Halfspaces(NamedTuple):
    """All x with ``matrix @ x <= limits``; the first ``equations`` rows hold with equality."""

    matrix: Floats  # (k, n)
    limits: Floats  # (k,)
    equations: int


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

    @property
    @abc.abstractmethod
    def halfspaces(self) -> Halfspaces:
        """The linear conditions that make the domain."""

    def program(self, x: Any) -> list[Any]:
        """The domain as constraints on a cvxpy variable."""
        matrix, limits, equations = self.halfspaces
        equal = [matrix[:equations] @ x == limits[:equations]] if equations else []
        return [*equal, matrix[equations:] @ x <= limits[equations:]]

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Name and numbers as plain data; :func:`from_dict` reads them back."""

    def move_inside(self, point: Floats) -> None:
        """Move ``point`` to the nearest point of the domain, in place."""
        project(self.region, point)

    def project(self, point: npt.ArrayLike) -> Floats:
        """(n,) the nearest point of the domain.

        >>> Ball([0.0, 0.0]).project([3.0, 4.0]).round(12).tolist()
        [0.6, 0.8]
        """
        moved = floats(point, "point", (self.dimension,)).copy()
        self.move_inside(moved)
        return moved

    def most(self, vectors: Floats) -> Floats:
        """(K,) the largest value over the domain of each linear function v·x, vectors (K, n)."""
        return -self.least(-vectors)


def bounded(value: Any, what: str) -> None:
    """Refuse infinite sizes with a word about why."""
    if np.isinf(np.asarray(value, dtype=float)).any():
        raise UnboundedDomainError(
            f"{what} must be finite, so that the domain is bounded, got {value}; give it a bound."
        )


def not_empty(fits: bool, why: str) -> None:
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
        bounded(self.low, "low")
        bounded(self.high, "high")
        size = self.size or max(np.size(self.low), np.size(self.high))
        low, high = (frozen(vector(end, name, size)) for end, name in ((self.low, "low"), (self.high, "high")))
        not_empty(bool((low <= high).all()), f"low must be at most high in every entry, got low {low}, high {high}")
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

    @property
    def halfspaces(self) -> Halfspaces:
        """Two ends an entry."""
        eye = np.eye(self.dimension)
        return Halfspaces(np.vstack([eye, -eye]), np.concatenate([self.high, -self.low]), 0)

    def to_dict(self) -> dict[str, Any]:
        """Its ends."""
        return {"domain": "Box", "low": self.low.tolist(), "high": self.high.tolist()}


@dataclass(frozen=True, eq=False)
class Ball(Domain):
    """All x within ``radius`` of ``middle``, in the Euclidean norm."""

    middle: Any
    radius: float = 1.0

    def __post_init__(self) -> None:
        bounded(self.radius, "radius")
        object.__setattr__(self, "middle", frozen(vector(self.middle, "middle")))
        object.__setattr__(self, "radius", number(self.radius, "radius"))
        not_empty(self.radius >= 0, f"radius must be 0 or more, got {self.radius:g}")

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

    @property
    def halfspaces(self) -> Halfspaces:
        """None: a ball has no flat sides."""
        return Halfspaces(np.zeros((0, self.dimension)), np.zeros(0), 0)

    def program(self, x: Any) -> list[Any]:
        """One cone."""
        from driftsack.oco.extra import cvxpy  # noqa: PLC0415  (an optional package)

        return [cvxpy().norm(x - self.middle) <= self.radius]

    def to_dict(self) -> dict[str, Any]:
        """Middle and radius."""
        return {"domain": "Ball", "middle": self.middle.tolist(), "radius": self.radius}


def from_dict(content: dict[str, Any]) -> Domain:
    """The domain that ``to_dict`` wrote down.

    >>> from_dict({"domain": "Simplex", "size": 3, "total": 1.0}).dimension
    3
    """
    from driftsack.oco.polytope import Polytope  # noqa: PLC0415  (these are Domains themselves)
    from driftsack.oco.simplices import CappedSimplex, Orthant, Simplex  # noqa: PLC0415

    settings = dict(content)
    known: dict[str, Any] = {kind.__name__: kind for kind in (Box, Simplex, CappedSimplex, Ball, Orthant, Polytope)}
    name = settings.pop("domain", None)
    if name not in known:
        raise SettingError(f"domain must be one of {', '.join(known)}, got {name!r}.")
    domain: Domain = known[name](**settings)
    return domain
