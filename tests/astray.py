"""A policy with a planted fault: it chooses an arm that does not exist."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from driftsack.authoring import Floats, Generator, Ints, Outcome, Policy, Problem, Round, kernel


class State(NamedTuple):
    """How many arms there are."""

    arms: Ints  # (1,)


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:  # noqa: ARG001
    """The arm after the last."""
    return int(state.arms[0])


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Nothing is learnt."""


@dataclass(frozen=True)
class Astray(Policy):
    """No settings."""

    def new_state(self, problem: Problem) -> State:
        """Count the arms."""
        return State(np.array([problem.arms]))
