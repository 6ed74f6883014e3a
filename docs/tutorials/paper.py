"""The paper in five minutes: three policies on instances with one change, and the role of V and W."""

from __future__ import annotations

import sys
from pathlib import Path

import driftsack as ds
from driftsack.plot.style import LINES, THOUSANDS, new_figure

HORIZON = 10_000
SCALE = 0.2  # of the confidence radius; see the page on calibration


def policies(world: ds.Instance) -> dict[str, ds.Policy]:
    """Return the three policies of the paper, with the inputs that the paper gives them."""
    drift = ds.variation(world)
    fixed = ds.benchmarks.fixed_distribution(world)
    return {
        "sliding-window UCB": ds.SlidingWindowUCB(variation=(drift.v1, drift.v2), scale=SCALE),
        "naive UCB": ds.NaiveUCB(scale=SCALE),
        "LagrangeBwK": ds.policies.LagrangeBwK(benchmark=fixed.value),
    }


def main(directory: Path) -> None:
    """Simulate Example 2 over time, and Example 3 for five positions of its change."""
    world = ds.instances.example_2(HORIZON)
    drift, best = ds.variation(world), ds.benchmarks.lp_dynamic(world)
    windows = ds.theory.windows(HORIZON, world.arms, world.resources, (drift.v1, drift.v2))
    print(f"Example 2: V1 = {drift.v1:g}, V2 = {drift.v2:g}, W1 = {drift.w1:,.0f}, W2 = {drift.w2:,.0f}")
    print(f"windows from the paper's formula: {windows[0]:,} and {windows[1]:,} rounds")
    print(f"the best plan earns {best.value:,.0f}")
    figure = new_figure(8.5, 3.6)
    left, right = figure.subplots(1, 2)
    shares = [0.1, 0.3, 0.5, 0.7, 0.9]
    lost: dict[str, list[float]] = {name: [] for name in policies(world)}
    for (name, policy), (colour, dash, _) in zip(policies(world).items(), LINES, strict=False):
        run = ds.simulate(world, policy, trials=50, seed=0)
        print(f"{name} earns {run.reward.mean():,.0f} and stops in round {run.stopping_time.mean():,.0f}")
        left.plot(run.times, run.curve.mean(axis=0), dash, color=colour, label=name)
    for alpha in shares:
        other = ds.instances.example_3(alpha, HORIZON)
        optimum = ds.benchmarks.lp_dynamic(other)
        for name, policy in policies(other).items():
            lost[name].append(float(ds.simulate(other, policy, trials=50, seed=0).regret(optimum).mean()))
    for (name, values), (colour, dash, marker) in zip(lost.items(), LINES, strict=False):
        right.plot(shares, values, dash, color=colour, marker=marker, label=name)
    left.set(xlabel="round", ylabel="cumulative reward", title="Example 2")
    right.set(xlabel="position of the change (share of the rounds)", ylabel="regret", title="Example 3", ylim=(0, None))
    left.xaxis.set_major_formatter(THOUSANDS)
    for axes in (left, right):
        axes.yaxis.set_major_formatter(THOUSANDS)
        axes.legend(fontsize=8)
    figure.savefig(directory / "paper.png", dpi=130)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
