"""The plain Python loop with which speed is compared."""

from __future__ import annotations

import driftsack as ds
from driftsack.paper.plain_python import PlainSlidingWindowUCB


def test_the_plain_loop_agrees_with_the_compiled_policy() -> None:
    """The plain Python loop earns what the compiled policy earns: means within 5 standard errors."""
    world = ds.instances.example_2(horizon=200)
    plain = ds.simulate(world, PlainSlidingWindowUCB(windows=(50, 60)), trials=12, seed=0)
    ours = ds.simulate(world, ds.SlidingWindowUCB(windows=(50, 60)), trials=400, seed=0)
    error = (plain.reward.var(ddof=1) / 12 + ours.reward.var(ddof=1) / 400) ** 0.5
    assert abs(plain.reward.mean() - ours.reward.mean()) < 5 * error
