"""AlwaysArm: pull the same arm in every round until a budget is exhausted.

This is the simplest baseline: it shows what a single arm earns. No guarantee. O(m) per round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import frozen, whole
from driftsack.core.decision import SKIP
from driftsack.core.errors import OutOfRangeError
from driftsack.core.names import position
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """The fixed arm."""

    arm: Ints  # (1,)


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Choose the fixed arm, or skip if it is closed."""
    mix[:] = 0.0
    prices[:] = 0.0
    arm = int(state.arm[0])
    if not round.open[arm]:
        return SKIP
    mix[arm] = 1.0
    return arm


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Ignore the outcome."""


@dataclass(frozen=True)
class AlwaysArm(Policy):
    """Pulls the same arm in every round.

    Attributes:
        arm: The arm, from 0, or its name.

    >>> learner = AlwaysArm(2).start(Problem(horizon=10, arms=4, budget=[3]), seed=0)
    >>> learner.ask().arm
    2
    """

    arm: int | str = 0

    def __post_init__(self) -> None:
        if not isinstance(self.arm, str):
            object.__setattr__(self, "arm", whole(self.arm, "arm", at_least=0))

    @property
    def forgets(self) -> None:
        """None: the policy learns nothing."""

    def new_state(self, problem: Problem) -> State:
        """Return the state, after checking that the problem has the arm."""
        arm = position(self.arm, problem.arm_names, "arm") if isinstance(self.arm, str) else self.arm
        if arm >= problem.arms:
            raise OutOfRangeError(f"arm must lie in [0, {problem.arms - 1}] on this problem, got {arm}.")
        return State(frozen(np.array([arm])))
