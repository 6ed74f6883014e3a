"""The smallest whole policy, as CONTRIBUTING.md shows it: written outside the package, compiled like those inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger
from driftsack.numerics.compiled import kernel
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """How often each arm was told, and a shift, to plant an arm that there is not."""

    pulls: Ints  # (m,)
    shift: int


@kernel
def choose(state: State, ledger: Ledger, t: int, rng: Generator, mix: Floats, prices: Floats) -> int:  # noqa: ARG001
    """The arms in turn."""
    arm = t % mix.size
    mix[:] = 0.0
    mix[arm] = 1.0
    return arm + state.shift


@kernel
def learn(state: State, t: int, arm: int, chance: float, reward: float, costs: Floats) -> None:  # noqa: ARG001
    """Count."""
    if arm >= 0:
        state.pulls[arm] += 1


@dataclass(frozen=True)
class InTurn(Policy):
    """Recipe: what is added to the arm."""

    shift: int = 0

    @property
    def forgets(self) -> None:
        """It learns nothing."""

    def new_state(self, problem: Problem) -> State:
        return State(np.zeros(problem.arms, dtype=np.int64), self.shift)
