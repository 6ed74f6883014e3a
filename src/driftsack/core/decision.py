"""``Decision``, which ``ask`` returns and ``tell`` takes, and ``SKIP``, the arm that does nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, overload

import numpy as np

from driftsack.core.arrays import Bools, Floats, Ints

SKIP: Final = -1
"""The null arm: no reward and no cost, always available, never estimated."""


@dataclass(frozen=True, eq=False, slots=True)
class Decision:
    """The choice of one round, with all that identifies it, so that feedback may arrive late and out of order.

    A decision is immutable, and so are its arrays.

    Attributes:
        round: The round, from 1.
        arm: The arm, from 0 to m - 1, or ``SKIP``.
        mix: (m,) probabilities of the arms; ``SKIP`` has the remaining probability.
        prices: (d,) dual prices: reward per unit of each resource, in the problem's units.
        name: The name of the arm, its number as text if the arms have no names; None for ``SKIP``.
        source: Which learner made the decision, and in which of its lives: a learner that is loaded, copied or forked
            begins a new one, so that decisions made after a snapshot are not confused with those made after loading it.
        reserved: (d,) what is reserved for the decision, the most that it may cost; NaN where that is not known.
        context: (n,) the features of the request as numbers; None if the problem has none.
    """

    round: int
    arm: int
    mix: Floats
    prices: Floats
    name: str | None = None
    source: str = ""
    reserved: Floats = field(default_factory=lambda: np.zeros(0))
    context: Floats | None = None

    @property
    def skipped(self) -> bool:
        """Whether the round is spent on ``SKIP``, which needs no ``tell``."""
        return self.arm == SKIP

    @property
    def id(self) -> str:
        """A text that identifies the decision among those of all learners."""
        return f"{self.source}-{self.round}"


@dataclass(frozen=True, eq=False, slots=True)
class Decisions(Sequence[Decision]):
    """The decisions of ``ask_many``, in arrays; indexing gives single decisions, and a mask or a slice some of them.

    Attributes:
        rounds: (n,) the rounds, from 1.
        arms: (n,) the arms, ``SKIP`` where a round is skipped.
        mixes: (n, m) probabilities of the arms.
        prices: (n, d) dual prices, in the problem's units.
        reserved: (n, d) what is reserved for each decision.
        arm_names: The names of the arms.
        source: As in :class:`Decision`.
        contexts: (n, f) the features of the requests; None if the problem has none.
    """

    rounds: Ints
    arms: Ints
    mixes: Floats
    prices: Floats
    reserved: Floats
    arm_names: tuple[str, ...]
    source: str
    contexts: Floats | None = None

    @property
    def skipped(self) -> Bools:
        """(n,) whether each round is skipped, which needs no ``tell``."""
        return np.equal(self.arms, SKIP)

    @property
    def names(self) -> tuple[str | None, ...]:
        """The names of the arms that were chosen; None where a round is skipped."""
        by_arm = (*self.arm_names, None)
        return tuple(by_arm[arm] for arm in self.arms.tolist())

    def __len__(self) -> int:
        return len(self.rounds)

    def __iter__(self) -> Iterator[Decision]:
        return (self[k] for k in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Decision: ...

    @overload
    def __getitem__(self, index: slice | Ints | Bools) -> Decisions: ...

    def __getitem__(self, index: int | slice | Ints | Bools) -> Decision | Decisions:
        """One decision, or those of a slice, a mask (n,) or positions."""
        if isinstance(index, (int, np.integer)):
            arm = int(self.arms[index])
            name = None if arm == SKIP else self.arm_names[arm]
            rows = self.mixes[index], self.prices[index]
            context = None if self.contexts is None else self.contexts[index]
            return Decision(int(self.rounds[index]), arm, *rows, name, self.source, self.reserved[index], context)
        return Decisions(
            rounds=read_only(self.rounds[index]),
            arms=read_only(self.arms[index]),
            mixes=read_only(self.mixes[index]),
            prices=read_only(self.prices[index]),
            reserved=read_only(self.reserved[index]),
            arm_names=self.arm_names,
            source=self.source,
            contexts=None if self.contexts is None else read_only(self.contexts[index]),
        )


def read_only(array: Any) -> Any:
    """Return an array after it was made read-only."""
    array.setflags(write=False)
    return array
