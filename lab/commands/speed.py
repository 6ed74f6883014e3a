"""``python -m lab speed`` and ``versions``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from driftsack.cli.console import JsonOption, messages, plain_errors, print_json, progress_bar, single_line
from lab.commands.pages import MarkdownOption, QuickOption, check_directory, print_tables, write_page

if TYPE_CHECKING:
    from lab.speed.tables import MeasuredTables

FIRST_COLUMNS: Final = 5  # fit a terminal, and have the ratios


def speed(quick: QuickOption = False, markdown: MarkdownOption = None, as_json: JsonOption = False) -> None:
    """Measure speed side by side: the step LP and rounds against HiGHS, linprog and plain Python.

    Every figure is a ratio of two things measured in turns, in one process, on one thread. Takes some minutes, with
    --quick about one. `make bench` writes docs/benchmarks.md.

    Example: python -m lab speed --quick
    Example: python -m lab speed --markdown docs/benchmarks.md
    """
    from lab.speed.tables import measure_speed

    check_directory(markdown)
    with plain_errors(), progress_bar() as bar:
        measured = measure_speed(quick, single_line(bar))
    show(measured, markdown, as_json)


def versions(
    other: Annotated[Path, typer.Argument(metavar="SRC", help="The directory src of another checkout.")],
    quick: QuickOption = False,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the speed of this version with that of another checkout, before a change lands.

    Both versions run in processes of their own and answer in alternation. Simulated rounds, ask and tell, batches and
    the first call with an empty kernel cache are compared; a ratio above 1 means that this version is slower.

    Example: python -m lab versions ../main/src
    Example: python -m lab versions ../main/src --quick --json
    """
    from lab.speed.tables import measure_versions

    check_directory(markdown)
    with plain_errors(), progress_bar() as bar:
        measured = measure_versions(other, quick, single_line(bar))
    show(measured, markdown, as_json)


def show(measured: MeasuredTables, markdown: Path | None, as_json: bool) -> None:
    """Print tables of speed, and write their page."""
    write_page(markdown, measured.to_markdown)
    if as_json:
        print_json({"machine": measured.machine, "tables": measured.tables})
        return
    print_tables(measured.tables, FIRST_COLUMNS)
    messages.print("More columns: --markdown FILE or --json.")
