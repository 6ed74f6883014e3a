"""Pace the ad budget of one day with a spending plan that is based on the demand of the day before."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.plot.style import GREY, LINES, new_figure

SLOTS = 360  # an hour has 360 slots of ten seconds
BIDS = np.array([0.35, 0.60])  # mean conversions per slot of a low and a high bid at full demand
PRICES = np.array([0.40, 0.90])  # cost per slot in dollars, the same at every hour
BUDGET = 0.2 * 24 * SLOTS


def day(rng: np.random.Generator) -> Floats:
    """Return the demand in each hour, (24,): low at night, high in the evening, with random variation between days."""
    hours = np.arange(24)
    usual = 0.15 + 0.35 * np.exp(-(((hours - 11) / 3.0) ** 2)) + 0.65 * np.exp(-(((hours - 20) / 2.0) ** 2))
    return np.clip(usual * rng.uniform(0.85, 1.15, 24), 0.0, 1.0)


def world(demand: Floats) -> ds.Instance:
    """Return one day as an instance, with one row of means per hour."""
    rewards = demand[:, None] * BIDS
    costs = np.tile(PRICES, (24, 1, 1))
    return ds.Instance.piecewise(rewards, costs, [SLOTS] * 24, BUDGET)


def hourly_spending(instance: ds.Instance) -> Floats:
    """Return the dollars that the best plan of a day spends in each hour, (24,)."""
    plan = np.asarray(ds.benchmarks.lp_dynamic(instance).plan)
    spending: Floats = (plan[:, None, :] * instance.costs).sum(axis=(1, 2)) * SLOTS
    return spending


def main(directory: Path) -> None:
    """Simulate 100 trials of each policy on today's demand and plot the results."""
    rng = np.random.default_rng(3)
    yesterday, today = world(day(rng)), world(day(rng))
    base = ds.NaiveUCB(scale=0.1)
    by_demand = yesterday.rewards[:, 1]
    policies: dict[str, ds.Policy] = {
        "Adaptive": ds.Adaptive(),
        "even pace": ds.NaiveUCB(scale=0.1, budget_rule="remaining"),
        "window of two hours": ds.SlidingWindowUCB(windows=(720, 720), scale=0.1, budget_rule="remaining"),
        "plan: yesterday's demand": ds.SpendingPlan.by_period(base, by_demand),
        "plan: yesterday's optimum": ds.SpendingPlan.by_period(base, hourly_spending(yesterday)),
    }
    best = ds.benchmarks.lp_dynamic(today)
    print(f"optimum today: {best.value:,.0f} conversions for {BUDGET:,.0f} dollars")
    figure = new_figure(8, 3.6)
    left, right = figure.subplots(1, 2, width_ratios=[2, 3])
    left.step(range(25), [*today.rewards[:, 1], today.rewards[-1, 1]], where="post", color=GREY)
    left.set(xlabel="hour", ylabel="conversions of a high bid", title="today", xlim=(0, 24), xticks=range(0, 25, 6))
    for (name, policy), (colour, dash, _) in zip(policies.items(), LINES, strict=False):
        run = ds.simulate(today, policy, trials=100, seed=0)
        print(f"{name}: {run.reward.mean():,.0f} conversions, {run.reward.mean() / best.value:.0%} of the optimum")
        right.plot(run.times / SLOTS, run.curve.mean(axis=0), dash, color=colour, label=name)
    right.set(xlabel="hour", title="cumulative conversions, mean of 100 trials", xlim=(0, 24), xticks=range(0, 25, 6))
    right.legend(loc="upper left", fontsize=8)
    figure.savefig(directory / "ad_pacing.png", dpi=130)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
