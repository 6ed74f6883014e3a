"""Random choices: sampling an arm from a mix, and a hash that replaces stored uniform draws."""

from __future__ import annotations

from typing import Final

from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.numerics.compiled import kernel

WORD: Final = 2**32 - 1
ROUNDING: Final = 1e-12  # of a sum of probabilities


@kernel
def draw(mix: Floats, uniform: float) -> int:
    """Draw from a mix by inversion: the arm whose part of [0, 1) contains ``uniform``, or SKIP if none does.

    Args:
        mix: (m,) probabilities whose sum is at most 1.
        uniform: A number in [0, 1).

    >>> import numpy as np
    >>> [draw(np.array([0.25, 0.5]), u) for u in (0.1, 0.3, 0.8)]
    [0, 1, -1]
    """
    cumulative = 0.0
    for arm in range(mix.size):
        if mix[arm] > 0.0:  # a mix from a linear program is mostly zeros; skipping them shortens the dependency chain
            cumulative += mix[arm]
            if uniform < cumulative:
                return arm
    return SKIP


@kernel
def clip_to_distribution(mix: Floats) -> None:
    """Clip probabilities to [0, 1], and normalise them if their sum exceeds 1 by more than rounding explains.

    A linear program solved in floating point may give ``1.0000000000000007``. A mix without such errors is not changed.

    Args:
        mix: (m,) changed in place.

    >>> import numpy as np
    >>> mix = np.array([1.0000000000000007, -1e-17])
    >>> clip_to_distribution(mix)
    >>> mix.tolist()
    [1.0, 0.0]
    """
    total = 0.0
    for arm in range(mix.size):
        if mix[arm] != 0.0:
            mix[arm] = max(mix[arm], 0.0)
            total += mix[arm]
    if total > 1.0:
        scale = total if total > 1.0 + ROUNDING else 1.0
        for arm in range(mix.size):
            if mix[arm] != 0.0:
                mix[arm] = min(mix[arm] / scale, 1.0)


@kernel
def hashed_uniform(key: int, t: int, k: int) -> float:
    """Return a pseudo-random number in [0, 1) that depends only on the three arguments.

    >>> hashed_uniform(7, 0, 0) == hashed_uniform(7, 0, 0) != hashed_uniform(7, 0, 1)
    True
    """
    return scramble(scramble(scramble(key & WORD) ^ (t & WORD)) ^ k) / (WORD + 1.0)


@kernel
def scramble(word: int) -> int:
    """Mix the bits of a 32-bit word by a bijection; products stay below 2^63."""
    word = ((word ^ (word >> 16)) * 0x21F0AAAD) & WORD
    word = ((word ^ (word >> 15)) * 0x735A2D97) & WORD
    return word ^ (word >> 15)
