"""Price the stock of a season: four prices, a limited stock, and customers who pay more as the season goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import driftsack as ds
from driftsack.core.arrays import Floats
from driftsack.plot.style import LINES, THOUSANDS, new_figure

PRICES = np.array([10.0, 20.0, 30.0, 40.0])
VISITORS, STOCK, WEEKS = 6_000, 1_200.0, 12


def season(stock: float) -> ds.Instance:
    """Return a season: a visitor accepts price p with probability exp(-p / s), where s rises from 12 to 34 dollars."""
    means = np.linspace(12.0, 34.0, WEEKS)
    sold = np.exp(-PRICES / means[:, None])  # (weeks, prices)
    return ds.Instance.piecewise(
        sold * PRICES, sold[:, None, :], [VISITORS // WEEKS] * WEEKS, stock, reward_max=PRICES.max()
    )


def main(directory: Path) -> None:
    """Print the value of stock, simulate five policies and plot the results."""
    world = season(STOCK)
    best = ds.benchmarks.lp_dynamic(world)
    print(f"the best plan earns {best.value:,.0f} dollars; one more piece is worth {np.asarray(best.prices)[0]:.2f}")
    for change in (-0.1, 0.1):
        other = ds.benchmarks.lp_dynamic(season(STOCK * (1 + change))).value
        print(f"{change:+.0%} stock: {other - best.value:+,.0f} dollars")
    policies: dict[str, ds.Policy] = {
        "Adaptive": ds.Adaptive(),
        "the same, paced by last year's plan": ds.SpendingPlan.by_period(ds.Adaptive(), last_year(world)),
        "Adaptive, even pace": ds.Adaptive(pacing="remaining"),
        "Thompson, window of 3 weeks": ds.ThompsonBwK(windows=1_500, budget_rule="remaining"),
        "always 20 dollars": ds.policies.AlwaysArm(1),
    }
    figure = new_figure(7, 3.6)
    axes = figure.subplots()
    for (name, policy), (colour, dash, _) in zip(policies.items(), LINES, strict=False):
        run = ds.simulate(world, policy, trials=100, seed=0)
        print(f"{name}: {run.reward.mean():,.0f} dollars ({run.reward.mean() / best.value:.0%})")
        axes.plot(run.times * WEEKS / VISITORS, run.curve.mean(axis=0), dash, color=colour, label=name)
    axes.set(xlabel="week", ylabel="cumulative revenue in dollars", xlim=(0, WEEKS), ylim=(0, None))
    axes.yaxis.set_major_formatter(THOUSANDS)
    axes.legend(loc="upper left")
    figure.savefig(directory / "pricing.png", dpi=130)


def last_year(world: ds.Instance) -> Floats:
    """Return the pieces per week that the best plan of a similar season would have sold, (weeks,), off by up to 20%."""
    plan = np.asarray(ds.benchmarks.lp_dynamic(world).plan)
    sold: Floats = (plan * world.costs[:, 0]).sum(axis=1) * np.random.default_rng(0).uniform(0.8, 1.2, WEEKS)
    return sold


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
