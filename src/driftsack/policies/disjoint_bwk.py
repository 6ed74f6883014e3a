r"""DisjointBwK: one estimate for each arm and segment, shrunk towards the arm as a whole, and one price.

Requests belong to segments, the values of one category. A request is encoded as the one-hot vector of its segment and a
constant, so that the ridge penalty of the bank shrinks each segment towards the arm's own level; a segment with few
requests borrows from the others. All segments share one price, which shifts budget to the segments where it earns most.
The rest is :class:`~driftsack.policies.LinearBwK` with more exploration, because the outcomes of an arm in one segment
say little about the others. A round costs :math:`O(m S^2)` for S segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.policies.linear_bwk import LinearBwK
from driftsack.policies.parts.linear_choice import LinearChoice, choose_at, learn_at, new_choice
from driftsack.policies.parts.segments import Segments, segment_of, segments_of


class State(NamedTuple):
    """The segments, the vector of the current one, and the linear choice."""

    segments: Segments
    x: Floats  # (S + 1,) written: the vector of the present segment
    choice: LinearChoice


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw outcomes for the segment and choose the best arm at the current prices."""
    set_segment(state, round.context)
    arm: int = choose_at(state.choice, round, state.x, rng, mix, prices)
    return arm


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Update the belief about the arm."""
    set_segment(state, outcome.context)
    learn_at(state.choice, outcome, state.x)


@kernel
def set_segment(state: State, context: Floats) -> None:
    """Write the vector of a context: one-hot segment and constant."""
    for f in range(state.x.size - 1):
        state.x[f] = 0.0
    state.x[segment_of(state.segments, context)] = 1.0
    state.x[state.x.size - 1] = 1.0


@dataclass(frozen=True)
class DisjointBwK(LinearBwK):
    """Contextual bandit with knapsacks for requests that belong to segments.

    Attributes:
        exploration: As in ``LinearBwK``.
        forgetting: As in ``LinearBwK``.
        probe_share: As in ``LinearBwK``.
        feature: The category whose values are the segments; None for the only category, or for one-hot contexts.

    >>> import driftsack as ds
    >>> encoder = ds.Encoder(categories={"kind": ["chat", "code"]})
    >>> problem = ds.Problem(horizon=100, arms=["small", "large"], budget={"usd": 1.0}, features=encoder)
    >>> DisjointBwK().start(problem).ask(context={"kind": "code"}).name
    'small'
    """

    exploration: float = 0.5
    feature: str | None = None

    def new_state(self, problem: Problem) -> State:  # type: ignore[override]
        """Return the state without observations."""
        self.check_features(problem)
        segments = segments_of(problem, self.feature)
        size = segments.slots + 1
        choice = new_choice(problem, size, self.exploration, self.probe_share, self.forgetting)
        return State(segments, np.zeros(size), choice)

    def contributions(self, state: State) -> None:
        """Return None: estimates are those of the segment, and not sums over features."""
