r"""The lognormal distribution with a ceiling: :math:`X = \min(1, s e^{\sigma Z})`, Z standard normal.

Its mean is known in closed form. With :math:`a = \log s` and the normal distribution function :math:`\Phi`,

.. math:: M(s) = E[X] = s e^{\sigma^2/2} \, \Phi\Bigl(-\frac{a + \sigma^2}{\sigma}\Bigr)
                 + \Phi\Bigl(\frac{a}{\sigma}\Bigr), \qquad
          M'(s) = e^{\sigma^2/2} \, \Phi\Bigl(-\frac{a + \sigma^2}{\sigma}\Bigr).

M increases from 0 to 1 and is concave, because :math:`\min(1, s L)` is concave in s for every L. Newton's method from
:math:`s_0 = \mu e^{-\sigma^2/2}`, where :math:`M(s_0) \le \mu`, therefore never overshoots the solution of
:math:`M(s) = \mu`, and needs no bracket.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.extras import require

SIGMA: Final = 1.0  # standard deviation of log X below the ceiling
STEPS: Final = 200  # a mean of 1/2 needs 5, a mean of 1 - 1e-12 needs 33
PRECISION: Final = 1e-14  # relative precision of the mean


def capped_mean(scale: Floats) -> Floats:
    """Return the mean M(s) of a capped lognormal variable for each scale s in (0, ∞)."""
    require("scipy")
    from scipy.special import ndtr

    mean: Floats = scale * _slope(scale) + ndtr(np.log(scale) / SIGMA)
    return mean


def capped_scale(mean: Floats) -> Floats:
    """Compute the scales at which capped lognormal variables have the given means in [0, 1].

    The scale is 0 for a mean of 0 and infinite for a mean of 1.

    >>> float(capped_mean(capped_scale(np.array([0.3])))[0].round(12))
    0.3
    """
    # Solve each distinct mean once; 0 and 1 have closed forms.
    target, places = np.unique(mean, return_inverse=True)
    scale = np.where(target >= 1.0, np.inf, 0.0)
    inside = (target > 0.0) & (target < 1.0)
    wanted = target[inside]
    # Newton's method from below, which never overshoots.
    root = wanted * math.exp(-(SIGMA**2) / 2.0)
    for _ in range(STEPS):
        missing = wanted - capped_mean(root)
        open_ones = missing > PRECISION * wanted
        if not open_ones.any():
            break
        root[open_ones] += missing[open_ones] / _slope(root[open_ones])
    scale[inside] = root
    return scale[places].reshape(np.shape(mean))


def _slope(scale: Floats) -> Floats:
    """Return the derivative M'(s)."""
    require("scipy")
    from scipy.special import ndtr

    slope: Floats = math.exp(SIGMA**2 / 2.0) * ndtr(-(np.log(scale) + SIGMA**2) / SIGMA)
    return slope
