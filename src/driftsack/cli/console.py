"""Parts shared by the commands: results on stdout, progress and messages on stderr, tables, and errors in one line."""

from __future__ import annotations

import contextlib
import errno
import inspect
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, JustifyMethod
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
SeedOption = Annotated[int, typer.Option(min=0, help="Seed; the same seed gives the same results.")]

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])

MARGIN = 2  # characters between two columns of a table
BETWEEN_LINES = 30.0  # seconds between two lines of progress in a log

messages = Console(stderr=True, markup=False, emoji=False)  # names may contain brackets and colons
results = Console(markup=False, emoji=False)


def unwrapped(text: str) -> str:
    r"""Join the lines of each paragraph of a docstring, so that a terminal wraps them once; examples stay apart.

    >>> unwrapped("One line\n    and its end.\n\n    Example: one\n    Example: two")
    'One line and its end.\n\nExample: one\n\nExample: two'
    """
    paragraphs = re.split(r"\n\s*\n|\n(?=Example:)", inspect.cleandoc(text))
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


class Commands(typer.Typer):
    """A group of commands whose docstrings are their help texts."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[AnyCommand], AnyCommand]:
        """Register a function as a command."""

        def register(function: AnyCommand) -> AnyCommand:
            texts = {"help": unwrapped(function.__doc__ or "")} | settings
            return super(Commands, self).command(name, **texts)(function)

        return register


class CommandLine(Commands):
    """The commands; a failed write to stdout ends in one line instead of a traceback."""

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        """Run the command that the arguments name."""
        try:
            try:
                return super().__call__(*arguments, **settings)
            finally:
                sys.stdout.flush()
        except OSError as error:
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
            )  # so that the interpreter does not fail to flush at exit
            closed = error.errno == errno.EPIPE
            reason = "it was closed before its end" if closed else error.strerror or str(error)
            messages.print(Text.assemble(("error", "bold red"), f" the output could not be written: {reason}."))
            sys.exit(1)


class RateColumn(ProgressColumn):
    """The number of steps per second."""

    def render(self, task: Task) -> Text:
        """The rate, or nothing before the first step."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{number(speed)}/s")


class LogLines:
    """Lines of progress for a log: at most one every half minute, and none before the first half minute."""

    def __init__(self) -> None:
        self.latest = time.monotonic()

    def show(self, text: str) -> None:
        """Print a line if it is time for one and stderr is not a terminal."""
        now = time.monotonic()
        if not messages.is_terminal and now - self.latest >= BETWEEN_LINES:
            self.latest = now
            messages.print(text, soft_wrap=True)


class LoggedProgress(Progress):
    """A progress bar that writes lines where stderr is not a terminal."""

    def __init__(self, *columns: ProgressColumn, console: Console) -> None:
        super().__init__(*columns, console=console)
        self._lines = LogLines()

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """Change a task."""
        super().update(task_id, **changes)
        task = self._tasks[task_id]
        self._lines.show(f"{task.description}: {task.completed:,.0f} of {task.total or 0:,.0f}")


@contextlib.contextmanager
def status_line(text: str) -> Iterator[Callable[[str], None]]:
    """Show the current step in a line on stderr that can be changed; print lines where stderr is not a terminal."""
    lines = LogLines()
    with messages.status(text) as status:

        def show(what: str) -> None:
            status.update(what)
            lines.show(what)

        yield show


def progress_bar() -> Progress:
    """A progress bar on stderr with the count, the rate, the time taken and the time left."""
    return LoggedProgress(
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


@contextlib.contextmanager
def native_messages_dropped() -> Iterator[None]:
    """Drop the output of compiled libraries to stderr, such as panics of Polars on a corrupted file."""
    own, python_stderr = os.dup(2), sys.stderr
    if python_stderr is sys.__stderr__:
        sys.stderr = os.fdopen(os.dup(own), "w", buffering=1, encoding="utf-8", errors="replace")
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)
        sys.stderr = python_stderr


def refuse_needless(given: Mapping[str, Any], why: str) -> None:
    """Raise an error for options that were given and would be ignored.

    Args:
        given: The values of the options; None or False if not given.
        why: When they are ignored, such as "with --example 1".
    """
    needless = [option for option, value in given.items() if value is not None and value is not False]
    if needless:
        raise SettingError(f"{needless[0]} has no effect {why}; leave it out.")


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
    """A column of a printed table."""

    title: str
    cell: Callable[[Mapping[str, Any]], str]  # formats the cell of a row
    numeric: bool = False  # whether it is aligned to the right and never wrapped


def text_column(name: str, title: str | None = None) -> Column:
    """A column with the string under ``name``."""
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


def print_table(rows: Iterable[Mapping[str, Any]], columns: Sequence[Column], caption: str) -> None:
    """Print a table below its caption, wider than the terminal if its longest words do not fit."""
    results.print(rich_table(rows, columns, caption, results.width), crop=False)


def rich_table(rows: Iterable[Mapping[str, Any]], columns: Sequence[Column], caption: str, width: int = 80) -> Group:
    """A table below its caption, in which no word is broken; long words make it wider than ``width``."""
    cells = [[column.cell(row) for column in columns] for row in rows]
    texts = [[column.title, *(row[k] for row in cells)] for k, column in enumerate(columns)]
    least = [
        max(cell_len(piece) for text in part for piece in ([text] if column.numeric else text.split() or [""]))
        for column, part in zip(columns, texts, strict=True)
    ]
    needed = sum(least) + MARGIN * len(columns)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, width=needed if needed > width else None)
    for column, most in zip(columns, least, strict=True):
        justify: JustifyMethod = "right" if column.numeric else "left"
        table.add_column(Text(column.title), justify=justify, no_wrap=column.numeric, overflow="fold", min_width=most)
    for row in cells:
        table.add_row(*map(Text, row))
    return Group(Text(caption, style="bold"), table)
