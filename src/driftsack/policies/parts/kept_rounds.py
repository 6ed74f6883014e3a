r"""Rounds that are kept so that prices can be replayed on them: the latest ones, or a sample of all so far.

A kept round has the vector of its context, the noise that was drawn for it, and its price list. A replay computes the
*current* estimates at the kept contexts and adds the noise.

*The sample of all rounds.* With :math:`g = (\sqrt 5 - 1)/2`, round n is kept if the fractional part of n g is below
:math:`2^{-\ell}`; when the sample is full, the level :math:`\ell` rises by one and the others are removed. Every
interval then has its share of the sample, and so has every phase of every period, for example the hours of a day, which
a sample of every k-th round need not have.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import Counts, Scratch, within
from driftsack.game.records import Round
from driftsack.numerics.compiled import kernel
from driftsack.numerics.powers import power
from driftsack.policies.parts.linear_bank import LinearBank
from driftsack.policies.parts.ridge import combine_rows
from driftsack.policies.parts.standardiser import LARGEST

KEPT: Final = 128  # rounds in a replay
GOLDEN: Final = 0.5 * (math.sqrt(5.0) - 1.0)
MOST_LEVELS: Final = 62
LARGEST_DRAW: Final = 1e90  # of an estimate plus its noise


class KeptRounds(NamedTuple):
    """Some rounds so far."""

    contexts: Annotated[Floats, within(-LARGEST, LARGEST)]  # (KEPT, p) vectors
    noise: Annotated[Floats, within(-LARGEST_DRAW, LARGEST_DRAW)]  # (KEPT, m, 1 + d) what was added to the estimates
    factors: Annotated[Floats, within(0.0, LARGEST_DRAW)]  # (KEPT, m, d) of the price lists of these rounds; 1 without
    number: Counts  # (KEPT,) of the round
    filled: Annotated[Ints, within(0, KEPT)]  # (1,) kept rounds
    level: Annotated[Ints, within(0, MOST_LEVELS)]  # (1,) of the sample
    values: Scratch  # (KEPT, m, 1 + d) written: rewards and costs, in units of the budget rate


def new_kept_rounds(arms: int, resources: int, size: int) -> KeptRounds:
    """Create a sample without rounds."""
    return KeptRounds(
        contexts=np.zeros((KEPT, size)),
        noise=np.zeros((KEPT, arms, 1 + resources)),
        factors=np.ones((KEPT, arms, resources)),
        number=np.zeros(KEPT, dtype=np.int64),
        filled=np.zeros(1, dtype=np.int64),
        level=np.zeros(1, dtype=np.int64),
        values=np.zeros((KEPT, arms, 1 + resources)),
    )


@kernel
def keep_latest(kept: KeptRounds, number: int, round: Round, x: Floats, means: Floats, drawn: Floats) -> None:
    """Keep round ``number`` in place of the oldest one."""
    write_round(kept, number % KEPT, number, round, x, means, drawn)
    kept.filled[0] = min(number + 1, KEPT)


@kernel
def keep_sample(kept: KeptRounds, number: int, round: Round, x: Floats, means: Floats, drawn: Floats) -> None:
    """Keep round ``number`` if it belongs to the sample; thin the sample out when it is full."""
    if not in_sample(number, kept.level[0]):
        return
    while kept.filled[0] == KEPT and kept.level[0] < MOST_LEVELS:
        kept.level[0] += 1
        thin_out(kept)
    if kept.filled[0] < KEPT and in_sample(number, kept.level[0]):
        write_round(kept, kept.filled[0], number, round, x, means, drawn)
        kept.filled[0] += 1


@kernel
def in_sample(number: int, level: int) -> bool:
    """Return whether a round belongs to the sample of a level."""
    turns = number * GOLDEN
    return bool((turns - math.floor(turns)) * power(2.0, level) < 1.0)


@kernel
def thin_out(kept: KeptRounds) -> None:
    """Remove the rounds that do not belong to the sample of the present level."""
    count = 0
    for s in range(kept.filled[0]):
        if in_sample(kept.number[s], kept.level[0]):
            copy_round(kept, s, count)
            count += 1
    kept.filled[0] = count


@kernel
def copy_round(kept: KeptRounds, source: int, row: int) -> None:
    """Copy a kept round to another row."""
    kept.number[row] = kept.number[source]
    for f in range(kept.contexts.shape[1]):
        kept.contexts[row, f] = kept.contexts[source, f]
    for i in range(kept.noise.shape[1]):
        for k in range(kept.noise.shape[2]):
            kept.noise[row, i, k] = kept.noise[source, i, k]
        for j in range(kept.factors.shape[2]):
            kept.factors[row, i, j] = kept.factors[source, i, j]


@kernel
def write_round(kept: KeptRounds, row: int, number: int, round: Round, x: Floats, means: Floats, drawn: Floats) -> None:
    """Write the context and the noise (m, 1 + d) of a round.

    An arm that is closed in the round is no best response in its replay, whatever is open later.
    """
    kept.number[row] = number
    for f in range(x.size):
        kept.contexts[row, f] = x[f]
    for i in range(means.shape[0]):
        for k in range(means.shape[1]):
            kept.noise[row, i, k] = drawn[i, k] - means[i, k]
        if not round.open[i]:
            kept.noise[row, i, 0] = -LARGEST_DRAW
        for j in range(round.factors.shape[0]):
            kept.factors[row, i, j] = round.factors[j, i]


@kernel
def replay(kept: KeptRounds, bank: LinearBank) -> None:
    """Write the current estimates of :func:`mix_coefficients` at the kept contexts, plus the noise of their rounds."""
    for s in range(kept.filled[0]):
        values, noise = kept.values[s].reshape(bank.mixed.shape[1]), kept.noise[s]
        combine_rows(bank.mixed, kept.contexts[s], 0, values.size, values)
        for i in range(noise.shape[0]):
            first = i * noise.shape[1]
            values[first] += noise[i, 0]
            for k in range(1, noise.shape[1]):
                values[first + k] = max(values[first + k] * kept.factors[s, i, k - 1] + noise[i, k], 0.0)
