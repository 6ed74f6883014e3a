"""``driftsack run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftsack.cli.console import (
    JsonOption,
    messages,
    note,
    number_column,
    plain_errors,
    print_json,
    print_table,
    progress_bar,
    refuse_needless,
    share_column,
    single_line,
    text_column,
)

if TYPE_CHECKING:
    import polars as pl

    from driftsack.sweeps.sweep import SweepProgress

EngineOption = Annotated[str, typer.Option(help="local (threads) or ray (an extra; see --address).")]
WorkersOption = Annotated[int | None, typer.Option(min=1, help="Threads or processes. Default: one per core.")]
AddressOption = Annotated[
    str | None, typer.Option(help="A running Ray cluster, such as auto. Default: Ray starts on this machine.")
]


def run(
    file: Annotated[
        Path, typer.Argument(metavar="SPEC.toml", help="The specification of the sweep.", exists=True, dir_okay=False)
    ],
    store: Annotated[
        Path, typer.Option(help="Directory for the results; cells that it holds are not simulated again.")
    ],
    engine: EngineOption = "local",
    workers: WorkersOption = None,
    address: AddressOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a sweep: instances × policies × seeds × trials. After an interruption, the same command continues.

    A specification without policies runs Adaptive. Every finished cell is one file in --store, written atomically. A
    cell that fails is reported, the others continue, and the exit code is 1.

    Example: driftsack run sweep.toml --store results
    """
    from driftsack import sweeps
    from driftsack.sweeps.engines import make_engine

    with plain_errors():
        refuse_needless({"--address": address if engine == "local" else None}, "without --engine ray")
    with plain_errors(), progress_bar() as bar:
        show = single_line(bar)

        def progress(now: SweepProgress) -> None:
            show("trials", now.done, now.total)

        swept = sweeps.run(sweeps.read_spec(file), store, make_engine(engine, workers, address), progress, note)
        table = sweeps.summary(sweeps.load(store))
    if as_json:
        print_json({**swept.to_dict(), "store": str(store), "table": table.to_dicts()})
    else:
        print_summary(table)
        counts = f"{len(swept.played)} cells simulated, {swept.kept} kept, {len(swept.failed)} failed"
        messages.print(f"{counts}   Store: {store}   {swept.seconds:.1f} s   Next: driftsack report {store}")
    if swept.failed:
        raise typer.Exit(code=1)


def print_summary(table: pl.DataFrame) -> None:
    """Print the summary of a store."""
    columns = [
        text_column("instance"),
        text_column("policy"),
        number_column("trials"),
        number_column("reward", error="reward_se"),
        share_column("optimum_share", "share of the optimum", error="optimum_share_se"),
        number_column("stopping_time", "stopping time", error="stopping_time_se"),
    ]
    print_table(table.iter_rows(named=True), columns, "Means over all trials of all seeds, ± their standard errors.")
