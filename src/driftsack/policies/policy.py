"""``Policy``: the recipe of an algorithm; and the two kernels that every algorithm has.

A policy file holds a ``NamedTuple`` state and two kernels that act on it,

- ``choose(state, ledger, t, rng, mix, prices)``: writes the probabilities of the arms into ``mix (m,)`` and what it
  takes a unit of each resource to be worth into ``prices (d,)``; returns the arm of round t (from 0), ``SKIP``, or
  ``STUCK``, after which it is called once more and must leave its LP's columns as they are;
- ``learn(state, t, arm, chance, reward, costs)``: the outcome of round t, in [0, 1], however late; ``chance`` is the
  probability that the arm had when it was chosen. A ``SKIP`` is told at once, with zeros.

:func:`choose` and :func:`learn` of this file call those of the file in which the state's class was written. Inside
a kernel Numba settles that when it compiles, by the state's type: the simulator's loop and policies that
wrap other policies call them by name and stay in Numba's disk cache.
"""

from __future__ import annotations

import abc
import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit
from numba.extending import overload
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import of_type
from driftsack.core.errors import DriftsackError, SettingError
from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.core.seeding import Seed
from driftsack.game.ledger import Ledger
from driftsack.lp.step import rescue_failed
from driftsack.numerics.compiled import OPTIONS
from driftsack.numerics.simplex import Simplex

if TYPE_CHECKING:
    from driftsack.policies.learner import Learner

STUCK: Final = -2  # from ``choose``: an LP could not be certified; call ``unstick`` and choose again


def find_kernel(state_class: type, name: str) -> Any:
    """The ``choose`` or ``learn`` that stands in the file in which a state's class was written."""
    file = sys.modules[state_class.__module__]
    if not hasattr(file, name):
        raise SettingError(
            f"the file {state_class.__module__!r} holds the state {state_class.__name__} and must hold its kernel "
            f"{name} too; write `@kernel def {name}(state, ...)` beside it."
        )
    return getattr(file, name)


def choose(state: Any, ledger: Ledger, t: int, rng: Generator, mix: Floats, prices: Floats) -> int:
    """The arm of round ``t``, ``SKIP``, or ``STUCK``; what it was drawn from goes into ``mix`` and ``prices``."""
    arm: int = runnable(state, "choose")(state, ledger, t, rng, mix, prices)
    return arm


def learn(state: Any, t: int, arm: int, chance: float, reward: float, costs: Floats) -> None:
    """Take in the outcome of round ``t``, whose arm had the probability ``chance``."""
    runnable(state, "learn")(state, t, arm, chance, reward, costs)


@overload(choose, strict=False)  # type: ignore[untyped-decorator]
def _choose(state: Any, ledger: Any, t: Any, rng: Any, mix: Any, prices: Any) -> Callable[..., Any]:  # noqa: ARG001
    return _python(find_kernel(state.instance_class, "choose"))


@overload(learn, strict=False)  # type: ignore[untyped-decorator]
def _learn(state: Any, t: Any, arm: Any, chance: Any, reward: Any, costs: Any) -> Callable[..., Any]:  # noqa: ARG001
    return _python(find_kernel(state.instance_class, "learn"))


def _python(function: Any) -> Callable[..., Any]:
    """What was written, for Numba to compile into its caller."""
    written: Callable[..., Any] = getattr(function, "py_func", function)
    return written


def runnable(state: Any, name: str) -> Any:
    """The kernel for calls from Python; compiled afresh if the disk cache does not cover all of the state's files."""
    found = find_kernel(type(state), name)
    return found if covered(state) else _fresh(_python(found))


@cache
def _fresh(function: Callable[..., Any]) -> Any:
    return njit(**OPTIONS)(function)


def parts(state: Any, name: str = "state") -> Iterator[tuple[str, Any]]:
    """Every array, number and NamedTuple that a state is made of, outermost first, each with its place in it."""
    if isinstance(state, tuple):
        yield name, state
        names = getattr(state, "_fields", range(len(state)))
        for field, part in zip(names, state, strict=True):
            yield from parts(part, f"{name}.{field}")
    elif isinstance(state, (np.ndarray, np.generic, int, float)):
        yield name, state
    else:
        raise SettingError(f"a state is made of arrays, numbers and tuples of them; {name} is {state!r:.80}.")


def arrays(state: Any, name: str = "state") -> dict[str, npt.NDArray[Any]]:
    """Every array of a state that can change, by its place."""
    found = ((place, part) for place, part in parts(state, name) if isinstance(part, np.ndarray))
    return {place: array for place, array in found if array.flags.writeable}


def programs(state: Any) -> Iterator[Simplex]:
    """Every linear program of a state."""
    return (part for _, part in parts(state) if isinstance(part, Simplex))


def covered(state: Any) -> bool:
    """Whether every class of the state was written in the package, so that its stamp covers their kernels."""
    classes = {type(part) for _, part in parts(state) if hasattr(part, "_fields")}
    return all(kind.__module__.startswith("driftsack.") for kind in classes)


def copied(state: Any) -> Any:
    """An equal state with arrays of its own; read-only ones are shared."""
    copies: dict[int, npt.NDArray[Any]] = {}

    def home(owner: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if id(owner) not in copies:
            copies[id(owner)] = owner.copy()
        return copies[id(owner)]

    return moved(state, home)


def moved(state: Any, home: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Any:
    """The same state on other memory: ``home`` of an array that owns its own; arrays within it follow it there."""
    if isinstance(state, tuple):
        inner = [moved(part, home) for part in state]
        return type(state)(*inner) if hasattr(state, "_fields") else tuple(inner)
    if not isinstance(state, np.ndarray) or not state.flags.writeable:
        return state
    owner = owner_of(state)
    if owner is state:
        return home(owner)
    first = (state.ctypes.data - owner.ctypes.data) // state.itemsize
    return home(owner).reshape(-1)[first : first + state.size].reshape(state.shape)


def unstick(state: Any) -> int:
    """Solve with HiGHS what made ``choose`` return ``STUCK``, and say how many; then choose again, once."""
    rescued = sum(rescue_failed(program) for program in programs(state))
    if not rescued:
        raise DriftsackError("choose returned STUCK, but no linear program of its state has failed.")
    return rescued


def owner_of(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array whose memory this one uses: itself, or the one that it is an unbroken part of."""
    base = array.base
    if not isinstance(base, np.ndarray) or base.dtype != array.dtype:
        return array
    return base if base.flags.c_contiguous and array.flags.c_contiguous else array


@dataclasses.dataclass(frozen=True)
class Policy(abc.ABC):
    """A recipe: immutable, hashable settings without state. ``start`` makes a learner of it."""

    @abc.abstractmethod
    def new_state(self, problem: Problem) -> Any:
        """The state of a learner before its first round."""

    def state_on(self, instance: Instance) -> Any:
        """The state of a simulated learner before its first round; an oracle looks at the instance, nobody else."""
        return self.new_state(instance.problem)

    @property
    def forgets(self) -> bool | None:
        """Whether old outcomes stop counting; None for a policy that learns nothing."""
        return False

    def start(self, problem: Problem, seed: Seed = 0, safe: bool = False) -> Learner:
        """Start on a problem; ``safe=True`` never overspends, whatever the outcomes and however late."""
        of_type(problem, Problem, "problem")
        from driftsack.policies.learner import Learner  # noqa: PLC0415  (a learner holds its policy)

        return Learner(self, problem, seed=seed, safe=safe)

    def to_spec(self) -> dict[str, Any]:
        """Name and settings as plain data; ``policies.from_spec`` reads them back."""
        settings = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {"policy": type(self).__name__, **{name: _plain(value) for name, value in settings.items()}}


def _plain(value: Any) -> Any:
    """A setting as plain data."""
    if isinstance(value, Policy):
        return value.to_spec()
    return value.to_dict() if isinstance(value, Instance) else value


def from_spec(spec: Mapping[str, Any]) -> Policy:
    """Build the policy that a spec names: ``{"policy": "NaiveUCB", "scale": 0.1}``."""
    if not isinstance(spec, Mapping):
        raise SettingError(f'a spec must be a mapping such as {{"policy": "NaiveUCB"}}, got {spec!r:.80}.')
    settings = dict(spec)
    name = settings.pop("policy", None)
    known = {recipe.__name__: recipe for recipe in recipes()}
    known |= {recipe.__name__: recipe for recipe in recipes() if recipe.__module__.startswith("driftsack.")}
    if name not in known:
        raise SettingError(f"policy must be one of {', '.join(sorted(known))}, got {name!r}.")
    fields = [field.name for field in dataclasses.fields(known[name])]
    unknown = sorted(set(settings) - set(fields))
    if unknown:
        raise SettingError(f"{name} takes {', '.join(fields)}, got {', '.join(unknown)}.")
    nested = {key: from_spec(v) for key, v in settings.items() if isinstance(v, Mapping) and "policy" in v}
    return known[name](**settings | nested)


def recipes(root: type[Policy] = Policy) -> Iterator[type[Policy]]:
    """Every policy class that has been imported."""
    for recipe in root.__subclasses__():
        yield recipe
        yield from recipes(recipe)
