r"""Families of convex functions over time, given by arrays: round t has row ``phase[t]`` of a table.

``Linear`` is :math:`a^\top x + b`, ``Quadratic`` :math:`\tfrac12 x^\top P x + a^\top x + b` with P positive
semi-definite, ``Norm`` :math:`\|x - c\|_2 - r`. A family holds m functions per round: losses are a family with
m = 1, constraints have m = d. :class:`~driftsack.oco.Callables` takes Python functions instead of arrays.
"""

from __future__ import annotations

import abc
import math
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats, Phase
from driftsack.core.checks import floats, frozen
from driftsack.core.errors import OutOfRangeError, ShapeError
from driftsack.numerics.compiled import kernel

# Values of ``FamilyRows.kind``
LINEAR: Final = 0
QUADRATIC: Final = 1
NORM: Final = 2

SMALLEST_EIGENVALUE: Final = -1e-9  # relative to the largest entry; allows for rounding errors in P


class FamilyRows(NamedTuple):
    """The arrays of a family. All families share one type, so that the loop compiles once for all of them."""

    kind: int  # ``LINEAR``, ``QUADRATIC`` or ``NORM``
    # (K, m, n, n) the matrices P, or (1, m, n, n) if all rows share them; (1, m, 0, 0) if there are none.
    matrices: Floats
    vectors: Floats  # (K, m, n) the vectors a, or the centres c of norms
    constants: Floats  # (K, m) the constants b, or minus the radii r of norms
    phase: Phase  # (T,) the row of each round


@kernel
def evaluate(rows: FamilyRows, t: int, x: Floats, first: int, values: Floats, gradients: Floats) -> None:
    """Write the m values and gradients of round t at x into ``values`` and ``gradients``, from index ``first`` on."""
    row = rows.phase[t]
    block = row if rows.matrices.shape[0] > 1 else 0
    for i in range(rows.vectors.shape[1]):
        vector, gradient = rows.vectors[row, i], gradients[first + i]
        if rows.kind == NORM:
            value = distance(x, vector, gradient)
        else:
            value = 0.0
            for j in range(x.size):
                gradient[j] = vector[j]
                value += vector[j] * x[j]
            if rows.kind == QUADRATIC:
                value += add_quadratic(rows.matrices[block, i], x, gradient)
        values[first + i] = value + rows.constants[row, i]


@kernel
def distance(x: Floats, centre: Floats, gradient: Floats) -> float:
    """The distance of x from a centre; writes its gradient, which is 0 at the centre itself."""
    square = 0.0
    for j in range(x.size):
        square += (x[j] - centre[j]) ** 2
    length = math.sqrt(square)
    for j in range(x.size):
        gradient[j] = (x[j] - centre[j]) / length if length > 0.0 else 0.0
    return length


@kernel
def add_quadratic(matrix: Floats, x: Floats, gradient: Floats) -> float:
    """The value ½xᵀPx; adds its gradient Px to ``gradient``."""
    half = 0.0
    for j in range(x.size):
        slope = 0.0
        for k in range(x.size):
            slope += matrix[j, k] * x[k]
        gradient[j] += slope
        half += 0.5 * slope * x[j]
    return half


class Family(abc.ABC):
    """m convex functions of n variables in each of T rounds.

    Attributes:
        horizon: The number T of rounds.
        count: The number m of functions per round.
        dimension: The number n of variables.
    """

    horizon: int
    count: int
    dimension: int

    @abc.abstractmethod
    def evaluate(self, t: int, x: Floats) -> tuple[Floats, Floats]:
        """Evaluate the functions of one round.

        Args:
            t: The round, from 0.
            x: (n,) the point.

        Returns:
            The values (m,) and gradients (m, n) at x.
        """

    @abc.abstractmethod
    def mean(self, x: Floats) -> tuple[Floats, Floats]:
        """Evaluate the mean of the functions over all rounds.

        Args:
            x: (n,) the point.

        Returns:
            The values (m,) and gradients (m, n) at x.
        """


class Table(Family):
    """A family given by arrays, which are checked and copied."""

    def __init__(self, kind: int, matrices: Any, vectors: Any, constants: Any, phase: Any) -> None:
        table = np.asarray(vectors, dtype=float)
        table = floats(table[:, None, :] if table.ndim == 2 else table, "vectors", (None, None, None))
        rows, self.count, self.dimension = table.shape
        level = np.asarray(constants, dtype=float)
        level = level[:, None] if level.ndim == 1 and self.count == 1 and level.size == rows else level
        level = floats(np.broadcast_to(level, (rows, self.count)), "constants", (rows, self.count))
        self.phase = _phase(phase, rows)
        self.horizon = self.phase.size
        self.rows = FamilyRows(kind, frozen(matrices), frozen(table), frozen(level), self.phase)
        self.weights: Floats = np.bincount(self.phase, minlength=rows) / self.horizon  # (K,) shares of the rounds

    def evaluate(self, t: int, x: Floats) -> tuple[Floats, Floats]:
        """Evaluate the functions of one round."""
        values, gradients = np.zeros(self.count), np.zeros((self.count, self.dimension))
        evaluate(self.rows, t, x, 0, values, gradients)
        return values, gradients

    def table(self, x: Floats) -> tuple[Floats, Floats]:
        """Evaluate the functions of every row at x: values (K, m) and gradients (K, m, n)."""
        rows = self.rows
        if rows.kind == NORM:
            difference = x - rows.vectors
            length = np.linalg.norm(difference, axis=2)
            return length + rows.constants, difference / np.maximum(length, np.finfo(float).tiny)[:, :, None]
        values, gradients = rows.vectors @ x + rows.constants, rows.vectors
        if rows.kind == QUADRATIC:
            slopes = rows.matrices @ x
            values, gradients = values + 0.5 * (slopes @ x), gradients + slopes
        return values, gradients

    def mean(self, x: Floats) -> tuple[Floats, Floats]:
        """Evaluate the mean over all rounds: rows are weighted by their shares of the rounds."""
        values, gradients = self.table(x)
        return self.weights @ values, np.tensordot(self.weights, gradients, axes=1)


def _phase(phase: Any, rows: int) -> Phase:
    """(T,) the row of each round; by default round t has row t."""
    if phase is None:
        return np.asarray(frozen(np.arange(rows, dtype=np.int32)))
    table = np.asarray(phase)
    if table.ndim != 1 or table.dtype.kind not in "iu" or not table.size:
        raise ShapeError(f"phase must be T integers, the row of each round, got {phase!r:.80}.")
    if table.min() < 0 or table.max() >= rows:
        raise OutOfRangeError(f"phase must lie in [0, {rows - 1}], got {table.min()} to {table.max()}.")
    return np.asarray(frozen(table.astype(np.int32)))


class Linear(Table):
    """Linear functions a·x + b.

    Args:
        vectors: (K, n) or (K, m, n) the vectors a of K distinct rows.
        constants: (K, m) the constants b, or a number for all.
        phase: (T,) the row of each round; by default round t has row t.

    >>> losses = Linear([[1.0, 2.0], [0.0, 3.0]], phase=[0, 0, 1])
    >>> losses.horizon, losses.evaluate(2, np.array([1.0, 1.0]))
    (3, (array([3.]), array([[0., 3.]])))
    """

    def __init__(self, vectors: npt.ArrayLike, constants: npt.ArrayLike = 0.0, phase: npt.ArrayLike | None = None):
        count = np.shape(vectors)[1] if np.ndim(vectors) == 3 else 1
        super().__init__(LINEAR, np.zeros((1, count, 0, 0)), vectors, constants, phase)


class Quadratic(Table):
    """Convex quadratic functions ½xᵀPx + a·x + b.

    Args:
        matrices: The positive semi-definite matrices P: (n, n) for all functions, (m, n, n) for all rows, or
            (K, m, n, n).
        vectors: (K, n) or (K, m, n) the vectors a of K distinct rows.
        constants: (K, m) the constants b, or a number for all.
        phase: (T,) the row of each round; by default round t has row t.

    >>> around = Quadratic(np.eye(2), [[-1.0, 0.0]], constants=0.5, phase=[0, 0])    # ½‖x − (1, 0)‖²
    >>> around.evaluate(0, np.array([1.0, 2.0]))
    (array([2.]), array([[0., 2.]]))
    """

    def __init__(
        self,
        matrices: npt.ArrayLike,
        vectors: npt.ArrayLike,
        constants: npt.ArrayLike = 0.0,
        phase: npt.ArrayLike | None = None,
    ):
        shape = np.shape(vectors)
        count = shape[1] if len(shape) == 3 else 1
        table = np.asarray(matrices, dtype=float)
        while table.ndim < 4:
            table = table[None]
        square = table.shape[2:] == shape[-1:] * 2
        if table.shape[0] not in (1, shape[0]) or table.shape[1] not in (1, count) or not square:
            raise ShapeError(
                f"matrices must be (n, n), (m, n, n) or (K, m, n, n) with K, m, n = {shape[0]}, {count}, {shape[-1]}, "
                f"got shape {np.shape(matrices)}."
            )
        table = floats(np.broadcast_to(table, (table.shape[0], count, *table.shape[2:])), "matrices", (None,) * 4)
        table = 0.5 * (table + np.swapaxes(table, 2, 3))
        smallest = np.linalg.eigvalsh(table).min()
        if smallest < SMALLEST_EIGENVALUE * max(np.abs(table).max(), 1.0):
            raise OutOfRangeError(
                f"matrices must be positive semi-definite, so that functions are convex, got eigenvalue {smallest:g}."
            )
        super().__init__(QUADRATIC, table, vectors, constants, phase)


class Norm(Table):
    """Distances ‖x − c‖ − r from a ball; as a constraint, x must stay within the radius r of the centre c.

    Args:
        centres: (K, n) or (K, m, n) the centres c of K distinct rows.
        radii: (K, m) the radii r, or a number for all.
        phase: (T,) the row of each round; by default round t has row t.

    >>> Norm([[0.0, 0.0]], radii=1.0, phase=[0]).evaluate(0, np.array([3.0, 4.0]))
    (array([4.]), array([[0.6, 0.8]]))
    """

    def __init__(self, centres: npt.ArrayLike, radii: npt.ArrayLike = 0.0, phase: npt.ArrayLike | None = None):
        count = np.shape(centres)[1] if np.ndim(centres) == 3 else 1
        super().__init__(NORM, np.zeros((1, count, 0, 0)), centres, -np.asarray(radii, dtype=float), phase)
