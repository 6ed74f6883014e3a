"""A policy with the rounding errors of linear programs in its mix: a sum above 1 and a probability below 0."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from driftsack.authoring import Floats, Generator, Ints, Outcome, Policy, Problem, Round, kernel


class State(NamedTuple):
    """The rounds in which the first arm was chosen."""

    rounds: Ints  # (1,)


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Choose the first arm; even rounds have one probability above 1, odd rounds a sum above 1."""
    mix[:] = 0.0
    if round.t % 2 == 0:
        mix[0] = 1.0000000000000007
        mix[1] = -1e-17
    else:
        mix[0] = 0.75
        mix[1] = 0.25000001
    return 0


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Count the outcomes whose probability is none."""
    if outcome.probability > 1.0:
        state.rounds[0] += 1


@dataclass(frozen=True)
class Rounding(Policy):
    """Choose the first arm with rounding errors; no settings."""

    @property
    def forgets(self) -> None:
        """None: the policy learns nothing."""

    def new_state(self, problem: Problem) -> State:
        """The state without outcomes."""
        return State(np.zeros(1, dtype=np.int64))
