"""Draw cumulative reward over rounds, one panel per instance or setting, one line per policy (Figure 1)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Final, NamedTuple, Protocol

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from driftsack.core.arrays import Floats, Ints
from driftsack.core.statistics import standard_errors
from driftsack.core.text import number
from driftsack.plot.style import (
    GREY,
    LINES,
    SETTINGS,
    THOUSANDS,
    band_note,
    new_figure,
    separate_panels,
    without_mathtext,
)

LEGEND: Final = "final mean ± standard error"
LONG_NAME: Final = 16  # characters; with longer names of policies the legend would hide the curves


class RewardCurves(Protocol):
    """Any object with the cumulative reward of n trials, such as a ``Run``."""

    @property
    def times(self) -> Ints:
        """(p,) the rounds after which the reward is recorded."""

    @property
    def curve(self) -> Floats:
        """(n, p) the reward of each trial up to each of ``times``."""


class Curves(NamedTuple):
    """The cumulative reward of n trials."""

    times: Ints  # (p,) the rounds after which the reward is recorded
    curve: Floats  # (n, p) the reward of each trial up to each of ``times``


def rewards_figure(
    panels: Mapping[str, Mapping[str, RewardCurves]],
    optima: Mapping[str, float] | None = None,
    note: str = "",
    change: int | None = None,
) -> Figure:
    """Draw mean cumulative rewards with bands of ± 2 standard errors.

    Args:
        panels: The runs, by the title of the panel and the name of the policy.
        optima: The reward of the best plan, by the title of the panel; each is drawn as a dotted line.
        note: A line of text above the figure.
        change: The round of a change point, which is drawn as a dotted line.
    """
    with mpl.rc_context(SETTINGS):
        figure = new_figure(4.8 * len(panels), 3.8)
        separate_panels(figure)
        row = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, (title, runs) in zip(row, panels.items(), strict=True):
            draw_panel(axes, title, runs)
            if change is not None:
                mark_change(axes, change)
        row[0].set_ylabel("cumulative reward")
        tops = [run.curve.mean(axis=0).max() for runs in panels.values() for run in runs.values()]
        top = 1.1 * max([*tops, *(optima or {}).values()]) or 1.0
        row[0].set_ylim(0, top)
        for axes, title in zip(row, panels, strict=True):
            if optima is not None:
                mark_optimum(axes, optima[title])
        widest = _widest_bands(panels)
        figure.suptitle("; ".join([*([note] if note else []), band_note(widest, top)]), fontsize=9, color=GREY)
    return figure


def _widest_bands(panels: Mapping[str, Mapping[str, RewardCurves]]) -> dict[str, Floats]:
    """The heights of the bands of each policy, in all panels."""
    found: dict[str, Floats] = {}
    for runs in panels.values():
        for name, run in runs.items():
            found[name] = np.append(found.get(name, np.zeros(0)), 2 * standard_errors(run.curve))
    return {without_mathtext(name): band for name, band in found.items()}


def mark_optimum(axes: Axes, value: float) -> None:
    """Draw a dotted line at the reward of the best plan."""
    axes.axhline(value, color=GREY, linestyle=":", linewidth=1.2)
    axes.annotate(
        f"best plan (LP-Dynamic): {number(value)}",
        (0.01, value),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=8,
        color=GREY,
    )


def mark_change(axes: Axes, change: int) -> None:
    """Draw a dotted line where the means change."""
    axes.axvline(change, color=GREY, linestyle=":", linewidth=1.2)
    axes.annotate(
        "change point",
        (change, 0.8),
        xycoords=("data", "axes fraction"),
        xytext=(-4, 0),
        textcoords="offset points",
        horizontalalignment="right",
        fontsize=8,
        color=GREY,
    )


def draw_panel(axes: Axes, title: str, runs: Mapping[str, RewardCurves]) -> None:
    """Draw a line and a band for each policy, labelled with its final mean and one standard error, as in tables."""
    for (name, run), (colour, dash, _) in zip(runs.items(), cycle(LINES), strict=False):
        times = np.concatenate([[0], run.times])
        mean = np.concatenate([[0.0], run.curve.mean(axis=0)])
        band = 2 * np.concatenate([[0.0], standard_errors(run.curve)])
        label = f"{without_mathtext(name)}: {number(mean[-1])} ± {number(band[-1] / 2, digits=2)}"
        axes.plot(times, mean, dash, color=colour, label=label, linewidth=1.8)
        axes.fill_between(times, mean - band, mean + band, color=colour, alpha=0.25, linewidth=0)
    axes.set_title(without_mathtext(title), fontsize=10)
    axes.set_xlabel("round")
    axes.set_xlim(0, int(next(iter(runs.values())).times[-1]))
    axes.xaxis.set_major_formatter(THOUSANDS)
    axes.yaxis.set_major_formatter(THOUSANDS)
    if max(map(len, runs)) > LONG_NAME:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=8, title=LEGEND, title_fontsize=8)
    else:
        style = {"frameon": True, "framealpha": 1.0, "edgecolor": "none", "fontsize": 9, "title_fontsize": 8}
        axes.legend(loc="lower right", title=LEGEND, **style)
