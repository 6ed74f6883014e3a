"""``driftsack league``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftsack.cli.console import (
    JsonOption,
    SeedOption,
    messages,
    note,
    number_column,
    plain_errors,
    print_json,
    progress_bar,
    results,
    rich_table,
    share_column,
    single_line,
    text_column,
)
from driftsack.cli.run import AddressOption, EngineOption, WorkersOption


def league(
    trials: Annotated[int, typer.Option(min=1, help="Trials of each policy on each instance.")] = 20,
    horizon: Annotated[int, typer.Option(min=100, help="Rounds of a trial.")] = 10_000,
    seed: SeedOption = 0,
    out: Annotated[Path, typer.Option(help="Folder for the table, the heat map and the trials.")] = Path("out/league"),
    engine: EngineOption = "local",
    workers: WorkersOption = None,
    address: AddressOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare all policies on a suite of instances: the paper's, stationary, piecewise, smooth, traps, adversarial.

    Rewards are given as shares of the best plan (LP-Dynamic). A policy that does not accept an instance gets a dash
    and the reason. Writes league.csv and league.png, .svg and .pdf to --out; trials are kept in --out/store.

    Example: driftsack league --trials 5 --out quick
    """
    from driftsack.sweeps.engines import make_engine  # noqa: PLC0415  (Polars and SciPy load only where used)
    from driftsack.sweeps.league_report import run_league  # noqa: PLC0415

    with plain_errors(), progress_bar() as bar:
        chosen = make_engine(engine, workers, address)
        found = run_league(out, trials, horizon, seed, chosen, single_line(bar), note)
    if as_json:
        print_json(found.to_dict())
        return
    columns = [
        text_column("policy"),
        share_column("mean_share", "mean", error="mean_share_se"),
        share_column("least_share", "least"),
        share_column("most_share", "most"),
        number_column("refused"),
    ]
    title = f"Share of LP-Dynamic over {found.instances} instances, {trials} trials (mean ± standard error)"
    results.print(rich_table(found.overview.iter_rows(named=True), columns, title))
    messages.print(f"Table: {found.csv}   Heat map: {found.figures[0]} (and .svg, .pdf)   {found.seconds:.1f} s")
