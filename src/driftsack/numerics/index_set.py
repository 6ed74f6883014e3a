"""A set of small integers with O(1) insertion and O(size) emptying: which arms moved since the last round."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftsack.core.arrays import Bools, Ints
from driftsack.numerics.compiled import kernel


class Marks(NamedTuple):
    """The members in order of arrival, and who they are."""

    members: Ints  # (m,) the first size[0] entries are the set
    present: Bools  # (m,)
    size: Ints  # (1,)


def all_marked(size: int) -> Marks:
    """The set of all of 0, ..., size - 1."""
    return Marks(np.arange(size), np.ones(size, dtype=np.bool_), np.array([size]))


@kernel
def mark(marks: Marks, item: int) -> None:
    """Put ``item`` in; a negative one (SKIP) is nobody."""
    if item >= 0 and not marks.present[item]:
        marks.present[item] = True
        marks.members[marks.size[0]] = item
        marks.size[0] += 1


@kernel
def clear(marks: Marks) -> None:
    """Empty the set."""
    for i in range(marks.size[0]):
        marks.present[marks.members[i]] = False
    marks.size[0] = 0
