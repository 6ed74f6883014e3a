"""A table of shares as a heat map: one row a policy, one column a world, the number in every field."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from driftsack.core.arrays import Floats
from driftsack.plot.style import SETTINGS, new_figure

DARK = 0.6  # below this share the ground is dark and the number is white


def heat_figure(shares: Floats, rows: Sequence[str], columns: Sequence[str], label: str) -> Figure:
    """Shares (rows, columns) from 0 to 1, in a scale of colours that reads alike for every eye; NaN: a dash."""
    with mpl.rc_context({**SETTINGS, "axes.grid": False}):
        figure = new_figure(3.2 + 0.62 * len(columns), 1.9 + 0.34 * len(rows))
        place = figure.subplots()
        image = place.imshow(np.ma.masked_invalid(100 * shares), cmap="cividis", vmin=0.0, vmax=100.0, aspect="auto")
        place.set_xticks(range(len(columns)), columns, rotation=40, ha="right", rotation_mode="anchor", fontsize=8)
        place.set_yticks(range(len(rows)), rows, fontsize=8)
        place.tick_params(length=0)
        for i, j in np.ndindex(shares.shape):
            known = bool(np.isfinite(shares[i, j]))
            text = f"{100 * shares[i, j]:.0f}" if known else "–"
            colour = "white" if known and shares[i, j] < DARK else "black"
            place.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)
        bar = figure.colorbar(image, ax=place, shrink=0.9)
        bar.set_label(label, fontsize=8)
        for spine in place.spines.values():
            spine.set_visible(False)
    return figure
