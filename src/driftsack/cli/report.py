"""``driftsack report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftsack.cli.console import JsonOption, messages, plain_errors, print_json
from driftsack.cli.run import print_summary


def report(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A directory that driftsack run filled.")],
    out: Annotated[Path | None, typer.Option(help="Directory for the report. Default: STORE/report.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Report on a store: a table, figures and one HTML page that needs no network.

    Writes table.csv, curves_1 and so on (cumulative rewards, three instances per figure), shares (a heat map) as .png,
    .svg and .pdf, and report.html. A store whose run has not finished is reported as far as it goes.

    Example: driftsack report results
    """
    from driftsack.sweeps.store_report import report_store

    with plain_errors(), messages.status("drawing"):
        found = report_store(store, out)
    if as_json:
        print_json(found.to_dict())
        return
    print_summary(found.table)
    unfinished = f"{found.missing} cells are missing; run the sweep again to simulate them.   " if found.missing else ""
    messages.print(f"{unfinished}Report: {found.page}   Figures: {len(found.figures)}")
