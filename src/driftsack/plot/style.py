"""How every figure looks: colours that colour-blind readers can tell apart, and files in which text stays text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

# Okabe and Ito's palette, which stays distinct under the common forms of colour blindness.
BLUE: Final = "#0072B2"
ORANGE: Final = "#D55E00"
GREEN: Final = "#009E73"
GREY: Final = "#555555"
PALETTE: Final = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")

LINES: Final = (
    (BLUE, "-", "o"),
    (ORANGE, "--", "s"),
    (GREEN, "-.", "^"),
    (PALETTE[3], ":", "D"),
    ("#000000", "-", "v"),
)
"""Colour, dash and marker of each line: told apart without any one of them."""
THOUSANDS: Final = FuncFormatter(lambda value, _: f"{value:,.0f}")

SETTINGS: Final[dict[Any, Any]] = {
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "font.size": 10,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}


def new_figure(width: float, height: float) -> Figure:
    """A figure in inches that needs no display."""
    with mpl.rc_context(SETTINGS):
        return Figure(figsize=(width, height), layout="constrained")


def spread(figure: Figure) -> None:
    """Keep panels so far apart that the last number below one does not touch the first below the next."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.set(wspace=0.06)  # type: ignore[call-arg]


def write_figure(figure: Figure, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write PNG, SVG and PDF; returns their paths."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    paths = [place / f"{name}.{kind}" for kind in ("png", "svg", "pdf")]
    with mpl.rc_context(SETTINGS):
        for path in paths:
            figure.savefig(path, dpi=160)
    return paths
