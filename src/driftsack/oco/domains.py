r"""Domains, the sets that decisions are chosen from: convex, closed and bounded, with exact projections.

A domain computes the nearest point, :math:`\arg\min_{x \in X} \|x - p\|_2`; the minimum of a linear function,
:math:`\min_{x \in X} v^\top x`, which the certificates and sup norms need; and its own constraints in a convex program.
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
    """The set of all x with ``matrix @ x <= limits``."""

    matrix: Floats  # (k, n) one row per condition
    limits: Floats  # (k,) the right-hand sides
    equations: int  # the number of leading rows that hold with equality


@dataclass(frozen=True, eq=False)
class Domain(abc.ABC):
    """A convex, closed, bounded and non-empty set of decisions."""

    @property
    @abc.abstractmethod
    def region(self) -> Region:
        """The domain as an argument of compiled kernels."""

    @property
    def dimension(self) -> int:
        """The length n of its points."""
        return int(self.region.low.size)

    @property
    @abc.abstractmethod
    def centre(self) -> Floats:
        """(n,) a central point, at which learners start."""

    @abc.abstractmethod
    def least(self, vectors: Floats) -> Floats:
        """Compute the minimum of linear functions over the domain.

        Args:
            vectors: (K, n) one vector v of each function v·x.

        Returns:
            (K,) the minimum of each function.
        """

    @property
    @abc.abstractmethod
    def halfspaces(self) -> Halfspaces:
        """The linear conditions that define the domain."""

    def program(self, x: Any) -> list[Any]:
        """Express the domain as constraints of a convex program.

        Args:
            x: A cvxpy variable with n entries.

        Returns:
            The cvxpy constraints.
        """
        matrix, limits, equations = self.halfspaces
        equal = [matrix[:equations] @ x == limits[:equations]] if equations else []
        return [*equal, matrix[equations:] @ x <= limits[equations:]]

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the name and the numbers as plain data, which :func:`from_dict` reads."""

    def move_inside(self, point: Floats) -> None:
        """Project a point onto the domain, in place.

        Args:
            point: (n,) the point, overwritten by the nearest point of the domain.
        """
        project(self.region, point)

    def project(self, point: npt.ArrayLike) -> Floats:
        """Project a point onto the domain.

        Args:
            point: (n,) the point.

        Returns:
            (n,) the nearest point of the domain.

        >>> Ball([0.0, 0.0]).project([3.0, 4.0]).round(12).tolist()
        [0.6, 0.8]
        """
        projected = floats(point, "point", (self.dimension,)).copy()
        self.move_inside(projected)
        return projected

    def most(self, vectors: Floats) -> Floats:
        """Compute the maximum of linear functions over the domain.

        Args:
            vectors: (K, n) one vector v of each function v·x.

        Returns:
            (K,) the maximum of each function.
        """
        return -self.least(-vectors)


def check_bounded(value: Any, name: str) -> None:
    """Raise an error if a size of a domain is infinite."""
    if np.isinf(np.asarray(value, dtype=float)).any():
        raise UnboundedDomainError(
            f"{name} must be finite, so that the domain is bounded, got {value}; give it a bound."
        )


def check_not_empty(condition: bool, reason: str) -> None:
    """Raise an error if a domain has no points."""
    if not condition:
        raise EmptyDomainError(f"the domain is empty: {reason}.")


@dataclass(frozen=True, eq=False)
class Box(Domain):
    """All x between two bounds, entry by entry.

    Attributes:
        low: (n,) the lower bounds; a single number applies to every entry.
        high: (n,) the upper bounds; a single number applies to every entry.
        size: The number n of entries. Only needed if both bounds are single numbers and n is not 1.

    >>> Box(0, 1, size=2).project([2.0, 0.5]).tolist()
    [1.0, 0.5]
    """

    low: Any
    high: Any
    size: int | None = None

    def __post_init__(self) -> None:
        check_bounded(self.low, "low")
        check_bounded(self.high, "high")
        size = self.size or max(np.size(self.low), np.size(self.high))
        low, high = (frozen(vector(end, name, size)) for end, name in ((self.low, "low"), (self.high, "high")))
        check_not_empty(
            bool((low <= high).all()), f"low must be at most high in every entry, got low {low}, high {high}"
        )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "size", size)

    @property
    def region(self) -> Region:
        """The box as an argument of compiled kernels."""
        return Region(BOX, self.low, self.high, 0.0)

    @property
    def centre(self) -> Floats:
        """(n,) the midpoint of the bounds."""
        middle: Floats = 0.5 * (self.low + self.high)
        return middle

    def least(self, vectors: Floats) -> Floats:
        """Compute the minimum of linear functions: each entry is at the bound with the smaller value."""
        least: Floats = np.minimum(vectors * self.low, vectors * self.high).sum(axis=1)
        return least

    @property
    def halfspaces(self) -> Halfspaces:
        """Two conditions per entry, one for each bound."""
        eye = np.eye(self.dimension)
        return Halfspaces(np.vstack([eye, -eye]), np.concatenate([self.high, -self.low]), 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the name and the bounds as plain data."""
        return {"domain": "Box", "low": self.low.tolist(), "high": self.high.tolist()}


@dataclass(frozen=True, eq=False)
class Ball(Domain):
    """All x within a Euclidean distance of a centre.

    Attributes:
        middle: (n,) the centre.
        radius: The largest distance from the centre, 0 or more.
    """

    middle: Any
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_bounded(self.radius, "radius")
        object.__setattr__(self, "middle", frozen(vector(self.middle, "middle")))
        object.__setattr__(self, "radius", number(self.radius, "radius"))
        check_not_empty(self.radius >= 0, f"radius must be 0 or more, got {self.radius:g}")

    @property
    def region(self) -> Region:
        """The ball as an argument of compiled kernels."""
        return Region(BALL, self.middle, self.middle, self.radius)

    @property
    def centre(self) -> Floats:
        """(n,) the centre of the ball."""
        return np.array(self.middle)

    def least(self, vectors: Floats) -> Floats:
        """Compute the minimum of linear functions: it is attained one radius from the centre, against v."""
        least: Floats = vectors @ self.middle - self.radius * np.linalg.norm(vectors, axis=1)
        return least

    @property
    def halfspaces(self) -> Halfspaces:
        """No conditions: a ball is not defined by linear conditions."""
        return Halfspaces(np.zeros((0, self.dimension)), np.zeros(0), 0)

    def program(self, x: Any) -> list[Any]:
        """Express the ball as one second-order cone constraint of a convex program."""
        from driftsack.oco.optional_packages import cvxpy

        return [cvxpy().norm(x - self.middle) <= self.radius]

    def to_dict(self) -> dict[str, Any]:
        """Return the name, the centre and the radius as plain data."""
        return {"domain": "Ball", "middle": self.middle.tolist(), "radius": self.radius}


def from_dict(content: dict[str, Any]) -> Domain:
    """Build the domain that ``to_dict`` described.

    >>> from_dict({"domain": "ScaledSimplex", "size": 3, "total": 1.0}).dimension
    3
    """
    from driftsack.oco.polytope import Polytope
    from driftsack.oco.simplex_domains import CappedSimplex, Orthant, ScaledSimplex

    settings = dict(content)
    known: dict[str, Any] = {
        kind.__name__: kind for kind in (Box, ScaledSimplex, CappedSimplex, Ball, Orthant, Polytope)
    }
    name = settings.pop("domain", None)
    if name not in known:
        raise SettingError(f"domain must be one of {', '.join(known)}, got {name!r}.")
    domain: Domain = known[name](**settings)
    return domain
