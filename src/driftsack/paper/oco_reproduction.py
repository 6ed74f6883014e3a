"""Reproduce section 4: the measurements, their figure and their table."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from driftsack.core.arrays import Floats
from driftsack.oco import instances
from driftsack.paper.oco import DRAWS, HORIZONS, RANDOM, Section4, Study, measure_section_4
from driftsack.paper.oco_claims import OcoClaim, exponent_text, judge_section_4
from driftsack.plot import oco_figure, write_figure
from driftsack.plot.oco import Line, Panel
from driftsack.plot.style import make_directory


class OcoReproduction(NamedTuple):
    """The results of :func:`reproduce_oco` and the files that it wrote.

    Attributes:
        claims: Every claim of section 4 with its verdict.
        table: One row per scenario and horizon: mean regret, mean violation and mean q̄W over the draws.
        csv: The path of the table.
        figures: The paths of the figure.
        seconds: The time taken.
    """

    claims: list[OcoClaim]
    table: pl.DataFrame
    csv: Path
    figures: list[Path]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, ready for JSON."""
        return {
            "claims": [claim._asdict() for claim in self.claims],
            "table": self.table.to_dicts(),
            "figures": [str(path) for path in self.figures],
            "seconds": self.seconds,
        }


def reproduce_oco(
    out: str | os.PathLike[str] = "out",
    horizons: Sequence[int] = HORIZONS,
    draws: int = DRAWS,
    random: int = RANDOM,
    progress: Callable[[str, int, int], None] | None = None,
) -> OcoReproduction:
    """Measure Theorem 3 and Proposition 2; write ``oco.csv`` and the figure ``oco`` as PNG, SVG and PDF.

    Args:
        out: The directory to write to.
        horizons: The horizons at which regret and violation are measured, in ascending order.
        draws: The number of problems drawn in each scenario.
        random: The number of random instances for Proposition 2.
        progress: Called with the name of the current measurement, the amount done and the total.

    Returns:
        The claims, the table and the files that were written.

    Raises:
        SettingError: If ``out`` cannot be written to.
    """
    directory = make_directory(out)
    begun = time.perf_counter()
    measured = measure_section_4(horizons, draws, random, progress)
    figures = write_figure(oco_figure(panels(measured), caption(measured)), directory, "oco")
    frame = table(measured)
    frame.write_csv(directory / "oco.csv")
    claims = judge_section_4(measured)
    return OcoReproduction(claims, frame, directory / "oco.csv", figures, time.perf_counter() - begun)


def panels(measured: Section4) -> list[Panel]:
    """The panels of the figure: Reg1 and Reg2 against T, and both sides of Proposition 2 against W."""
    horizons = measured.printed.horizons
    regrets = [measured.printed, *(s for s in measured.studies if s.exponent(s.regret) is not None)]
    violations = [s for s in measured.studies if s.exponent(s.violation) is not None]
    below = [s.world for s in measured.studies if s.exponent(s.regret) is None]
    root = np.sqrt(horizons)
    return [
        Panel(
            "Reg1 against OPT" + (f" (below 0: {', '.join(below)})" if below else ""),
            "rounds T",
            "Reg1",
            [
                *(growth_line(s, s.regret) for s in regrets),
                Line("√T", horizons, 0.1 * root, "guide"),
                Line("T", horizons, 0.1 * horizons, "guide"),
            ],
        ),
        Panel(
            "Reg2, violation",
            "rounds T",
            "Reg2",
            [*(growth_line(s, s.violation) for s in violations), Line("√T", horizons, 2.0 * root, "guide")],
        ),
        swing_panel(measured),
        example_panel(measured),
    ]


def swing_panel(measured: Section4) -> Panel:
    """The panel of the loss against W, on the problem with a limit that rises halfway."""
    swing = measured.swing
    return Panel(
        f"a limit that rises halfway, T = {measured.example_horizon:,}",
        "W",
        "loss",
        [
            Line("q̄W", swing.variation, swing.allowance, "guide"),
            Line("OPT′ − OPT", swing.variation, swing.between),
            Line("Reg1 of the virtual queue", swing.variation, swing.regret),
        ],
    )


def example_panel(measured: Section4) -> Panel:
    """The panel of OPT′ − OPT against W on the example of Proposition 2, with its closed forms."""
    example, horizon = measured.example, measured.example_horizon
    forms = [instances.proposition_2_forms(horizon, shift=float(shift)) for shift in example.shifts]
    printed = [f.printed_restricted - f.printed_optimum for f in forms]
    return Panel(
        f"Proposition 2's example, T = {horizon:,}",
        "W",
        "OPT′ − OPT",
        [
            Line("q̄W", example.variation, example.allowance, "guide"),
            Line("closed form", example.variation, [f.restricted - f.optimum for f in forms]),
            Line("closed form as printed", example.variation, printed),
            Line("OPT′ − OPT, solved", example.variation, example.between, "dots"),
        ],
    )


def growth_line(study: Study, values: Floats) -> Line:
    """The means over the draws against T, with the fitted exponent in the label."""
    return Line(f"{study.world}: T^{exponent_text(study.exponent(values))}", study.horizons, values.mean(axis=0))


def table(measured: Section4) -> pl.DataFrame:
    """A table of the means over the draws, one row per scenario and horizon."""
    return pl.DataFrame(
        [
            {
                "world": study.world,
                "horizon": int(horizon),
                "regret": float(study.regret[:, p].mean()),
                "violation": float(study.violation[:, p].mean()),
                "q_bar_w": float(study.allowance[:, p].mean()),
                "draws": len(study.regret),
            }
            for study in (*measured.studies, measured.printed)
            for p, horizon in enumerate(study.horizons)
        ]
    )


def caption(measured: Section4) -> str:
    """A line of text with the settings of the measurements."""
    draws = len(measured.printed.regret)
    return f"virtual queue, V = √T, α = T; mean of {draws} draws; exponents ± standard error of the fit"
