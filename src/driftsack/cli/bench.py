"""``driftsack bench``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from driftsack.cli.console import (
    JsonOption,
    columns_of,
    messages,
    plain_errors,
    print_json,
    print_table,
    progress_bar,
    refuse_needless,
    results,
    single_line,
)

SHOWN: Final = 5  # columns that fit a terminal; the first ones are the ratios


def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer rounds and repeats: faster, but the figures are rough.")
    ] = False,
    against: Annotated[
        Path | None, typer.Option(help="Compare this version with the one in this folder (src of another checkout).")
    ] = None,
    files: Annotated[
        int | None, typer.Option(min=1, help="Instead, read this many damaged and crafted files of learners.")
    ] = None,
    markdown: Annotated[Path | None, typer.Option(help="Also write the tables to this Markdown file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure speed side by side: our step LP and rounds against HiGHS, linprog and plain Python.

    Every figure is a ratio of two things measured in turns, in one process, on one thread. Takes some minutes, with
    --quick about one.

    Example: driftsack bench --quick
    Example: driftsack bench --against ../main/src
    Example: driftsack bench --files 100000
    """
    if files is not None:
        with plain_errors():
            refuse_needless({"--quick": quick, "--against": against, "--markdown": markdown}, "with --files")
        read_damaged_files(files, as_json)
        return
    from driftsack.bench.tables import run_bench  # noqa: PLC0415  (SciPy and highspy load only where they are used)

    if markdown is not None and not markdown.parent.is_dir():
        raise typer.BadParameter(f"the folder {markdown.parent} does not exist; create it first.")
    with plain_errors(), progress_bar() as bar:
        measured = run_bench(quick, single_line(bar), against)
    if markdown is not None:
        markdown.write_text(measured.to_markdown())
        messages.print(f"wrote {markdown}")
    if as_json:
        print_json({"machine": measured.machine, "tables": measured.tables})
        return
    for title, rows in measured.tables.items():
        print_table(rows, columns_of(rows)[:SHOWN], f"{title}.")
    messages.print("More columns: --markdown FILE or --json.")


def read_damaged_files(files: int, as_json: bool) -> None:
    """Read damaged and crafted files; fail if one crashes the process, is loaded wrongly or raises another error."""
    from driftsack.bench.damaged_files import attack_apart  # noqa: PLC0415

    with plain_errors(), messages.status(f"reading {files:,} files, about a minute for 5,000"):
        report = attack_apart(files)
    if as_json:
        print_json(report._asdict())
    else:
        results.print(
            f"{report.files:,} files: {report.refused:,} refused, {report.loaded:,} loaded and usable, "
            f"{len(report.failures):,} failures"
        )
        for failure in report.failures[:SHOWN]:
            results.print(failure)
    if report.failures:
        raise typer.Exit(1)
