r"""Sums of outcomes per arm over the last w rounds: O(p) per round, exact at any horizon.

A window of w rounds before round t holds the rounds :math:`s \in [t-w, t-1]`. A ring buffer
keeps the arm and the outcomes of each, so that a round that leaves the window can be subtracted from the sums.

**Why the sums stay exact.** An outcome :math:`v \in [-1, 1]` is rounded once to a grid of :math:`2^{-k}`, and
sums of grid steps are 64-bit integers, for which addition and subtraction are exact. The grid is the finest for
which w outcomes cannot overflow: :math:`2^{k} w < 2^{62}`, that is :math:`2^{-48}` for :math:`w = 10^4` and
:math:`2^{-38}` for :math:`w = 10^7`; the error of a mean is at most half a step at any time. Integer sums also do
not depend on the order in which feedback arrives. In an infinite window an arm may have more outcomes than the horizon
has rounds; its sums and counts are then halved before they overflow.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import Constants, Counts, index_of, length_of, within
from driftsack.core.decision import SKIP
from driftsack.numerics.compiled import kernel

LARGEST_SUM: Final = 2**62


class Window(NamedTuple):
    """Ring buffer and per-arm sums; an infinite window, which no round ever leaves, has a ring of length 0."""

    arms: Annotated[
        Ints, index_of("pulls", least=SKIP)
    ]  # (w,) arm of each round in the window, SKIP where no outcome is known
    outcomes: Ints  # (w, p) in grid steps
    sums: Annotated[Ints, within(-LARGEST_SUM, LARGEST_SUM)]  # (m, p) in grid steps
    pulls: Counts  # (m,) rounds with known outcome, per arm
    grid: Constants  # (1,) steps per unit
    length: Annotated[Ints, length_of("arms")]  # (1,) w, at most the ring's; 0 when no round ever leaves

    def check(self) -> None:
        """Raise unless the sums are those of the rounds in the ring."""
        length = self.length[0]
        known = np.flatnonzero(self.arms[:length] != SKIP)
        sums, pulls = np.zeros_like(self.sums), np.zeros_like(self.pulls)
        np.add.at(sums, self.arms[known], self.outcomes[known])
        np.add.at(pulls, self.arms[known], 1)
        differs = (sums != self.sums).any() or (pulls != self.pulls).any()
        most = self.pulls * self.grid[0]
        if (most > LARGEST_SUM + self.grid[0]).any() or (np.abs(self.sums) > most[:, None]).any():
            raise ValueError("the sums of a window are larger than those of so many outcomes")
        if (self.arms[length:] != SKIP).any() or (length > 0 and differs):
            raise ValueError("the sums of a window are not those of its rounds")


def open_window(length: int, horizon: int, arms: int, outcomes: int) -> Window:
    """Create an empty window of ``length`` rounds, without a ring if that is at least ``horizon``."""
    ring = length if length < horizon else 0
    bits = 62 - min(length, horizon).bit_length()
    return Window(
        np.full(ring, SKIP, dtype=np.int64),
        np.zeros((ring, outcomes), dtype=np.int64),
        np.zeros((arms, outcomes), dtype=np.int64),
        np.zeros(arms, dtype=np.int64),
        np.array([2.0 ** min(bits, 50)]),
        np.array([ring]),
    )


def check_not_negative(*windows: Window) -> None:
    """Raise if a sum is negative, for estimators of outcomes that cannot be."""
    if any((window.sums < 0).any() for window in windows):
        raise ValueError("a sum of outcomes is negative")


@kernel
def add(window: Window, now: int, t: int, arm: int, outcomes: Floats) -> bool:
    """Add the outcomes of round ``t`` in round ``now``; return False if round ``t`` has left the window."""
    length = window.length[0]
    slot = 0
    if length > 0:
        if t <= now - length:
            return False
        slot = t % length
        if window.arms[slot] != SKIP:
            expire(window, t)  # a second outcome of the same round replaces the first
        window.arms[slot] = arm
    elif window.pulls[arm] >= LARGEST_SUM / window.grid[0]:
        halve(window, arm)
    for i in range(outcomes.size):
        steps = np.int64(math.floor(outcomes[i] * window.grid[0] + 0.5))
        window.sums[arm, i] += steps
        if length > 0:
            window.outcomes[slot, i] = steps
    window.pulls[arm] += 1
    return True


@kernel
def halve(window: Window, arm: int) -> None:
    """Halve the weight of all outcomes of an arm in an infinite window, so that its sums cannot overflow."""
    window.pulls[arm] //= 2
    for i in range(window.sums.shape[1]):
        window.sums[arm, i] //= 2


@kernel
def expire(window: Window, t: int) -> int:
    """Remove round ``t - w`` to make room for round ``t``; return its arm, or SKIP if it had none."""
    length = window.length[0]
    if length == 0:
        return SKIP
    slot = t % length
    arm = int(window.arms[slot])
    if arm != SKIP:
        for i in range(window.sums.shape[1]):
            window.sums[arm, i] -= window.outcomes[slot, i]
        window.pulls[arm] -= 1
        window.arms[slot] = SKIP
    return arm


@kernel
def shrunk_mean(window: Window, arm: int, i: int) -> float:
    """Return the sum of outcomes divided by n + 1, the paper's estimator (section 3)."""
    return float(window.sums[arm, i] / (window.grid[0] * (window.pulls[arm] + 1)))


@kernel
def shrunk_variance(window: Window, arm: int, i: int) -> float:
    """Return the variance of the n outcomes and one outcome of 0, whose mean is the shrunk mean.

    The second half of the columns must hold the squares of the first half.
    """
    mean = shrunk_mean(window, arm, i)
    return max(shrunk_mean(window, arm, window.sums.shape[1] // 2 + i) - mean * mean, 0.0)
