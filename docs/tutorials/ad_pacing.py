"""Pace a day's ad budget: the hours differ, yesterday tells how, and a spending plan uses that."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.plot.style import GREY, LINES, new_figure

SLOTS = 360  # an hour has 360 slots of ten seconds
BIDS = np.array([0.35, 0.60])  # conversions of a low and a high bid at full demand
PRICES = np.array([0.40, 0.90])  # dollars that they cost in a slot, whatever the hour
BUDGET = 0.2 * 24 * SLOTS


def day(rng: np.random.Generator) -> Floats:
    """(24,) demand by the hour: quiet nights, a busy evening, and no two days alike."""
    hours = np.arange(24)
    usual = 0.15 + 0.35 * np.exp(-(((hours - 11) / 3.0) ** 2)) + 0.65 * np.exp(-(((hours - 20) / 2.0) ** 2))
    return np.clip(usual * rng.uniform(0.85, 1.15, 24), 0.0, 1.0)


def world(demand: Floats) -> ds.Instance:
    """One day as an instance: a row of means for each hour."""
    rewards = demand[:, None] * BIDS
    costs = np.tile(PRICES, (24, 1, 1))
    return ds.Instance.piecewise(rewards, costs, [SLOTS] * 24, BUDGET)


def hourly_spending(instance: ds.Instance) -> Floats:
    """(24,) dollars that the best plan of a day spends in each hour."""
    plan = np.asarray(ds.benchmarks.lp_dynamic(instance).plan)
    spending: Floats = (plan[:, None, :] * instance.costs).sum(axis=(1, 2)) * SLOTS
    return spending


def main(folder: Path) -> None:
    """Play 100 times today with what yesterday taught, and draw it."""
    rng = np.random.default_rng(3)
    yesterday, today = world(day(rng)), world(day(rng))
    base = ds.NaiveUCB(scale=0.1)
    by_demand = yesterday.rewards[:, 1]
    recipes = {
        "even pace": ds.NaiveUCB(scale=0.1, budget_rule="remaining"),
        "window of two hours": ds.SlidingWindowUCB(windows=(720, 720), scale=0.1, budget_rule="remaining"),
        "plan: yesterday's demand": ds.SpendingPlan.by_period(base, by_demand),
        "plan: yesterday's optimum": ds.SpendingPlan.by_period(base, hourly_spending(yesterday)),
    }
    best = ds.benchmarks.lp_dynamic(today)
    print(f"best possible today: {best.value:,.0f} conversions for {BUDGET:,.0f} dollars")
    figure = new_figure(8, 3.6)
    left, right = figure.subplots(1, 2, width_ratios=[2, 3])
    left.step(range(25), [*today.rewards[:, 1], today.rewards[-1, 1]], where="post", color=GREY)
    left.set(xlabel="hour", ylabel="conversions of a high bid", title="today", xlim=(0, 24), xticks=range(0, 25, 6))
    for (name, policy), (colour, dash, _) in zip(recipes.items(), LINES, strict=False):
        run = ds.simulate(today, policy, trials=100, seed=0)
        print(f"{name}: {run.reward.mean():,.0f} conversions, {run.reward.mean() / best.value:.0%} of the best")
        right.plot(run.times / SLOTS, run.curve.mean(axis=0), dash, color=colour, label=name)
    right.set(xlabel="hour", title="conversions so far, mean of 100 trials", xlim=(0, 24), xticks=range(0, 25, 6))
    right.legend(loc="upper left", fontsize=8)
    figure.savefig(folder / "ad_pacing.png", dpi=130)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
