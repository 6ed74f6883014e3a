"""Section 4 in four panels, on logarithmic axes: how regret and violation grow with T and with W."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from driftsack.plot.style import BLUE, GREEN, GREY, ORANGE, PALETTE, SETTINGS, new_figure

LOOKS = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "^"), (PALETTE[3], "D"), (PALETTE[4], "v"))
COLUMNS = 2


def oco_figure(panels: Sequence[tuple[str, str, str, Sequence[tuple[str, Any, Any, str]]]], caption: str) -> Figure:
    """A panel each: title, names of the axes, and lines (label, x, y, "line", "dots" or "guide")."""
    rows = -(-len(panels) // COLUMNS)
    with mpl.rc_context(SETTINGS):
        figure = new_figure(5.2 * COLUMNS, 3.9 * rows)
        axes = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
        for place, (title, across, up, lines) in zip(axes, panels, strict=False):
            draw_panel(place, lines)
            place.set_title(title, fontsize=9)
            place.set_xlabel(across)
            place.set_ylabel(up)
        figure.suptitle(caption, fontsize=9, color=GREY)
    return figure


def draw_panel(place: Axes, lines: Sequence[tuple[str, Any, Any, str]]) -> None:
    """Lines with markers; guides are dotted and named where they end; solved values are hollow rings."""
    looks = cycle(LOOKS)
    for label, x, y, style in lines:
        if style == "guide":
            place.plot(x, y, ":", color=GREY, linewidth=1.2)
            place.annotate(
                label, (x[-1], y[-1]), xytext=(4, 0), textcoords="offset points", fontsize=8, color=GREY, va="center"
            )
        elif style == "dots":
            place.plot(x, y, "o", color="black", markersize=9, fillstyle="none", label=label)
        else:
            colour, marker = next(looks)
            place.plot(x, y, "-", marker=marker, color=colour, markersize=4.5, linewidth=1.6, label=label)
    place.set_xscale("log")
    place.set_yscale("log")
    place.margins(x=0.1)
    place.legend(loc="upper left", fontsize=7.5)
    low, high = place.get_ylim()
    place.set_ylim(low, high * (high / low) ** 0.22)  # room for the legend above the lines
