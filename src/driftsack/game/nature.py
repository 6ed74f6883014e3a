"""``reveal`` and ``draw_outcome``: the context before a round and the outcome after it, by the type of the world.

As for policies, the kernels are those of the file in which the world's class is defined; Numba resolves that when it
compiles.
"""

from __future__ import annotations

from typing import Any

from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.contextual import ContextualInstance
from driftsack.core.instance import Instance
from driftsack.game.contextual_world import ContextualWorld, contextual_world_of
from driftsack.game.protocol import callable_kernel, find_kernel
from driftsack.game.records import Terms
from driftsack.game.world import World, world_of
from driftsack.numerics.compiled import found_by_type

AnyInstance = Instance | ContextualInstance
AnyWorld = World | ContextualWorld


def new_world(instance: AnyInstance) -> AnyWorld:
    """Return the normalised world of an instance; with contexts, it still needs those of a trial."""
    return contextual_world_of(instance) if isinstance(instance, ContextualInstance) else world_of(instance)


def for_trial(instance: AnyInstance, world: Any, rng: Generator) -> Any:
    """The world of one trial, which draws its contexts first, so that they do not depend on the policy."""
    return world._replace(order=instance.drawn_order(rng)) if isinstance(instance, ContextualInstance) else world


def reveal(world: Any, t: int, terms: Terms) -> None:
    """Write the context of round ``t`` (from 0) into the terms, if the world has contexts."""
    callable_kernel(world, "reveal")(world, t, terms)


def draw_outcome(world: Any, t: int, arm: int, costs: Floats, rng: Generator) -> float:
    """Draw the outcome of an arm in round ``t`` (from 0): write the costs (d,) and return the reward."""
    reward: float = callable_kernel(world, "draw_outcome")(world, t, arm, costs, rng)
    return reward


found_by_type(reveal, find_kernel)
found_by_type(draw_outcome, find_kernel)
