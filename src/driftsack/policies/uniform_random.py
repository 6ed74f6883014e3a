"""Uniform random: pull every arm with probability 1/m in every round until a budget is exhausted.

This baseline does not learn. It is a good way to gather a log, because the probability of each arm is known and
positive. No guarantee. O(m) per round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.policies.parts.open_arms import count_open, nth_open, uniform_over_open
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """An empty state."""


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw an open arm uniformly."""
    uniform_over_open(round, mix)
    prices[:] = 0.0
    return nth_open(round, int(rng.random() * count_open(round)))


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Ignore the outcome."""


@dataclass(frozen=True)
class UniformRandom(Policy):
    """Pulls uniformly random arms; no settings.

    >>> learner = UniformRandom().start(Problem(horizon=10, arms=4, budget=[3]), seed=0)
    >>> learner.ask().mix
    array([0.25, 0.25, 0.25, 0.25])
    """

    @property
    def forgets(self) -> None:
        """None: the policy learns nothing."""

    def new_state(self, problem: Problem) -> State:
        """Return the empty state."""
        return State()
