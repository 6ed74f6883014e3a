"""A set of small integers with O(1) insertion and O(size) clearing, such as the arms whose estimates have changed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftsack.core.arrays import Bools, Ints
from driftsack.core.checks import Ranges
from driftsack.numerics.compiled import kernel


class IndexSet(NamedTuple):
    """The members in order of insertion, and a flag for each possible member."""

    members: Ints  # (m,) the first size[0] entries are the set
    present: Bools  # (m,)
    size: Ints  # (1,)

    def ranges(self, rounds: int) -> Ranges:  # noqa: ARG002
        """What the fields may hold after some rounds."""
        return {"members": (0, self.members.size - 1), "size": (0, self.members.size)}

    def grow_from(self, old: IndexSet) -> None:
        """Stay the set of all, so that everything that depends on a member is computed again.

        Args:
            old: The set of fewer possible members.
        """

    def check(self) -> None:
        """Raise unless the flags are those of the members and no member occurs twice."""
        members = self.members[: self.size[0]]
        if (
            not self.present[members].all()
            or self.present.sum() != members.size
            or np.unique(members).size < members.size
        ):
            raise ValueError("the members of a set are not those that are marked as present")


def full_set(size: int) -> IndexSet:
    """The set of all of 0, ..., size - 1."""
    return IndexSet(np.arange(size), np.ones(size, dtype=np.bool_), np.array([size]))


@kernel
def insert(items: IndexSet, item: int) -> None:
    """Insert ``item``; a negative one, such as SKIP, is ignored."""
    if item >= 0 and not items.present[item]:
        items.present[item] = True
        items.members[items.size[0]] = item
        items.size[0] += 1


@kernel
def clear(items: IndexSet) -> None:
    """Remove all members."""
    for i in range(items.size[0]):
        items.present[items.members[i]] = False
    items.size[0] = 0
