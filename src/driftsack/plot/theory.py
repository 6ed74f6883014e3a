"""What ``driftsack verify`` found, to look at: how near worlds came to breaking statements, and how regret grew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from driftsack.core.errors import SettingError
from driftsack.plot.style import BLUE, GREY, ORANGE, SETTINGS, new_figure

COLUMNS = 4
ROUNDING = 1e-9  # margins nearer to 0 than this are drawn as 0


def theory_figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Above, the margins of each statement that has them; below, a panel for each fitted exponent."""
    spreads = {row["name"]: row["margins"] for row in rows if row["margins"]}
    rates = [(row["name"], rate) for row in rows for rate in row["rates"]]
    if not spreads and not rates:
        raise SettingError("these statements have neither margins nor exponents to draw; leave --figure out.")
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


def draw_margins(place: Axes, spreads: Mapping[str, Sequence[float]]) -> None:
    """A line a statement: its worst margin, and from the 1% quantile to the median of all that were tried."""
    for height, (worst, low, _, median) in zip(range(len(spreads))[::-1], spreads.values(), strict=True):
        place.plot([low, median], [height, height], color=BLUE, linewidth=5, alpha=0.4, solid_capstyle="butt")
        place.plot(worst, height, "D", color=ORANGE, markersize=5)
    place.axvline(0.0, color=GREY, linewidth=1.2)
    place.set_yticks(range(len(spreads))[::-1], list(spreads), fontsize=8)
    place.set_xscale("symlog", linthresh=ROUNDING, linscale=0.3)
    place.set_xticks([0.0, *10.0 ** np.arange(-8, 4, 2)])
    place.set_xlim(left=2.0 * min(-ROUNDING, *(worst for worst, *_ in spreads.values())))
    place.set_xlabel("margin: the statement breaks left of 0 (diamond: the worst found; bar: 1% to 50% of all tried)")


def draw_rate(place: Axes, name: str, rate: Mapping[str, Any]) -> None:
    """Mean regret against what was varied, on logarithmic axes, beside a line of the statement's slope."""
    x, y = np.asarray(rate["places"], dtype=float), np.asarray(rate["means"], dtype=float)
    middle = np.exp(np.log(y).mean() + rate["expected"] * (np.log(x) - np.log(x).mean()))
    place.plot(x, middle, ":", color=GREY, label=f"theory {rate['expected']:.2f}")
    label = f"{rate['value']:.2f} [{rate['low']:.2f}, {rate['high']:.2f}]"
    place.plot(x, y, "o-", color=BLUE, markersize=4.5, label=label)
    place.set_xscale("log")
    place.set_yscale("log")
    place.set_xticks(x, [number(value) for value in x], fontsize=8)
    place.minorticks_off()
    low, high = y.min(), y.max()
    ticks = np.unique([float(f"{tick:.1g}") for tick in np.geomspace(low, high, 3)])
    place.set_yticks(ticks, [number(tick) for tick in ticks], fontsize=8)
    place.set_ylim(low / 1.3, high * (high / low) ** 0.35 * 1.15)  # room for the legend
    place.set_title(name, fontsize=9)
    place.set_xlabel(rate["varied"])
    place.set_ylabel("regret")
    place.legend(fontsize=7.5, loc="upper left")


def number(value: float) -> str:
    """Three digits at least, thousands apart.

    >>> number(0.1), number(66666.7)
    ('0.1', '66,667')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004
