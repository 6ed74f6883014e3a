"""``World``: an instance as arrays for kernels, and the outcomes drawn from it."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from numpy.random import Generator

from driftsack.core.arrays import Floats, Phase
from driftsack.core.checks import frozen
from driftsack.core.instance import NOISES, Instance
from driftsack.game.records import Terms
from driftsack.numerics.compiled import kernel
from driftsack.numerics.lognormal import SIGMA, capped_scale

DETERMINISTIC: Final = NOISES.index("deterministic")
BERNOULLI: Final = NOISES.index("bernoulli")
UNIFORM: Final = NOISES.index("uniform")
LOGNORMAL: Final = NOISES.index("lognormal")
BETA_CONCENTRATION: Final = 4.0


class World(NamedTuple):
    """Means in [0, 1] and the noise; all arrays are read-only, whatever the units, so that kernels compile once."""

    rewards: Floats  # (K, m)
    costs: Floats  # (K, d, m)
    phase: Phase  # (T,) row of each round
    noise: int  # index into ``NOISES``
    scales: Floats  # (K, d, m) scales of lognormal costs; with other noises the means, which nothing reads there


def world_of(instance: Instance) -> World:
    """The normalised world of an instance."""
    rewards, costs = frozen(instance.unit_rewards), frozen(instance.unit_costs)
    noise = NOISES.index(instance.noise)
    scales = frozen(capped_scale(costs)) if noise == LOGNORMAL else costs
    return World(rewards, costs, instance.phase, noise, scales)


@kernel
def reveal(world: World, t: int, terms: Terms) -> None:
    """Do nothing: rounds have no context."""


@kernel
def draw_outcome(world: World, t: int, arm: int, costs: Floats, rng: Generator) -> float:
    """Draw the outcome of an arm in round ``t``: write the costs and return the reward."""
    row = world.phase[t]
    reward = noisy(world.rewards[row, arm], world.noise, rng)
    for j in range(costs.size):
        if world.noise == LOGNORMAL:
            costs[j] = min(world.scales[row, j, arm] * math.exp(SIGMA * rng.standard_normal()), 1.0)
        else:
            costs[j] = noisy(world.costs[row, j, arm], world.noise, rng)
    return reward


@kernel
def noisy(mean: float, noise: int, rng: Generator) -> float:
    """Draw a number in [0, 1] with the given mean; with ``"lognormal"``, a reward."""
    if noise == DETERMINISTIC:
        return mean
    if noise in (BERNOULLI, LOGNORMAL):
        return 1.0 if rng.random() < mean else 0.0
    if noise == UNIFORM:
        half = min(mean, 1.0 - mean)
        return mean + half * (2.0 * rng.random() - 1.0)
    if mean <= 0.0 or mean >= 1.0:  # no Beta distribution has this mean; the limit is a constant
        return mean
    return rng.beta(BETA_CONCENTRATION * mean, BETA_CONCENTRATION * (1.0 - mean))
