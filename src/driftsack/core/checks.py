"""Argument checks that convert a value to the expected type, shape and range, or raise an error that says why not."""

from __future__ import annotations

import operator
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats
from driftsack.core.errors import NotFiniteError, OutOfRangeError, SettingError, ShapeError

LARGEST_INT = 2**60
LARGEST_SETTING = 1e6  # for factors on radii, step sizes and similar settings of policies
LARGEST_OUTCOME = 1e9  # in units of ``cost_max`` and ``reward_max``, for policies that do not need bounded outcomes
LARGEST_FLOAT = float(np.finfo(np.float64).max)
STATISTICAL: Final = "statistical"  # pending decisions reserve what they are expected to cost, and a margin
Safe = bool | Literal["statistical"]
ROUNDING = 1e-9  # relative tolerance, so that 0.1 + 0.2 <= 0.3 passes


def floats(value: Any, name: str, shape: tuple[int | None, ...]) -> Floats:
    """Return ``value`` as a finite float array of ``shape``; ``None`` in ``shape`` accepts any length.

    >>> floats([1, 2], "rewards", (None,))
    array([1., 2.])
    """
    array = _as_floats(value, name, shape)
    fits = array.ndim == len(shape) and all(
        expected is None or expected == actual for expected, actual in zip(shape, array.shape, strict=True)
    )
    if not fits:
        received = f"shape {array.shape}" if array.ndim else f"the single number {value}"
        raise ShapeError(f"{name} must be {_spell(shape)}, got {received}.")
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)].flat[0]
        raise NotFiniteError(f"{name} must be finite, got {bad}; replace or drop it first.")
    return array


def vector(value: Any, name: str, length: int | None = None) -> Floats:
    """Return ``value`` as a finite array (length,); a single number is repeated ``length`` times."""
    array = _as_floats(value, name, (length,))
    if array.ndim == 0:
        array = np.repeat(array, 1 if length is None else length)
    return floats(array, name, (length,))


def _as_floats(value: Any, name: str, shape: tuple[int | None, ...]) -> Floats:
    """Return ``value`` as a float array if it consists of real numbers."""
    try:
        array = np.asarray(value)
        if value is None or array.dtype.kind not in "biufO":
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ShapeError(f"{name} must be {_spell(shape)}, got {value!r:.80}.") from error


def number(value: Any, name: str) -> float:
    """Return ``value`` as one finite float."""
    return float(floats(value, name, ()))


def whole(value: Any, name: str, at_least: int, at_most: int | None = None) -> int:
    """Return ``value`` as an ``int`` in ``[at_least, at_most]``; a float such as 10.0 is rejected."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        result = operator.index(value)
    except TypeError as error:
        hint = f"; write {int(value):_}" if isinstance(value, float) and value.is_integer() else ""
        raise SettingError(f"{name} must be an integer, got {value!r:.80}{hint}.") from error
    if result < at_least or (at_most is not None and result > at_most):
        upper = "" if at_most is None else f" and at most {at_most}"
        raise OutOfRangeError(f"{name} must be at least {at_least}{upper}, got {result}.")
    return result


def within(array: Floats, low: float, high: Floats | float, name: str, advice: str = "") -> Floats:
    """Return ``array`` if every entry lies in ``[low, high]``, clipped where rounding exceeds a bound."""
    slack = ROUNDING * np.maximum(np.abs(high), 1.0) if np.isfinite(high).all() else ROUNDING
    outside = (array < low - slack) | (array > high + slack)
    if outside.any():
        where = tuple(int(i) for i in np.argwhere(outside)[0])
        most = np.broadcast_to(high, array.shape)[where]
        place = f" at index {where[0] if len(where) == 1 else where}" if where else ""
        raise OutOfRangeError(f"{name} must lie in [{low:g}, {most:g}], got {float(array[where])!r}{place}{advice}.")
    return np.clip(array, low, high)


def flag(value: Any, name: str) -> bool:
    """Return ``value`` as a ``bool``; other types are rejected."""
    if not isinstance(value, (bool, np.bool_)):
        raise SettingError(f"{name} must be True or False, got {value!r:.80}.")
    return bool(value)


def safety(value: Any) -> Safe:
    """Return the setting ``safe``: False, True, or ``"statistical"``."""
    if value == STATISTICAL and isinstance(value, str):
        return STATISTICAL
    if not isinstance(value, (bool, np.bool_)):
        raise SettingError(f'safe must be True, False or "statistical", got {value!r:.80}.')
    return bool(value)


def at_least_zero(value: Any, name: str, at_most: float = LARGEST_FLOAT) -> float:
    """Return ``value`` as one finite float of at least 0."""
    result = number(value, name)
    if result < 0:
        raise OutOfRangeError(f"{name} must be 0 or more, got {result:g}.")
    return _at_most(result, name, at_most)


def above_zero(value: Any, name: str, at_most: float = LARGEST_FLOAT) -> float:
    """Return ``value`` as one finite float above 0."""
    result = number(value, name)
    if result <= 0:
        raise OutOfRangeError(f"{name} must be above 0, got {result:g}.")
    return _at_most(result, name, at_most)


def _at_most(value: float, name: str, most: float) -> float:
    if value > most:
        raise OutOfRangeError(f"{name} must be at most {most:g}, got {value:g}.")
    return value


def share(value: Any, name: str) -> float:
    """Return ``value`` as one float in [0, 1]."""
    result = number(value, name)
    if not 0.0 <= result <= 1.0:
        raise OutOfRangeError(f"{name} must lie in [0, 1], got {result:g}.")
    return result


def pair(value: Any, name: str) -> tuple[Any, Any]:
    """Return a pair of values, one for rewards and one for costs, as a tuple."""
    if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != 2:
        raise SettingError(f"{name} must be a pair, one value for rewards and one for costs, got {value!r:.80}.")
    return value[0], value[1]


def of_type(value: Any, kind: type, name: str) -> None:
    """Raise unless ``value`` is an instance of ``kind``, a class of the library."""
    if not isinstance(value, kind):
        raise SettingError(f"{name} must be a driftsack {kind.__name__}, got {value!r:.80}.")


def one_of(value: Any, name: str, choices: tuple[str, ...]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise SettingError(f"{name} must be one of {listed}, got {value!r}.")


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a contiguous, read-only copy."""
    result = np.array(array, order="C", copy=True)
    result.setflags(write=False)
    return result


def _spell(shape: tuple[int | None, ...]) -> str:
    """Describe a shape for an error message."""
    if not shape:
        return "one number"
    if all(length is None for length in shape):
        return f"an array of numbers with {len(shape)} {'axis' if len(shape) == 1 else 'axes'}"
    inside = ", ".join("any" if length is None else str(length) for length in shape)
    return f"numbers of shape ({inside},)" if len(shape) == 1 else f"numbers of shape ({inside})"
