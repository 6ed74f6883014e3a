"""The kernel protocol: ``choose`` and ``learn``, found by the type of a policy's state.

A policy file holds a ``NamedTuple`` state and two kernels that act on it,

- ``choose(state, round, rng, mix, prices)`` writes the probabilities of the arms into ``mix (m,)`` and the value of a
  unit of each resource into ``prices (d,)``, and returns the arm of the round, ``SKIP``, or ``STUCK``. After ``STUCK``
  it is called again for the same round and must not change the columns of its LP.
- ``learn(state, outcome)`` updates the state with the outcome of a round, which may arrive late. A skipped round is
  passed immediately, with arm ``SKIP`` and zeros.

:func:`choose` and :func:`learn` of this file call those of the file in which the state's class is defined. Inside a
kernel Numba resolves that when it compiles, by the type of the state, so the game's loop and policies that wrap other
policies call them by name and stay in the disk cache.

A call from Python needs more care. Numba's dispatcher identifies an argument by a fingerprint, in which a NamedTuple is
its name and its fields: two classes ``State`` of different modules are the same to it, and it would run the first one's
machine code for the second. :func:`kernel_for` therefore keeps one copy of a kernel for each combination of classes.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar, cast

from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.errors import SettingError
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import Kernel, classes_in, copy_for, found_by_type, source

Function = TypeVar("Function", bound=Callable[..., Any])
STUCK: Final = -2
"""Returned by ``choose``: an LP could not be certified. Call ``solve_stuck`` and choose again."""


PARAMETERS: Final = {
    "choose": ("state", "round", "rng", "mix", "prices"),
    "learn": ("state", "outcome"),
    "reveal": ("world", "t", "terms"),
    "draw_outcome": ("world", "t", "arm", "costs", "rng"),
}


def find_kernel(state_class: type, name: str) -> Any:
    """The ``choose`` or ``learn`` of the file in which a state's class is defined."""
    file = sys.modules[state_class.__module__]
    if not hasattr(file, name):
        raise SettingError(
            f"the module {state_class.__module__!r} defines the state {state_class.__name__} and must also define its "
            f"kernel {name}; add `@kernel def {name}({', '.join(PARAMETERS[name])})` to it."
        )
    found = getattr(file, name)
    parameters = tuple(inspect.signature(source(found)).parameters)
    if len(parameters) != len(PARAMETERS[name]):
        raise SettingError(
            f"{name} of {state_class.__module__} must take ({', '.join(PARAMETERS[name])}), got "
            f"({', '.join(parameters)}); see CONTRIBUTING.md."
        )
    return found


def refuse_redefined(state: Any) -> None:
    """Refuse a state whose kernels were defined again without its class: compiled callers have the earlier ones."""
    for found in classes_in(state):
        for name in ("choose", "learn"):
            now = getattr(sys.modules[found.__module__], name, None)
            if now is not _first_found(found, name):
                raise SettingError(
                    f"{name} of {found.__module__} was defined again after its class {found.__name__} had been used, "
                    f"and compiled code still has the earlier one; define {found.__name__} again too, for example in "
                    "the same cell of a notebook."
                )


@cache
def _first_found(state_class: type, name: str) -> Any:
    return getattr(sys.modules[state_class.__module__], name, None)


def choose(state: Any, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Choose the arm of a round, ``SKIP`` or ``STUCK``, and write ``mix`` and ``prices``.

    Args:
        state: A policy's state.
        round: The information that the policy may use.
        rng: The policy's own randomness.
        mix: (m,) written: the probabilities of the arms.
        prices: (d,) written: the value of a unit of each resource.
    """
    arm: int = callable_kernel(state, "choose")(state, round, rng, mix, prices)
    return arm


def learn(state: Any, outcome: Outcome) -> None:
    """Update a state with the outcome of a round.

    Args:
        state: A policy's state.
        outcome: The outcome, which may arrive late.
    """
    callable_kernel(state, "learn")(state, outcome)


found_by_type(choose, find_kernel)
found_by_type(learn, find_kernel)


def callable_kernel(state: Any, name: str) -> Any:
    """The ``choose`` or ``learn`` of a state, for calls from Python."""
    return kernel_for(state, find_kernel(type(state), name))


def kernel_for(state: Any, kernel: Function) -> Function:
    """The copy of a kernel that may be called from Python with a state, and with no state of other classes.

    Copies for classes that are defined outside the package are not cached on disk. ``SettingError`` is raised if a
    kernel of the state was defined again without its class.
    """
    refuse_redefined(state)
    return cast("Function", cast("Kernel", copy_for(kernel, state)).run)
