"""Bounds on the fields of a state, declared beside each field.

A kernel does not check its indices, so the fields of a state that was read from a file are compared with their bounds
first (:mod:`driftsack.game.state_checks`). A field is declared by its annotation::

    class State(NamedTuple):
        pulls: Counts  # (m,)
        turn: Annotated[Ints, index_of("pulls")]  # (1,) the arm whose turn is next

Every integer that a kernel uses as an index, a size or the end of a loop needs bounds. A field without a declaration
may have any value, but a float must be finite.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, get_type_hints

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import LARGEST_FLOAT, LARGEST_INT, ROUNDING
from driftsack.core.errors import SettingError

Limits = tuple[Any, Any] | None
"""The smallest and the largest value, numbers or arrays; None for a field that may have any value, even NaN."""


class Bound(NamedTuple):
    """The limits of a field."""

    # A function of the part of the state that has the field, before the first round, of the field there, and of the
    # number of rounds that have begun.
    limits: Callable[[Any, Any, int], Limits]


def within(low: float, high: float) -> Bound:
    """Bound a field by constants.

    Args:
        low: The smallest value.
        high: The largest value.
    """
    return Bound(lambda new, value, rounds: (low, high))


def index_of(field: str, least: int = 0) -> Bound:
    """Bound an index into another field of the same part.

    Args:
        field: The other field; with dots, a field of one of its parts.
        least: The smallest index, -1 if the index may be missing.
    """
    return Bound(lambda new, value, rounds: (least, _length(new, field) - 1))


def length_of(field: str) -> Bound:
    """Bound the length of the used part of another field."""
    return Bound(lambda new, value, rounds: (0, _length(new, field)))


def round_from(least: int, beyond: int = 0) -> Bound:
    """Bound the number of a round from ``least`` to the number of rounds that have begun plus ``beyond``."""
    return Bound(lambda new, value, rounds: (least, rounds + beyond))


def _length(new: Any, field: str) -> int:
    found = attrgetter(field)(new)
    return int(found) if isinstance(found, int) else len(found)


INITIAL = Bound(lambda new, value, rounds: (value, value))
AT_MOST_INITIAL = Bound(lambda new, value, rounds: (0, value))

Counts = Annotated[Ints, within(0, LARGEST_INT)]
FloatCounts = Annotated[Floats, within(0.0, float(LARGEST_INT))]
RoundNumbers = Annotated[Ints, round_from(-1)]
"""Rounds from 0; -1 if there is none."""
NonNegative = Annotated[Floats, within(0.0, LARGEST_FLOAT)]
Shares = Annotated[Floats, within(0.0, 1.0 + ROUNDING)]
Constants = Annotated[Floats, INITIAL]
"""Values that never change."""
Scratch = Annotated[Floats, Bound(lambda new, value, rounds: None)]
"""Values that are written before they are read."""


@cache
def declared(cls: Any) -> dict[str, Bound]:
    """Return the bounds of the fields of a class.

    >>> class State(NamedTuple):
    ...     pulls: Annotated[Ints, within(0, 9)]
    >>> declared(State)["pulls"].limits(None, None, 5)
    (0, 9)
    """
    try:
        module = sys.modules.get(cls.__module__)
        hints = get_type_hints(cls, vars(module) if module else None, include_extras=True)
    except NameError as error:
        raise SettingError(
            f"the annotations of {cls.__qualname__} must be names that exist at run time, because they declare bounds "
            f"of its fields, but {error}; import them outside of TYPE_CHECKING."
        ) from error
    found = {
        name: [m for m in getattr(hint, "__metadata__", ()) if isinstance(m, Bound)] for name, hint in hints.items()
    }
    return {name: bounds[0] for name, bounds in found.items() if bounds}
