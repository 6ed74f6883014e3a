"""Exploration of the simple baselines: every arm once."""

from __future__ import annotations

from driftsack.core.arrays import Floats, Ints
from driftsack.game.records import Round
from driftsack.numerics.compiled import kernel


@kernel
def try_untried(round: Round, pulls: Ints, mix: Floats) -> bool:
    """Spread the mix evenly over the open arms without an outcome; return False if there are none.

    Args:
        round: The round.
        pulls: (m,) outcomes of each arm so far.
        mix: (m,) written if there are untried arms.

    Returns:
        Whether there are untried open arms.
    """
    untried = 0
    for i in range(mix.size):
        untried += round.open[i] and pulls[i] == 0
    if untried == 0:
        return False
    for i in range(mix.size):
        mix[i] = 1.0 / untried if round.open[i] and pulls[i] == 0 else 0.0
    return True
