"""A quantity along an axis, one panel a setting, one line a policy or a measure (the paper's Figures 2 and 3)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Protocol

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from driftsack.core.arrays import Floats
from driftsack.plot.style import GREY, LINES, SETTINGS, THOUSANDS, new_figure, spread


class Points(Protocol):
    """A line with a band."""

    @property
    def x(self) -> Floats:
        """(p,) places."""

    @property
    def mean(self) -> Floats:
        """(p,) heights."""

    @property
    def band(self) -> Floats:
        """(p,) half the band's height."""


def lines_figure(
    panels: Mapping[str, Mapping[str, Points]],
    labels: tuple[str, str],
    note: str = "",
    log_x: bool = False,
) -> Figure:
    """Lines with markers and bands; the panels share their axes, the legend stands above them."""
    with mpl.rc_context(SETTINGS):
        figure = new_figure(4.8 * max(len(panels), 1.2), 4.0)
        spread(figure)
        axes = figure.subplots(1, len(panels), squeeze=False, sharex=True, sharey=True)[0]
        for place, (title, lines) in zip(axes, panels.items(), strict=True):
            draw_lines(place, lines)
            place.set_title(title, fontsize=10)
            place.set_xlabel(labels[0])
            if log_x:
                place.set_xscale("log")
            place.xaxis.set_major_formatter(THOUSANDS)
            place.yaxis.set_major_formatter(THOUSANDS)
        axes[0].set_ylabel(labels[1])
        top = max((line.mean + line.band).max() for lines in panels.values() for line in lines.values())
        axes[0].set_ylim(0, 1.06 * top or 1.0)
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=len(names), title=note, title_fontsize=9)
    return figure


def draw_lines(place: Axes, lines: Mapping[str, Points]) -> None:
    """One panel."""
    for (name, line), (colour, dash, mark) in zip(lines.items(), cycle(LINES), strict=False):
        place.plot(line.x, line.mean, dash, color=colour, marker=mark, markersize=4, label=name, linewidth=1.6)
        place.fill_between(line.x, line.mean - line.band, line.mean + line.band, color=colour, alpha=0.25, linewidth=0)
    place.grid(color=GREY, alpha=0.15)
