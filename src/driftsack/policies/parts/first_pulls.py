"""First pulls: each open arm is pulled a given number of times, in turn, before the step LP decides.

A closed arm is pulled when it opens. Decisions are counted, not outcomes, so that late feedback does not prolong the
first pulls. A first pull that a driver turns into a skip, because a budget could not pay for it, is repeated.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import Ranges, whole
from driftsack.core.decision import SKIP
from driftsack.game.records import Round
from driftsack.numerics.compiled import kernel


class FirstPulls(NamedTuple):
    """The first pulls that are still to be made.

    Attributes:
        due: (m,) first pulls of each arm that are left.
        left: (1,) their sum.
        latest: (2,) the round, from 0, and the arm of the latest first pull.
    """

    due: Ints
    left: Ints
    latest: Ints

    def ranges(self, rounds: int) -> Ranges:
        """What the fields may hold after some rounds."""
        return {"due": (0, self.due), "left": (0, self.left), "latest": (-1, np.array([rounds, self.due.size - 1]))}

    def grow_from(self, old: FirstPulls) -> None:
        """Add the first pulls of new arms.

        Args:
            old: The first pulls of fewer arms.
        """
        self.due[: old.due.size] = old.due
        self.left[0] = self.due.sum()
        self.latest[:] = old.latest

    def check(self) -> None:
        """Raise unless the number of pulls that are left is their sum and the latest one has an arm."""
        if self.left[0] != self.due.sum() or (self.latest[0] >= 0) != (self.latest[1] >= 0):
            raise ValueError("the first pulls that are left do not add up")


def new_first_pulls(arms: int, count: int) -> FirstPulls:
    """``count`` first pulls of each arm.

    Args:
        arms: The number of arms.
        count: The number of first pulls of each.

    Returns:
        The first pulls, none of them made.
    """
    return FirstPulls(np.full(arms, count), np.array([arms * count]), np.full(2, -1))


def check_first_pulls(recipe: Any) -> None:
    """Check the setting ``first_pulls`` of a policy and store it as a plain number."""
    object.__setattr__(recipe, "first_pulls", whole(recipe.first_pulls, "first_pulls", at_least=0))


@kernel
def first_pull(first: FirstPulls, round: Round, mix: Floats, prices: Floats) -> int:
    """Choose the open arm with the most first pulls left, and write its mix and prices of 0.

    Args:
        first: The first pulls.
        round: The round.
        mix: (m,) written if there is such an arm.
        prices: (d,) written if there is such an arm.

    Returns:
        The arm, or ``SKIP`` if no first pull of an open arm is left.
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
    """Count the first pull of round ``t`` as not made, because the round was skipped.

    Args:
        first: The first pulls.
        t: The skipped round, from 0.
    """
    if first.latest[0] == t:
        first.due[first.latest[1]] += 1
        first.left[0] += 1
