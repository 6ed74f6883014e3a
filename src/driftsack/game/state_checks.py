"""Checks on a state that was read from a file, before a kernel sees it.

A kernel does not check its indices, so an integer out of range would make it read or write beyond its arrays. The class
of a state, or of a part of one, may have three methods that say what is possible:

- ``ranges(rounds)``, called on the *new* state, returns the lowest and highest values of fields after some rounds:
  numbers or arrays, or None for a field that may hold anything because it is written before it is read. A field
  without a range may hold any number, but a float must be finite. Every integer that a kernel uses as an index or a
  size needs a range. A name with dots is that of a field of a part, about which the whole knows more.
- ``check()`` raises ``ValueError`` if fields within their ranges do not fit each other.
- ``nested()`` iterates over further states, like the field ``base``, that the part keeps in some other form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from driftsack.core.checks import LARGEST_FLOAT
from driftsack.game.state_tree import parts


def check_state(state: Any, new: Any, rounds: int) -> None:
    """Raise unless a state is possible.

    Args:
        state: The state; its arrays have the shapes and types of those of ``new``.
        new: The state of the same policy on the same problem before its first round.
        rounds: The number of rounds that have begun.

    Raises:
        ValueError: It is not possible.
    """
    pairs = [(path, part, origin) for (path, part), (_, origin) in zip(parts(state), parts(new), strict=True)]
    ranges: dict[str, Any] = {}
    for path, _, origin in reversed(pairs):  # what an outer part says about an inner one counts
        if hasattr(type(origin), "ranges"):
            ranges |= {f"{path}.{field}": bounds for field, bounds in origin.ranges(rounds).items()}
    for path, part, _ in pairs:
        if isinstance(part, np.ndarray) and part.flags.writeable:
            check_array(path, part, ranges.get(path, (-LARGEST_FLOAT, LARGEST_FLOAT)))
    for _, part, origin in pairs:
        if hasattr(type(part), "check"):
            part.check()
        if hasattr(type(part), "nested"):
            for inner in part.nested():
                check_state(inner, origin.base, rounds)


def check_array(path: str, array: npt.NDArray[Any], bounds: tuple[Any, Any] | None) -> None:
    """Raise unless every entry lies within the bounds; NaN never does.

    Args:
        path: The name of the array.
        array: The array.
        bounds: The lowest and the highest value; None for anything.
    """
    if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
        raise ValueError(f"{path} must be true or false")
    if bounds is not None and not ((array >= bounds[0]) & (array <= bounds[1])).all():
        raise ValueError(f"{path} must lie in [{_spell(bounds[0])}, {_spell(bounds[1])}]")


def _spell(bound: Any) -> str:
    return np.array2string(np.asarray(bound), precision=17, threshold=10)
