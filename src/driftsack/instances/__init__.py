"""Instances for experiments: the paper's examples and lower bounds, counterexamples, and families with drift.

Every name in ``__all__`` is a function that returns an instance, so a spec can refer to it by its name.
"""

from driftsack.instances.counterexamples import drift_in_turn, flipping_costs, free_best_arm
from driftsack.instances.drifting import (
    adversarial_order,
    bursts,
    linear_trend,
    piecewise_random,
    random_walk,
    sinusoidal,
)
from driftsack.instances.examples import (
    example_1,
    example_2,
    example_3,
    example_4,
    motivating,
    nonbinding,
    step_change,
)
from driftsack.instances.families import (
    common_shocks,
    cost_jumps,
    rich_and_poor,
    rotating_best_arm,
    seasonal,
    smooth_random,
    unseen_improvement,
)
from driftsack.instances.lower_bounds import budget_trap, cost_switching, reward_switching

__all__ = [
    "adversarial_order",
    "budget_trap",
    "bursts",
    "common_shocks",
    "cost_jumps",
    "cost_switching",
    "drift_in_turn",
    "example_1",
    "example_2",
    "example_3",
    "example_4",
    "flipping_costs",
    "free_best_arm",
    "linear_trend",
    "motivating",
    "nonbinding",
    "piecewise_random",
    "random_walk",
    "reward_switching",
    "rich_and_poor",
    "rotating_best_arm",
    "seasonal",
    "sinusoidal",
    "smooth_random",
    "step_change",
    "unseen_improvement",
]
