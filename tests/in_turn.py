"""The smallest whole policy: it pulls its arms in turn and counts the outcomes."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from driftsack.authoring import Floats, Generator, Ints, Outcome, Policy, Problem, Round, kernel


class State(NamedTuple):
    """All that the learner remembers."""

    pulls: Ints  # (m,) how often the outcome of each arm was observed


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:  # noqa: ARG001
    """Return an arm, SKIP or STUCK, and write the probabilities that it was drawn with."""
    arm = round.t % mix.size
    mix[:] = 0.0
    mix[arm] = 1.0
    return arm


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Take in an outcome, however late; a skipped round arrives with the arm -1."""
    if outcome.arm >= 0:
        state.pulls[outcome.arm] += 1


@dataclass(frozen=True)
class InTurn(Policy):
    """Arms in turn; no settings."""

    @property
    def forgets(self) -> None:
        """None: it learns nothing. True: old outcomes stop counting. False: they never do."""

    def new_state(self, problem: Problem) -> State:
        """Nothing observed."""
        return State(np.zeros(problem.arms, dtype=np.int64))
