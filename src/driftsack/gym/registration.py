"""Registration of the paper's examples with Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from gymnasium.envs.registration import register, registry

from driftsack import instances
from driftsack.gym.env import BudgetEnv

EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "driftsack/Example1-v0": {"world": "example_1"},
        "driftsack/Example2-v0": {"world": "example_2"},
        "driftsack/Example3-v0": {"world": "example_3", "alpha": 0.5},
        "driftsack/Example4-v0": {"world": "example_4"},
    }
)
"""The environments by name: the function of ``driftsack.instances`` that builds each, and its arguments."""


def register_examples() -> None:
    """Make ``gymnasium.make("driftsack/Example2-v0", horizon=1_000)`` work; further calls have no effect."""
    for name, settings in EXAMPLES.items():
        if name not in registry:
            register(id=name, entry_point=f"{__name__}:example", kwargs=dict(settings))


def example(world: str, **settings: Any) -> BudgetEnv:
    """The environment of an instance of ``driftsack.instances``; ``settings`` are passed to its function.

    >>> example("example_1", horizon=10).instance.horizon
    10
    """
    return BudgetEnv(getattr(instances, world)(**settings))
