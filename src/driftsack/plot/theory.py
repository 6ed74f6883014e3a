"""Draw the results of ``driftsack verify``: margins of the statements, and regret with its theoretical rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from driftsack.core.errors import SettingError
from driftsack.core.text import number
from driftsack.plot.style import BLUE, GREY, ORANGE, SETTINGS, new_figure

COLUMNS = 4
ROUNDING = 1e-9  # margins closer to 0 are drawn as 0


def theory_figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the margins of each statement that has them (above) and a panel for each fitted exponent (below).

    Args:
        rows: The result of ``driftsack.verify.verify``.

    Raises:
        SettingError: If no row has margins or exponents.
    """
    spreads = {row["name"]: row["margins"] for row in rows if row["margins"]}
    rates = [(row["name"], rate) for row in rows for rate in row["rates"]]
    if not spreads and not rates:
        raise SettingError("these statements have neither margins nor exponents to draw; omit the figure.")
    below = -(-len(rates) // COLUMNS)
    heights = ([0.7 + 0.2 * len(spreads)] if spreads else []) + [2.6] * below
    with mpl.rc_context(SETTINGS):
        figure = new_figure(11.0, sum(heights))
        grid = figure.add_gridspec(len(heights), COLUMNS, height_ratios=heights)
        if spreads:
            draw_margins(figure.add_subplot(grid[0, :]), spreads)
        for k, (name, rate) in enumerate(rates):
            row = k // COLUMNS + bool(spreads)
            draw_rate(figure.add_subplot(grid[row, k % COLUMNS]), name, rate)
    return figure


def draw_margins(axes: Axes, spreads: Mapping[str, Sequence[float]]) -> None:
    """Draw one line per statement: its worst margin, and the range from the 1% quantile to the median."""
    for height, (worst, low, _, median) in zip(range(len(spreads))[::-1], spreads.values(), strict=True):
        axes.plot([low, median], [height, height], color=BLUE, linewidth=5, alpha=0.4, solid_capstyle="butt")
        axes.plot(worst, height, "D", color=ORANGE, markersize=5)
    axes.axvline(0.0, color=GREY, linewidth=1.2)
    axes.set_yticks(range(len(spreads))[::-1], list(spreads), fontsize=8)
    axes.set_xscale("symlog", linthresh=ROUNDING, linscale=0.3)
    axes.set_xticks([0.0, *10.0 ** np.arange(-8, 4, 2)])
    axes.set_xlim(left=2.0 * min(-ROUNDING, *(worst for worst, *_ in spreads.values())))
    axes.set_xlabel("margin: the statement is violated left of 0 (diamond: the worst case; bar: 1% to 50% quantile)")


def draw_rate(axes: Axes, name: str, rate: Mapping[str, Any]) -> None:
    """Draw mean regret against the varied quantity on logarithmic axes, with a line of the theoretical slope."""
    x, y = np.asarray(rate["places"], dtype=float), np.asarray(rate["means"], dtype=float)
    middle = np.exp(np.log(y).mean() + rate["expected"] * (np.log(x) - np.log(x).mean()))
    axes.plot(x, middle, ":", color=GREY, label=f"theory {rate['expected']:.2f}")
    label = f"{rate['value']:.2f} [{rate['low']:.2f}, {rate['high']:.2f}]"
    axes.plot(x, y, "o-", color=BLUE, markersize=4.5, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(x, [number(value, digits=3) for value in x], fontsize=8)
    axes.minorticks_off()
    low, high = y.min(), y.max()
    ticks = np.unique([float(f"{tick:.1g}") for tick in np.geomspace(low, high, 3)])
    axes.set_yticks(ticks, [number(tick, digits=3) for tick in ticks], fontsize=8)
    axes.set_ylim(low / 1.3, high * (high / low) ** 0.35 * 1.15)  # room for the legend
    axes.set_title(name, fontsize=9)
    axes.set_xlabel(rate["varied"])
    axes.set_ylabel("regret")
    axes.legend(fontsize=7.5, loc="upper left")
