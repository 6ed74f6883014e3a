r"""The account of floors: what counts towards each of them so far, and what is needed from now on.

A floor :math:`f` is reached if the mean of g over the answered requests is at least f, where g is the reward, or 1 if
the request was answered by a given arm. With :math:`G` the sum of g over the n answered requests whose outcome is
known, and R rounds left, the remaining requests need on average

.. math:: f + \frac{f n - G}{R} ,

so what is short of a floor is spread over the remaining rounds, as budgets are. A skipped request is not answered and
counts towards no floor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.floors import QUALITY
from driftsack.core.problem import Problem
from driftsack.numerics.compiled import kernel


class FloorAccount(NamedTuple):
    """The k floors of a game; every array is empty without floors.

    Attributes:
        least: (k,) the floors, in normalised reward or as shares.
        arm: (k,) the arm whose share each floor is for; -1 for the mean reward.
        gained: (k,) the sum of what counts towards each floor.
        counted: (k,) the answered requests behind it.
        minimised: The resource whose cost is minimised; -1 without floors.
    """

    least: Floats
    arm: Ints
    gained: Floats
    counted: Floats
    minimised: int


def new_floor_account(problem: Problem) -> FloorAccount:
    """The account of a game before its first round."""
    count = len(problem.floor)
    return FloorAccount(problem.unit_floors, problem.floor_arms, np.zeros(count), np.zeros(count), problem.minimised)


@kernel
def note_answer(account: FloorAccount, arm: int, reward: float) -> None:
    """Count an answered request: its arm, and its normalised reward."""
    for f in range(account.least.size):
        account.counted[f] += 1.0
        account.gained[f] += towards(account, f, arm, reward)


@kernel
def towards(account: FloorAccount, f: int, arm: int, reward: float) -> float:
    """What an answer by an arm with a reward, or an expected reward, counts towards floor ``f``."""
    if account.arm[f] == QUALITY:
        return reward
    return 1.0 if account.arm[f] == arm else 0.0


@kernel
def needed(account: FloorAccount, f: int, gained: float, counted: float, rounds_left: float) -> float:
    """The mean that floor ``f`` needs from now on, which may be below 0 or above every reward.

    Args:
        account: The account.
        f: The floor.
        gained: What is expected to be gained by pending decisions.
        counted: The number of those decisions.
        rounds_left: The remaining rounds.
    """
    short = account.least[f] * (account.counted[f] + counted) - account.gained[f] - gained
    return float(account.least[f] + short / rounds_left)
