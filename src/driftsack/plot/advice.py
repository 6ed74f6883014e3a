"""Draw the figures of advice: means over time, measures with noise floors, and a comparison of the candidates."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from datetime import datetime

import matplotlib as mpl
import numpy as np
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from driftsack.core.arrays import Floats, Ints
from driftsack.plot.drift import arm_style
from driftsack.plot.style import BLUE, GREY, ORANGE, SETTINGS, THOUSANDS, new_figure, without_mathtext


def windows_figure(
    starts: Floats,
    intervals: tuple[Floats, Floats, Floats],
    changes: Ints,
    labels: tuple[Sequence[str], Sequence[str]],
    rows: int,
    at: Callable[[float], datetime] | None = None,
) -> Figure:
    """Draw the mean of each arm in windows of time, one panel per quantity, with bands and phase changes.

    Args:
        starts: (L,) the first row of each window.
        intervals: The lower limit, the mean and the upper limit, each (L, m, 1 + d).
        changes: The rows at which a new phase begins.
        labels: The names of the m arms and of the 1 + d quantities.
        rows: The number of rows of the log.
        at: The date of a row; None if the log has no dates.
    """
    low, means, high = intervals
    position: Callable[[float], float] = float if at is None else lambda row: float(date2num(at(row)))  # type: ignore[no-untyped-call]
    arms, quantities = ([without_mathtext(name) for name in names] for names in labels)
    middle = np.array([position(row) for row in (starts + rows / (2 * len(starts))).tolist()])
    with mpl.rc_context(SETTINGS):
        figure = new_figure(7.5, 0.4 + 1.9 * len(quantities))
        panels = figure.subplots(len(quantities), 1, sharex=True, squeeze=False)[:, 0]
        for k, (axes, quantity) in enumerate(zip(panels, quantities, strict=True)):
            for i, arm in enumerate(arms):
                colour, dash = arm_style(i)
                axes.plot(middle, means[:, i, k], dash, color=colour, label=f"arm {arm}", linewidth=1.6, marker=".")
                axes.fill_between(middle, low[:, i, k], high[:, i, k], color=colour, alpha=0.18, linewidth=0)
            for change in changes:
                axes.axvline(position(float(change)), color=GREY, linestyle=":", linewidth=1.0)
            axes.set_ylabel(f"mean {quantity}\nper round")
            axes.set_ylim(0.0, 1.08 * max(float(np.nanmax(high[:, :, k])), 1e-9))
        when = "date" if at is not None else "round of the log"
        panels[-1].set_xlabel(f"{when} (dotted: a new phase begins; bands: 95% intervals)")
        panels[-1].set_xlim(position(0.0), position(float(rows)))
        if at is None:
            panels[-1].xaxis.set_major_formatter(THOUSANDS)
        else:
            locator = AutoDateLocator()  # type: ignore[no-untyped-call]
            panels[-1].xaxis.set_major_locator(locator)
            panels[-1].xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=min(len(names), 6), fontsize=8)
    return figure


def floors_figure(measures: Sequence[tuple[str, float, float, float]]) -> Figure:
    """Draw measures of drift next to their noise floors, relative to the 95% quantile of the floor.

    Args:
        measures: The name, the value, the floor and the 95% quantile of the floor of each measure.
    """
    names = [name.upper() for name, *_ in measures]
    heights = [value / high if high > 0 else 0.0 for _, value, _, high in measures]
    floors = [floor / high if high > 0 else 0.0 for _, _, floor, high in measures]
    positions = np.arange(len(names))
    with mpl.rc_context(SETTINGS):
        figure = new_figure(5.0, 2.6)
        axes = figure.subplots()
        axes.bar(positions - 0.2, heights, 0.38, color=BLUE, label="in the log")
        axes.bar(positions + 0.2, floors, 0.38, color=GREY, alpha=0.6, label="by noise alone (rows shuffled)")
        axes.axhline(1.0, color=ORANGE, linestyle="--", linewidth=1.2, label="95% of shuffles lie below")
        axes.set_xticks(positions, names)
        axes.set_ylabel("relative to that line")
        axes.legend(fontsize=8, loc="upper left")
        axes.set_ylim(0, 1.45 * max([1.0, *heights]))
    return figure


def standings_figure(names: Sequence[str], shares: Floats, low: Floats, high: Floats, chosen: int) -> Figure:
    """Draw the share of the optimum that each candidate earned, with its interval.

    Args:
        names: The names of the n candidates.
        shares: (n,) mean shares of the optimum.
        low: (n,) lower ends of the intervals.
        high: (n,) upper ends of the intervals.
        chosen: The index of the recommended candidate, which gets another colour.
    """
    positions = np.arange(len(names))[::-1]
    with mpl.rc_context(SETTINGS):
        figure = new_figure(7.5, 0.8 + 0.32 * len(names))
        axes = figure.subplots()
        colours = [ORANGE if k == chosen else BLUE for k in range(len(names))]
        axes.barh(positions, shares, color=colours, alpha=0.75)
        errors = np.maximum([shares - low, high - shares], 0.0)
        axes.errorbar(shares, positions, xerr=errors, fmt="none", ecolor=GREY, capsize=3, linewidth=1.2)
        axes.set_yticks(positions, names, fontsize=8)
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_xlabel("share of the optimum, simulated (bars: 95% of the fitted instances)")
        axes.set_xlim(0, max(1.05, float(high.max()) * 1.02))
        axes.grid(visible=False, axis="y")
    return figure


def as_data_uri(figure: Figure) -> str:
    """Encode a figure as an SVG image that can be embedded in a page.

    Args:
        figure: The figure to encode.

    Returns:
        A ``data:`` address for the ``src`` of an image.
    """
    stream = io.BytesIO()
    with mpl.rc_context({**SETTINGS, "svg.fonttype": "path", "svg.hashsalt": "driftsack"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode()
