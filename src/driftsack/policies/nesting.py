"""Policies inside policies: begin a base anew, or keep many of a kind and play one at a time.

Kernels cannot allocate, and a wrapper does not know what its base's state is made of. So the base's arrays are laid
side by side in one :class:`Memory` (:func:`packed`); to begin anew is to write its first content over it
(:func:`load`), and to put one aside for another is to keep its content as a row (:func:`store`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.checks import frozen, of_type
from driftsack.core.errors import SettingError
from driftsack.numerics.compiled import kernel
from driftsack.policies.oracles import Oracle
from driftsack.policies.policy import Policy, arrays, moved, owner_of


class Memory(NamedTuple):
    """All that a state can change; with a first axis more, the contents of several."""

    floats: Floats  # (n,) or (k, n)
    ints: Ints
    bools: Bools


def check_base(base: Any) -> None:
    """A base is a policy that learns from what it is told."""
    of_type(base, Policy, "base")
    if isinstance(base, Oracle):
        raise SettingError(f"base must not know the means; {type(base).__name__} does: play it alone, in simulate.")


def packed(state: Any) -> tuple[Any, Memory]:
    """An equal state whose arrays lie in one memory, and that memory.

    >>> from driftsack.numerics.index_set import all_marked
    >>> marks, memory = packed(all_marked(3))
    >>> memory.ints[:] = 7
    >>> marks.members
    array([7, 7, 7])
    """
    owners = {id(owner): owner for owner in map(owner_of, arrays(state).values())}.values()
    homes: dict[int, npt.NDArray[Any]] = {}
    pools: list[Any] = []
    for kind in (np.float64, np.int64, np.bool_):
        mine = [owner for owner in owners if owner.dtype == kind]
        pool = np.concatenate([owner.reshape(-1) for owner in mine]) if mine else np.zeros(0, dtype=kind)
        ends = np.cumsum([owner.size for owner in mine])
        for owner, end in zip(mine, ends, strict=True):
            homes[id(owner)] = pool[end - owner.size : end].reshape(owner.shape)
        pools.append(pool)
    if len(homes) < len(owners):
        raise SettingError("a state that another policy wraps must be made of float64, int64 and bool arrays.")
    return moved(state, lambda owner: homes[id(owner)]), Memory(*pools)


def rows(memory: Memory, count: int) -> Memory:
    """Room for ``count`` contents, each as the memory is now."""
    stacked: list[Any] = [np.stack([part] * count) for part in memory]
    return Memory(*stacked)


def sealed(memory: Memory) -> Memory:
    """The memory's present content as one row, read-only: shared between trials, never saved."""
    frozen_rows: list[Any] = [frozen(part[None]) for part in memory]
    return Memory(*frozen_rows)


@kernel
def load(memory: Memory, contents: Memory, k: int) -> None:
    """Write the k-th of the contents over the memory."""
    for i in range(memory.floats.size):
        memory.floats[i] = contents.floats[k, i]
    for i in range(memory.ints.size):
        memory.ints[i] = contents.ints[k, i]
    for i in range(memory.bools.size):
        memory.bools[i] = contents.bools[k, i]


@kernel
def store(memory: Memory, contents: Memory, k: int) -> None:
    """Keep the memory as the k-th of the contents."""
    for i in range(memory.floats.size):
        contents.floats[k, i] = memory.floats[i]
    for i in range(memory.ints.size):
        contents.ints[k, i] = memory.ints[i]
    for i in range(memory.bools.size):
        contents.bools[k, i] = memory.bools[i]
