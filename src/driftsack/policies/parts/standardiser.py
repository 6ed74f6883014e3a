r"""Contexts as vectors for linear models: standardised on the first ones, clipped, and with a constant.

.. math:: x = \Bigl(\mathrm{clip}\bigl((c_f - \text{mean}_f)/\mathrm{sd}_f,\, \pm 5\bigr) / \sqrt n\Bigr)_{f \le n},\; 1

Mean and standard deviation are those of the first 100 contexts and stay as they are, since coefficients refer to them.
A feature that did not vary is only shifted.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import Ranges
from driftsack.core.encoder import LARGEST_FEATURE
from driftsack.numerics.compiled import kernel

FIRST: Final = 100.0  # contexts
LARGEST: Final = 5.0  # standard deviations
CONSTANT: Final = 1e-9  # a smaller standard deviation is that of a constant


class Standardiser(NamedTuple):
    """Means and deviations of the first contexts, and the vector of the present one."""

    seen: Floats  # (1,) contexts so far, up to FIRST
    mean: Floats  # (n,)
    squares: Floats  # (n,) sums of squared deviations
    scale: Floats  # (n,) 1 / (sd sqrt(n))
    x: Floats  # (n + 1,) written: the vector

    def ranges(self, rounds: int) -> Ranges:  # noqa: ARG002
        """What the fields may hold after some rounds."""
        return {
            "seen": (0.0, FIRST),
            "mean": (-LARGEST_FEATURE, LARGEST_FEATURE),
            "squares": (0.0, 4.0 * FIRST * LARGEST_FEATURE**2),
            "scale": (0.0, 1.0 / CONSTANT),
            "x": (-LARGEST, LARGEST),
        }


def new_standardiser(features: int) -> Standardiser:
    """No contexts so far."""
    scale = np.full(features, 1.0 / math.sqrt(features))
    return Standardiser(np.zeros(1), np.zeros(features), np.zeros(features), scale, np.zeros(features + 1))


@kernel
def note_context(standardiser: Standardiser, context: Floats) -> None:
    """Let one of the first contexts count (Welford's update)."""
    if standardiser.seen[0] >= FIRST:
        return
    standardiser.seen[0] += 1.0
    seen, root = standardiser.seen[0], math.sqrt(context.size)
    for f in range(context.size):
        difference = context[f] - standardiser.mean[f]
        standardiser.mean[f] += difference / seen
        standardiser.squares[f] += difference * (context[f] - standardiser.mean[f])
        sd = math.sqrt(standardiser.squares[f] / seen)
        standardiser.scale[f] = 1.0 / (root * (sd if sd > CONSTANT else 1.0))


@kernel
def standardise(standardiser: Standardiser, context: Floats) -> None:
    """Write the vector of a context into ``x``."""
    most = LARGEST / math.sqrt(context.size)
    for f in range(context.size):
        value = (context[f] - standardiser.mean[f]) * standardiser.scale[f]
        standardiser.x[f] = min(max(value, -most), most)
    standardiser.x[context.size] = 1.0
