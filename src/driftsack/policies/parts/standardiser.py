r"""Standardisation of contexts for linear models, which follows features that shift; clipped, and with an intercept.

.. math:: x = \Bigl(\mathrm{clip}\bigl((c_f - \text{mean}_f)/\mathrm{sd}_f,\, \pm 5\bigr) / \sqrt n\Bigr)_{f \le n},\; 1

Mean and standard deviation are those of the first 100 contexts. A feature has *moved* when a moving average of its last
20 or so values is more than 3 standard deviations away from the mean; then the mean is measured again, from the next
100 contexts. There are two kinds of moves.

*Wandering.* The hour of the day, a temperature or a price moves gradually, and the first 100 contexts show a small part
of its range. Outcomes depend on its value as before, so a model has to be expressed in the new units: with
:math:`x = \alpha x' + \delta` for the vector x before a context and x' after it, :math:`\theta^\top x + \theta_0` has
the coefficients :math:`\alpha \theta` and :math:`\theta_0 + \delta \theta` of x'. ``factor`` and ``offset`` are
:math:`\alpha` and :math:`\delta` (:mod:`driftsack.policies.parts.feature_units`). The standard deviation does not
fall.

*A jump* is a move that a slower moving average has not noticed yet, to a value that this average never had. Perhaps
only the measurement has changed, so the coefficients stay, as effects of deviations from the usual value of a feature;
the caller learns the level of each arm again (:func:`~driftsack.policies.parts.linear_bank.learn_levels_again`). The
standard deviation starts from its previous value, with the weight of one context.

Indicators, features that were always 0 or 1, do not shift: requests that arrive in the order of their categories are no
reason to change the coding. A constant feature is only centred.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import Scratch, within
from driftsack.core.encoder import LARGEST_FEATURE
from driftsack.numerics.compiled import kernel
from driftsack.numerics.powers import squared

FIRST: Final = 100.0  # contexts that determine mean and standard deviation
LARGEST: Final = 5.0  # standard deviations
RECENT: Final = 0.05  # step of the moving average
SLOW: Final = 0.01  # step of the slower one
SHIFT: Final = 3.0  # distance of a moving average from the mean, in standard deviations, that is a move
LITTLE: Final = 1.0 / 3.0  # of it; a move of which the slower average has noticed less is abrupt
FAR: Final = 10.0  # largest distance that enters the averages, in standard deviations, so that one outlier is no move
LARGEST_AVERAGE: Final = 100.0 * LARGEST_FEATURE
CONSTANT: Final = 1e-9  # a feature with a smaller standard deviation is constant


class Standardiser(NamedTuple):
    """Means and deviations of the contexts, and the vector of the current one."""

    seen: Annotated[Floats, within(0.0, FIRST)]  # (n,) contexts since the feature shifted, up to FIRST
    mean: Annotated[Floats, within(-LARGEST_FEATURE, LARGEST_FEATURE)]  # (n,)
    squares: Annotated[Floats, within(0.0, 4.0 * FIRST * LARGEST_FEATURE**2)]  # (n,) sums of squared deviations
    scale: Annotated[Floats, within(0.0, 1.0 / CONSTANT)]  # (n,) 1 / (sd sqrt(n))
    recent: Annotated[Floats, within(-FAR, FAR)]  # (n,) moving averages, in standard deviations from the mean
    slow: Annotated[Floats, within(-FAR, FAR)]  # (n,) slower ones
    visited: Annotated[Floats, within(-LARGEST_AVERAGE, LARGEST_AVERAGE)]  # (n, 2) the range of the slower averages
    least: Annotated[Floats, within(0.0, 4.0 * LARGEST_FEATURE)]  # (n,) least standard deviation, for those that wander
    sd: Annotated[Floats, within(CONSTANT, 4.0 * LARGEST_FEATURE)]  # (n,) of the present scale
    follows: bool  # whether wandering features are told from jumps; if not, every move is a jump
    moved: Annotated[Ints, within(0, 1)]  # (1,) whether the present context changed the units of a feature
    factor: Scratch  # (n,) written then: alpha; 1 for the other features
    offset: Scratch  # (n,) written then: delta; 0 for the other features
    indicator: Annotated[Floats, within(0.0, 1.0)]  # (n,) 1 while all values were 0 or 1
    x: Annotated[Floats, within(-LARGEST, LARGEST)]  # (n + 1,) written: the vector


def new_standardiser(features: int, follows: bool = True) -> Standardiser:
    """Create the state without contexts."""
    return Standardiser(
        seen=np.zeros(features),
        mean=np.zeros(features),
        squares=np.zeros(features),
        scale=np.full(features, 1.0 / math.sqrt(features)),
        recent=np.zeros(features),
        slow=np.zeros(features),
        visited=np.tile([LARGEST_AVERAGE, -LARGEST_AVERAGE], (features, 1)),
        least=np.zeros(features),
        sd=np.ones(features),
        follows=follows,
        moved=np.zeros(1, dtype=np.int64),
        factor=np.ones(features),
        offset=np.zeros(features),
        indicator=np.ones(features),
        x=np.zeros(features + 1),
    )


@kernel
def note_context(standardiser: Standardiser, context: Floats) -> bool:
    """Update means and scales with a context, and write the change of units; return whether a feature has jumped."""
    jumped, root = False, math.sqrt(context.size)
    if standardiser.moved[0] > 0:
        standardiser.moved[0] = 0
        standardiser.factor[:] = 1.0
        standardiser.offset[:] = 0.0
    for f in range(context.size):
        if context[f] not in (0.0, 1.0):
            standardiser.indicator[f] = 0.0
        if standardiser.seen[f] < FIRST:
            measure(standardiser, f, context[f])
        elif standardiser.indicator[f] == 0.0:
            away = (context[f] - standardiser.mean[f]) * standardiser.scale[f] * root
            jumped = follow(standardiser, f, context[f], min(max(away, -FAR), FAR)) or jumped
    return jumped


@kernel
def follow(standardiser: Standardiser, f: int, value: float, away: float) -> bool:
    """Update the moving averages of a feature, and measure it again if it has moved; return whether it has jumped."""
    standardiser.recent[f] += RECENT * (away - standardiser.recent[f])
    standardiser.slow[f] += SLOW * (away - standardiser.slow[f])
    recent, slow, sd = standardiser.recent[f], standardiser.slow[f], standardiser.sd[f]
    if abs(recent) > SHIFT:
        jump = is_jump(standardiser, f, recent, slow, sd)
        restart(standardiser, f, value if jump else standardiser.mean[f] + sd * recent, 0.0 if jump else sd)
        return jump
    now = standardiser.mean[f] + sd * slow
    standardiser.visited[f, 0] = min(standardiser.visited[f, 0], now)
    standardiser.visited[f, 1] = max(standardiser.visited[f, 1], now)
    return False


@kernel
def is_jump(standardiser: Standardiser, f: int, recent: float, slow: float, sd: float) -> bool:
    """Return whether a feature has moved abruptly, to a value at which it never stayed."""
    if not standardiser.follows:
        return True
    now = standardiser.mean[f] + sd * recent
    known = standardiser.visited[f, 0] <= now <= standardiser.visited[f, 1]
    return not known and abs(slow) < LITTLE * abs(recent)


@kernel
def measure(standardiser: Standardiser, f: int, value: float) -> None:
    """Update the mean and the scale of a feature with a value (Welford's algorithm)."""
    least, mean, scale = standardiser.least[f], standardiser.mean[f], standardiser.scale[f]
    if least > 0.0:
        value = min(max(value, mean - FAR * least), mean + FAR * least)
    standardiser.seen[f] += 1.0
    difference = value - mean
    standardiser.mean[f] += difference / standardiser.seen[f]
    standardiser.squares[f] += difference * (value - standardiser.mean[f])
    sd = max(math.sqrt(standardiser.squares[f] / standardiser.seen[f]), least)
    standardiser.sd[f] = sd if sd > CONSTANT else 1.0
    standardiser.scale[f] = 1.0 / (math.sqrt(standardiser.mean.size) * standardiser.sd[f])
    if least > 0.0:
        change_units(standardiser, f, mean, scale)


@kernel
def restart(standardiser: Standardiser, f: int, mean: float, least: float) -> None:
    """Measure a feature that has moved again, from one observation with the variance from before."""
    before, scale = standardiser.mean[f], standardiser.scale[f]
    standardiser.seen[f], standardiser.mean[f], standardiser.least[f] = 1.0, mean, least
    standardiser.recent[f], standardiser.slow[f] = 0.0, 0.0
    standardiser.squares[f] = 1.0 / (squared(scale) * standardiser.mean.size)
    if least > 0.0:
        change_units(standardiser, f, before, scale)


@kernel
def change_units(standardiser: Standardiser, f: int, mean: float, scale: float) -> None:
    """Write how the vectors with a former ``mean`` and ``scale`` of a feature follow from those of now."""
    standardiser.moved[0] = 1
    standardiser.factor[f] = scale / standardiser.scale[f]
    standardiser.offset[f] = (standardiser.mean[f] - mean) * scale


@kernel
def standardise(standardiser: Standardiser, context: Floats) -> None:
    """Write the vector of a context into ``x``."""
    most = LARGEST / math.sqrt(context.size)
    for f in range(context.size):
        value = (context[f] - standardiser.mean[f]) * standardiser.scale[f]
        standardiser.x[f] = min(max(value, -most), most)
    standardiser.x[context.size] = 1.0
