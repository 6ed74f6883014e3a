r"""Standardisation of contexts for linear models, which follows features that shift; clipped, and with an intercept.

.. math:: x = \Bigl(\mathrm{clip}\bigl((c_f - \text{mean}_f)/\mathrm{sd}_f,\, \pm 5\bigr) / \sqrt n\Bigr)_{f \le n},\; 1

Mean and standard deviation are those of the first 100 contexts. A feature has *shifted* when a moving average of its
last 20 or so values is more than 3 standard deviations away from the mean; then both are measured again, from the next
100 contexts. The standard deviation starts from its previous value, with the weight of one context.

*Coefficients* need no transformation, because they are effects of deviations from the usual value of a feature. What a
shift may move is the level of each arm: if outcomes depend on the raw value, the level changes by the effect of the
shift, and if only the measurement has changed, it stays. The caller therefore learns levels again after a shift
(:func:`~driftsack.policies.parts.linear_bank.learn_levels_again`).

Indicators, features that were always 0 or 1, do not shift: requests that arrive in the order of their categories are no
reason to change the coding. A constant feature is only centred.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.bounds import within
from driftsack.core.encoder import LARGEST_FEATURE
from driftsack.numerics.compiled import kernel
from driftsack.numerics.powers import squared

FIRST: Final = 100.0  # contexts that determine mean and standard deviation
LARGEST: Final = 5.0  # standard deviations
RECENT: Final = 0.05  # step of the moving average
SHIFT: Final = 3.0  # distance of a moving average from the mean, in standard deviations, that is a shift
FAR: Final = 10.0  # largest distance that enters the moving average, so that one outlier is no shift
CONSTANT: Final = 1e-9  # a feature with a smaller standard deviation is constant


class Standardiser(NamedTuple):
    """Means and deviations of the contexts, and the vector of the current one."""

    seen: Annotated[Floats, within(0.0, FIRST)]  # (n,) contexts since the feature shifted, up to FIRST
    mean: Annotated[Floats, within(-LARGEST_FEATURE, LARGEST_FEATURE)]  # (n,)
    squares: Annotated[Floats, within(0.0, 4.0 * FIRST * LARGEST_FEATURE**2)]  # (n,) sums of squared deviations
    scale: Annotated[Floats, within(0.0, 1.0 / CONSTANT)]  # (n,) 1 / (sd sqrt(n))
    recent: Annotated[Floats, within(-FAR, FAR)]  # (n,) moving averages, in standard deviations from the mean
    indicator: Annotated[Floats, within(0.0, 1.0)]  # (n,) 1 while all values were 0 or 1
    x: Annotated[Floats, within(-LARGEST, LARGEST)]  # (n + 1,) written: the vector


def new_standardiser(features: int) -> Standardiser:
    """Create the state without contexts."""
    return Standardiser(
        seen=np.zeros(features),
        mean=np.zeros(features),
        squares=np.zeros(features),
        scale=np.full(features, 1.0 / math.sqrt(features)),
        recent=np.zeros(features),
        indicator=np.ones(features),
        x=np.zeros(features + 1),
    )


@kernel
def note_context(standardiser: Standardiser, context: Floats) -> bool:
    """Update the means and scales with a context; return whether a feature has shifted."""
    shifted = False
    for f in range(context.size):
        if context[f] not in (0.0, 1.0):
            standardiser.indicator[f] = 0.0
        if standardiser.seen[f] < FIRST:
            measure(standardiser, f, context[f])
        elif standardiser.indicator[f] == 0.0:
            away = (context[f] - standardiser.mean[f]) * standardiser.scale[f] * math.sqrt(context.size)
            standardiser.recent[f] += RECENT * (min(max(away, -FAR), FAR) - standardiser.recent[f])
            if abs(standardiser.recent[f]) > SHIFT:
                shifted = True
                restart(standardiser, f, context[f])
    return shifted


@kernel
def measure(standardiser: Standardiser, f: int, value: float) -> None:
    """Update the mean and the scale of a feature with a value (Welford's algorithm)."""
    standardiser.seen[f] += 1.0
    difference = value - standardiser.mean[f]
    standardiser.mean[f] += difference / standardiser.seen[f]
    standardiser.squares[f] += difference * (value - standardiser.mean[f])
    sd = math.sqrt(standardiser.squares[f] / standardiser.seen[f])
    standardiser.scale[f] = 1.0 / (math.sqrt(standardiser.mean.size) * (sd if sd > CONSTANT else 1.0))


@kernel
def restart(standardiser: Standardiser, f: int, value: float) -> None:
    """Measure a feature that has shifted again, from one observation with the variance from before."""
    standardiser.seen[f], standardiser.mean[f], standardiser.recent[f] = 1.0, value, 0.0
    standardiser.squares[f] = 1.0 / (squared(standardiser.scale[f]) * standardiser.mean.size)


@kernel
def standardise(standardiser: Standardiser, context: Floats) -> None:
    """Write the vector of a context into ``x``."""
    most = LARGEST / math.sqrt(context.size)
    for f in range(context.size):
        value = (context[f] - standardiser.mean[f]) * standardiser.scale[f]
        standardiser.x[f] = min(max(value, -most), most)
    standardiser.x[context.size] = 1.0
