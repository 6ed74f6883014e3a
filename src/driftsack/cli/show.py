"""What commands share: progress and messages on stderr, one JSON document on stdout, errors in one line."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import polars as pl
import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from driftsack.core.errors import DriftsackError, SettingError

ROUND_FROM: Final = 1000  # from here on decimals only distract
messages = Console(stderr=True)
results = Console()


class RateColumn(ProgressColumn):
    """How many a second."""

    def render(self, task: Task) -> Text:
        """Nothing until there is something to divide."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s")


def progress_bar() -> Progress:
    """A bar with count, rate, time taken and time left, on stderr."""
    return Progress(
        TextColumn("{task.description:<24}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=messages,
    )


def update(bar: Progress, task: TaskID, done: int) -> None:
    """Move a task of the bar to ``done``."""
    bar.update(task, completed=done)


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Turn the library's errors and the file system's into one line and exit code 1."""
    try:
        yield
    except (DriftsackError, OSError) as error:
        messages.print(Text.assemble(("error", "bold red"), f" {error}"))
        raise typer.Exit(code=1) from error
    except KeyboardInterrupt as stop:
        messages.print("interrupted")
        raise typer.Exit(code=130) from stop


def make_folder(path: Path) -> None:
    """Make a folder for results, or say why that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"--out must be a folder that can be written to, got {path}: {error.strerror}.") from error


def check_file(path: Path, option: str) -> None:
    """Raise unless the file can be written; before long work, so that nothing is lost after it."""
    try:
        known = path.exists() or path.is_symlink()
        path.open("ab").close()
        if not known:
            path.unlink()
    except OSError as error:
        raise SettingError(f"{option} must be a file that can be written, got {path}: {error.strerror}.") from error


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document to stdout."""
    typer.echo(json.dumps(document, indent=2))


def rich_table(frame: pl.DataFrame, caption: str) -> Table:
    """A table for people: ``x`` and ``x_se`` become one column, shares become percentages, brackets are kept."""
    results_title = caption.replace(" ", "\u00a0")  # a title wider than its table is not broken
    shown = Table(title=Text(results_title, style="table.title"), title_justify="left")
    names = [name for name in frame.columns if not name.endswith("_se")]
    for name in names:
        numeric = frame.schema[name].is_numeric()
        title = name.removesuffix("_share").replace("_", " ")
        shown.add_column(Text(title), justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for row in frame.iter_rows(named=True):
        shown.add_row(*(Text(spell(name, row[name], row.get(f"{name}_se"))) for name in names))
    return shown


def spell(name: str, value: Any, error: float | None = None) -> str:
    """One cell as people read it."""
    if value is None:
        return ""
    if name.endswith("_share"):
        return f"{value:.1%} ± {error:.1%}" if error else f"{value:.1%}"
    if error is not None:
        return f"{value:,.0f} ± {error:,.1f}" if error > 0 else f"{value:,.0f}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= ROUND_FROM else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
