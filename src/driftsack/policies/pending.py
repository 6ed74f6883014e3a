"""Pending decisions as arrays, to save them with a learner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.decision import Decision
from driftsack.core.problem import Problem


class PendingArrays(NamedTuple):
    """One row per decision."""

    rounds: Ints  # (n,)
    arms: Ints  # (n,)
    mixes: Floats  # (n, m)
    prices: Floats  # (n, d)

    @classmethod
    def of(cls, decisions: tuple[Decision, ...], problem: Problem) -> PendingArrays:
        """Convert decisions to arrays."""
        return cls(
            np.array([d.round for d in decisions], dtype=np.int64),
            np.array([d.arm for d in decisions], dtype=np.int64),
            np.array([d.mix for d in decisions]).reshape(-1, problem.arms),
            np.array([d.prices for d in decisions]).reshape(-1, problem.resources),
        )

    def decisions(self, names: tuple[str, ...]) -> Iterator[Decision]:
        """Convert the arrays back to decisions on arms with these names."""
        by_arm = dict(enumerate(names))
        for t, arm, mix, prices in zip(*self, strict=True):
            yield Decision(int(t), int(arm), mix, prices, by_arm.get(int(arm)))
