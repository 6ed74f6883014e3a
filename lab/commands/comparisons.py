"""``python -m lab adaptive``, ``contexts`` and ``routing``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from driftsack.cli.console import JsonOption, SeedOption, plain_errors, print_json, status_line
from lab.commands.pages import (
    MarkdownOption,
    QuickOption,
    all_hold,
    check_directory,
    exit_unless,
    print_tables,
    write_page,
)


def report_bars(title: str, rows: list[dict[str, Any]], command: str, markdown: Path | None, as_json: bool) -> None:
    """Write or print a table of bars; exit with code 1 if one is missed."""
    from lab.speed.tables import MeasuredTables, machine

    page = MeasuredTables({title: rows}, machine(), command)
    write_page(markdown, page.to_markdown)
    if as_json:
        print_json({"machine": page.machine, "rows": rows})
    else:
        print_tables(page.tables)
    exit_unless(all_hold(rows))


def adaptive(
    other: Annotated[Path, typer.Argument(metavar="SRC", help="The directory src of another checkout.")],
    quick: QuickOption = False,
    seed: SeedOption = 0,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the rewards of Adaptive with those of another checkout, before a change lands.

    Fresh environments of all families with prompt, late and lost outcomes, AR(1) noise, real flights in blocks, changes
    for good, and one absurd bill. Each section has a planted competitor that must fail. Takes about half an hour.

    Example: python -m lab adaptive ../main/src --quick
    Example: python -m lab adaptive ../main/src --seed 3 --json
    """
    from lab.adaptive.bars import TITLE, adaptive_rows

    check_directory(markdown)
    with plain_errors(), status_line("starting") as show:
        rows = adaptive_rows(other, "quick" if quick else "whole", seed, show)
    report_bars(TITLE, rows, f"python -m lab adaptive {other} --seed {seed}", markdown, as_json)


def contexts(
    quick: QuickOption = False, seed: SeedOption = 0, markdown: MarkdownOption = None, as_json: JsonOption = False
) -> None:
    """Measure policies with contexts on simulated problems, beside competitors that must miss the same bars.

    The seed chooses a set of problems: 0 and 1 are for development, 2 for tests, higher ones for a final look. Fails if
    a bar is missed.

    Example: python -m lab contexts --quick
    Example: python -m lab contexts --seed 9 --markdown docs/context-bars.md
    """
    from lab import contexts as measured

    check_directory(markdown)
    with plain_errors(), status_line("starting") as show:
        rows = measured.context_rows(quick, seed, show)
    report_bars("Policies with contexts", rows, f"python -m lab contexts --seed {seed}", markdown, as_json)


def routing(
    quick: QuickOption = False, seed: SeedOption = 0, markdown: MarkdownOption = None, as_json: JsonOption = False
) -> None:
    """Route real prompts to language models under a budget, beside ParetoBandit.

    Needs the prompts and the router of another package: pip install paretobandit==0.1.1. With --quick three orders of
    the prompts at one budget, otherwise 20 orders at three budgets. Fails if a bar is missed.

    Example: python -m lab routing --quick
    """
    from lab.routing import routing as measured
    from lab.routing.routing_bars import routing_bars
    from lab.speed.tables import MeasuredTables, machine

    check_directory(markdown)
    with plain_errors(), status_line("starting") as show:
        rows = measured.routing_rows(quick, seed, show)
        bars = routing_bars(rows)
    tables = {"Routing": rows, "What must hold": bars}
    page = MeasuredTables(tables, machine(), f"python -m lab routing --seed {seed}")
    write_page(markdown, page.to_markdown)
    if as_json:
        print_json({"machine": page.machine, "rows": rows, "bars": bars})
    else:
        print_tables(page.tables)
    exit_unless(all_hold(bars))
