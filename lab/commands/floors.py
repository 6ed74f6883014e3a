"""``python -m lab floors``."""

from __future__ import annotations

from typing import Annotated

import typer

from driftsack.cli.console import JsonOption, plain_errors, print_json, status_line
from lab.commands.pages import exit_unless, print_tables


def floors(
    per_family: Annotated[int, typer.Argument(min=1, help="Number of environments of each of 15 families.")] = 4,
    trials: Annotated[int, typer.Option(min=1, help="Trials of Adaptive on each environment.")] = 4,
    horizon: Annotated[int, typer.Option(min=100, help="Rounds of a trial.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the environments.")] = 1,
    final: Annotated[bool, typer.Option("--final", help="Use the final seeds, from 1000 on.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure by how much floors are missed, and the cost of keeping them, beside a rule by hand.

    Fails if Adaptive misses a bar, if the rule by hand is ahead too often, or if the competitor that ignores the
    floor is not found out.

    Example: python -m lab floors 1 --horizon 2000
    """
    from lab.floors import ADAPTIVE, BY_HAND, FIRST_FINAL_SEED, PLANTED, TITLE, VIOLATION, floor_rows

    with plain_errors(), status_line("starting") as show:
        rows = floor_rows(seed + FIRST_FINAL_SEED * final, per_family, horizon, trials, show)
    if as_json:
        print_json({"rows": rows})
    else:
        print_tables({TITLE: rows}, len(rows[0]))
    holds = {row["figure"]: row["holds"] == "yes" for row in rows}
    judged = [held for name, held in holds.items() if name.startswith(f"{ADAPTIVE}:")]
    ahead = [held for name, held in holds.items() if name.startswith(BY_HAND) and "loss" in name]
    exit_unless(all(judged) and all(ahead) and not holds[f"{PLANTED}: {VIOLATION}"])
