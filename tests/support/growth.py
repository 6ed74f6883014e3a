"""Regret of a policy at several horizons, by simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from driftsack.benchmarks.lp_dynamic import lp_dynamic
from driftsack.core.errors import OutOfRangeError
from driftsack.core.instance import Instance
from driftsack.core.statistics import standard_error
from driftsack.policies.policy import Policy
from driftsack.simulation.simulate import simulate
from driftsack.sweeps.growth import Growth


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
