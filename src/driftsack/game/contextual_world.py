"""``ContextualWorld``: an instance with contexts as arrays for kernels, and the outcomes drawn from it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Phase
from driftsack.core.checks import frozen
from driftsack.core.contextual import LINEAR, MEANS, NOISES, TABLE, ContextualInstance
from driftsack.game.records import Terms
from driftsack.game.world import noisy
from driftsack.numerics.compiled import kernel


class ContextualWorld(NamedTuple):
    """Contexts, means in [0, 1] or their coefficients, and the noise; all arrays are read-only."""

    contexts: Floats  # (N, n)
    order: Phase  # (T,) the context of each round
    phase: Phase  # (T,) the row of the means of each round
    rewards: Floats  # (K, N, m) by table, otherwise (K, m, n + 1)
    costs: Floats  # (K, N, d, m) by table, otherwise (K, d, m, n + 1)
    means: int  # index into ``MEANS``
    noise: int  # index into ``NOISES``


def contextual_world_of(instance: ContextualInstance) -> ContextualWorld:
    """The normalised world of an instance, before the contexts of a trial are drawn."""
    problem, most = instance.problem, np.asarray(instance.problem.cost_max)
    rewards, costs = instance.rewards, instance.costs
    if instance.means == "table":
        rewards, costs = rewards / problem.reward_max, costs / most[:, None]
    elif instance.means == "linear":
        rewards, costs = rewards / problem.reward_max, costs / most[:, None, None]
    return ContextualWorld(
        contexts=instance.contexts,
        order=frozen(np.zeros(0, dtype=np.int32)) if instance.order is None else instance.order,
        phase=instance.phase,
        rewards=frozen(rewards),
        costs=frozen(costs),
        means=MEANS.index(instance.means),
        noise=NOISES.index(instance.noise),
    )


@kernel
def reveal(world: ContextualWorld, t: int, terms: Terms) -> None:
    """Write the context of round ``t``."""
    row = world.order[t]
    for f in range(terms.context.size):
        terms.context[f] = world.contexts[row, f]


@kernel
def draw_outcome(world: ContextualWorld, t: int, arm: int, costs: Floats, rng: Generator) -> float:
    """Draw the outcome of an arm in round ``t``: write the costs and return the reward."""
    k, row = world.phase[t], world.order[t]
    if world.means == TABLE:
        reward = noisy(world.rewards[k, row, arm], world.noise, rng)
        for j in range(costs.size):
            costs[j] = noisy(world.costs[k, row, j, arm], world.noise, rng)
        return reward
    reward = noisy(linked(world.contexts[row], world.rewards[k, arm], world.means), world.noise, rng)
    for j in range(costs.size):
        costs[j] = noisy(linked(world.contexts[row], world.costs[k, j, arm], world.means), world.noise, rng)
    return reward


@kernel
def linked(context: Floats, coefficients: Floats, means: int) -> float:
    """The mean in [0, 1] of an outcome: linear and clipped, or logistic; two sums do not wait for each other."""
    value, odd = coefficients[context.size], 0.0
    for f in range(0, context.size - 1, 2):
        value += coefficients[f] * context[f]
        odd += coefficients[f + 1] * context[f + 1]
    if context.size % 2:
        value += coefficients[context.size - 1] * context[context.size - 1]
    value += odd
    if means == LINEAR:
        return float(min(max(value, 0.0), 1.0))
    return 1.0 / (1.0 + math.exp(-min(max(value, -500.0), 500.0)))
