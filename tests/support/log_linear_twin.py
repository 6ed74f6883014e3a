"""A slow log-linear model of one outcome of one arm, by the formulas and with SciPy's root finder."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq

from driftsack.core.arrays import Floats


@dataclass
class SlowProduct:
    """Effects, covariance and dispersion; ``begun`` after the first observation."""

    size: int
    effects: Floats = field(init=False)
    covariance: Floats = field(init=False)
    begun: bool = False
    squares: float = 0.0
    means: float = 0.0

    def __post_init__(self) -> None:
        self.effects = np.zeros(self.size)
        self.covariance = np.diag([*[0.5] * (self.size - 1), 1.0])

    def predict(self, x: Floats, largest: float) -> float:
        """The mean, at most the largest outcome."""
        return min(math.exp(float(self.effects @ x)), largest)

    def observe(self, x: Floats, y: float, largest: float, start: float) -> None:
        """Learn an outcome; ``start`` is the prior mean before the first one."""
        if not self.begun:
            self.begun, self.effects[-1] = True, math.log(start if start > 0.0 else 0.1 * largest)
            self.means, self.squares = 2.0 * largest, 2.0 * largest**2
        mean, phi, v = self.predict(x, largest), self.squares / self.means, self.covariance @ x
        before, a = float(self.effects @ x), float(x @ v)
        mode = brentq(lambda z: z - before - a / phi * (y - math.exp(z)), -60.0, 60.0, xtol=1e-14)
        after = min(a * phi / (phi + a * math.exp(mode)) + 1e-4, max(a, min(2.0 * a, 1.0)))
        self.effects += (mode - before) / a * v
        self.covariance -= (a - after) / a**2 * np.outer(v, v)
        fade = 1.0 - min(1.0 / 200.0, mean / (40.0 * largest))
        self.squares, self.means = fade * self.squares + (y - mean) ** 2, fade * self.means + mean
