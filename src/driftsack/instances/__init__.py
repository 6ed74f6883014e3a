"""Layer 3: worlds to learn in, one family a file."""

from driftsack.instances.paper import (
    example_1,
    example_2,
    example_3,
    example_4,
    motivating,
    nonbinding,
    step_change,
)

__all__ = ["example_1", "example_2", "example_3", "example_4", "motivating", "nonbinding", "step_change"]
