"""Growth of a state when an arm is added to a learner.

The state of the larger problem is made first. Then the estimates are copied into it: an array that has grown keeps the
old entries first; numbers and read-only arrays are constants of the larger problem. The class of a part may have a
method ``grow_from(old)``, called on the new part, if that is not right for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftsack.core.errors import SettingError


def grow(new: Any, old: Any) -> None:
    """Copy the estimates of a state into one for more arms.

    Args:
        new: The state of the larger problem before its first round; changed in place.
        old: The state of the same policy on the smaller problem.

    Raises:
        SettingError: The states are not of the same kind.

    >>> grow((larger := np.zeros(3), np.ones(1)), (np.array([5.0, 7.0]), np.array([2.0])))
    >>> larger
    array([5., 7., 0.])
    """
    if type(new) is not type(old):
        raise SettingError(f"a state of {type(old).__name__} cannot become one of {type(new).__name__}.")
    if isinstance(new, np.ndarray) and new.flags.writeable:
        new[tuple(slice(size) for size in old.shape)] = old
    elif isinstance(new, tuple):
        if hasattr(type(new), "grow_from"):
            new.grow_from(old)  # type: ignore[attr-defined]
        else:
            for part, before in zip(new, old, strict=True):
                grow(part, before)
        if hasattr(type(new), "nested"):
            for inner, before in zip(new.nested(), old.nested(), strict=True):  # type: ignore[attr-defined]
                grow(inner, before)
