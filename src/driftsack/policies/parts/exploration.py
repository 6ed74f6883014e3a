"""Initial exploration of the simple baselines: pull every arm once."""

from __future__ import annotations

from driftsack.core.arrays import Floats, Ints
from driftsack.game.records import Round
from driftsack.numerics.compiled import kernel


@kernel
def try_untried(round: Round, pulls: Ints, mix: Floats) -> bool:
    """Write a uniform mix over the open arms without outcomes; return False if there are none.

    ``pulls`` (m,) is the number of outcomes of each arm. ``mix`` (m,) is unchanged if there is no untried arm.
    """
    untried = 0
    for i in range(mix.size):
        untried += round.open[i] and pulls[i] == 0
    if untried == 0:
        return False
    for i in range(mix.size):
        mix[i] = 1.0 / untried if round.open[i] and pulls[i] == 0 else 0.0
    return True
