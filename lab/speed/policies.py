"""Speed of a simulated round of each policy, compared with sliding-window UCB on the same instance."""

from __future__ import annotations

import statistics
from typing import Final, NamedTuple

from driftsack.core.instance import Instance
from driftsack.core.problem import Problem
from driftsack.instances import example_2, piecewise_random
from driftsack.paper.speed import round_seconds
from driftsack.policies import (
    Adaptive,
    AlwaysArm,
    BanditOverBandit,
    DetectAndRestart,
    DiscountedUCB,
    DualDescent,
    DynamicOracle,
    EpsilonGreedy,
    Exp3BwK,
    InventoryReserving,
    LagrangeBwK,
    Master,
    NaiveUCB,
    PlanWithForecast,
    Policy,
    PriceController,
    PrimalDualBwK,
    RecentMeansLP,
    SlidingWindowUCB,
    SpendingPlan,
    StaticOracle,
    ThompsonBwK,
    UCBBwK,
    UniformRandom,
    WindowPacing,
)
from lab.speed.timing import Progress, median_ratio


class TimedPolicy(NamedTuple):
    """A policy of the comparison and its instance."""

    policy: Policy
    name: str
    solves: bool  # an LP in every round
    world: Instance = example_2()


def first_resource(world: Instance) -> Instance:
    """Return the instance with its first resource only."""
    problem = Problem(world.horizon, world.arms, world.problem.budget[0])
    return Instance(problem, world.rewards, world.costs[:, :1], world.phase, world.noise)


ENTRIES: Final = (
    TimedPolicy(Adaptive(), "Adaptive, 5 arms", True, piecewise_random(horizon=10_000, arms=5, resources=2, seed=1)),
    TimedPolicy(NaiveUCB(), "NaiveUCB", True),
    TimedPolicy(UCBBwK(shrink=0.1), "UCBBwK", True),
    TimedPolicy(DiscountedUCB(), "DiscountedUCB", True),
    TimedPolicy(ThompsonBwK(), "ThompsonBwK", True),
    TimedPolicy(DetectAndRestart(), "DetectAndRestart, GLR", True),
    TimedPolicy(DetectAndRestart(detector="cusum"), "DetectAndRestart, CUSUM", True),
    TimedPolicy(BanditOverBandit(), "BanditOverBandit", True),
    TimedPolicy(Master(), "Master", True),
    TimedPolicy(PlanWithForecast(example_2()), "PlanWithForecast", True),
    TimedPolicy(SpendingPlan(NaiveUCB(scale=0.1)), "SpendingPlan of NaiveUCB", True),
    TimedPolicy(RecentMeansLP(), "RecentMeansLP", True),
    TimedPolicy(EpsilonGreedy(), "EpsilonGreedy", False),
    TimedPolicy(PriceController(), "PriceController", False),
    TimedPolicy(LagrangeBwK(benchmark=3_350.0), "LagrangeBwK", False),
    TimedPolicy(PrimalDualBwK(), "PrimalDualBwK", False),
    TimedPolicy(DualDescent(), "DualDescent", False),
    TimedPolicy(WindowPacing(), "WindowPacing", False),
    TimedPolicy(InventoryReserving(window=500), "InventoryReserving", False),
    TimedPolicy(Exp3BwK(), "Exp3BwK, one resource", False, first_resource(example_2())),
    TimedPolicy(DynamicOracle(), "DynamicOracle", False),
    TimedPolicy(StaticOracle(), "StaticOracle", False),
    TimedPolicy(UniformRandom(), "UniformRandom", False),
    TimedPolicy(AlwaysArm(), "AlwaysArm", False),
)


def policy_rows(quick: bool, progress: Progress) -> list[dict[str, float | str]]:
    """Compare each policy on its instance: Example 2, unless the table says otherwise.

    A policy that solves an LP may take three times as long as SW-UCB, any other one at most as long.
    """
    repeats, trials = (3, 2) if quick else (7, 20)
    base = SlidingWindowUCB(variation=(0.5, 1.0))
    rows: list[dict[str, float | str]] = []
    for policy, name, solves, world in ENTRIES:
        progress(f"a round of {name}")
        policy_seconds, base_seconds = [], []
        for _ in range(repeats + 1):
            policy_seconds.append(round_seconds(world, policy, trials))
            base_seconds.append(round_seconds(world, base, trials))
        rows.append(
            {
                "policy": name,
                "round / SW-UCB round": median_ratio(policy_seconds[1:], base_seconds[1:]),
                "allowed": 3.0 if solves else 1.0,
                "ns": 1e9 * statistics.median(policy_seconds[1:]),
                "SW-UCB ns": 1e9 * statistics.median(base_seconds[1:]),
            }
        )
    return rows
