"""``driftsack league``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftsack.cli.run import AddressOption, EngineOption, JsonOption, WorkersOption, sweep
from driftsack.cli.show import make_folder, messages, plain_errors, print_json, results, rich_table


def league(
    trials: Annotated[int, typer.Option(min=1, help="Trials of each policy in each world.")] = 20,
    horizon: Annotated[int, typer.Option(min=100, help="Rounds of a trial.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same bits.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the table, the heat map and the trials.")] = Path("out/league"),
    engine: EngineOption = "local",
    workers: WorkersOption = None,
    address: AddressOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let every policy play a suite of worlds: the paper's, still, piecewise, smooth, traps, adversarial.

    Each is given as its reward's share of the best plan (LP-Dynamic). A policy that refuses a world gets a dash and its
    reason. Writes league.csv and league.png, .svg and .pdf to --out; trials are kept in --out/store.

    Example: driftsack league --trials 5 --out quick
    """
    from driftsack.plot import heat_figure, write_figure  # noqa: PLC0415
    from driftsack.sweeps import league as work  # noqa: PLC0415  (Polars and SciPy load only where used)
    from driftsack.sweeps import load  # noqa: PLC0415

    with plain_errors():
        make_folder(out)
        spec = work.league_spec(trials, horizon, seed)
        swept = sweep(spec, out / "store", engine, workers, address)
        table = work.standings(load(out / "store"), swept.failed, spec)
        table.write_csv(out / "league.csv")
        shares, policies, worlds = work.as_grid(table)
        figure = heat_figure(shares, policies, worlds, "reward, % of LP-Dynamic")
        figures = [str(path) for path in write_figure(figure, out, "league")]
    if as_json:
        document = {
            "table": table.to_dicts(),
            "figures": figures,
            "failed": swept.to_dict()["failed"],
            "seconds": swept.seconds,
        }
        print_json(document)
        return
    title = f"Share of LP-Dynamic over {len(worlds) - 1} worlds, {trials} trials (mean ± standard error)"
    results.print(rich_table(work.overview(table), title))
    messages.print(f"Table: {out / 'league.csv'}   Heat map: {figures[0]} (and .svg, .pdf)   {swept.seconds:.1f} s")
