"""What a simulated round of each policy costs, against sliding-window UCB, in turns."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Final

from driftsack.experiments.bench import ratio, round_seconds
from driftsack.instances import example_2
from driftsack.policies import (
    DiscountedUCB,
    DualDescent,
    LagrangeBwK,
    NaiveUCB,
    Policy,
    PrimalDualBwK,
    SlidingWindowUCB,
    UCBBwK,
)

POLICIES: Final[tuple[Policy, ...]] = (
    NaiveUCB(),
    UCBBwK(shrink=0.1),
    DiscountedUCB(),
    LagrangeBwK(benchmark=3_350.0),
    PrimalDualBwK(),
    DualDescent(),
)


def policy_rows(quick: bool, said: Callable[[str], None]) -> list[dict[str, float | str]]:
    """A row a policy, on Example 2."""
    repeats, trials = (3, 2) if quick else (7, 20)
    world, base = example_2(), SlidingWindowUCB(variation=(0.5, 1.0))
    rows: list[dict[str, float | str]] = []
    for policy in POLICIES:
        said(f"a round of {type(policy).__name__}")
        mine, theirs = [], []
        for _ in range(repeats + 1):
            mine.append(round_seconds(world, policy, trials))
            theirs.append(round_seconds(world, base, trials))
        rows.append(
            {
                "policy": type(policy).__name__,
                "round / SW-UCB round": ratio(mine[1:], theirs[1:]),
                "ns": 1e9 * statistics.median(mine[1:]),
                "SW-UCB ns": 1e9 * statistics.median(theirs[1:]),
            }
        )
    return rows
