"""The smallest whole policy, as CONTRIBUTING.md shows it: written outside the package, compiled like those inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.checks import Floats, Ints
from driftsack.core.problem import Problem
from driftsack.numerics.compiled import kernel
from driftsack.numerics.ledger import Ledger
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """How often each arm was told."""

    pulls: Ints  # (m,)


@kernel
def choose(state: State, ledger: Ledger, t: int, rng: Generator) -> int:  # noqa: ARG001
    """The arms in turn."""
    return t % state.pulls.size


@kernel
def learn(state: State, t: int, arm: int, reward: float, costs: Floats) -> None:  # noqa: ARG001
    """Count."""
    state.pulls[arm] += 1


@dataclass(frozen=True)
class InTurn(Policy):
    """Recipe without settings."""

    def new_state(self, problem: Problem) -> State:
        return State(np.zeros(problem.arms, dtype=np.int64))

    def mix_and_prices(self, state: State) -> tuple[Floats, Floats]:
        return np.full(state.pulls.size, 1 / state.pulls.size), np.zeros(1)
