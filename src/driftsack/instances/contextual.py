"""Random instances with contexts: means that are linear in the features, and segments with different best arms."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import at_least_zero, flag, one_of, whole
from driftsack.core.contextual import ContextualInstance
from driftsack.core.seeding import generator

DRIFTS: Final = ("none", "jump", "drift")
REWARD_REACH: Final = 0.35  # means lie within this distance of the intercept, so that none is clipped
COST_REACH: Final = 0.25
STEPS: Final = 50  # phases of a gradual drift


def linear_contexts(
    horizon: int = 10_000,
    arms: int = 4,
    resources: int = 2,
    features: int = 8,
    drift: str = "none",
    rate: float = 0.25,
    pool: int = 2_000,
    seed: int = 0,
) -> ContextualInstance:
    """Build an instance whose means are linear in contexts drawn uniformly from a pool of random sign vectors.

    Every arm depends on four of the features, so that contexts matter for any number of features.

    Args:
        horizon: The number of rounds.
        arms: The number of arms.
        resources: The number of resources.
        features: The number of features.
        drift: ``"none"``; ``"jump"``, two changes of all coefficients; or ``"drift"``, a gradual change from one set of
            coefficients to another.
        rate: The budget of each resource per round.
        pool: The number of distinct contexts.
        seed: The seed of all draws.

    Returns:
        The instance, with Bernoulli outcomes.

    >>> linear_contexts(horizon=100, drift="jump").rewards.shape
    (3, 4, 9)
    """
    one_of(drift, "drift", DRIFTS)
    for value, name in ((horizon, "horizon"), (arms, "arms"), (resources, "resources"), (features, "features")):
        whole(value, name, at_least=1)
    at_least_zero(rate, "rate")
    rng = generator(seed)
    # Draw the coefficients of each phase; a gradual drift interpolates between two sets.
    ends = {"none": 1, "jump": 3, "drift": 2}[drift]
    rewards = np.stack([_coefficients(rng, (arms,), features, 0.5, REWARD_REACH) for _ in range(ends)])
    costs = np.stack([_coefficients(rng, (resources, arms), features, 0.4, COST_REACH) for _ in range(ends)])
    if drift == "drift":
        share = np.linspace(0.0, 1.0, min(STEPS, horizon))
        rewards = (1 - share)[:, None, None] * rewards[0] + share[:, None, None] * rewards[1]
        costs = (1 - share)[:, None, None, None] * costs[0] + share[:, None, None, None] * costs[1]
    contexts = 2.0 * rng.integers(0, 2, (whole(pool, "pool", at_least=1), features)) - 1.0
    return ContextualInstance.linear(contexts, rewards, costs, rate * horizon, horizon=horizon)


def _coefficients(rng: Generator, shape: tuple[int, ...], features: int, centre: float, reach: float) -> Floats:
    """Draw coefficients of four features, whose absolute values sum to ``reach``, and intercepts near ``centre``."""
    found = np.zeros((*shape, features + 1))
    active = min(4, features)
    for place in np.ndindex(shape):
        chosen = rng.choice(features, active, replace=False)
        found[(*place, chosen)] = rng.choice([-1.0, 1.0], active) * rng.dirichlet(np.ones(active)) * reach
        found[(*place, features)] = centre + rng.uniform(-0.1, 0.1)
    return found


def segments(
    horizon: int = 10_000, count: int = 8, arms: int = 4, jump: bool = False, rate: float = 0.25, seed: int = 0
) -> ContextualInstance:
    """Build an instance with segments of different sizes and different best arms; contexts are one-hot.

    Args:
        horizon: The number of rounds.
        count: The number of segments.
        arms: The number of arms.
        jump: Whether the means of all segments change halfway.
        rate: The budget per round.
        seed: The seed of all draws.

    Returns:
        The instance, with Bernoulli outcomes.

    >>> segments(horizon=100).contexts.shape
    (8, 8)
    """
    for value, name in ((horizon, "horizon"), (count, "count"), (arms, "arms")):
        whole(value, name, at_least=1)
    at_least_zero(rate, "rate")
    rng = generator(seed)
    phases = 2 if flag(jump, "jump") else 1
    rewards, costs = rng.uniform(0.1, 0.9, (phases, count, arms)), rng.uniform(0.1, 0.9, (phases, count, 1, arms))
    weights = rng.dirichlet(np.full(count, 3.0))
    return ContextualInstance.by_table(np.eye(count), rewards, costs, rate * horizon, horizon=horizon, weights=weights)
