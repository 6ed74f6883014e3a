"""``python -m lab soak`` and ``corrupted-files``."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from driftsack.cli.console import (
    Column,
    JsonOption,
    SeedOption,
    plain_errors,
    print_json,
    print_table,
    progress_bar,
    results,
    text_column,
)
from lab.commands.pages import ProcessesOption, exit_unless

if TYPE_CHECKING:
    from lab.soak.driver import Report

COUNT: Final = Column("number", lambda row: f"{row['number']:,}", numeric=True)
SHOWN: Final = 5  # findings


def soak(
    operations: Annotated[int, typer.Argument(min=1, help="Number of operations.")] = 100_000_000,
    seed: SeedOption = 0,
    processes: ProcessesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Drive learners of every policy with random operations, and compare their budgets with exact arithmetic.

    The soak asks, tells late or twice, cancels, forfeits, renews, copies, saves and forks at random, one by one and in
    batches, in which each decision is an operation. It fails if an amount differs from exact arithmetic in any bit, if
    a safe learner overspends, or if an error is not the expected one. Interrupt it at any time (Ctrl-C or kill): it
    reports what it has done. A finding names its learner, which the same seed plays again.

    Example: python -m lab soak 1000000 --seed 7
    """
    from driftsack.simulation.simulate import cores
    from lab.soak import driver

    with plain_errors(), ending_like_ctrl_c(), progress_bar() as bar:
        line = bar.add_task("compiling kernels", total=operations)

        def show(done: int, findings: int) -> None:
            bar.update(line, completed=min(done, operations), description=f"operations, {findings} findings")

        report = driver.soak(operations, seed, processes or cores(), progress=show)
    rare = () if report.interrupted else driver.shortfalls(report)
    if as_json:
        print_json({**report._asdict(), "shortfalls": rare})
    else:
        print_report(report, rare)
    exit_unless(not report.findings and not rare)
    if report.interrupted:
        raise typer.Exit(130)


def print_report(report: Report, rare: tuple[str, ...]) -> None:
    """Print what a soak did, its findings, and which operations were too rare."""
    counted = {"Operations by kind.": report.kinds, "Events.": report.events, "Expected errors.": report.errors}
    for title, counts in counted.items():
        rows = [{"kind": kind, "number": number} for kind, number in counts.items()]
        if rows:
            print_table(rows, [text_column("kind"), COUNT], title)
    results.print(
        f"{report.operations:,} operations on {report.learners:,} learners of {len(report.policies)} policies in "
        f"{report.seconds:,.0f} seconds: {report.events.get('overruns', 0):,} overruns, "
        f"{len(report.findings):,} findings"
    )
    for finding in report.findings[:SHOWN]:
        results.print(finding, markup=False)
    for sentence in rare:
        results.print(f"too rare: {sentence}", markup=False)


@contextlib.contextmanager
def ending_like_ctrl_c() -> Iterator[None]:
    """Let ``kill`` interrupt like Ctrl-C, so that there is a report."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def corrupted_files(
    files: Annotated[int, typer.Argument(min=1, help="Number of files.")] = 100_000,
    seed: SeedOption = 0,
    processes: ProcessesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read corrupted and malicious files of learners; none may crash the process or be loaded wrongly.

    Files of learners of every policy are damaged at random, or changed on purpose with a matching digest, and read in
    processes without compiled code, in which an index out of range raises an error. Fails if a file crashes its
    process, raises an unexpected error, or is loaded although the learner cannot continue.

    Example: python -m lab corrupted-files 10000 --seed 3
    """
    from driftsack.simulation.simulate import cores
    from lab.corrupted_files import attack_apart

    with plain_errors(), progress_bar() as bar:
        line = bar.add_task("files", total=files)

        def show(done: int, failures: int) -> None:
            bar.update(line, completed=done, description=f"files, {failures} failures")

        report = attack_apart(files, seed, processes or cores(), show)
    if as_json:
        print_json(report._asdict())
    else:
        results.print(
            f"{report.files:,} files: {report.refused:,} refused, {report.loaded:,} loaded and usable, "
            f"{len(report.failures):,} failures"
        )
        for failure in report.failures[:SHOWN]:
            results.print(failure)
    exit_unless(not report.failures)
