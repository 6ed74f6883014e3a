"""The tables of ``python -m lab speed`` and ``versions``, and the Markdown page that holds measured tables."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from driftsack.core.text import number
from driftsack.simulation.simulate import cores
from lab.speed.benchmarks import benchmark_rows
from lab.speed.growth_of_cost import growth_rows
from lab.speed.logs import log_rows
from lab.speed.oco import oco_rows
from lab.speed.policies import policy_rows
from lab.speed.rounds import round_rows
from lab.speed.startup import startup_rows
from lab.speed.step_lp import step_lp_rows
from lab.speed.versions import version_rows

Parts = Mapping[str, Callable[..., Any]]
PartProgress = Callable[[str, int, int], None]

PARTS: Final[Parts] = {
    "Step LP on recorded rounds of SW-UCB": step_lp_rows,
    "A whole simulated round": round_rows,
    "A round of each policy on Example 2": policy_rows,
    "Growth of the cost of a round": growth_rows,
    "Benchmarks and measures": benchmark_rows,
    "A round of online convex optimisation": oco_rows,
    "A log, read, checked and measured in one pass": log_rows,
    "Start-up": startup_rows,
}
"""The functions that measure speed, by the titles of their tables."""


class MeasuredTables(NamedTuple):
    """Measurements, the machine on which they were made, and the command that repeats them."""

    tables: dict[str, list[dict[str, Any]]]  # rows by title
    machine: str
    command: str

    def to_markdown(self) -> str:
        """The tables as a Markdown page."""
        lines = [
            "# Benchmarks",
            "",
            f"Written by `{self.command}`; do not edit. Ratios of times are of two things measured in turns, in one",
            f"process, on one thread (median of the ratios); times are the least of the repeats. {self.machine}.",
        ]
        for title, rows in self.tables.items():
            names = list(rows[0])
            lines += ["", f"## {title}", "", f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
            lines += [f"| {' | '.join(cell_text(row[name]) for name in names)} |" for row in rows]
        return "\n".join(lines) + "\n"


def measure_speed(quick: bool = False, progress: PartProgress | None = None) -> MeasuredTables:
    """Measure every part; takes some minutes, or about one if it is quick.

    Args:
        quick: Whether to use fewer rounds and repeats, which gives rough figures.
        progress: Called with the current task, the number of finished parts and the number of parts.
    """
    return _measured(PARTS, "make bench", quick, progress)


def measure_versions(other: Path, quick: bool = False, progress: PartProgress | None = None) -> MeasuredTables:
    """Compare this version with another one; takes some minutes.

    Args:
        other: The directory ``src`` of another checkout.
        quick: Whether to use fewer processes and repeats.
        progress: Called with the current task, the number of finished parts and the number of parts.
    """
    parts = {"This version against another": partial(version_rows, other)}
    return _measured(parts, f"python -m lab versions {other}", quick, progress)


def _measured(parts: Parts, command: str, quick: bool, progress: PartProgress | None) -> MeasuredTables:
    tables: dict[str, list[dict[str, Any]]] = {}
    for done, (title, measure) in enumerate(parts.items()):

        def report(text: str, done: int = done) -> None:
            if progress is not None:
                progress(text, done, len(parts))

        tables[title] = measure(quick, report)
    return MeasuredTables(tables, machine(), command)


def machine() -> str:
    """Describe the machine on which this process runs."""
    return f"Python {platform.python_version()}, {platform.machine()}, {cores()} cores, {platform.system()}"


def cell_text(value: Any) -> str:
    """Format a cell of a table: a number in the usual format, an empty string for None, and a string as it is."""
    if value is None:
        return ""
    return number(value) if isinstance(value, (int, float)) else str(value)
