"""The flights of 2013 in one figure: how much of the weekly drift is real, and what each policy earned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from driftsack.plot.style import BLUE, GREY, ORANGE, SETTINGS, new_figure


def flights_figure(
    moves: float, floors: Mapping[str, float], rows: Sequence[Mapping[str, Any]], optima: Mapping[str, float]
) -> Figure:
    """Left: V1 from week to week and its floors, by what was shuffled; right: reward a round of each policy."""
    with mpl.rc_context(SETTINGS):
        figure = new_figure(10.5, 5.0)
        left, right = figure.subplots(1, 2, width_ratios=[1, 2.4])
        names = ["in the data", *floors]
        left.bar(np.arange(len(names)), [moves, *floors.values()], color=[BLUE, *[GREY] * len(floors)], alpha=0.8)
        left.set_xticks(np.arange(len(names)), names, fontsize=8)
        left.set_ylabel("V1 from week to week")
        left.set_title("How much of the drift is real?", fontsize=10)
        draw_league(right, rows, optima)
    return figure


def draw_league(place: Axes, rows: Sequence[Mapping[str, Any]], optima: Mapping[str, float]) -> None:
    """A bar a policy, the best on top; those with hindsight in another colour; dotted lines at the optima."""
    heights = np.arange(len(rows))[::-1]
    rewards = [row["reward"] for row in rows]
    colours = [ORANGE if "(" in row["policy"] else BLUE for row in rows]
    place.barh(heights, rewards, xerr=[2 * row["reward_se"] for row in rows], color=colours, alpha=0.8, ecolor=GREY)
    place.set_yticks(heights, [row["policy"] for row in rows], fontsize=8)
    for k, (name, value) in enumerate(optima.items()):
        place.axvline(value, color=GREY, linestyle=":", linewidth=1.2)
        side = "left" if k % 2 else "right"
        shift = 2 if k % 2 else -2
        place.annotate(
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
    place.set_xlabel("punctual consignments a round (orange: with hindsight; bars: ± 2 standard errors)")
    place.set_title("Every policy on the real rows", fontsize=10)
    place.grid(visible=False, axis="y")
