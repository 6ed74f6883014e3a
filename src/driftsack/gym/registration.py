"""Registration of the paper's examples, and of an instance with contexts, with Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from gymnasium.envs.registration import register, registry

import driftsack.instances.contextual  # noqa: F401  (found by name)
from driftsack import instances
from driftsack.gym.env import BudgetEnv

EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "driftsack/Example1-v0": {"world": "example_1"},
        "driftsack/Example2-v0": {"world": "example_2"},
        "driftsack/Example3-v0": {"world": "example_3", "alpha": 0.5},
        "driftsack/Example4-v0": {"world": "example_4"},
        "driftsack/LinearContexts-v0": {"world": "contextual.linear_contexts"},
    }
)
"""Maps the name of each environment to a function of ``driftsack.instances`` and its arguments."""


def register_examples() -> None:
    """Register the examples, for ``gymnasium.make("driftsack/Example2-v0", horizon=1_000)``; idempotent."""
    for name, settings in EXAMPLES.items():
        if name not in registry:
            register(id=name, entry_point=f"{__name__}:example", kwargs=dict(settings))


def example(world: str, **settings: Any) -> BudgetEnv:
    """Create the environment of an instance; ``settings`` are passed to its function in ``driftsack.instances``.

    >>> example("example_1", horizon=10).instance.horizon
    10
    """
    return BudgetEnv(attrgetter(world)(instances)(**settings))
