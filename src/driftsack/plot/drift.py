"""How a world moves: mean rewards, mean costs of each resource, and what the best plan plays, over time."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from driftsack.benchmarks import Benchmark
from driftsack.core.arrays import Floats, Ints
from driftsack.core.instance import Instance
from driftsack.plot.style import GREY, PALETTE, SETTINGS, THOUSANDS, new_figure

POINTS = 2000  # rounds that are drawn; more would not be seen
DASHES = ("-", "--", "-.", ":")


def drift_figure(instance: Instance, best: Benchmark) -> Figure:
    """A panel for rewards, one for each resource, and one for the best plan's mix; prices stand in the titles."""
    shown = np.unique(np.linspace(0, instance.horizon - 1, POINTS).astype(np.int64))
    rows = instance.phase[shown]
    prices = np.zeros(instance.resources) if best.prices is None else best.prices
    with mpl.rc_context(SETTINGS):
        figure = new_figure(7.5, 1.75 * (instance.resources + 2))
        panels = figure.subplots(instance.resources + 2, 1, sharex=True, squeeze=False)[:, 0]
        draw_lines(panels[0], shown, instance.rewards[rows])
        panels[0].set_ylabel("mean reward")
        for j, place in enumerate(panels[1:-1]):
            draw_lines(place, shown, instance.costs[rows, j])
            place.set_ylabel(f"mean cost,\nresource {j}")
            place.set_title(f"price in the best plan: {prices[j]:.4g}", fontsize=8, color=GREY, loc="right")
        draw_mix(panels[-1], shown, np.asarray(best.plan)[rows])
        panels[-1].set_xlabel("round")
        panels[-1].set_xlim(1, max(instance.horizon, 2))
        panels[-1].xaxis.set_major_formatter(THOUSANDS)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 6), fontsize=8)
    return figure


def look(i: int) -> tuple[str, str]:
    """Colour and dash of an arm."""
    return PALETTE[i % len(PALETTE)], DASHES[i % len(DASHES)]


def draw_lines(place: Axes, shown: Ints, means: Floats) -> None:
    """A line an arm."""
    for i in range(means.shape[1]):
        colour, dash = look(i)
        place.plot(shown + 1, means[:, i], dash, color=colour, label=f"arm {i}", linewidth=1.4, drawstyle="steps-post")
    most = means.max() or 1.0
    place.set_ylim(-0.04 * most, 1.06 * most)


def draw_mix(place: Axes, shown: Ints, mix: Floats) -> None:
    """Shares of the arms in the best plan, stacked; what is left of 1 is SKIP."""
    colours = [look(i)[0] for i in range(mix.shape[1])]
    place.stackplot(shown + 1, mix.T, colors=colours, alpha=0.8, linewidth=0, step="post")
    place.set_ylim(0, 1)
    place.set_ylabel("best plan's\nmix")
