"""Cumulative reward against rounds, one panel a world or setting, one line a policy (the paper's Figure 1)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Final, Protocol

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from driftsack.core.arrays import Floats, Ints
from driftsack.plot.style import GREY, LINES, SETTINGS, THOUSANDS, new_figure, spread

LONG: Final = 16  # letters of a policy's name that fit beside the curves


class Curves(Protocol):
    """Cumulative reward of n trials; a ``Run`` is one."""

    @property
    def times(self) -> Ints:
        """(p,) rounds."""

    @property
    def curve(self) -> Floats:
        """(n, p) reward up to each of them."""


def rewards_figure(
    panels: Mapping[str, Mapping[str, Curves]],
    optima: Mapping[str, float] | None = None,
    note: str = "",
    change: int | None = None,
) -> Figure:
    """Mean curves with bands of ± 2 standard errors; dotted lines at ``change`` and at each panel's optimum."""
    with mpl.rc_context(SETTINGS):
        figure = new_figure(4.8 * len(panels), 3.8)
        spread(figure)
        axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for place, (title, runs) in zip(axes, panels.items(), strict=True):
            draw_panel(place, title, runs)
            if change is not None:
                mark_change(place, change)
        axes[0].set_ylabel("cumulative reward")
        tops = [run.curve.mean(axis=0).max() for runs in panels.values() for run in runs.values()]
        axes[0].set_ylim(0, 1.1 * max([*tops, *(optima or {}).values()]) or 1.0)
        for place, title in zip(axes, panels, strict=True):
            if optima is not None:
                mark_optimum(place, optima[title])
        if note:
            figure.suptitle(note, fontsize=9, color=GREY)
    return figure


def mark_optimum(place: Axes, value: float) -> None:
    """A dotted line at what the best plan earns."""
    place.axhline(value, color=GREY, linestyle=":", linewidth=1.2)
    place.annotate(
        f"best plan (LP-Dynamic): {value:,.0f}",
        (0.01, value),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=8,
        color=GREY,
    )


def mark_change(place: Axes, change: int) -> None:
    """A dotted line where the means change."""
    place.axvline(change, color=GREY, linestyle=":", linewidth=1.2)
    place.annotate(
        "the world changes",
        (change, 0.8),
        xycoords=("data", "axes fraction"),
        xytext=(-4, 0),
        textcoords="offset points",
        horizontalalignment="right",
        fontsize=8,
        color=GREY,
    )


def draw_panel(place: Axes, title: str, runs: Mapping[str, Curves]) -> None:
    """A line and a band for each policy, labelled with its final mean and one standard error, as tables are."""
    for (name, run), (colour, dash, _) in zip(runs.items(), cycle(LINES), strict=False):
        trials = len(run.curve)
        times = np.concatenate([[0], run.times])
        mean = np.concatenate([[0.0], run.curve.mean(axis=0)])
        spread = run.curve.std(axis=0, ddof=1) if trials > 1 else np.zeros(run.times.size)
        band = 2 * np.concatenate([[0.0], spread]) / np.sqrt(trials)
        label = f"{name}: {mean[-1]:,.0f} ± {band[-1] / 2:,.0f}"
        place.plot(times, mean, dash, color=colour, label=label, linewidth=1.8)
        place.fill_between(times, mean - band, mean + band, color=colour, alpha=0.25, linewidth=0)
    place.set_title(title, fontsize=10)
    place.set_xlabel("round")
    place.set_xlim(0, int(next(iter(runs.values())).times[-1]))
    place.xaxis.set_major_formatter(THOUSANDS)
    place.yaxis.set_major_formatter(THOUSANDS)
    if max(map(len, runs)) > LONG:  # such a legend would hide the curves
        place.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=8)
    else:
        place.legend(loc="lower right", frameon=True, framealpha=1.0, edgecolor="none", fontsize=9)
