"""Define the style of every figure: a colour-blind-safe palette, and vector files that keep text as text."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from driftsack.core.arrays import Floats
from driftsack.core.errors import SettingError

# The palette of Okabe and Ito, which is distinct under the common forms of colour blindness.
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
"""Colour, dash and marker of each line, so that lines can be told apart by any two of the three."""
THOUSANDS: Final = FuncFormatter(lambda value, _: f"{value:,.0f}" if value % 1 == 0 else f"{value:,g}")

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


VISIBLE: Final = 0.01  # share of the axis; a thinner band is hidden by its line


def new_figure(width: float, height: float) -> Figure:
    """A figure of the given size in inches, which needs no display."""
    with mpl.rc_context(SETTINGS):
        return Figure(figsize=(width, height), layout="constrained")


def separate_panels(figure: Figure) -> None:
    """Add space between panels, so that the tick labels of neighbouring axes do not touch."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.set(wspace=0.06)  # type: ignore[call-arg]


def make_directory(directory: str | os.PathLike[str]) -> Path:
    """Create a directory for results, and its parents, unless it exists; ``SettingError`` if that fails."""
    path = Path(directory)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"out must be a writable directory, got {path}: {error.strerror}.") from error
    return path


def write_figure(figure: Figure, directory: str | os.PathLike[str], name: str) -> list[Path]:
    """Write a figure as PNG, SVG and PDF.

    Args:
        figure: The figure to write.
        directory: The directory to write to; it is created if it does not exist.
        name: The name of the files, without a suffix.

    Returns:
        The paths of the three files.

    Raises:
        SettingError: If the directory cannot be created.
    """
    paths = [make_directory(directory) / f"{name}.{suffix}" for suffix in ("png", "svg", "pdf")]
    with mpl.rc_context(SETTINGS):
        for path in paths:
            figure.savefig(path, dpi=160)
    return paths


def band_note(bands: Mapping[str, Floats], top: float) -> str:
    """Explain the bands of a figure, and name the lines with bands too thin to be seen.

    ``bands`` has half the height of the band along each line; ``top`` is the height of the vertical axis.

    >>> band_note({"a": np.array([5.0]), "b": np.array([0.1])}, top=100.0)
    'bands: ± 2 standard errors (thinner than the line: b)'
    """
    thin = [name for name, band in bands.items() if 2 * float(np.max(band, initial=0.0)) < VISIBLE * top]
    if len(thin) == len(bands):
        return "± 2 standard errors are thinner than the lines"
    return "bands: ± 2 standard errors" + (f" (thinner than the line: {', '.join(thin)})" if thin else "")


def without_mathtext(name: str) -> str:
    """Escape dollar signs, which Matplotlib would otherwise parse as mathematics."""
    return name.replace("$", r"\$")
