"""``driftsack run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftsack.cli.show import messages, plain_errors, print_json, progress_bar, results, rich_table

if TYPE_CHECKING:
    from driftsack.sweeps import Spec
    from driftsack.sweeps.sweep import SweepProgress, SweepResult

EngineOption = Annotated[str, typer.Option(help="local (threads) or ray (an extra; see --address).")]
WorkersOption = Annotated[int | None, typer.Option(min=1, help="Threads or processes; one a core if not given.")]
AddressOption = Annotated[
    str | None, typer.Option(help="A running Ray cluster, such as auto; if not given, Ray starts on this machine.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document to stdout.")]


def run(
    file: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="What to run.", exists=True, dir_okay=False)],
    store: Annotated[Path, typer.Option(help="Folder for the results; what it already holds is not run again.")],
    engine: EngineOption = "local",
    workers: WorkersOption = None,
    address: AddressOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a sweep: instances × policies × seeds × trials. Interrupted or killed, the same command goes on.

    Every finished cell is one file in --store, written whole or not at all. A cell that fails is named, the rest go
    on, and the exit code is 1.

    Example: driftsack run sweep.toml --store results
    """
    from driftsack.sweeps import load, read_spec, summary  # noqa: PLC0415  (Polars and SciPy load only where used)

    with plain_errors():
        swept = sweep(read_spec(file), store, engine, workers, address)
        table = summary(load(store))
    if as_json:
        print_json({**swept.to_dict(), "store": str(store), "table": table.to_dicts()})
    else:
        results.print(rich_table(table.drop("optimum", "fallbacks", "spent_share"), "Mean ± standard error"))
        told = f"{len(swept.played)} cells played, {swept.kept} kept, {len(swept.failed)} failed"
        messages.print(f"{told}   Store: {store}   {swept.seconds:.1f} s   Next: driftsack report {store}")
    if swept.failed:
        raise typer.Exit(code=1)


def sweep(
    spec: Spec, store: Path, engine: str, workers: int | None, address: str | None = None, label: str = "trials"
) -> SweepResult:
    """Run a spec with a bar on stderr: trials, rate, time left."""
    from driftsack.sweeps import run as play  # noqa: PLC0415
    from driftsack.sweeps.engines import make_engine  # noqa: PLC0415

    with progress_bar() as bar:
        task = bar.add_task("preparing kernels", total=None)

        def show(now: SweepProgress) -> None:
            """Move the bar."""
            bar.update(task, completed=now.done, total=now.total, description=label)

        return play(
            spec,
            store,
            make_engine(engine, workers, address),
            progress=show,
            report=lambda sentence: messages.print(f"[bold yellow]note[/] {sentence}", highlight=False),
        )
