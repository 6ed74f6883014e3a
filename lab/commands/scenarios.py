"""``python -m lab scenarios``."""

from __future__ import annotations

from typing import Annotated

import typer

from driftsack.cli.console import JsonOption, messages, plain_errors, print_json, status_line
from lab.commands.pages import MarkdownOption, check_directory, print_tables, write_page

SHOWN = 11  # columns of the printed table; the page and the document have all of them


def scenarios(
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 3,
    scenario: Annotated[str | None, typer.Option(help="Play one scenario only.")] = None,
    final: Annotated[bool, typer.Option("--final", help="Use the final seeds, from 1000 on, not 0, 1, 2, ...")] = False,
    markdown: MarkdownOption = None,
    as_json: JsonOption = False,
) -> None:
    """Play realistic problems of twelve trades, beside hand-written rules and informed ceilings.

    Problems without contexts are played by Adaptive and those with contexts by LinearBwK, with statistical
    reservations where bills are late. Rewards are shares of what the even pace earns, which knows the true present
    means but not the future.

    Example: python -m lab scenarios --seeds 2
    Example: python -m lab scenarios --scenario llm-answers --json
    """
    from lab.scenarios.catalogue import ENTRIES
    from lab.scenarios.scenario import FIRST_FINAL_SEED
    from lab.scenarios.table import NOTE, TITLE, scenario_rows, to_markdown

    check_directory(markdown)
    if scenario is not None and scenario not in ENTRIES:
        raise typer.BadParameter(f"expected a scenario among {', '.join(ENTRIES)}, got {scenario!r}.")
    first = FIRST_FINAL_SEED if final else 0
    names = list(ENTRIES) if scenario is None else [scenario]
    with plain_errors(), status_line("starting") as show:
        rows = scenario_rows(names, range(first, first + seeds), final, show)
    command = f"python -m lab scenarios --seeds {seeds}{' --final' if final else ''}"
    command += "" if scenario is None else f" --scenario {scenario}"
    write_page(markdown, lambda: to_markdown(rows, command))
    if as_json:
        print_json({"rows": rows})
    else:
        print_tables({TITLE: rows}, SHOWN)
        messages.print(NOTE.replace("*", ""))
