r"""``Until``: another policy for the first rounds, SKIP after; what it played by then can be read off its pulls.

The paper says how often naive UCB plays an arm *before the world changes*. Up to round :math:`\lfloor sT \rfloor` this
policy is the inner one, draw for draw; after it, it plays nothing, so that a run's pulls are those of the first part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import share
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.protocol import choose as choose_inner
from driftsack.game.protocol import learn as learn_inner
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.policies import NaiveUCB, Policy


class State(NamedTuple):
    """The inner policy's state and the round from which on nothing is played."""

    inner: Any
    end: int


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """The inner policy's choice, or SKIP."""
    if round.t < state.end:
        return choose_inner(state.inner, round, rng, mix, prices)
    mix[:] = 0.0
    prices[:] = 0.0
    return SKIP


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """The inner policy learns from its own rounds."""
    if outcome.t < state.end:
        learn_inner(state.inner, outcome)


@dataclass(frozen=True)
class Until(Policy):
    """Recipe: ``inner`` in the first ``part`` of the horizon.

    >>> Until(NaiveUCB(scale=0.1), part=0.5).to_spec()["policy"]
    'Until'
    """

    inner: Policy = NaiveUCB()  # noqa: RUF009  (recipes are immutable)
    part: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "part", share(self.part, "part"))

    def new_state(self, problem: Problem) -> State:
        """The inner policy before its first round."""
        return State(self.inner.new_state(problem), int(self.part * problem.horizon))
