"""``python -m lab reserves``."""

from __future__ import annotations

from typing import Annotated

import typer

from driftsack.cli.console import JsonOption, messages, plain_errors, print_json, status_line
from lab.commands.pages import MarkdownOption, check_directory, exit_unless, print_tables, write_page

SHOWN = 9  # columns of the printed table; the page and the document have all of them
MOST_OVER = 0.03  # of a budget; the bar


def reserves(
    seasons: Annotated[int, typer.Argument(min=1, help="Number of seasons of each kind.")] = 50,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how often and by how much safe="statistical" exceeds a budget.

    Costs are coins or lognormal, stay, rise, jump or go up and down, and arrive 50 to 400 rounds late. Fails if hard
    reservations exceed a budget, or statistical ones do so by more than 3%.

    Example: python -m lab reserves 20
    """
    from lab.reserves import NOTE, TITLE, reserve_rows, to_markdown

    check_directory(markdown)
    with plain_errors(), status_line("starting") as show:
        rows = reserve_rows(seasons, progress=show)
    write_page(markdown, lambda: to_markdown(rows, f"python -m lab reserves {seasons}"))
    if as_json:
        print_json({"rows": rows})
    else:
        print_tables({TITLE: rows}, SHOWN)
        messages.print(NOTE.replace("*", ""))
    exit_unless(not any(row["hard over"] for row in rows) and all(row["largest"] <= MOST_OVER for row in rows))
