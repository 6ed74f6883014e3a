r"""The growth of regret with the horizon: exponents such as that of :math:`\tilde O(T^{1/2})`, fitted to simulations.

If regret is :math:`R(T) \approx c\, T^{a} (\ln T)^{k}`, the slope of :math:`\ln R - k \ln\ln T` against
:math:`\ln T` is a. Each R(T) is a mean over trials with a standard error s, so :math:`\ln R` has a standard error of
about s/R; the fit weights the points accordingly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.errors import OutOfRangeError


class Slope(NamedTuple):
    """A fitted exponent."""

    value: float  # the exponent
    error: float  # its standard error


@dataclass(frozen=True, eq=False)
class Growth:
    """Regret at several horizons."""

    horizons: Ints  # (n,) the horizons, in increasing order
    regret: Floats  # (n,) mean regret against LP-Dynamic
    error: Floats  # (n,) its standard error

    def slope(self, part: slice = slice(None), logarithms: float = 0.0) -> Slope:
        r"""Fit the exponent a to the horizons in ``part``, with a factor :math:`(\ln T)^k` where k is ``logarithms``.

        >>> made = Growth(np.array([100, 10_000]), np.array([20.0, 200.0]), np.array([0.2, 2.0]))
        >>> print(f"{made.slope().value:.2f}")
        0.50
        """
        if (self.regret[part] <= 0.0).any():
            raise OutOfRangeError(f"regret must be above 0 for its logarithm, got {self.regret[part].min():g}.")
        x = np.log(self.horizons[part])
        y = np.log(self.regret[part]) - logarithms * np.log(x)
        weights = (self.regret[part] / self.error[part]) ** 2
        centred = x - np.average(x, weights=weights)
        spread = float((weights * centred**2).sum())
        return Slope(float((weights * centred * y).sum() / spread), spread**-0.5)
