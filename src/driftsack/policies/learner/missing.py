"""The means that replace missing numbers: of each optional number, over the requests that had it.

They are a part of the learner's state, and follow from the encoded contexts alone: a value counts unless its indicator
says that it was missing. So a learner that is given recorded vectors has the same means as the one that encoded them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.encoder import LARGEST_FEATURE, Encoder
from driftsack.core.problem import Problem

MEMORY: Final = 1000.0  # requests; afterwards a mean follows its feature


class UsualValues(NamedTuple):
    """The usual values of k optional numbers."""

    counts: Floats  # (k,) requests that had the number, up to MEMORY
    means: Floats  # (k,)

    def check(self) -> None:
        """Raise unless the values are possible."""
        if not ((self.counts >= 0.0) & (self.counts <= MEMORY)).all():
            raise ValueError("the counts of optional features are not possible")
        if not (np.abs(self.means) <= LARGEST_FEATURE).all():
            raise ValueError("the means of optional features are not possible")


def new_usual_values(problem: Problem) -> UsualValues:
    """Create the state without requests."""
    count = 0 if problem.encoder is None else len(problem.encoder.missable)
    return UsualValues(np.zeros(count), np.zeros(count))


def note_values(usual: UsualValues, encoder: Encoder | None, context: Floats) -> None:
    """Update the means with an encoded context."""
    if encoder is None or not usual.counts.size:
        return
    first = context.size - usual.counts.size
    for at, place in enumerate(encoder.missable):
        if context[first + at] == 0.0:
            usual.counts[at] = min(usual.counts[at] + 1.0, MEMORY)
            usual.means[at] += (context[place] - usual.means[at]) / usual.counts[at]
