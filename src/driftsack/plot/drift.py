"""Draw the drift of an instance: mean rewards, mean costs of each resource, and the best plan's mix over time."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from driftsack.benchmarks import Benchmark
from driftsack.core.arrays import Floats, Ints
from driftsack.core.instance import Instance
from driftsack.core.text import number
from driftsack.plot.style import GREY, PALETTE, SETTINGS, THOUSANDS, new_figure, without_mathtext

POINTS = 2000  # number of rounds to draw; more would not be visible
DASHES = ("-", "--", "-.", ":")


def drift_figure(instance: Instance, best: Benchmark) -> Figure:
    """Draw a panel for rewards, one for each resource with its price, and one for the best plan's mix.

    Args:
        instance: The instance to draw.
        best: The result of LP-Dynamic on it, with the plan and the prices.
    """
    rounds = np.unique(np.linspace(0, instance.horizon - 1, POINTS).astype(np.int64))
    rows = instance.phase[rounds]
    prices = np.zeros(instance.resources) if best.prices is None else best.prices
    problem = instance.problem
    arms = [without_mathtext(name) for name in problem.arm_names]
    kinds = problem.resource_names if problem.named_resources else [str(j) for j in range(problem.resources)]
    with mpl.rc_context(SETTINGS):
        figure = new_figure(7.5, 1.75 * (instance.resources + 2))
        panels = figure.subplots(instance.resources + 2, 1, sharex=True, squeeze=False)[:, 0]
        draw_means(panels[0], rounds, instance.rewards[rows], arms)
        panels[0].set_ylabel("mean reward")
        for j, axes in enumerate(panels[1:-1]):
            draw_means(axes, rounds, instance.costs[rows, j], arms)
            axes.set_ylabel(f"mean cost,\nresource {without_mathtext(kinds[j])}")
            axes.set_title(f"price in the best plan: {number(float(prices[j]))}", fontsize=8, color=GREY, loc="right")
        draw_mix(panels[-1], rounds, np.asarray(best.plan)[rows])
        panels[-1].set_xlabel("round")
        panels[-1].set_xlim(1, max(instance.horizon, 2))
        panels[-1].xaxis.set_major_formatter(THOUSANDS)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 6), fontsize=8)
    return figure


def arm_style(i: int) -> tuple[str, str]:
    """Colour and dash of an arm."""
    return PALETTE[i % len(PALETTE)], DASHES[i % len(DASHES)]


def draw_means(axes: Axes, rounds: Ints, means: Floats, arms: Sequence[str]) -> None:
    """Draw one line per arm."""
    for i, arm in enumerate(arms):
        colour, dash = arm_style(i)
        label = f"arm {arm}"
        axes.plot(rounds + 1, means[:, i], dash, color=colour, label=label, linewidth=1.4, drawstyle="steps-post")
    most = means.max() or 1.0
    axes.set_ylim(-0.04 * most, 1.06 * most)


def draw_mix(axes: Axes, rounds: Ints, mix: Floats) -> None:
    """Draw the shares of the arms in the best plan, stacked; the rest up to 1 is SKIP."""
    colours = [arm_style(i)[0] for i in range(mix.shape[1])]
    axes.stackplot(rounds + 1, mix.T, colors=colours, alpha=0.8, linewidth=0, step="post")
    axes.set_ylim(0, 1)
    axes.set_ylabel("best plan's\nmix")
