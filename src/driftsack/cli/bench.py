"""``driftsack bench``."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import polars as pl
import typer

from driftsack.cli.show import messages, plain_errors, print_json, results, rich_table, spell
from driftsack.simulation.simulate import cores

SHOWN: Final = 5  # columns that fit a terminal; the first are the ratios


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds and repeats: a look, not a figure.")] = False,
    markdown: Annotated[Path | None, typer.Option(help="Also write the tables to this Markdown file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document to stdout.")] = False,
) -> None:
    """Measure speed side by side: our step LP and rounds against HiGHS, linprog and plain Python.

    Every figure is a ratio of two things measured in turns, in one process, on one thread. Takes some minutes, with
    --quick about one.

    Example: driftsack bench --quick
    """
    from driftsack.bench.benchmarks import benchmark_rows  # noqa: PLC0415  (SciPy and highspy load only where used)
    from driftsack.bench.growth_of_cost import growth_rows  # noqa: PLC0415
    from driftsack.bench.logs import log_rows  # noqa: PLC0415
    from driftsack.bench.oco import oco_rows  # noqa: PLC0415
    from driftsack.bench.policies import policy_rows  # noqa: PLC0415
    from driftsack.bench.rounds import round_rows  # noqa: PLC0415
    from driftsack.bench.startup import startup_rows  # noqa: PLC0415
    from driftsack.bench.step_lp import step_lp_rows  # noqa: PLC0415

    parts: dict[str, Callable[..., Any]] = {
        "Step LP on recorded rounds of SW-UCB": step_lp_rows,
        "A whole simulated round": round_rows,
        "A round of each policy on Example 2": policy_rows,
        "Growth of the cost of a round": growth_rows,
        "Benchmarks and measures": benchmark_rows,
        "A round of online convex optimisation": oco_rows,
        "A log, read, checked and measured in one pass": log_rows,
        "Start-up": startup_rows,
    }
    tables: dict[str, list[dict[str, Any]]] = {}
    if markdown is not None and not markdown.parent.is_dir():
        raise typer.BadParameter(f"the folder {markdown.parent} does not exist; create it first.")
    with plain_errors(), messages.status("starting") as status:
        for title, measure in parts.items():
            tables[title] = measure(quick, lambda text: status.update(f"measuring: {text}"))
    if markdown is not None:
        markdown.write_text(page(tables))
        messages.print(f"wrote {markdown}")
    if as_json:
        print_json({"machine": machine(), "tables": tables})
        return
    for title, rows in tables.items():
        results.print(rich_table(pl.DataFrame(rows)[:, :SHOWN], title))
    messages.print("More columns: --markdown FILE or --json.")


def machine() -> str:
    """What the figures were measured on."""
    return f"Python {platform.python_version()}, {platform.machine()}, {cores()} cores, {platform.system()}"


def page(tables: dict[str, list[dict[str, Any]]]) -> str:
    """The tables as Markdown."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`; do not edit. Every figure is a ratio of two things measured in turns, in one",
        f"process, on one thread (median of the ratios); times are the least of the repeats. {machine()}.",
    ]
    for title, rows in tables.items():
        names = list(rows[0])
        lines += ["", f"## {title}", "", f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
        lines += [f"| {' | '.join(spell('', row[name]) for name in names)} |" for row in rows]
    return "\n".join(lines) + "\n"
