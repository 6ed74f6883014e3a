"""The memory of a base: packed, copied, saved and restored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.errors import SettingError
from driftsack.game.state_tree import arrays, copy_state
from driftsack.policies.parts.memory import pack, repeat, restore, save, snapshot

PROBLEM = ds.Problem(horizon=60, arms=3, budget=[20.0, 25.0])
STATE = ds.SlidingWindowUCB(windows=(7, 9)).new_state(PROBLEM)


def test_a_packed_state_is_equal_and_uses_the_memory() -> None:
    state, memory = pack(STATE)
    for name, array in arrays(STATE).items():
        np.testing.assert_array_equal(array, arrays(state)[name])
        assert array.dtype == arrays(state)[name].dtype
    assert sum(array.size for array in arrays(state).values()) == sum(part.size for part in memory)
    state.lp.rhs[:] = 77.0
    assert (memory.floats == 77.0).sum() == 3


def test_a_copy_keeps_arrays_in_their_memory() -> None:
    """Also when packed twice, as by a wrapper around a wrapper; the original is unchanged."""
    state, memory = pack(pack(STATE))
    twin, twin_memory = copy_state((state, memory))
    twin_memory.ints[:] = 5
    assert (twin[0].means.rewards.pulls == 5).all()
    assert (twin[1].ints == 5).all()
    assert not (state[0].means.rewards.pulls == 5).any()


def test_a_copy_keeps_values_whatever_their_order_in_memory() -> None:
    class Turned(NamedTuple):
        values: Floats
        chosen: Floats

    table = np.arange(6.0).reshape(3, 2)
    state = Turned(table.T, table[:, [1, 0]])
    for other in (copy_state(state), pack(state)[0]):
        np.testing.assert_array_equal(other.values, state.values)
        np.testing.assert_array_equal(other.chosen, state.chosen)


def test_save_and_restore() -> None:
    state, memory = pack(STATE)
    fresh, saved = snapshot(memory), repeat(memory, 3)
    before = {name: array.copy() for name, array in arrays(state).items()}
    memory.floats[:] = 0.25
    memory.ints[:] = 4
    memory.bools[:] = False
    save(memory, saved, 1)
    restore(memory, fresh, 0)
    for name, array in arrays(state).items():
        np.testing.assert_array_equal(array, before[name])
    restore(memory, saved, 1)
    assert (memory.floats == 0.25).all()
    assert (state.means.rewards.pulls == 4).all()
    assert not state.means.stale.present.any()
    restore(memory, saved, 2)  # a row that was never written has its initial content
    np.testing.assert_array_equal(state.lp.rhs, before["state.lp.rhs"])


def test_read_only_arrays_are_shared_and_never_saved() -> None:
    fresh = snapshot(pack(STATE)[1])
    assert copy_state(fresh).floats is fresh.floats
    assert arrays(fresh) == {}
    assert not fresh.floats.flags.writeable


def test_other_kinds_of_array_are_refused() -> None:
    class Odd(NamedTuple):
        values: Floats

    with pytest.raises(SettingError, match="float64, int64 and bool"):
        pack(Odd(np.zeros(3, dtype=np.float32)))
