"""A minimal complete policy: it pulls the arms in turn and counts the outcomes."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from driftsack.authoring import Floats, Generator, Ints, Outcome, Policy, Problem, Round, kernel


class State(NamedTuple):
    """The state of the learner."""

    pulls: Ints  # (m,) number of observed outcomes of each arm


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Return an arm, SKIP or STUCK, and write the probabilities from which it was drawn."""
    arm = round.t % mix.size
    mix[:] = 0.0
    mix[arm] = 1.0
    return arm


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Update the state with an outcome, which may arrive late; the arm of a skipped round is -1."""
    if outcome.arm >= 0:
        state.pulls[outcome.arm] += 1


@dataclass(frozen=True)
class InTurn(Policy):
    """Pull the arms in turn; no settings."""

    @property
    def forgets(self) -> None:
        """None: the policy learns nothing. Otherwise, whether old outcomes cease to affect estimates."""

    def new_state(self, problem: Problem) -> State:
        """The state without observations."""
        return State(np.zeros(problem.arms, dtype=np.int64))
