"""``driftsack advise``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.progress import Progress, TaskID
from rich.text import Text

from driftsack.cli.show import check_file, messages, plain_errors, print_json, progress_bar, results, rich_table
from driftsack.core.errors import LogError


def advise(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A .csv or .parquet file with one row a round.")],
    budget: Annotated[list[float], typer.Option(help="Budget of a resource; once for each, in their order.")],
    horizon: Annotated[
        int | None,
        typer.Option(min=2, help="Rounds that the budget is for: the log is stretched over them. Default: its own."),
    ] = None,
    resource: Annotated[
        list[str] | None, typer.Option(help="Column of a resource; once for each. Default: those named cost...")
    ] = None,
    arm: Annotated[list[str] | None, typer.Option(help="An arm that may occur; once for each. Default: any.")] = None,
    reward_max: Annotated[float, typer.Option(help="The most that one round can earn.")] = 1.0,
    cost_max: Annotated[
        list[float] | None, typer.Option(help="The most that one round can use; once for each resource. Default: 1.")
    ] = None,
    separator: Annotated[str, typer.Option(help="What separates the columns of a CSV file.")] = ",",
    block: Annotated[int, typer.Option(min=1, help="Rounds that hang together without any drift, as in a day.")] = 1,
    windows: Annotated[int | None, typer.Option(min=2, help="Windows of time that drift is measured in.")] = None,
    plans: Annotated[
        bool, typer.Option(help="Whether policies that trust the log's timing to come again are candidates.")
    ] = True,
    worlds: Annotated[int, typer.Option(min=1, help="Worlds drawn anew from the log to try candidates on.")] = 20,
    trials: Annotated[int, typer.Option(min=1, help="Trials of each candidate on each world.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same advice.")] = 0,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("advice.html"),
    world: Annotated[Path | None, typer.Option(help="Where to save the fitted world, for Instance.load.")] = None,
    bad_rows: Annotated[Path | None, typer.Option(help="Where to write every bad row of the log, as CSV.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document to stdout.")] = False,
) -> None:
    """Say whether a log drifts, whether that matters for a budget, which policy to use, and what more budget is worth.

    The log's columns: time, arm (empty: skipped), reward, one for each resource, and propensity if it is known.

    Example: driftsack advise log.csv --budget 500 --budget 800 --horizon 10000
    """
    from driftsack.advice import advise as compute  # noqa: PLC0415  (kernels load only where used)

    with plain_errors():
        check_file(out, "--out")
        if world is not None:
            check_file(world, "--world")
    with plain_errors(), bad_rows_kept(bad_rows), progress_bar() as bar:
        found = compute(
            log,
            budget,
            horizon,
            resources=resource,
            arms=arm,
            reward_max=reward_max,
            cost_max=cost_max or 1.0,
            separator=separator,
            block=block,
            windows=windows,
            plans=plans,
            worlds=worlds,
            trials=trials,
            seed=seed,
            progress=Tasks(bar),
        )
        bar.stop()
        found.write(out)
        if world is not None:
            found.world.save(world)
    if as_json:
        print_json({**found.to_dict(), "page": str(out)})
        return
    results.print(Text(str(found)))
    results.print(rich_table(pl.DataFrame(standings(found)), f"Candidates on {worlds} worlds fitted to {log.name}"))
    messages.print(Text(f"Page: {out}"))


class Tasks:
    """A line of the progress bar for each thing that is being done."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar
        self.known: dict[str, TaskID] = {}

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show that so much of it is done; whatever came before it is finished."""
        if what not in self.known:
            for task in self.bar.tasks:
                self.bar.update(task.id, completed=task.total)
            self.known[what] = self.bar.add_task(what, total=total)
        self.bar.update(self.known[what], completed=done)


@contextlib.contextmanager
def bad_rows_kept(path: Path | None) -> Iterator[None]:
    """Write the bad rows of a log that cannot be read to a file, if one is named."""
    try:
        yield
    except LogError as error:
        if path is not None and error.bad:
            messages.print(Text(kept(error, path)))
        raise


def kept(error: LogError, path: Path) -> str:
    """Write the bad rows, and say where they are, or why they are not."""
    try:
        pl.DataFrame([row._asdict() for row in error.bad]).write_csv(path)
    except OSError as failure:
        return f"Bad rows could not be written to {path}: {failure}"
    return f"Bad rows: {path}"


def standings(found: Any) -> list[dict[str, Any]]:
    """A row a candidate, the best first."""
    rows = [
        {
            "candidate": one.candidate.name,
            "reward": one.reward,
            "optimum_share": one.share,
            "95% of worlds": f"{one.low:.0%} to {one.high:.0%}",
        }
        for one in found.standings
    ]
    return sorted(rows, key=lambda row: -row["optimum_share"])
