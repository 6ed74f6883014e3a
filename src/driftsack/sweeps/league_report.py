"""The league, played and reported: the table and the heat map that ``driftsack league`` writes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from driftsack.plot import heat_figure, write_figure
from driftsack.plot.style import make_folder
from driftsack.sweeps.cells import FailedCell
from driftsack.sweeps.engines import Engine
from driftsack.sweeps.league import as_grid, league_spec, overview, standings
from driftsack.sweeps.store import load
from driftsack.sweeps.sweep import SweepProgress, run


class LeagueReport(NamedTuple):
    """What :func:`run_league` found and wrote.

    Attributes:
        table: One row per policy and instance, the best policy first: its share of LP-Dynamic, or why there is none.
        overview: One row per policy, the best first: mean, least and largest share, and how many instances it refused.
        instances: How many instances the league has.
        csv: The file of the table.
        figures: The files of the heat map.
        failed: The cells that failed, with their errors.
        seconds: Time taken.
    """

    table: pl.DataFrame
    overview: pl.DataFrame
    instances: int
    csv: Path
    figures: list[Path]
    failed: list[FailedCell]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "table": self.table.to_dicts(),
            "figures": [str(path) for path in self.figures],
            "failed": [cell.to_dict() for cell in self.failed],
            "seconds": self.seconds,
        }


def run_league(
    out: str | os.PathLike[str],
    trials: int = 20,
    horizon: int = 10_000,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> LeagueReport:
    """Play every policy on every instance of the league; write ``league.csv`` and a heat map.

    Trials are kept in ``store`` inside the folder, so that the same call again plays only what is missing.

    Args:
        out: The folder to write to.
        trials: Trials of each policy on each instance.
        horizon: Rounds of a trial.
        seed: The seed; the same seed gives the same bits.
        engine: What plays the cells; threads of this process by default.
        progress: Called with what is being done, how much of it is done and the total.
        notify: Called with a sentence for each cell that failed and each damaged file that was set aside.

    Returns:
        The table and the files that were written.

    Raises:
        SettingError: If a setting is wrong or ``out`` cannot be written to.
    """
    folder = make_folder(out)
    spec = league_spec(trials, horizon, seed)

    def show(now: SweepProgress) -> None:
        if progress is not None:
            progress("trials", now.done, now.total)

    swept = run(spec, folder / "store", engine, show, notify)
    table = standings(load(folder / "store"), swept.failed, spec)
    table.write_csv(folder / "league.csv")
    shares, policies, columns = as_grid(table)
    figures = write_figure(heat_figure(shares, policies, columns, "reward, % of LP-Dynamic"), folder, "league")
    return LeagueReport(
        table, overview(table), len(spec.instances), folder / "league.csv", figures, swept.failed, swept.seconds
    )
