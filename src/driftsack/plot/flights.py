"""Draw the figure of the flights of 2013: the real part of the weekly drift, and the reward of each policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from driftsack.plot.style import BLUE, GREY, ORANGE, SETTINGS, new_figure


def flights_figure(
    v1: float, floors: Mapping[str, float], rows: Sequence[Mapping[str, Any]], optima: Mapping[str, float]
) -> Figure:
    """Draw V1 next to its noise floors (left) and the reward per round of each policy (right).

    Args:
        v1: V1 from week to week, as measured.
        floors: V1 after shuffling, by the kind of shuffle.
        rows: One mapping per policy, from the top to the bottom, with ``policy`` (its name), ``reward`` per round,
            ``reward_se`` (its standard error) and ``hindsight`` (whether the policy knows the future).
        optima: Benchmarks per round, by name; each is drawn as a dotted line.
    """
    with mpl.rc_context(SETTINGS):
        figure = new_figure(10.5, 5.0)
        left, right = figure.subplots(1, 2, width_ratios=[1, 2.4])
        names = ["in the data", *floors]
        left.bar(np.arange(len(names)), [v1, *floors.values()], color=[BLUE, *[GREY] * len(floors)], alpha=0.8)
        left.set_xticks(np.arange(len(names)), names, fontsize=8)
        left.set_ylabel("V1 from week to week")
        left.set_title("How much of the drift is real?", fontsize=10)
        draw_policies(right, rows, optima)
    return figure


def draw_policies(axes: Axes, rows: Sequence[Mapping[str, Any]], optima: Mapping[str, float]) -> None:
    """Draw one bar per policy, in another colour for those with hindsight, and dotted lines at the optima."""
    heights = np.arange(len(rows))[::-1]
    rewards = [row["reward"] for row in rows]
    colours = [ORANGE if row["hindsight"] else BLUE for row in rows]
    axes.barh(heights, rewards, xerr=[2 * row["reward_se"] for row in rows], color=colours, alpha=0.8, ecolor=GREY)
    axes.set_yticks(heights, [row["policy"] for row in rows], fontsize=8)
    for k, (name, value) in enumerate(optima.items()):
        axes.axvline(value, color=GREY, linestyle=":", linewidth=1.2)
        side = "left" if k % 2 else "right"
        shift = 2 if k % 2 else -2
        axes.annotate(
            f"{name}: {value:.3f}",
            (value, -0.6),
            rotation=90,
            fontsize=7,
            color=GREY,
            va="bottom",
            ha=side,
            xytext=(shift, 0),
            textcoords="offset points",
        )
    axes.set_xlabel("punctual consignments per round (orange: with hindsight; bars: ± 2 standard errors)", fontsize=9)
    axes.set_title("Every policy on the real rows", fontsize=10)
    axes.grid(visible=False, axis="y")
