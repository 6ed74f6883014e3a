"""``python -m lab advice-intervals``."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from driftsack.cli.console import JsonOption, plain_errors, print_json, status_line
from lab.commands.pages import exit_unless, print_tables

COVERED: Final = (0.93, 0.97)  # of 95% intervals; the bars, two standard errors apart from them at 400 logs


def advice_intervals(
    logs: Annotated[int, typer.Argument(min=2, help="Number of logs of each instance.")] = 400,
    as_json: JsonOption = False,
) -> None:
    """Measure how often the intervals of `driftsack advise` and of the value of contexts hold the truth.

    Fails if the intervals of the optimum hold it in less than 93% or more than 97% of the logs. A short form is in
    tests/lab/test_advice_intervals.py.

    Example: python -m lab advice-intervals 100
    """
    from lab.advice_intervals import context_rows, optimum_rows

    with plain_errors(), status_line("starting") as show:
        tables = {"The optimum": optimum_rows(logs, show), "The value of contexts": context_rows(logs, show)}
    if as_json:
        print_json(tables)
    else:
        print_tables(tables)
    exit_unless(all(COVERED[0] <= float(row["covered"]) <= COVERED[1] for row in tables["The optimum"]))
