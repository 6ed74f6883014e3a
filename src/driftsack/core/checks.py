"""Checks on what people pass in: arrays become finite ``float64`` of the right shape, or an error says why not."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from driftsack.core.errors import NotFiniteError, OutOfRangeError, SettingError, ShapeError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def floats(value: Any, name: str, shape: tuple[int | None, ...]) -> Floats:
    """Return ``value`` as a finite float array of ``shape``; ``None`` in ``shape`` accepts any length.

    >>> floats([1, 2], "rewards", (None,))
    array([1., 2.])
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"{name} must be numbers of shape {_spell(shape)}, got {value!r:.80}.") from error
    fits = array.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits:
        raise ShapeError(f"{name} must have shape {_spell(shape)}, got {array.shape}.")
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)].flat[0]
        raise NotFiniteError(f"{name} must be finite, got {bad}; replace or drop it first.")
    return array


def number(value: Any, name: str) -> float:
    """Return ``value`` as one finite float."""
    return float(floats(value, name, ()))


def whole(value: Any, name: str, at_least: int, at_most: int | None = None) -> int:
    """Return ``value`` as an ``int`` in ``[at_least, at_most]``; 10.0 is refused, 10 is not."""
    try:
        result = operator.index(value)
    except TypeError as error:
        raise SettingError(f"{name} must be a whole number, got {value!r}.") from error
    if result < at_least or (at_most is not None and result > at_most):
        upper = "" if at_most is None else f" and at most {at_most}"
        raise OutOfRangeError(f"{name} must be at least {at_least}{upper}, got {result}.")
    return result


def within(array: Floats, low: float, high: Floats | float, name: str) -> None:
    """Raise unless every entry lies in ``[low, high]``."""
    outside = (array < low) | (array > high)
    if outside.any():
        where = tuple(int(i) for i in np.argwhere(outside)[0])
        most = np.broadcast_to(high, array.shape)[where]
        place = f" at index {where}" if where else ""
        raise OutOfRangeError(f"{name} must lie in [{low:g}, {most:g}], got {array[where]:g}{place}.")


def one_of(value: Any, name: str, choices: tuple[str, ...]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise SettingError(f"{name} must be one of {listed}, got {value!r}.")


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a contiguous, read-only copy: nobody else can change it."""
    result = np.array(array, order="C", copy=True)
    result.setflags(write=False)
    return result


def _spell(shape: tuple[int | None, ...]) -> str:
    inside = ", ".join("any" if length is None else str(length) for length in shape)
    return f"({inside},)" if len(shape) == 1 else f"({inside})"
