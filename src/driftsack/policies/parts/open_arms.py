"""Restriction of choices to open arms: closed columns of a step LP, and probabilities over the open arms.

If every arm is open, which is the usual case, these functions change no bit of a probability.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.game.records import Round, usual_skip_cost
from driftsack.numerics.compiled import kernel
from driftsack.numerics.exp3p import SMALLEST
from driftsack.numerics.simplex import Simplex

CLOSED: Final = -1.0
"""The objective of a closed arm in a step LP, which makes skipping better."""


@kernel
def close_column(lp: Simplex, arm: int) -> None:
    """Exclude an arm from a step LP; its costs are set to 0, because lower bounds of costs may be negative.

    Args:
        lp: The step LP; call ``column_changed`` afterwards.
        arm: The arm to close.
    """
    lp.objective[arm] = CLOSED
    for j in range(lp.rhs.size - 1):
        lp.columns[j, arm] = 0.0


@kernel
def set_rewards(lp: Simplex, round: Round) -> None:
    """Exclude closed arms, and add the cost of skipping the round to the rewards of the open ones.

    Args:
        lp: A step LP whose objective contains the rewards of the arms, and whose costs are not negative.
        round: The current round.
    """
    for i in range(round.open.size):
        lp.objective[i] = lp.objective[i] + usual_skip_cost(round) if round.open[i] else CLOSED


@kernel
def list_costs(lp: Simplex, round: Round) -> None:
    """Multiply the costs in a step LP, whose columns were all written in this round, by the factors of the list."""
    if round.listed:
        for j in range(round.factors.shape[0]):
            for i in range(round.factors.shape[1]):
                lp.columns[j, i] *= round.factors[j, i]


@kernel
def served(lp: Simplex, round: Round, mix: Floats, arm: int) -> int:
    """Return the arm of a round, or that for a request that must be served: the best one at the prices of the LP.

    Args:
        lp: The solved step LP, which plans for rounds that may be skipped; also one with more columns than arms.
        round: The current round.
        mix: (m,) the mix of the LP; written if the request must be served.
        arm: The arm that was drawn from the mix, or ``SKIP``.
    """
    if not round.must:
        return arm
    best = -np.inf
    for i in range(mix.size):
        mix[i] = 0.0
        value = lp.objective[i]
        for j in range(round.rate.size):
            value -= lp.duals[j] * lp.columns[j, i]
        if round.open[i] and value > best:
            best, arm = value, i
    mix[arm] = 1.0
    return arm


@kernel
def count_open(round: Round) -> int:
    """Return the number of open arms."""
    count = 0
    for i in range(round.open.size):
        count += round.open[i]
    return count


@kernel
def nth_open(round: Round, n: int) -> int:
    """Return the arm with n open arms before it, or the last open arm; ``SKIP`` if no arm is open."""
    found = SKIP
    for i in range(round.open.size):
        if round.open[i]:
            found = i
            if n == 0:
                break
            n -= 1
    return found


@kernel
def uniform_over_open(round: Round, mix: Floats) -> None:
    """Write the uniform distribution over the open arms.

    Args:
        round: The current round.
        mix: (m,) output: the probabilities.
    """
    count = count_open(round)
    for i in range(mix.size):
        mix[i] = 1.0 / count if round.open[i] else 0.0


@kernel
def explore_open(round: Round, mix: Floats, share: float) -> None:
    """Replace a share of the mix by the uniform distribution over the open arms.

    Args:
        round: The current round. If no arm is open, the mix stays as it is.
        mix: (m,) changed in place.
        share: The probability of exploring.
    """
    count = count_open(round)
    for i in range(mix.size if count > 0 else 0):
        mix[i] = (1.0 - share) * mix[i] + (share / count if round.open[i] else 0.0)


@kernel
def restrict_to_open(round: Round, mix: Floats) -> None:
    """Condition probabilities on the open arms and ``SKIP``, which has the remaining probability.

    Args:
        round: The current round.
        mix: (m,) changed in place.
    """
    closed = 0.0
    for i in range(mix.size):
        if not round.open[i]:
            closed += mix[i]
            mix[i] = 0.0
    if closed > 0.0:
        kept = max(1.0 - closed, SMALLEST)
        for i in range(mix.size):
            mix[i] = min(mix[i] / kept, 1.0)


@kernel
def last_possible(mix: Floats) -> int:
    """Return the last arm with positive probability, or ``SKIP``; for a mix that sums to 1 up to rounding."""
    found = SKIP
    for i in range(mix.size):
        if mix[i] > 0.0:
            found = i
    return found
