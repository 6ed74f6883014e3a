r"""How regret grows with the horizon, fitted: the check behind "regret :math:`\tilde O(T^{1/2})`".

With regret :math:`R(T) \approx c\, T^{a} (\ln T)^{k}` the slope of :math:`\ln R - k \ln\ln T` against :math:`\ln T` is
a. Each R(T) is a mean over trials with a standard error s, so :math:`\ln R` has about s/R; the fit weighs by it.
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
from driftsack.policies.policy import Policy
from driftsack.simulation.simulate import simulate


class Slope(NamedTuple):
    """A fitted exponent and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, eq=False)
class Growth:
    """Mean regret against LP-Dynamic, and its standard error, at each horizon."""

    horizons: Ints  # (n,)
    regret: Floats  # (n,)
    error: Floats  # (n,)

    def local(self) -> list[Slope]:
        """The slope between each horizon and the next."""
        return [self.slope(slice(k, k + 2)) for k in range(self.horizons.size - 1)]

    def slope(self, part: slice = slice(None), logarithms: float = 0.0) -> Slope:
        r"""The fitted exponent a over ``part`` of the horizons, :math:`(\ln T)^k` taken out with k = ``logarithms``.

        >>> made = Growth(np.array([100, 10_000]), np.array([20.0, 200.0]), np.array([0.2, 2.0]))
        >>> print(f"{made.slope().value:.2f}")
        0.50
        """
        if (self.regret[part] <= 0.0).any():
            raise OutOfRangeError(f"regret must be above 0 for its logarithm, got {self.regret[part].min():g}.")
        place = np.log(self.horizons[part])
        height = np.log(self.regret[part]) - logarithms * np.log(place)
        weight = (self.regret[part] / self.error[part]) ** 2
        centred = place - np.average(place, weights=weight)
        spread = float((weight * centred**2).sum())
        return Slope(float((weight * centred * height).sum() / spread), spread**-0.5)


def growth(
    policy: Policy,
    world: Callable[[int, int], Instance],
    horizons: Sequence[int],
    trials: int,
    draws: int = 1,
    seed: int = 0,
) -> Growth:
    """Simulate a policy on ``world(horizon, draw)``: ``trials`` trials on each of ``draws`` worlds a horizon.

    Trials on one world are not independent of each other if worlds differ: with several draws the error is that of
    the draws' means.
    """
    if max(trials, draws) < 2:  # noqa: PLR2004
        raise OutOfRangeError(f"a standard error needs two trials or two draws, got {trials} and {draws}.")
    means, errors = [], []
    for horizon in horizons:
        regrets = []
        for draw in range(draws):
            instance = world(horizon, draw)
            run = simulate(instance, policy, trials=trials, seed=seed + draw)
            regrets.append(lp_dynamic(instance).value - run.reward)
        sample = np.mean(regrets, axis=1) if draws > 1 else regrets[0]
        means.append(sample.mean())
        errors.append(sample.std(ddof=1) / np.sqrt(sample.size))
    return Growth(np.array(horizons), np.array(means), np.array(errors))
