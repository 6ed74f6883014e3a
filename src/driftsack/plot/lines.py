"""Draw a quantity along an axis, one panel per setting, one line per policy or measure (Figures 2 and 3)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from driftsack.core.arrays import Floats
from driftsack.plot.style import GREY, LINES, SETTINGS, THOUSANDS, band_note, new_figure, separate_panels


class Points(NamedTuple):
    """A line of a figure with a band around it."""

    x: Floats  # (p,) positions on the horizontal axis
    mean: Floats  # (p,) heights
    band: Floats  # (p,) half the height of the band, usually two standard errors


def lines_figure(
    panels: Mapping[str, Mapping[str, Points]],
    labels: tuple[str, str],
    note: str = "",
    log_x: bool = False,
) -> Figure:
    """Draw lines with markers and bands; the panels share their axes and one legend above them.

    Args:
        panels: The lines, by the title of the panel and the name of the line.
        labels: The labels of the horizontal and the vertical axis.
        note: A line of text above the legend.
        log_x: Whether the horizontal axis is logarithmic.
    """
    with mpl.rc_context(SETTINGS):
        figure = new_figure(4.8 * max(len(panels), 1.2), 4.0)
        separate_panels(figure)
        row = figure.subplots(1, len(panels), squeeze=False, sharex=True, sharey=True)[0]
        for axes, (title, lines) in zip(row, panels.items(), strict=True):
            draw_lines(axes, lines)
            axes.set_title(title, fontsize=10)
            axes.set_xlabel(labels[0])
            if log_x:
                axes.set_xscale("log")
            axes.xaxis.set_major_formatter(THOUSANDS)
            axes.yaxis.set_major_formatter(THOUSANDS)
        row[0].set_ylabel(labels[1])
        top = max((line.mean + line.band).max() for lines in panels.values() for line in lines.values())
        row[0].set_ylim(0, 1.06 * top or 1.0)
        handles, names = row[0].get_legend_handles_labels()
        title = "; ".join(part for part in (note, _bands(panels, top)) if part)
        figure.legend(handles, names, loc="outside upper center", ncols=len(names), title=title, title_fontsize=9)
    return figure


def _bands(panels: Mapping[str, Mapping[str, Points]], top: float) -> str:
    """The note on the bands; empty if all lines are exact."""
    found: dict[str, Floats] = {}
    for lines in panels.values():
        for name, line in lines.items():
            found[name] = np.append(found.get(name, np.zeros(0)), line.band)
    return band_note(found, top) if any(band.any() for band in found.values()) else ""


def draw_lines(axes: Axes, lines: Mapping[str, Points]) -> None:
    """Draw the lines of one panel."""
    for (name, line), (colour, dash, marker) in zip(lines.items(), cycle(LINES), strict=False):
        axes.plot(line.x, line.mean, dash, color=colour, marker=marker, markersize=4, label=name, linewidth=1.6)
        axes.fill_between(line.x, line.mean - line.band, line.mean + line.band, color=colour, alpha=0.25, linewidth=0)
    axes.grid(color=GREY, alpha=0.15)
