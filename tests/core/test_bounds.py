"""Bounds that are declared beside the fields of a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import pytest

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import Constants, Counts, RoundNumbers, Scratch, declared, index_of, length_of, within
from driftsack.core.errors import SettingError
from driftsack.game.state_checks import check_state

if TYPE_CHECKING:
    from driftsack.core.arrays import Bools as Unknown


class State(NamedTuple):
    """A field of each kind."""

    pulls: Counts
    turn: Annotated[Ints, index_of("pulls")]
    used: Annotated[Ints, length_of("pulls")]
    latest: RoundNumbers
    unit: Constants
    share: Annotated[Floats, within(0.0, 1.0)]
    scratch: Scratch
    free: Floats


class Unresolved(NamedTuple):
    """A field with a type that exists only for type checkers."""

    open: Unknown


def new_state() -> State:
    pulls, turn, used, latest = (np.zeros(size, dtype=np.int64) for size in (3, 1, 1, 1))
    return State(pulls, turn, used, latest, np.array([2.0]), np.zeros(1), np.zeros(1), np.zeros(1))


@pytest.mark.parametrize(
    ("field", "allowed", "refused"),
    [
        ("pulls", (0, 2**60), (-1, 2**60 + 1)),
        ("turn", (0, 2), (-1, 3)),
        ("used", (0, 3), (-1, 4)),
        ("latest", (-1, 7), (-2, 8)),
        ("unit", (2.0,), (1.0, np.nan)),
        ("share", (0.0, 1.0), (-0.1, 1.1, np.nan)),
        ("scratch", (np.nan, -np.inf), ()),
        ("free", (-1e308, 1e308), (np.nan, np.inf)),
    ],
)
def test_a_field_must_be_within_its_bounds(field: str, allowed: tuple[float, ...], refused: tuple[float, ...]) -> None:
    state = new_state()
    for value in allowed:
        getattr(state, field)[-1] = value
        check_state(state, new_state(), rounds=7)
    for value in refused:
        getattr(state, field)[-1] = value
        with pytest.raises(ValueError, match=rf"state\.{field} must lie in"):
            check_state(state, new_state(), rounds=7)


def test_annotations_must_exist_at_run_time() -> None:
    """Otherwise bounds would silently not be checked."""
    with pytest.raises(SettingError, match="import them outside of TYPE_CHECKING"):
        declared(Unresolved)
