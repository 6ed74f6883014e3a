r"""The growth of regret with the horizon: exponents such as that of :math:`\tilde O(T^{1/2})`, fitted to simulations.

If regret is :math:`R(T) \approx c\, T^{a} (\ln T)^{k}`, the slope of :math:`\ln R - k \ln\ln T` against
:math:`\ln T` is a. Each R(T) is a mean over trials with a standard error s, so :math:`\ln R` has a standard error of
about s/R; the fit weights the points accordingly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from driftsack.benchmarks.lp_dynamic import lp_dynamic
from driftsack.core.arrays import Floats, Ints
from driftsack.core.errors import OutOfRangeError
from driftsack.core.instance import Instance
from driftsack.core.statistics import standard_error
from driftsack.policies.policy import Policy
from driftsack.simulation.simulate import simulate


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

    def local_slopes(self) -> list[Slope]:
        """Compute the slope between each horizon and the next."""
        return [self.slope(slice(k, k + 2)) for k in range(self.horizons.size - 1)]

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


def growth(
    policy: Policy,
    world: Callable[[int, int], Instance],
    horizons: Sequence[int],
    trials: int,
    draws: int = 1,
    seed: int = 0,
) -> Growth:
    """Simulate a policy at several horizons, on ``draws`` instances ``world(horizon, draw)`` each.

    With several draws the standard error is that of the means of the draws, since trials on the same instance are not
    independent. The first draw's trials use ``seed``, each further draw the next one.
    """
    if max(trials, draws) < 2:
        raise OutOfRangeError(f"a standard error needs at least two trials or two draws, got {trials} and {draws}.")
    means, errors = [], []
    for horizon in horizons:
        regrets = []
        for draw in range(draws):
            instance = world(horizon, draw)
            run = simulate(instance, policy, trials=trials, seed=seed + draw)
            regrets.append(lp_dynamic(instance).value - run.reward)
        sample = np.mean(regrets, axis=1) if draws > 1 else regrets[0]
        means.append(sample.mean())
        errors.append(standard_error(sample))
    return Growth(np.array(horizons), np.array(means), np.array(errors))
