"""Run every policy on the flights of 2013, and compute the benchmarks."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.benchmarks import fixed_distribution, lp_dynamic, lp_static, single_step
from driftsack.benchmarks.benchmark import plan_spending
from driftsack.core.instance import Instance
from driftsack.core.statistics import standard_error
from driftsack.datasets.flights import RATE, SLOTS, flights, flights_world
from driftsack.policies import (
    Adaptive,
    AlwaysArm,
    BanditOverBandit,
    DetectAndRestart,
    DiscountedUCB,
    DualDescent,
    DynamicOracle,
    EpsilonGreedy,
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
from driftsack.simulation import simulate

WEEK: Final = 7 * SLOTS  # rounds per week
HALF: Final = 182 * SLOTS
STEADY: Final = NaiveUCB(scale=0.05, budget_rule="remaining")


def optima(world: Instance) -> dict[str, float]:
    """The reward per round of each benchmark."""
    benchmarks = (lp_dynamic(world), single_step(world), fixed_distribution(world), lp_static(world))
    return {one.name: one.value / world.horizon for one in benchmarks}


def windowed(weeks: int) -> SlidingWindowUCB:
    """Sliding-window UCB with windows of the given number of weeks."""
    return SlidingWindowUCB(windows=(weeks * WEEK, weeks * WEEK), scale=0.05, budget_rule="remaining")


class Contender(NamedTuple):
    """A policy that takes part."""

    name: str  # its name in tables and figures
    policy: Policy
    hindsight: bool = False  # whether it uses knowledge of the future


def league_entries(weekly: Instance) -> list[Contender]:
    """Every policy of the library that can run here; ``Exp3BwK`` takes one resource only."""
    plan = np.asarray(lp_dynamic(weekly).plan)
    amounts = plan_spending(weekly.costs, plan)[:-1]  # the last week has a few hours only
    four_weeks = DiscountedUCB(discount=1 - 1 / (4 * WEEK), scale=0.05, budget_rule="remaining")
    # Policies with hindsight come first.
    return [
        Contender("DynamicOracle (knows each flight)", DynamicOracle(), hindsight=True),
        Contender(
            "given all weekly means (hindsight)", PlanWithForecast(weekly, trust=0.9, scale=0.05), hindsight=True
        ),
        Contender("SpendingPlan by week (hindsight)", SpendingPlan.by_period(STEADY, amounts), hindsight=True),
        Contender("StaticOracle (hindsight)", StaticOracle(), hindsight=True),
        Contender("always AA (hindsight)", AlwaysArm(1), hindsight=True),
        Contender("Adaptive", Adaptive()),
        Contender("DiscountedUCB, 4 weeks", four_weeks),
        Contender("NaiveUCB, no window", STEADY),
        Contender("SW-UCB, 13 weeks", windowed(13)),
        Contender("SW-UCB, 4 weeks", windowed(4)),
        Contender("SW-UCB, 1 week", windowed(1)),
        Contender("ThompsonBwK", ThompsonBwK(budget_rule="remaining")),
        Contender("DetectAndRestart", DetectAndRestart(base=STEADY)),
        Contender("BanditOverBandit", BanditOverBandit()),
        Contender("Master", Master()),
        Contender("UCBBwK", UCBBwK()),
        Contender("PrimalDualBwK", PrimalDualBwK()),
        Contender("LagrangeBwK", LagrangeBwK()),
        Contender("DualDescent", DualDescent()),
        Contender("NaiveUCB, as printed", NaiveUCB()),
        Contender("EpsilonGreedy", EpsilonGreedy()),
        Contender("PriceController", PriceController()),
        Contender("RecentMeansLP", RecentMeansLP()),
        Contender("InventoryReserving", InventoryReserving(scale=0.05)),
        Contender("WindowPacing", WindowPacing()),
        Contender("UniformRandom", UniformRandom()),
    ]


def league(trials: int, seed: int = 0) -> list[dict[str, Any]]:
    """Play every policy on the real rows; only the policies' own randomness differs between trials.

    The table has one row per policy, the best first: its name, mean reward per round, standard error, and whether it
    has hindsight.
    """
    world = flights_world("round")
    rows = [_row(entry, world, trials, seed) for entry in league_entries(flights_world("week"))]
    return sorted(rows, key=lambda row: -row["reward"])


def half_year(trials: int, seed: int = 0) -> list[dict[str, Any]]:
    """Play the second half of the year with a forecast from the first: its averages, or its averages by time of day.

    The result has the form of that of :func:`league`.
    """
    table = flights().table
    if table is None:
        return []
    past, rest = table[:HALF], table[HALF:]
    budget = np.array(RATE) * len(rest)
    world = Instance.from_arrays(rest[:, :, 0], rest[:, :, 1:].transpose(0, 2, 1), budget, "deterministic")
    average = past.mean(axis=0)
    even = Instance.stationary(average[:, 0], average[:, 1:].T, len(rest), budget)
    clock = past.reshape(-1, SLOTS, *past.shape[1:]).mean(axis=0)[np.arange(len(rest)) % SLOTS]
    hourly = Instance.from_arrays(clock[:, :, 0], clock[:, :, 1:].transpose(0, 2, 1), budget)
    entries = (
        Contender("NaiveUCB, no forecast", STEADY),
        Contender("the first half's averages, trust 0.9", PlanWithForecast(even, trust=0.9, scale=0.05)),
        Contender("the first half's averages, trust 1 (never learns)", PlanWithForecast(even, trust=1.0, scale=0.05)),
        Contender(
            "the first half's averages by time of day, trust 0.5", PlanWithForecast(hourly, trust=0.5, scale=0.05)
        ),
        Contender(
            "the first half's averages by time of day, trust 0.9", PlanWithForecast(hourly, trust=0.9, scale=0.05)
        ),
    )
    return [_row(entry, world, trials, seed) for entry in entries]


def _row(entry: Contender, world: Instance, trials: int, seed: int) -> dict[str, Any]:
    run = simulate(world, entry.policy, trials=trials, seed=seed)
    return {
        "policy": entry.name,
        "hindsight": entry.hindsight,
        "reward": float(run.reward.mean()) / world.horizon,
        "reward_se": standard_error(run.reward) / world.horizon,
    }
