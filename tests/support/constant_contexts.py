"""Contexts without effect, for tests that were written for policies without contexts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import driftsack as ds

FEATURES = 2


def with_features(policy: ds.Policy, problem: ds.Problem) -> ds.Problem:
    """The problem, with features if the policy needs contexts."""
    return replace(problem, features=FEATURES) if policy.needs_context else problem


def asked(learner: ds.Learner, **terms: Any) -> ds.Decision:
    """Ask, alternating between two contexts if the problem has features."""
    return learner.ask(**terms, context=contexts(learner, 1)[0] if learner.problem.features else None)


def contexts(learner: ds.Learner, count: int) -> Any:
    """(n, f) the contexts of the next requests."""
    return np.eye(FEATURES)[(learner.round + np.arange(count)) % FEATURES]


def with_contexts(policy: ds.Policy, world: ds.Instance) -> ds.Instance | ds.ContextualInstance:
    """The instance, with contexts that do not affect the means if the policy needs contexts."""
    if not policy.needs_context:
        return world
    rewards, costs = (np.repeat(means[:, None], FEATURES, axis=1) for means in (world.rewards, world.costs))
    return ds.ContextualInstance(
        with_features(policy, world.problem),
        np.eye(FEATURES),
        rewards,
        costs,
        world.phase,
        order=(np.arange(world.horizon) % FEATURES).astype(np.int32),
        noise=world.noise,
    )
