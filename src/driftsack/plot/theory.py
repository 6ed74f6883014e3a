"""Draw the results of ``driftsack verify``: margins and powers of the statements, and fitted exponents."""

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
WEAK = 0.1  # as in ``driftsack.verify``
LEAST_DRAWN = 1e-3  # smaller powers are drawn here


def theory_figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw margins and power of each statement (above) and a panel for each fitted exponent (below).

    Args:
        rows: The result of ``driftsack.verify.verify``.

    Raises:
        SettingError: If no row has margins or exponents.
    """
    rates = [(row["name"], rate) for row in rows for rate in row["rates"]]
    if not rates and not any(row["margins"] for row in rows):
        raise SettingError("these statements have neither margins nor exponents to draw; omit the figure.")
    heights = [0.7 + 0.19 * len(rows)] + [2.6] * -(-len(rates) // COLUMNS)
    with mpl.rc_context(SETTINGS):
        figure = new_figure(11.0, sum(heights))
        grid = figure.add_gridspec(len(heights), COLUMNS, height_ratios=heights)
        draw_margins(figure.add_subplot(grid[0, : COLUMNS - 1]), rows)
        draw_powers(figure.add_subplot(grid[0, COLUMNS - 1]), [row["power"] for row in rows])
        for k, (name, rate) in enumerate(rates):
            draw_rate(figure.add_subplot(grid[1 + k // COLUMNS, k % COLUMNS]), name, rate)
    return figure


def draw_margins(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw one line per statement: its worst margin, and the range from the 1% quantile to the median."""
    least = -ROUNDING
    for height, row in zip(range(len(rows))[::-1], rows, strict=True):
        if row["margins"]:
            # A statement that holds may be off by the tolerance of its check.
            worst, low, _, median = np.maximum(row["margins"], 0.0) if row["as_documented"] else row["margins"]
            axes.plot([low, median], [height, height], color=BLUE, linewidth=5, alpha=0.4, solid_capstyle="butt")
            axes.plot(worst, height, "D", color=ORANGE, markersize=5)
            least = min(least, worst)
    axes.axvline(0.0, color=GREY, linewidth=1.2)
    axes.set_yticks(range(len(rows))[::-1], [row["name"] for row in rows], fontsize=8)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xscale("symlog", linthresh=ROUNDING, linscale=0.3)
    axes.set_xticks([0.0, *10.0 ** np.arange(-8, 4, 2)])
    axes.set_xlim(left=2.0 * least)
    axes.set_xlabel("margin: violated left of 0 (diamond: the worst case; bar: 1% to 50% quantile)")


def draw_powers(axes: Axes, powers: Sequence[float]) -> None:
    """Draw the power of each statement, with the limit below which its check is weak."""
    heights = range(len(powers))[::-1]
    axes.axvspan(LEAST_DRAWN / 2, WEAK, color=GREY, alpha=0.15)
    axes.plot(np.maximum(powers, LEAST_DRAWN), heights, "o", color=BLUE, markersize=4.5)
    axes.set_xscale("log")
    axes.set_xlim(LEAST_DRAWN / 2, 1.5)
    axes.set_ylim(-0.7, len(powers) - 0.3)
    axes.set_yticks(heights, [""] * len(powers))
    axes.set_xlabel("power (grey: weak)")


def draw_rate(axes: Axes, name: str, rate: Mapping[str, Any]) -> None:
    """Draw the measured quantity against the varied one on logarithmic axes, with a line of the theoretical slope."""
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
    axes.set_ylabel("regret or error")
    axes.legend(fontsize=7.5, loc="upper left")
