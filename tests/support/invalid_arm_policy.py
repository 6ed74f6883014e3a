"""A policy with a planted fault: it chooses an arm that does not exist."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from driftsack.authoring import Floats, Generator, Ints, Outcome, Policy, Problem, Round, kernel


class State(NamedTuple):
    """The number of arms."""

    arms: Ints  # (1,)


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Return the index after the last arm."""
    return int(state.arms[0])


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Ignore the outcome."""


@dataclass(frozen=True)
class Astray(Policy):
    """Choose an invalid arm; no settings."""

    def new_state(self, problem: Problem) -> State:
        """The state, which holds the number of arms."""
        return State(np.array([problem.arms]))
