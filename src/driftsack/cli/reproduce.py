"""``driftsack reproduce``."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from driftsack.cli.show import (
    make_folder,
    messages,
    plain_errors,
    print_json,
    progress_bar,
    results,
    rich_table,
    update,
)


def reproduce(
    trials: Annotated[int, typer.Option(min=1, help="Trials of each policy on each example.")] = 100,
    horizon: Annotated[int, typer.Option(min=2, help="Rounds of a trial; budgets grow with it.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same bits.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the figure and the table.")] = Path("out"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document to stdout.")] = False,
) -> None:
    """Reproduce the paper's Figure 1: sliding-window and naive UCB on Examples 1 and 2.

    Halfway through, the world changes. Writes figure_1.png, .svg and .pdf and table.csv to --out. The first run also
    compiles the kernels, in about 20 seconds; later runs load them from disk.

    Example: driftsack reproduce --trials 20 --out quick
    """
    from driftsack.experiments import paper  # noqa: PLC0415  (Matplotlib loads only where used)
    from driftsack.plot import rewards_figure, write_figure  # noqa: PLC0415

    with plain_errors():
        make_folder(out)
        begun = time.perf_counter()
        cells = list(paper.figure_1(horizon))
        runs = []
        with progress_bar() as bar:
            compiling = bar.add_task("preparing kernels", total=1)
            paper.run_cell(next(paper.figure_1(horizon=2)), trials=1, seed=seed)
            update(bar, compiling, 1)
            for cell in cells:
                task = bar.add_task(f"{cell.example}, {cell.name}", total=trials)
                runs.append(paper.run_cell(cell, trials, seed, partial(update, bar, task)))
        figure = rewards_figure(paper.panels(cells, runs), paper.optima(cells))
        figures = [str(path) for path in write_figure(figure, out, "figure_1")]
        frame = paper.table(cells, runs)
        frame.write_csv(out / "table.csv")
        seconds = time.perf_counter() - begun
    if as_json:
        print_json({"table": frame.to_dicts(), "figures": figures, "seconds": seconds})
        return
    shown = frame.drop("trials", "fallbacks")  # the title says the one, a warning the other
    results.print(rich_table(shown, f"{trials} trials of {horizon:,} rounds (mean ± standard error)"))
    messages.print(f"Figure: {figures[0]} (and .svg, .pdf)   Table: {out / 'table.csv'}   {seconds:.1f} s")
