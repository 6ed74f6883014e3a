"""The flights of 2013: what the optimum earns, how much of the drift is real, and every policy on the real rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from driftsack.benchmarks import fixed_distribution, lp_dynamic, lp_static, single_step
from driftsack.core.instance import Instance
from driftsack.core.statistics import standard_error
from driftsack.datasets.flights import RATE, SLOTS, flights, flights_world
from driftsack.policies import (
    AlwaysArm,
    BanditOverBandit,
    DetectAndRestart,
    DiscountedUCB,
    DualDescent,
    DynamicOracle,
    LagrangeBwK,
    Master,
    NaiveUCB,
    PlanWithForecast,
    Policy,
    PrimalDualBwK,
    SlidingWindowUCB,
    SpendingPlan,
    StaticOracle,
    ThompsonBwK,
    UCBBwK,
    UniformRandom,
)
from driftsack.simulation import simulate

WEEK: Final = 7 * SLOTS  # rounds
HALF: Final = 182 * SLOTS
STEADY: Final = NaiveUCB(scale=0.05, budget_rule="remaining")


def optima(world: Instance) -> dict[str, float]:
    """What each benchmark earns a round."""
    found = (lp_dynamic(world), single_step(world), fixed_distribution(world), lp_static(world))
    return {one.name: one.value / world.horizon for one in found}


def windowed(weeks: int) -> SlidingWindowUCB:
    """The usual UCB with windows of so many weeks."""
    return SlidingWindowUCB(windows=(weeks * WEEK, weeks * WEEK), scale=0.05, budget_rule="remaining")


def league_policies(weekly: Instance) -> dict[str, Policy]:
    """Every policy of the library that can run here (``Exp3BwK`` takes one resource only), by what it is."""
    plan = np.asarray(lp_dynamic(weekly).plan)
    amounts = np.einsum("kji,ki->kj", weekly.costs, plan)[:-1]  # the last week has a few hours only
    return {
        "DynamicOracle (knows each flight)": DynamicOracle(),
        "told all weekly means (hindsight)": PlanWithForecast(weekly, trust=0.9, scale=0.05),
        "SpendingPlan by week (hindsight)": SpendingPlan.by_period(STEADY, amounts),
        "StaticOracle (hindsight)": StaticOracle(),
        "DiscountedUCB, 4 weeks": DiscountedUCB(discount=1 - 1 / (4 * WEEK), scale=0.05, budget_rule="remaining"),
        "NaiveUCB, remembers all": STEADY,
        "SW-UCB, 13 weeks": windowed(13),
        "SW-UCB, 4 weeks": windowed(4),
        "SW-UCB, 1 week": windowed(1),
        "ThompsonBwK": ThompsonBwK(budget_rule="remaining"),
        "DetectAndRestart": DetectAndRestart(base=STEADY),
        "BanditOverBandit": BanditOverBandit(),
        "Master": Master(),
        "UCBBwK": UCBBwK(),
        "PrimalDualBwK": PrimalDualBwK(),
        "LagrangeBwK": LagrangeBwK(),
        "DualDescent": DualDescent(),
        "NaiveUCB, as printed": NaiveUCB(),
        "always AA (hindsight)": AlwaysArm(1),
        "UniformRandom": UniformRandom(),
    }


def league(trials: int, seed: int = 0, said: Callable[[str], None] = lambda _: None) -> list[dict[str, Any]]:
    """Reward a round of each policy on the real rows, the best first; only the policies' own coins differ by trial."""
    world = flights_world("round")
    rows = []
    for name, policy in league_policies(flights_world("week")).items():
        said(name)
        rows.append(_row(name, policy, world, trials, seed))
    return sorted(rows, key=lambda row: -row["reward"])


def half_year(trials: int, seed: int = 0) -> list[dict[str, Any]]:
    """The second half of the year, with what the first half taught as a forecast: its averages, or its daily clock."""
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
    listed: dict[str, Policy] = {
        "NaiveUCB, knows nothing": STEADY,
        "the first half's averages, trust 0.9": PlanWithForecast(even, trust=0.9, scale=0.05),
        "the first half's averages, trust 1 (never learns)": PlanWithForecast(even, trust=1.0, scale=0.05),
        "the first half's clock, trust 0.5": PlanWithForecast(hourly, trust=0.5, scale=0.05),
        "the first half's clock, trust 0.9": PlanWithForecast(hourly, trust=0.9, scale=0.05),
    }
    return [_row(name, policy, world, trials, seed) for name, policy in listed.items()]


def _row(name: str, policy: Policy, world: Instance, trials: int, seed: int) -> dict[str, Any]:
    run = simulate(world, policy, trials=trials, seed=seed)
    used = (run.spent / np.asarray(world.problem.budget)).mean(axis=0)
    return {
        "policy": name,
        "reward": float(run.reward.mean()) / world.horizon,
        "reward_se": standard_error(run.reward) / world.horizon,
        "stopping_time": float(run.stopping_time.mean()),
        "lateness_share": float(used[0]),
        "waiting_share": float(used[1]),
    }
