"""A policy with a planted fault: it gives closed arms a probability, too."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftsack.authoring import Floats, Generator, Outcome, Problem, Round, kernel


class State(NamedTuple):
    """The state never changes."""

    share: Floats  # (1,) 1/m


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw any arm."""
    mix[:] = state.share[0]
    prices[:] = 0.0
    return min(int(rng.random() * mix.size), mix.size - 1)


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Ignore the outcome."""


def new_state(problem: Problem) -> State:
    """The state, which holds the probability of each arm."""
    return State(np.array([1.0 / problem.arms]))
