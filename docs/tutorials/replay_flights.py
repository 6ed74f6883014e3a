"""Replay a year of real flights and compare policies under a budget of lateness."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import driftsack as ds
from driftsack.datasets.flights import SLOTS
from driftsack.plot.style import GREY, LINES, THOUSANDS, new_figure

WEEK = 7 * SLOTS  # rounds
TRIALS = 10


def windowed(weeks: int) -> ds.SlidingWindowUCB:
    """Return sliding-window UCB with a window of the given number of weeks."""
    return ds.SlidingWindowUCB(windows=(weeks * WEEK, weeks * WEEK), scale=0.05, budget_rule="remaining")


def main(directory: Path) -> None:
    """Print the optima, simulate five policies on the real rows and plot the results."""
    table = ds.datasets.flights()
    budget = np.array([0.08, 0.05]) * len(table)
    world = table.as_instance(budget)  # round t has the outcomes of row t
    weekly = ds.datasets.flights_world("week")
    print(table)
    for name, best in (
        ("the best weekly plan", ds.benchmarks.lp_dynamic(weekly)),
        ("spending evenly", ds.benchmarks.single_step(weekly)),
        ("one mix all year", ds.benchmarks.lp_static(weekly)),
    ):
        print(f"{name} would deliver {best.value:,.0f} of {len(table):,} on time")
    policies: dict[str, ds.Policy] = {
        "Adaptive": ds.Adaptive(),
        "given the weekly means": ds.PlanWithForecast(weekly, trust=0.9, scale=0.05),
        "no window": ds.NaiveUCB(scale=0.05, budget_rule="remaining"),
        "window of 13 weeks": windowed(13),
        "window of 1 week": windowed(1),
    }
    figure = new_figure(9, 3.6)
    earned, used = figure.subplots(1, 2)
    for (name, policy), (colour, dash, _) in zip(policies.items(), LINES, strict=False):
        run = ds.simulate(world, policy, trials=TRIALS, seed=0)
        stops = int(run.stopping_time.mean())
        until = f"budget exhausted in week {stops // WEEK + 1}" if stops <= len(table) else "budget not exhausted"
        print(f"{name}: {run.reward.mean():,.0f} on time; {until}")
        earned.plot(run.times / WEEK, run.curve.mean(axis=0), dash, color=colour, label=name)
    earned.set(xlabel="week of 2013", ylabel="cumulative deliveries on time", xlim=(0, 52), ylim=(0, None))
    earned.yaxis.set_major_formatter(THOUSANDS)
    late = weekly.costs[:-1, 0]  # the last week is incomplete
    used.plot(np.arange(len(late)) + 0.5, late.min(axis=1), color=LINES[0][0], label="least late carrier")
    used.plot(np.arange(len(late)) + 0.5, late.mean(axis=1), "--", color=LINES[1][0], label="mean of all six")
    used.axhline(0.08, color=GREY, linestyle=":", label="budget per round")
    used.set(xlabel="week of 2013", ylabel="lateness per round", xlim=(0, 52), ylim=(0, None))
    earned.legend(fontsize=8, loc="upper left")
    used.legend(fontsize=8)
    figure.savefig(directory / "replay_flights.png", dpi=130)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
