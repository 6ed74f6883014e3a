"""A base's memory: packed, copied, put aside and begun anew."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.core.errors import SettingError
from driftsack.policies.nesting import load, packed, rows, sealed, store
from driftsack.policies.policy import arrays, copied

PROBLEM = ds.Problem(horizon=60, arms=3, budget=[20.0, 25.0])
STATE = ds.SlidingWindowUCB(windows=(7, 9)).new_state(PROBLEM)


def test_packed_equals_and_shares_its_memory() -> None:
    state, memory = packed(STATE)
    for name, array in arrays(STATE).items():
        np.testing.assert_array_equal(array, arrays(state)[name])
        assert array.dtype == arrays(state)[name].dtype
    assert sum(array.size for array in arrays(state).values()) == sum(part.size for part in memory)
    state.lp.rhs[:] = 77.0
    assert (memory.floats == 77.0).sum() == 3


def test_a_copy_keeps_arrays_in_their_memory() -> None:
    """Also when packed twice, as by a wrapper around a wrapper; the original is left alone."""
    state, memory = packed(packed(STATE))
    twin, twin_memory = copied((state, memory))
    twin_memory.ints[:] = 5
    assert (twin[0].rewards.pulls == 5).all()
    assert (twin[1].ints == 5).all()
    assert not (state[0].rewards.pulls == 5).any()


def test_a_copy_keeps_values_whatever_their_order_in_memory() -> None:
    class Turned(NamedTuple):
        values: Floats
        chosen: Floats

    table = np.arange(6.0).reshape(3, 2)
    state = Turned(table.T, table[:, [1, 0]])
    for other in (copied(state), packed(state)[0]):
        np.testing.assert_array_equal(other.values, state.values)
        np.testing.assert_array_equal(other.chosen, state.chosen)


def test_put_aside_and_begin_anew() -> None:
    state, memory = packed(STATE)
    fresh, aside = sealed(memory), rows(memory, 3)
    before = {name: array.copy() for name, array in arrays(state).items()}
    memory.floats[:] = 0.25
    memory.ints[:] = 4
    memory.bools[:] = False
    store(memory, aside, 1)
    load(memory, fresh, 0)
    for name, array in arrays(state).items():
        np.testing.assert_array_equal(array, before[name])
    load(memory, aside, 1)
    assert (memory.floats == 0.25).all()
    assert (state.rewards.pulls == 4).all()
    assert not state.moved.present.any()
    load(memory, aside, 2)  # a row that nobody wrote is as it was when the rows were made
    np.testing.assert_array_equal(state.lp.rhs, before["state.lp.rhs"])


def test_what_is_read_only_is_shared_and_never_saved() -> None:
    fresh = sealed(packed(STATE)[1])
    assert copied(fresh).floats is fresh.floats
    assert arrays(fresh) == {}
    assert not fresh.floats.flags.writeable


def test_other_kinds_of_array_are_refused() -> None:
    class Odd(NamedTuple):
        values: Floats

    with pytest.raises(SettingError, match="float64, int64 and bool"):
        packed(Odd(np.zeros(3, dtype=np.float32)))
