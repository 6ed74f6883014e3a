"""Exploration of the simple baselines: every arm once, and afterwards any arm with a small probability."""

from __future__ import annotations

from driftsack.core.arrays import Floats, Ints
from driftsack.numerics.compiled import kernel


@kernel
def try_untried(pulls: Ints, mix: Floats) -> bool:
    """Spread the mix evenly over the arms without an outcome; return False if there are none.

    Args:
        pulls: (m,) outcomes of each arm so far.
        mix: (m,) written if there are untried arms.

    Returns:
        Whether there are untried arms.
    """
    untried = 0
    for i in range(mix.size):
        untried += pulls[i] == 0
    if untried == 0:
        return False
    for i in range(mix.size):
        mix[i] = 1.0 / untried if pulls[i] == 0 else 0.0
    return True


@kernel
def explore(mix: Floats, epsilon: float) -> None:
    """Replace a share of the mix by uniformly random arms.

    Args:
        mix: (m,) changed in place.
        epsilon: The share.
    """
    for i in range(mix.size):
        mix[i] = (1.0 - epsilon) * mix[i] + epsilon / mix.size
