"""States as trees of arrays: traverse, copy and relocate them, and solve the LPs that a kernel could not solve."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from driftsack.core.errors import DriftsackError, SettingError
from driftsack.lp.step import rescue_failed
from driftsack.numerics.simplex import Simplex


def parts(state: Any, name: str = "state") -> Iterator[tuple[str, Any]]:
    """Iterate over the arrays, numbers and NamedTuples of a state, outermost first, each with its path."""
    if isinstance(state, tuple):
        yield name, state
        names = getattr(state, "_fields", range(len(state)))
        for field, part in zip(names, state, strict=True):
            yield from parts(part, f"{name}.{field}")
    elif isinstance(state, (np.ndarray, np.generic, int, float)):
        yield name, state
    else:
        raise SettingError(f"a state must consist of arrays, numbers and tuples of them, but {name} is {state!r:.80}.")


def arrays(state: Any, name: str = "state") -> dict[str, npt.NDArray[Any]]:
    """The writable arrays of a state by their paths."""
    every = ((path, part) for path, part in parts(state, name) if isinstance(part, np.ndarray))
    return {path: array for path, array in every if array.flags.writeable}


def programs(state: Any) -> Iterator[Simplex]:
    """Iterate over the linear programs of a state."""
    return (part for _, part in parts(state) if isinstance(part, Simplex))


def copy_state(state: Any) -> Any:
    """A copy of a state; read-only arrays are shared."""
    copies: dict[int, npt.NDArray[Any]] = {}

    def own(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if id(array) not in copies:
            copies[id(array)] = array.copy()
        return copies[id(array)]

    return relocate(state, own)


def relocate(state: Any, place: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Any:
    """The same state in other memory: ``place`` maps each array that owns its memory, and views follow their owner."""
    if isinstance(state, tuple):
        inner = [relocate(part, place) for part in state]
        return type(state)(*inner) if hasattr(state, "_fields") else tuple(inner)
    if not isinstance(state, np.ndarray) or not state.flags.writeable:
        return state
    owner = owner_of(state)
    if owner is state:
        return place(owner)
    first = (state.ctypes.data - owner.ctypes.data) // state.itemsize
    return place(owner).reshape(-1)[first : first + state.size].reshape(state.shape)


def owner_of(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array whose memory this one uses: itself, or the array of which it is a contiguous part."""
    base = array.base
    if not isinstance(base, np.ndarray) or base.dtype != array.dtype:
        return array
    return base if base.flags.c_contiguous and array.flags.c_contiguous else array


def solve_stuck(state: Any) -> int:
    """Solve the LPs that made ``choose`` return ``STUCK`` with HiGHS; return their number."""
    rescued = sum(rescue_failed(program) for program in programs(state))
    if not rescued:
        raise DriftsackError(
            "choose returned STUCK, but no linear program of its state has failed; "
            "return STUCK only after a failed solve."
        )
    return rescued
