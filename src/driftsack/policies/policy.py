"""``Policy``: the recipe of an algorithm; and the two kernels that every algorithm has.

A policy file holds a ``NamedTuple`` state and two kernels that act on it,

- ``choose(state, ledger, t, rng)``: the arm of round t (from 0), ``SKIP``, or ``STUCK``;
- ``learn(state, t, arm, reward, costs)``: the outcome of round t, in [0, 1], however late.

:func:`choose` and :func:`learn` of this file call those of the file in which the state's class was written. Inside
a kernel Numba settles that when it compiles, by the state's type: the simulator's loop and policies that
wrap other policies call them by name and stay in Numba's disk cache.
"""

from __future__ import annotations

import abc
import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from numba.extending import overload
from numpy.random import Generator

from driftsack.core.checks import Floats
from driftsack.core.errors import SettingError
from driftsack.core.problem import Problem
from driftsack.core.seeding import Seed
from driftsack.lp.step import rescue_failed
from driftsack.numerics.ledger import Ledger
from driftsack.numerics.simplex import Simplex

if TYPE_CHECKING:
    from driftsack.policies.learner import Learner

STUCK: Final = -2  # from ``choose``: an LP could not be certified; call ``unstick`` and choose again


def kernels_of(state_class: type) -> Any:
    """The file that a state's class was written in, which holds its ``choose`` and ``learn``."""
    return sys.modules[state_class.__module__]


def choose(state: Any, ledger: Ledger, t: int, rng: Generator) -> int:
    """The arm of round ``t``, ``SKIP``, or ``STUCK``."""
    arm: int = kernels_of(type(state)).choose(state, ledger, t, rng)
    return arm


def learn(state: Any, t: int, arm: int, reward: float, costs: Floats) -> None:
    """Take in the outcome of round ``t``."""
    kernels_of(type(state)).learn(state, t, arm, reward, costs)


@overload(choose, strict=False)  # type: ignore[untyped-decorator]
def _choose(state: Any, ledger: Any, t: Any, rng: Any) -> Callable[..., Any]:  # noqa: ARG001  (Numba matches names)
    function: Callable[..., Any] = kernels_of(state.instance_class).choose.py_func
    return function


@overload(learn, strict=False)  # type: ignore[untyped-decorator]
def _learn(state: Any, t: Any, arm: Any, reward: Any, costs: Any) -> Callable[..., Any]:  # noqa: ARG001
    function: Callable[..., Any] = kernels_of(state.instance_class).learn.py_func
    return function


def programs(state: Any) -> Iterator[Simplex]:
    """Every linear program that a state holds, however deep."""
    if isinstance(state, Simplex):
        yield state
    elif isinstance(state, tuple):
        for part in state:
            yield from programs(part)


def unstick(state: Any) -> None:
    """Solve with HiGHS, and count, what made ``choose`` return ``STUCK``; then choose again."""
    for program in programs(state):
        rescue_failed(program)


@dataclasses.dataclass(frozen=True)
class Policy(abc.ABC):
    """A recipe: immutable, hashable settings without state. ``start`` makes a learner of it."""

    @abc.abstractmethod
    def new_state(self, problem: Problem) -> Any:
        """The state of a learner before its first round."""

    def start(self, problem: Problem, seed: Seed = 0, safe: bool = False) -> Learner:
        """Start on a problem; ``safe=True`` never overspends, whatever the outcomes and however late."""
        from driftsack.policies.learner import Learner  # noqa: PLC0415  (a learner holds its policy)

        return Learner(self, problem, seed=seed, safe=safe)

    def mix_and_prices(self, state: Any) -> tuple[Floats, Floats]:
        """Mix (m,) and prices (d,) behind the last choice: here, those of the state's step LP."""
        program = next(programs(state))
        return program.solution, program.duals[:-1]

    def to_spec(self) -> dict[str, Any]:
        """Name and settings as plain data; ``policies.from_spec`` reads them back."""
        settings = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {"policy": type(self).__name__, **settings}


def from_spec(spec: Mapping[str, Any]) -> Policy:
    """Build the policy that a spec names: ``{"policy": "NaiveUCB", "scale": 0.1}``."""
    settings = dict(spec)
    name = settings.pop("policy", None)
    known = {recipe.__name__: recipe for recipe in recipes()}
    if name not in known:
        raise SettingError(f"policy must be one of {', '.join(sorted(known))}, got {name!r}.")
    fields = [field.name for field in dataclasses.fields(known[name])]
    unknown = sorted(set(settings) - set(fields))
    if unknown:
        raise SettingError(f"{name} takes {', '.join(fields)}, got {', '.join(unknown)}.")
    return known[name](**settings)


def recipes(root: type[Policy] = Policy) -> Iterator[type[Policy]]:
    """Every policy class that has been imported."""
    for recipe in root.__subclasses__():
        yield recipe
        yield from recipes(recipe)
