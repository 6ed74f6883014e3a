"""Options and output that several programs share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from driftsack.cli.console import columns_of, messages, print_table

QuickOption = Annotated[
    bool, typer.Option("--quick", help="Fewer rounds and repeats: faster, but the figures are rough.")
]
MarkdownOption = Annotated[Path | None, typer.Option(help="Also write the tables to this Markdown file.")]
ProcessesOption = Annotated[int | None, typer.Option(min=1, help="Number of processes. Default: one per core.")]


def check_directory(markdown: Path | None) -> None:
    """Refuse a page in a directory that does not exist, before anything is measured."""
    if markdown is not None and not markdown.parent.is_dir():
        raise typer.BadParameter(f"the directory {markdown.parent} does not exist; create it first.")


def write_page(markdown: Path | None, text: Callable[[], str]) -> None:
    """Write a page if its file was given."""
    if markdown is not None:
        markdown.write_text(text())
        messages.print(f"wrote {markdown}")


def print_tables(tables: dict[str, list[dict[str, Any]]], columns: int | None = None) -> None:
    """Print tables by their titles, with all or only the first columns."""
    for title, rows in tables.items():
        print_table(rows, columns_of(rows)[:columns], f"{title}.")


def exit_unless(passed: bool) -> None:
    """Exit with code 1 unless everything passed."""
    if not passed:
        raise typer.Exit(1)


def all_hold(bars: Sequence[dict[str, Any]]) -> bool:
    """Whether every row of a table of bars holds.

    >>> all_hold([{"holds": "yes"}, {"holds": "no"}])
    False
    """
    return all(bar["holds"] == "yes" for bar in bars)
