"""All parts of the bench in one call: the tables that ``driftsack bench`` prints and the page that it writes."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from driftsack.bench.benchmarks import benchmark_rows
from driftsack.bench.growth_of_cost import growth_rows
from driftsack.bench.logs import log_rows
from driftsack.bench.oco import oco_rows
from driftsack.bench.policies import policy_rows
from driftsack.bench.rounds import round_rows
from driftsack.bench.startup import startup_rows
from driftsack.bench.step_lp import step_lp_rows
from driftsack.bench.versions import version_rows
from driftsack.core.text import number
from driftsack.simulation.simulate import cores

PARTS: Final[Mapping[str, Callable[..., Any]]] = {
    "Step LP on recorded rounds of SW-UCB": step_lp_rows,
    "A whole simulated round": round_rows,
    "A round of each policy on Example 2": policy_rows,
    "Growth of the cost of a round": growth_rows,
    "Benchmarks and measures": benchmark_rows,
    "A round of online convex optimisation": oco_rows,
    "A log, read, checked and measured in one pass": log_rows,
    "Start-up": startup_rows,
}
"""The parts of the bench by the title of their tables."""


class BenchTables(NamedTuple):
    """The measurements of the bench.

    Attributes:
        tables: The rows of each table, by its title.
        machine: The machine that they were measured on.
        command: The command that measures them.
    """

    tables: dict[str, list[dict[str, Any]]]
    machine: str
    command: str = "make bench"

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


def run_bench(
    quick: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
    against: Path | None = None,
) -> BenchTables:
    """Run every part of the bench, or compare this version with another one; either takes some minutes.

    Args:
        quick: Whether to use fewer rounds and repeats, which takes about a minute and gives rough figures.
        progress: Called with what is being measured, how many parts are done and how many there are.
        against: The ``src`` folder of another checkout: only this version and that one are compared.

    Returns:
        The tables.
    """
    parts: Mapping[str, Callable[..., Any]] = PARTS
    if against is not None:
        parts = {"This version against another": partial(version_rows, against)}
    tables: dict[str, list[dict[str, Any]]] = {}
    for done, (title, measure) in enumerate(parts.items()):

        def report(text: str, done: int = done) -> None:
            if progress is not None:
                progress(text, done, len(parts))

        tables[title] = measure(quick, report)
    return BenchTables(tables, machine())


def machine() -> str:
    """The machine that this process runs on."""
    return f"Python {platform.python_version()}, {platform.machine()}, {cores()} cores, {platform.system()}"


def cell_text(value: Any) -> str:
    """A cell of a table: a number in the usual format, nothing for None, and text as it is."""
    if value is None:
        return ""
    return number(value) if isinstance(value, (int, float)) else str(value)
