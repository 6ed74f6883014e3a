"""Draw the growth of regret and violation with T and with W (section 4), on logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any, Literal, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from driftsack.plot.style import BLUE, GREEN, GREY, ORANGE, PALETTE, SETTINGS, new_figure

STYLES = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "^"), (PALETTE[3], "D"), (PALETTE[4], "v"))
COLUMNS = 2


class Line(NamedTuple):
    """A line of a panel."""

    label: str  # its name in the legend
    x: Any  # (p,) positions
    y: Any  # (p,) heights
    # ``"line"`` for a measured line, ``"dots"`` for solved values, ``"guide"`` for a dotted reference.
    style: Literal["line", "dots", "guide"] = "line"


class Panel(NamedTuple):
    """One panel of the figure."""

    title: str  # the title above it
    x_label: str  # the label of the horizontal axis
    y_label: str  # the label of the vertical axis
    lines: Sequence[Line]  # the lines to draw


def oco_figure(panels: Sequence[Panel], caption: str) -> Figure:
    """Draw the panels, two in a row.

    Args:
        panels: The panels, row by row.
        caption: The line of text above them.
    """
    rows = -(-len(panels) // COLUMNS)
    with mpl.rc_context(SETTINGS):
        figure = new_figure(5.2 * COLUMNS, 3.9 * rows)
        for axes, panel in zip(figure.subplots(rows, COLUMNS, squeeze=False).ravel(), panels, strict=False):
            draw_panel(axes, panel.lines)
            axes.set_title(panel.title, fontsize=9)
            axes.set_xlabel(panel.x_label)
            axes.set_ylabel(panel.y_label)
        figure.suptitle(caption, fontsize=9, color=GREY)
    return figure


def draw_panel(axes: Axes, lines: Sequence[Line]) -> None:
    """Draw lines with markers; guides are dotted and labelled at their end, solved values are hollow circles."""
    styles = cycle(STYLES)
    for label, x, y, style in lines:
        if style == "guide":
            axes.plot(x, y, ":", color=GREY, linewidth=1.2)
            axes.annotate(
                label, (x[-1], y[-1]), xytext=(4, 0), textcoords="offset points", fontsize=8, color=GREY, va="center"
            )
        elif style == "dots":
            axes.plot(x, y, "o", color="black", markersize=9, fillstyle="none", label=label)
        else:
            colour, marker = next(styles)
            axes.plot(x, y, "-", marker=marker, color=colour, markersize=4.5, linewidth=1.6, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.1)
    axes.legend(loc="upper left", fontsize=7.5)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** 0.22)  # room for the legend above the lines
