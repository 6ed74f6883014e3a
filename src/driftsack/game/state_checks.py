"""Checks of a state that was read from a file, before a kernel uses it.

The bounds of each field are declared beside it (:mod:`driftsack.core.bounds`). In addition, the class of a state, or of
a part of one, may have two methods:

- ``check()`` raises ``ValueError`` if fields within their bounds do not fit each other.
- ``nested()`` iterates over further states, like the field ``base``, that the part keeps in another form.

A part whose field ``base`` counts rounds by a clock of its own has a method ``rounds_of_base(rounds)``, which converts
the number of rounds that have begun.

Decision 19 describes the attacks against which the checks protect.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from driftsack.core.bounds import Limits, declared
from driftsack.core.checks import LARGEST_FLOAT
from driftsack.game.state_tree import parts


def check_state(state: Any, new: Any, rounds: int) -> None:
    """Raise unless a state is possible.

    Args:
        state: The state; its arrays have the shapes and types of those of ``new``.
        new: The state of the same policy on the same problem before its first round.
        rounds: The number of rounds that have begun.

    Raises:
        ValueError: A field is out of bounds, or fields do not fit each other.
    """
    pairs = [(path, part, origin) for (path, part), (_, origin) in zip(parts(state), parts(new), strict=True)]
    # Every field must be within its bounds.
    limits = _limits_of(pairs, rounds)
    for path, part, _ in pairs:
        if isinstance(part, np.ndarray) and part.flags.writeable:
            check_array(path, part, limits.get(path, (-LARGEST_FLOAT, LARGEST_FLOAT)))
    # Fields must fit each other, also in states that are kept in another form.
    for _, part, origin in pairs:
        if hasattr(type(part), "check"):
            part.check()
        if hasattr(type(part), "nested"):
            for inner in part.nested():
                check_state(inner, origin.base, rounds)


def _limits_of(pairs: list[tuple[str, Any, Any]], rounds: int) -> dict[str, Limits]:
    """Return the declared limits of fields by path; ``pairs`` are paths, parts and initial parts, outermost first."""
    limits: dict[str, Limits] = {}
    clocks: dict[str, int] = {}  # the rounds that have begun for each part
    for path, part, origin in pairs:
        begun = clocks.setdefault(path, clocks.get(path.rpartition(".")[0], rounds))
        if hasattr(type(part), "rounds_of_base"):
            clocks[f"{path}.base"] = part.rounds_of_base(begun)
        if hasattr(origin, "_fields"):
            for field, bound in declared(origin.__class__).items():
                limits[f"{path}.{field}"] = bound.limits(origin, getattr(origin, field), begun)
    return limits


def check_array(path: str, array: npt.NDArray[Any], limits: Limits) -> None:
    """Raise unless every entry of an array lies within its limits; NaN never does.

    Args:
        path: The name of the array.
        array: The array.
        limits: The smallest and the largest value; None for any.
    """
    if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
        raise ValueError(f"{path} must be true or false")
    if limits is not None and not ((array >= limits[0]) & (array <= limits[1])).all():
        raise ValueError(f"{path} must lie in [{_spell(limits[0])}, {_spell(limits[1])}]")


def _spell(limit: Any) -> str:
    return np.array2string(np.asarray(limit), precision=17, threshold=10)
