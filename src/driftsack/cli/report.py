"""``driftsack report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftsack.cli.run import JsonOption
from driftsack.cli.show import make_folder, messages, plain_errors, print_json, results, rich_table


def report(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A folder that driftsack run filled.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the report; STORE/report if not given.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Report on a store: tables, figures and one HTML page that needs no network.

    Writes table.csv, curves_1 and so on (cumulative rewards, three worlds a figure), shares (a heat map) as .png, .svg
    and .pdf, and report.html. A store whose run has not ended is reported as far as it goes.

    Example: driftsack report results
    """
    from driftsack.paper import report as work  # noqa: PLC0415  (Polars and Matplotlib load only where used)
    from driftsack.plot import heat_figure, rewards_figure, write_figure  # noqa: PLC0415
    from driftsack.sweeps import summary  # noqa: PLC0415
    from driftsack.sweeps.store import Store  # noqa: PLC0415

    with plain_errors():
        place = out or store / "report"
        kept = Store(store)
        trials, missing = kept.load(), kept.missing()
        make_folder(place)
        table = summary(trials)
        figures = []
        with messages.status("drawing"):
            for number, part in enumerate(work.threes(work.panels(trials)), start=1):
                figure = rewards_figure(part, work.optima(trials), "band: ± 2 standard errors")
                figures += write_figure(figure, place, f"curves_{number}")
            if not table.is_empty():
                figure = heat_figure(*work.shares(table), "reward, % of LP-Dynamic")
                figures += write_figure(figure, place, "shares")
        work.write_store(table, kept.plan(), missing, figures, place)
    if as_json:
        paths = [str(path) for path in figures]
        page = str(place / "report.html")
        print_json({"table": table.to_dicts(), "missing": missing, "figures": paths, "report": page})
        return
    results.print(rich_table(table.drop("optimum", "fallbacks", "spent_share"), "Mean ± standard error"))
    unfinished = f"{missing} cells are still missing; run the sweep again to play them.   " if missing else ""
    messages.print(f"{unfinished}Report: {place / 'report.html'}   Figures: {len(figures)}")
