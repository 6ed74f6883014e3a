r"""Convex functions over time, as arrays: row k of a table, and ``phase[t]``, the row of round t.

``Linear`` is :math:`a^\top x + b`, ``Quadratic`` :math:`\tfrac12 x^\top P x + a^\top x + b` with P positive
semi-definite, ``Norm`` :math:`\|x - c\|_2 - r`. A family holds m functions a round: a loss is a family with m = 1,
constraints have m = d. :class:`Callables` wraps any Python functions with gradients.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats, Phase
from driftsack.core.checks import floats, frozen, whole
from driftsack.core.errors import NotFiniteError, OutOfRangeError, ShapeError
from driftsack.numerics.compiled import kernel

LINEAR: Final = 0
QUADRATIC: Final = 1
NORM: Final = 2
CONVEX: Final = -1e-9  # eigenvalues of a convex quadratic, relative to its largest entry; below is not rounding


class Rows(NamedTuple):
    """A family as kernels see it; every family has the same type, so one compiled loop serves them all."""

    kind: int
    matrices: Floats  # (1 or K, m, n, n); (1, m, 0, 0) where there are none
    vectors: Floats  # (K, m, n): a, or a norm's centre c
    constants: Floats  # (K, m): b, or -r
    phase: Phase  # (T,)


@kernel
def evaluate(rows: Rows, t: int, x: Floats, first: int, values: Floats, gradients: Floats) -> None:
    """Write round t's m values and gradients at x into ``values`` and ``gradients``, from index ``first`` on."""
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
                value += bend(rows.matrices[block, i], x, gradient)
        values[first + i] = value + rows.constants[row, i]


@kernel
def distance(x: Floats, centre: Floats, gradient: Floats) -> float:
    """The distance of x from a centre; its gradient, 0 at the centre itself, is written."""
    square = 0.0
    for j in range(x.size):
        square += (x[j] - centre[j]) ** 2
    length = math.sqrt(square)
    for j in range(x.size):
        gradient[j] = (x[j] - centre[j]) / length if length > 0.0 else 0.0
    return length


@kernel
def bend(matrix: Floats, x: Floats, gradient: Floats) -> float:
    """Half of xᵀPx; Px is added to ``gradient``."""
    half = 0.0
    for j in range(x.size):
        slope = 0.0
        for k in range(x.size):
            slope += matrix[j, k] * x[k]
        gradient[j] += slope
        half += 0.5 * slope * x[j]
    return half


class Family(abc.ABC):
    """m convex functions of n variables in each of T rounds."""

    horizon: int
    count: int
    dimension: int

    @abc.abstractmethod
    def evaluate(self, t: int, x: Floats) -> tuple[Floats, Floats]:
        """Values (m,) and gradients (m, n) of round t, from 0, at x."""

    @abc.abstractmethod
    def mean(self, x: Floats) -> tuple[Floats, Floats]:
        """Values (m,) and gradients (m, n) at x of the mean over all rounds."""


class Table(Family):
    """A family given by arrays; checked, read-only."""

    def __init__(self, kind: int, matrices: Any, vectors: Any, constants: Any, phase: Any) -> None:
        table = np.asarray(vectors, dtype=float)
        table = floats(table[:, None, :] if table.ndim == 2 else table, "vectors", (None, None, None))  # noqa: PLR2004
        rows, self.count, self.dimension = table.shape
        level = np.asarray(constants, dtype=float)
        level = level[:, None] if level.ndim == 1 and self.count == 1 and level.size == rows else level
        level = floats(np.broadcast_to(level, (rows, self.count)), "constants", (rows, self.count))
        self.phase = _phase(phase, rows)
        self.horizon = self.phase.size
        self.rows = Rows(kind, frozen(matrices), frozen(table), frozen(level), self.phase)
        self.weights: Floats = np.bincount(self.phase, minlength=rows) / self.horizon  # (K,) shares of the rounds

    def evaluate(self, t: int, x: Floats) -> tuple[Floats, Floats]:
        """By the kernel."""
        values, gradients = np.zeros(self.count), np.zeros((self.count, self.dimension))
        evaluate(self.rows, t, x, 0, values, gradients)
        return values, gradients

    def table(self, x: Floats) -> tuple[Floats, Floats]:
        """Values (K, m) and gradients (K, m, n) of every row at x."""
        rows = self.rows
        if rows.kind == NORM:
            apart = x - rows.vectors
            length = np.linalg.norm(apart, axis=2)
            return length + rows.constants, apart / np.maximum(length, np.finfo(float).tiny)[:, :, None]
        values, gradients = rows.vectors @ x + rows.constants, rows.vectors
        if rows.kind == QUADRATIC:
            slopes = rows.matrices @ x
            values, gradients = values + 0.5 * (slopes @ x), gradients + slopes
        return values, gradients

    def mean(self, x: Floats) -> tuple[Floats, Floats]:
        """Rows weighted by how many rounds they have."""
        values, gradients = self.table(x)
        return self.weights @ values, np.tensordot(self.weights, gradients, axes=1)


def _phase(phase: Any, rows: int) -> Phase:
    """The row of each round, (T,); without one, round t has row t."""
    if phase is None:
        return np.asarray(frozen(np.arange(rows, dtype=np.int32)))
    table = np.asarray(phase)
    if table.ndim != 1 or table.dtype.kind not in "iu" or not table.size:
        raise ShapeError(f"phase must be T whole numbers, the row of each round, got {phase!r:.80}.")
    if table.min() < 0 or table.max() >= rows:
        raise OutOfRangeError(f"phase must lie in [0, {rows - 1}], got {table.min()} to {table.max()}.")
    return np.asarray(frozen(table.astype(np.int32)))


class Linear(Table):
    """a·x + b: ``vectors`` (K, n) or (K, m, n), ``constants`` (K, m) or a number, ``phase`` (T,) or one row a round.

    >>> losses = Linear([[1.0, 2.0], [0.0, 3.0]], phase=[0, 0, 1])
    >>> losses.horizon, losses.evaluate(2, np.array([1.0, 1.0]))
    (3, (array([3.]), array([[0., 3.]])))
    """

    def __init__(self, vectors: npt.ArrayLike, constants: npt.ArrayLike = 0.0, phase: npt.ArrayLike | None = None):
        count = np.shape(vectors)[1] if np.ndim(vectors) == 3 else 1  # noqa: PLR2004
        super().__init__(LINEAR, np.zeros((1, count, 0, 0)), vectors, constants, phase)


class Quadratic(Table):
    """½xᵀPx + a·x + b: ``matrices`` (n, n) for all, (m, n, n) for every row, or (K, m, n, n).

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
        count = shape[1] if len(shape) == 3 else 1  # noqa: PLR2004
        table = np.asarray(matrices, dtype=float)
        while table.ndim < 4:  # noqa: PLR2004
            table = table[None]
        square = table.shape[2:] == shape[-1:] * 2
        if table.shape[0] not in (1, shape[0]) or table.shape[1] not in (1, count) or not square:
            raise ShapeError(
                f"matrices must be (n, n), (m, n, n) or (K, m, n, n) with K, m, n = {shape[0]}, {count}, {shape[-1]}, "
                f"got shape {np.shape(matrices)}."
            )
        table = floats(np.broadcast_to(table, (table.shape[0], count, *table.shape[2:])), "matrices", (None,) * 4)
        table = 0.5 * (table + np.swapaxes(table, 2, 3))
        least = np.linalg.eigvalsh(table).min()
        if least < CONVEX * max(np.abs(table).max(), 1.0):
            raise OutOfRangeError(
                f"matrices must be positive semi-definite, else they are not convex, got an eigenvalue {least:g}."
            )
        super().__init__(QUADRATIC, table, vectors, constants, phase)


class Norm(Table):
    """‖x − c‖ − r, the distance from ``centres`` (K, n) or (K, m, n) beyond ``radii``: a constraint to stay near.

    >>> Norm([[0.0, 0.0]], radii=1.0, phase=[0]).evaluate(0, np.array([3.0, 4.0]))
    (array([4.]), array([[0.6, 0.8]]))
    """

    def __init__(self, centres: npt.ArrayLike, radii: npt.ArrayLike = 0.0, phase: npt.ArrayLike | None = None):
        count = np.shape(centres)[1] if np.ndim(centres) == 3 else 1  # noqa: PLR2004
        super().__init__(NORM, np.zeros((1, count, 0, 0)), centres, -np.asarray(radii, dtype=float), phase)


class Callables(Family):
    """Any convex functions: ``value(t, x)`` gives m numbers, ``gradient(t, x)`` (m, n); rounds from 0; in Python.

    >>> drifting = Callables(lambda t, x: np.exp(x[0]) - t, lambda t, x: [np.exp(x[0])], horizon=10, dimension=1)
    >>> drifting.evaluate(3, np.zeros(1))
    (array([-2.]), array([[1.]]))
    """

    def __init__(
        self,
        value: Callable[[int, Floats], Any],
        gradient: Callable[[int, Floats], Any],
        horizon: int,
        dimension: int,
        count: int = 1,
    ) -> None:
        self.value, self.gradient = value, gradient
        self.horizon = whole(horizon, "horizon", at_least=1)
        self.dimension = whole(dimension, "dimension", at_least=1)
        self.count = whole(count, "count", at_least=1)

    def evaluate(self, t: int, x: Floats) -> tuple[Floats, Floats]:
        """Call both, and refuse what is not finite or has another shape."""
        values = np.asarray(self.value(t, x), dtype=float).reshape(-1)
        gradients = np.asarray(self.gradient(t, x), dtype=float)
        gradients = gradients.reshape(1, -1) if self.count == 1 else gradients
        if values.shape != (self.count,) or gradients.shape != (self.count, self.dimension):
            raise ShapeError(
                f"in round {t + 1} value must give {self.count} numbers and gradient ({self.count}, {self.dimension}), "
                f"got shapes {values.shape} and {gradients.shape}."
            )
        if not (np.isfinite(values).all() and np.isfinite(gradients).all()):
            raise NotFiniteError(
                f"round {t + 1}, x = {x}: value and gradient must be finite, got {values} and {gradients}."
            )
        return values, gradients

    def mean(self, x: Floats) -> tuple[Floats, Floats]:
        """Call every round."""
        values, gradients = np.zeros(self.count), np.zeros((self.count, self.dimension))
        for t in range(self.horizon):
            value, gradient = self.evaluate(t, x)
            values += value
            gradients += gradient
        return values / self.horizon, gradients / self.horizon
