"""Draws: an arm from a mix, an outcome in [0, 1] from a mean and a kind of noise."""

from __future__ import annotations

from typing import Final

from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.core.instance import NOISES
from driftsack.numerics.compiled import kernel

DETERMINISTIC: Final = NOISES.index("deterministic")
BERNOULLI: Final = NOISES.index("bernoulli")
UNIFORM: Final = NOISES.index("uniform")
BETA_CONCENTRATION: Final = 4.0
WORD: Final = 2**32 - 1


@kernel
def draw(mix: Floats, uniform: float) -> int:
    """The arm whose share of [0, 1) holds ``uniform``; SKIP has what the arms leave.

    >>> import numpy as np
    >>> [draw(np.array([0.25, 0.5]), u) for u in (0.1, 0.3, 0.8)]
    [0, 1, -1]
    """
    reached = 0.0
    for arm in range(mix.size):
        reached += mix[arm]
        if uniform < reached:
            return arm
    return SKIP


@kernel
def coin(key: int, t: int, k: int) -> float:
    """A number in [0, 1) that looks random and is the same whenever it is asked for: a hash of the three.

    >>> coin(7, 0, 0) == coin(7, 0, 0) != coin(7, 0, 1)
    True
    """
    return scramble(scramble(scramble(key & WORD) ^ (t & WORD)) ^ k) / (WORD + 1.0)


@kernel
def scramble(word: int) -> int:
    """Mix the bits of a 32-bit word, one to one; products stay below 2^63."""
    word = ((word ^ (word >> 16)) * 0x21F0AAAD) & WORD
    word = ((word ^ (word >> 15)) * 0x735A2D97) & WORD
    return word ^ (word >> 15)


@kernel
def outcome(mean: float, noise: int, rng: Generator) -> float:
    """One outcome in [0, 1] with the given mean; ``noise`` is an index into ``core.instance.NOISES``."""
    if noise == DETERMINISTIC:
        return mean
    if noise == BERNOULLI:
        return 1.0 if rng.random() < mean else 0.0
    if noise == UNIFORM:
        half = min(mean, 1.0 - mean)
        return mean + half * (2.0 * rng.random() - 1.0)
    if mean <= 0.0 or mean >= 1.0:  # Beta has no such mean; the limit is the constant
        return mean
    return rng.beta(BETA_CONCENTRATION * mean, BETA_CONCENTRATION * (1.0 - mean))
