"""What commands share: results on stdout, progress and messages on stderr, tables, and errors in one line."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

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
from driftsack.core.text import number

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document to stdout.")]
SeedOption = Annotated[int, typer.Option(min=0, help="The seed; the same seed gives the same results.")]

messages = Console(stderr=True)
results = Console()


class RateColumn(ProgressColumn):
    """The number of steps per second."""

    def render(self, task: Task) -> Text:
        """The rate, or nothing before the first step."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{number(speed)}/s")


def progress_bar() -> Progress:
    """A progress bar on stderr with the count, the rate, the time taken and the time left."""
    return Progress(
        TextColumn("{task.description:<24}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=messages,
    )


def line_per_task(bar: Progress) -> Callable[[str, int, int], None]:
    """A ``progress`` callback that shows one line per task; a new task completes the earlier ones."""
    lines: dict[str, TaskID] = {}

    def show(what: str, done: int, total: int) -> None:
        if what not in lines:
            for earlier in bar.tasks:
                bar.update(earlier.id, completed=earlier.total)
            lines[what] = bar.add_task(what, total=total)
        bar.update(lines[what], completed=done)

    return show


def single_line(bar: Progress) -> Callable[[str, int, int], None]:
    """A ``progress`` callback that shows the current task in one line."""
    line = bar.add_task("preparing kernels", total=None)

    def show(what: str, done: int, total: int) -> None:
        bar.update(line, completed=done, total=total, description=what)

    return show


def note(sentence: str) -> None:
    """Print a note to stderr."""
    messages.print(Text.assemble(("note", "bold yellow"), f" {sentence}"))


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Turn errors of the library and of the file system into one line and exit code 1."""
    try:
        yield
    except (DriftsackError, OSError) as error:
        messages.print(Text.assemble(("error", "bold red"), f" {error}"))
        raise typer.Exit(code=1) from error
    except KeyboardInterrupt as stop:
        messages.print("interrupted")
        raise typer.Exit(code=130) from stop


def check_file(path: Path, option: str) -> None:
    """Raise an error unless the file can be written; called before long computations, so that none is lost."""
    try:
        existed = path.exists() or path.is_symlink()
        path.open("ab").close()
        if not existed:
            path.unlink()
    except OSError as error:
        raise SettingError(f"{option} must be a file that can be written, got {path}: {error.strerror}.") from error


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document to stdout."""
    typer.echo(json.dumps(document, indent=2))


class Column(NamedTuple):
    """A column of a printed table.

    Attributes:
        title: Its title.
        cell: Formats the cell of a row.
        numeric: Whether it is aligned to the right and never wrapped.
    """

    title: str
    cell: Callable[[Mapping[str, Any]], str]
    numeric: bool = False


def text_column(name: str, title: str | None = None) -> Column:
    """A column with the text under ``name``."""
    return Column(title or name, lambda row: "" if row[name] is None else str(row[name]))


def number_column(name: str, title: str | None = None, error: str | None = None) -> Column:
    """A column with the number under ``name``, and its standard error if the name of that is given."""
    return Column(title or name, lambda row: _with_error(row[name], row[error] if error else None), numeric=True)


def share_column(name: str, title: str, error: str | None = None) -> Column:
    """A column with the share under ``name`` as a percentage, and its standard error if the name of that is given."""
    return Column(title, lambda row: _with_error(row[name], row[error] if error else None, percent=True), numeric=True)


def _with_error(value: float | None, error: float | None, percent: bool = False) -> str:
    if value is None:
        return ""
    factor, unit, digits = (100, "%", 3) if percent else (1, "", 4)
    text = f"{number(factor * value, digits)}{unit}"
    return f"{text} ± {number(factor * error, digits=2)}{unit}" if error else text


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """A column for each name in the rows, a numeric one where the values are numbers."""
    return [
        number_column(name)
        if all(row[name] is None or isinstance(row[name], (int, float)) for row in rows)
        else text_column(name)
        for name in rows[0]
    ]


def rich_table(rows: Iterable[Mapping[str, Any]], columns: Sequence[Column], caption: str) -> Table:
    """A table for the terminal; brackets and colons in its texts are not read as markup."""
    unbroken = caption.replace(" ", "\u00a0")  # a title wider than its table is not broken into lines
    table = Table(title=Text(unbroken, style="table.title"), title_justify="left")
    for column in columns:
        table.add_column(
            Text(column.title),
            justify="right" if column.numeric else "left",
            no_wrap=column.numeric,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(column.cell(row)) for column in columns))
    return table
