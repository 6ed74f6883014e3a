r"""PerSegment: turns any policy into a contextual one, with a separate learner for each segment.

Each segment has its own copy of the base, which sees only the rounds of its segment but the budgets of all: every copy
plans with the same rate per round. Budget is not shifted between segments;
:class:`~driftsack.policies.DisjointBwK` does that, and shares information between segments.

*Guarantee*: that of the base in each segment, for the budget of its rounds at the even rate. Memory is one state of the
base per segment, and a change of segment copies a state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import index_of
from driftsack.core.errors import SettingError
from driftsack.core.problem import Problem
from driftsack.game.protocol import choose as choose_base
from driftsack.game.protocol import learn as learn_base
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.policies.adaptive import Adaptive
from driftsack.policies.parts.memory import Memory, check_base, pack, repeat, restore, save, states_in
from driftsack.policies.parts.segments import Segments, segment_of, segments_of
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """The learner of the current segment, and the waiting ones."""

    base: Any  # the active learner, in ``memory``
    memory: Memory
    waiting: Memory  # (S, ...) the learners of all segments
    segments: Segments
    active: Annotated[Ints, index_of("segments.slots")]  # (1,) the segment of the active learner

    def nested(self) -> Iterator[Any]:
        """Iterate over the states of the waiting learners."""
        return states_in(self.waiting, self.base, self.memory)


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Let the learner of the segment choose."""
    activate(state, segment_of(state.segments, round.context))
    arm: int = choose_base(state.base, round, rng, mix, prices)
    return arm


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Pass the outcome to the learner of its segment."""
    activate(state, segment_of(state.segments, outcome.context))
    learn_base(state.base, outcome)


@kernel
def activate(state: State, segment: int) -> None:
    """Store the active learner and restore the one of a segment."""
    if segment != state.active[0]:
        save(state.memory, state.waiting, state.active[0])
        restore(state.memory, state.waiting, segment)
        state.active[0] = segment


@dataclass(frozen=True)
class PerSegment(Policy):
    """Runs a separate learner of a policy for each segment.

    Attributes:
        base: The policy of each segment; it does not use contexts.
        feature: The category whose values are the segments; None for the only category, or for one-hot contexts.

    >>> PerSegment(feature="kind").base
    Adaptive(exploration=0.7, pacing='two-speed', speed=2.0)
    """

    base: Policy = field(default_factory=Adaptive)
    feature: str | None = None

    def __post_init__(self) -> None:
        check_base(self.base)
        if self.base.needs_context:
            raise SettingError(f"base must be a policy without contexts, got {self.base}; use it directly.")

    @property
    def needs_context(self) -> bool:
        """True: decisions depend on the segment of each request."""
        return True

    @property
    def known_costs(self) -> bool:
        """As for the base."""
        return self.base.known_costs

    @property
    def forgets(self) -> bool | None:
        """As for the base."""
        return self.base.forgets

    @property
    def bounded(self) -> bool:
        """As for the base."""
        return self.base.bounded

    def rounds_kept(self, problem: Problem) -> int:
        """Return the number of rounds kept by the learners of all segments."""
        return (1 + segments_of(problem, self.feature).slots) * self.base.rounds_kept(problem)

    def new_state(self, problem: Problem) -> State:
        """Return the initial state of the base, repeated for each segment."""
        if not problem.features:
            raise SettingError(
                "PerSegment needs the segment of each request; declare it with "
                "Problem(features=ds.Encoder(categories={...}))."
            )
        segments = segments_of(problem, self.feature)
        base, memory = pack(self.base.new_state(problem))
        return State(base, memory, repeat(memory, segments.slots), segments, np.zeros(1, dtype=np.int64))
