"""Nested policies: restart a base policy, or switch between several learners of it.

Kernels cannot allocate, and a wrapper does not know the structure of its base's state. Therefore the base's arrays are
laid out contiguously in one :class:`Memory` (:func:`pack`). Restarting the base means copying the initial content back
(:func:`restore`); suspending it means storing its content as a row (:func:`save`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools, Ints
from driftsack.core.bounds import Scratch
from driftsack.core.checks import frozen, of_type
from driftsack.core.errors import SettingError
from driftsack.game.state_tree import arrays, owner_of, relocate
from driftsack.numerics.compiled import kernel
from driftsack.policies.oracles import Oracle
from driftsack.policies.policy import Policy


class Memory(NamedTuple):
    """The arrays of a state; with a leading axis, the contents of several states."""

    floats: Scratch  # (n,) or (k, n)
    ints: Ints
    bools: Bools

    def grow_from(self, old: Memory) -> None:
        """Do nothing: the states inside the memory grow."""


def check_base(base: Any) -> None:
    """Raise unless ``base`` is a policy that learns from outcomes alone."""
    of_type(base, Policy, "base")
    if isinstance(base, Oracle):
        name = type(base).__name__
        raise SettingError(f"base must not know the means, but {name} does; pass {name} directly to simulate.")


def pack(state: Any) -> tuple[Any, Memory]:
    """Return an equal state whose arrays are stored in one memory, and the memory.

    >>> from driftsack.numerics.index_set import full_set
    >>> items, memory = pack(full_set(3))
    >>> memory.ints[:] = 7
    >>> items.members
    array([7, 7, 7])
    """
    # Views share the place of the array that owns their data.
    owners = {id(owner): owner for owner in map(owner_of, arrays(state).values())}.values()
    places: dict[int, npt.NDArray[Any]] = {}
    pools: list[Any] = []
    # One pool for each type of element.
    for kind in (np.float64, np.int64, np.bool_):
        own = [owner for owner in owners if owner.dtype == kind]
        pool = np.concatenate([owner.reshape(-1) for owner in own]) if own else np.zeros(0, dtype=kind)
        ends = np.cumsum([owner.size for owner in own])
        for owner, end in zip(own, ends, strict=True):
            places[id(owner)] = pool[end - owner.size : end].reshape(owner.shape)
        pools.append(pool)
    if len(places) < len(owners):
        raise SettingError("the state of a wrapped policy must consist of float64, int64 and bool arrays.")
    return relocate(state, partial(_place, places)), Memory(*pools)


def repeat(memory: Memory, count: int) -> Memory:
    """Return ``count`` copies of the current content, one per row."""
    stacked: list[Any] = [np.stack([part] * count) for part in memory]
    return Memory(*stacked)


def snapshot(memory: Memory) -> Memory:
    """Return the current content as a single read-only row, which is shared between trials and never saved."""
    frozen_rows: list[Any] = [frozen(part[None]) for part in memory]
    return Memory(*frozen_rows)


def states_in(contents: Memory, state: Any, memory: Memory) -> Iterator[Any]:
    """Iterate over the states stored in the rows of ``contents``, laid out like ``state`` in ``memory``."""
    for row in zip(*contents, strict=True):
        yield _in_row(state, memory, row)


def _in_row(state: Any, memory: Memory, row: tuple[npt.NDArray[Any], ...]) -> Any:
    """Return a state like one in ``memory``, with the arrays of a row; the memory may be a part of another one."""
    if isinstance(state, tuple):
        inner = [_in_row(part, memory, row) for part in state]
        return type(state)(*inner) if hasattr(state, "_fields") else tuple(inner)
    if not isinstance(state, np.ndarray) or not state.flags.writeable:
        return state
    pool, content = next((pool, part) for pool, part in zip(memory, row, strict=True) if pool.dtype == state.dtype)
    first = (state.ctypes.data - pool.ctypes.data) // state.itemsize
    return content[first : first + state.size].reshape(state.shape)


def _place(places: Mapping[int, npt.NDArray[Any]], owner: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array that replaces ``owner``."""
    return places[id(owner)]


@kernel
def restore(memory: Memory, contents: Memory, k: int) -> None:
    """Overwrite the memory with row ``k`` of the contents."""
    for i in range(memory.floats.size):
        memory.floats[i] = contents.floats[k, i]
    for i in range(memory.ints.size):
        memory.ints[i] = contents.ints[k, i]
    for i in range(memory.bools.size):
        memory.bools[i] = contents.bools[k, i]


@kernel
def save(memory: Memory, contents: Memory, k: int) -> None:
    """Store the memory as row ``k`` of the contents."""
    for i in range(memory.floats.size):
        contents.floats[k, i] = memory.floats[i]
    for i in range(memory.ints.size):
        contents.ints[k, i] = memory.ints[i]
    for i in range(memory.bools.size):
        contents.bools[k, i] = memory.bools[i]
