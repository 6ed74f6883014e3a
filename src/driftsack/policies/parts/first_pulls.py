"""First pulls: pull each open arm a given number of times, in turn, before the step LP decides.

A closed arm is pulled when it opens. Decisions are counted, not outcomes, so that late feedback does not prolong the
first pulls. A first pull that a driver turns into a skip, because a budget does not cover it, is repeated.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import AT_MOST_INITIAL, Bound
from driftsack.core.checks import whole
from driftsack.core.decision import SKIP
from driftsack.game.records import Round
from driftsack.numerics.compiled import kernel


class FirstPulls(NamedTuple):
    """The remaining first pulls."""

    due: Annotated[Ints, AT_MOST_INITIAL]  # (m,) the remaining first pulls of each arm
    left: Annotated[Ints, AT_MOST_INITIAL]  # (1,) the sum of ``due``
    # (2,) the round (from 0) and the arm of the latest first pull.
    latest: Annotated[Ints, Bound(lambda new, _, rounds: (-1, np.array([rounds, new.due.size - 1])))]

    def grow_from(self, old: FirstPulls) -> None:
        """Keep the remaining first pulls ``old`` of existing arms and add those of new arms."""
        self.due[: old.due.size] = old.due
        self.left[0] = self.due.sum()
        self.latest[:] = old.latest

    def check(self) -> None:
        """Raise unless the number of pulls that are left is their sum and the latest one has an arm."""
        if self.left[0] != self.due.sum() or (self.latest[0] >= 0) != (self.latest[1] >= 0):
            raise ValueError("the first pulls that are left do not add up")


def new_first_pulls(arms: int, count: int) -> FirstPulls:
    """Schedule ``count`` first pulls of each arm."""
    return FirstPulls(np.full(arms, count), np.array([arms * count]), np.full(2, -1))


def check_first_pulls(recipe: Any) -> None:
    """Check the setting ``first_pulls`` of a policy and store it as a plain number."""
    object.__setattr__(recipe, "first_pulls", whole(recipe.first_pulls, "first_pulls", at_least=0))


@kernel
def first_pull(first: FirstPulls, round: Round, mix: Floats, prices: Floats) -> int:
    """Choose the open arm with the most remaining first pulls, and write its mix and prices of 0.

    Returns ``SKIP``, and leaves mix and prices unchanged, if no open arm has first pulls left.
    """
    arm = SKIP
    if first.left[0] == 0:
        return arm
    for i in range(mix.size):
        if round.open[i] and first.due[i] > (first.due[arm] if arm != SKIP else 0):
            arm = i
    if arm != SKIP:
        first.due[arm] -= 1
        first.left[0] -= 1
        first.latest[0], first.latest[1] = round.t, arm
        mix[:] = 0.0
        mix[arm] = 1.0
        prices[:] = 0.0
    return arm


@kernel
def repeat_if_skipped(first: FirstPulls, t: int) -> None:
    """Undo the first pull of round ``t`` (from 0), because the round was skipped."""
    if first.latest[0] == t:
        first.due[first.latest[1]] += 1
        first.left[0] += 1
