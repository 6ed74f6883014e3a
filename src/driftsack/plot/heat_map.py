"""Draw a table of shares as a heat map: one row per policy, one column per instance, a number in every cell."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from driftsack.core.arrays import Floats
from driftsack.plot.style import SETTINGS, new_figure, without_mathtext

DARK = 0.6  # below this share the background is dark and the number is white


def heat_figure(shares: Floats, rows: Sequence[str], columns: Sequence[str], label: str) -> Figure:
    """Draw shares from 0 to 1 as percentages, in a colour scale that is safe for colour-blind readers.

    Args:
        shares: (rows, columns) shares; NaN is shown as a dash.
        rows: The names of the rows.
        columns: The names of the columns.
        label: The label of the colour bar.
    """
    rows, columns = ([without_mathtext(name) for name in names] for names in (rows, columns))
    with mpl.rc_context({**SETTINGS, "axes.grid": False}):
        figure = new_figure(3.2 + 0.62 * len(columns), 1.9 + 0.34 * len(rows))
        axes = figure.subplots()
        image = axes.imshow(np.ma.masked_invalid(100 * shares), cmap="cividis", vmin=0.0, vmax=100.0, aspect="auto")
        axes.set_xticks(range(len(columns)), columns, rotation=40, ha="right", rotation_mode="anchor", fontsize=8)
        axes.set_yticks(range(len(rows)), rows, fontsize=8)
        axes.tick_params(length=0)
        for i, j in np.ndindex(shares.shape):
            known = bool(np.isfinite(shares[i, j]))
            text = f"{100 * shares[i, j]:.0f}" if known else "–"
            colour = "white" if known and shares[i, j] < DARK else "black"
            axes.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)
        bar = figure.colorbar(image, ax=axes, shrink=0.9)
        bar.set_label(label, fontsize=8)
        for spine in axes.spines.values():
            spine.set_visible(False)
    return figure
