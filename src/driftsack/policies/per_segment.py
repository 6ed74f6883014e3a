r"""PerSegment: a contextual policy of any other one, with a learner of its own for each segment.

Each segment has its own copy of the base, which sees the rounds of its segment only and the budgets of all: it plans to
spend the same rate in each of its rounds as the others do in theirs. Budget is not moved between segments;
:class:`~driftsack.policies.DisjointBwK` does that, and shares what the segments have in common.

*Guarantee*: that of the base in each segment, for the budget that its rounds have at the even rate. Memory and
:math:`O(\text{state})` a change of segment: the learners that wait are stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import Ranges
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
    """The learner of the present segment, and those that wait."""

    base: Any  # the active learner, in ``memory``
    memory: Memory
    waiting: Memory  # (S, ...) the learners of all segments
    segments: Segments
    active: Ints  # (1,) the segment of the active learner

    def ranges(self, rounds: int) -> Ranges:  # noqa: ARG002
        """What the fields may hold after some rounds."""
        return {"active": (0, self.segments.slots - 1)}

    def nested(self) -> Iterator[Any]:
        """Iterate over the learners that wait, which are states like ``base``."""
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
    """Store the active learner and take up that of a segment."""
    if segment != state.active[0]:
        save(state.memory, state.waiting, state.active[0])
        restore(state.memory, state.waiting, segment)
        state.active[0] = segment


@dataclass(frozen=True)
class PerSegment(Policy):
    """A learner of any policy for each segment.

    Attributes:
        base: The policy, which does not use contexts.
        feature: The category whose values are the segments; None for the only one, or for one-hot contexts.

    >>> PerSegment(feature="kind").base
    Adaptive(exploration=0.7, pacing='two-speed', speed=2.0)
    """

    base: Policy = field(default_factory=Adaptive)
    feature: str | None = None

    def __post_init__(self) -> None:
        check_base(self.base)
        if self.base.needs_context:
            raise SettingError(f"base must be a policy without contexts, got {self.base}; use it on its own.")

    @property
    def needs_context(self) -> bool:
        """True: it decides by the segment of each request."""
        return True

    @property
    def forgets(self) -> bool | None:
        """The same as for the base."""
        return self.base.forgets

    @property
    def bounded(self) -> bool:
        """The same as for the base."""
        return self.base.bounded

    def rounds_kept(self, problem: Problem) -> int:
        """Those of all segments."""
        return (1 + segments_of(problem, self.feature).slots) * self.base.rounds_kept(problem)

    def new_state(self, problem: Problem) -> State:
        """The initial state of the base, once for each segment."""
        if not problem.features:
            raise SettingError(
                "PerSegment needs the segment of each request; declare it with "
                "Problem(features=ds.Encoder(categories={...}))."
            )
        segments = segments_of(problem, self.feature)
        base, memory = pack(self.base.new_state(problem))
        return State(base, memory, repeat(memory, segments.slots), segments, np.zeros(1, dtype=np.int64))
