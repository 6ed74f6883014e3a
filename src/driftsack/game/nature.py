"""``reveal`` and ``draw_outcome``: what nature shows before a round and draws after it, by the type of the world.

As for policies, the kernels are those of the file in which the world's class is defined; Numba resolves that when it
compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import overload
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.contextual import ContextualInstance
from driftsack.core.instance import Instance
from driftsack.game.contextual_world import ContextualWorld, contextual_world_of
from driftsack.game.protocol import callable_kernel, find_kernel
from driftsack.game.records import Terms
from driftsack.game.world import World, world_of
from driftsack.numerics.compiled import LINKED, source

AnyInstance = Instance | ContextualInstance
AnyWorld = World | ContextualWorld


def new_world(instance: AnyInstance) -> AnyWorld:
    """The normalised world of an instance; that of one with contexts still needs those of a trial."""
    return contextual_world_of(instance) if isinstance(instance, ContextualInstance) else world_of(instance)


def for_trial(instance: AnyInstance, world: Any, rng: Generator) -> Any:
    """The world of one trial, which draws its contexts first, so that they do not depend on the policy."""
    return world._replace(order=instance.drawn_order(rng)) if isinstance(instance, ContextualInstance) else world


def reveal(world: Any, t: int, terms: Terms) -> None:
    """Write the context of round ``t``, if the world has contexts.

    Args:
        world: The world.
        t: The round, from 0.
        terms: The terms; ``context`` is written.
    """
    callable_kernel(world, "reveal")(world, t, terms)


def draw_outcome(world: Any, t: int, arm: int, costs: Floats, rng: Generator) -> float:
    """Draw the outcome of an arm in round ``t``: write the costs and return the reward.

    Args:
        world: The world.
        t: The round, from 0.
        arm: The arm.
        costs: (d,) written.
        rng: Nature's randomness.

    Returns:
        The reward.
    """
    reward: float = callable_kernel(world, "draw_outcome")(world, t, arm, costs, rng)
    return reward


@overload(reveal, strict=False, jit_options=LINKED)  # type: ignore[untyped-decorator]
def _reveal(world: Any, t: Any, terms: Any) -> Callable[..., Any]:
    return source(find_kernel(world.instance_class, "reveal"))


@overload(draw_outcome, strict=False, jit_options=LINKED)  # type: ignore[untyped-decorator]
def _draw_outcome(world: Any, t: Any, arm: Any, costs: Any, rng: Any) -> Callable[..., Any]:
    return source(find_kernel(world.instance_class, "draw_outcome"))
