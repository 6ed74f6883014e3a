"""A set of small integers with O(1) insertion and O(size) clearing, such as the arms whose estimates have changed."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from driftsack.core.arrays import Bools, Ints
from driftsack.core.bounds import index_of, length_of
from driftsack.numerics.compiled import kernel


class IndexSet(NamedTuple):
    """The members in order of insertion, and a flag for each possible member."""

    members: Annotated[Ints, index_of("members")]  # (m,) the first size[0] entries are the set
    present: Bools  # (m,)
    size: Annotated[Ints, length_of("members")]  # (1,)

    def grow_from(self, old: IndexSet) -> None:
        """Remain the full set, so that everything that depends on a member is recomputed."""

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
    """Create the set {0, ..., size - 1}."""
    return IndexSet(np.arange(size), np.ones(size, dtype=np.bool_), np.array([size]))


@kernel
def insert(items: IndexSet, item: int) -> None:
    """Insert ``item``; negative items such as SKIP are ignored."""
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
