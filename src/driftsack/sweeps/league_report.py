"""Run and report the league: the tables and the heat map that ``driftsack league`` writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from driftsack.plot import heat_figure, write_figure
from driftsack.plot.style import make_directory
from driftsack.sweeps.cells import FailedCell
from driftsack.sweeps.engines import SweepEngine
from driftsack.sweeps.held_out import (
    POORER,
    Conditions,
    HeldOut,
    against_best,
    family_leaders,
    family_shares,
    held_out_worlds,
    is_rival,
    leads,
    second_half,
    summarise,
)
from driftsack.sweeps.league import TWELVE, as_grid, held_out_spec, league_spec, overview, present_shares, standings
from driftsack.sweeps.spec import Spec
from driftsack.sweeps.store import load
from driftsack.sweeps.sweep import SweepProgress, SweepResult, run

BASELINE: Final = "UniformRandom"
CHAMPION: Final = "Adaptive"  # the policy that the documentation recommends


class LeagueReport(NamedTuple):
    """The results of :func:`run_league` or :func:`run_held_out`, and the files that they wrote.

    Attributes:
        table: One row per policy and instance, the best policy first: its share of LP-Dynamic, or why there is none.
        overview: One row per policy, the best first: mean, least and largest share, and how many instances it refused.
        present: One row per instance: the shares of a policy that knows the present means but not the future. The gap
            to 1 is the price of not knowing the future; the gap to another policy is the cost of learning.
        instances: How many instances the league has.
        csv: The file of the table.
        figures: The files of the heat map.
        failed: The cells that failed, with their errors.
        seconds: Time taken.
        families: One row per policy and family with the mean share and its standard error over worlds; None for the
            league of fixed instances.
        leaders: One row per family: the two best policies that are told nothing of the world, and uniform random
            choice.
        leads: One row per rival with the lead of ``Adaptive`` over it, paired by world; None for the league of fixed
            instances. Policies that are told of rounds to come are left out.
        against_best: ``Adaptive`` against the best of the twelve tuned settings of each world, in all ``worlds`` that
            do not get poorer: ``mean``, ``within_1`` and ``within_5``. Where a world gets poorer, spending too early by
            accident wins.
        poorer: The worlds that get poorer, one row each, the one with the greatest decline first.
        conditions: The conditions under which the policies were compared; None for the league of fixed instances.
    """

    table: pl.DataFrame
    overview: pl.DataFrame
    present: pl.DataFrame
    instances: int
    csv: Path
    figures: list[Path]
    failed: list[FailedCell]
    seconds: float
    families: pl.DataFrame | None = None
    leaders: Sequence[Mapping[str, Any]] = ()
    leads: pl.DataFrame | None = None
    against_best: Mapping[str, float] | None = None
    poorer: Sequence[Mapping[str, Any]] = ()
    conditions: Conditions | None = None

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "table": self.table.to_dicts(),
            **({} if self.conditions is None else {"conditions": self.conditions._asdict()}),
            **({} if self.families is None else {"families": self.families.to_dicts()}),
            **({} if self.leads is None else {"leads": self.leads.to_dicts()}),
            **({} if self.against_best is None else {"against_best": self.against_best, "poorer": list(self.poorer)}),
            "overview": self.overview.to_dicts(),
            "present_means_known": self.present.to_dicts(),
            "figures": [str(path) for path in self.figures],
            "failed": [cell.to_dict() for cell in self.failed],
            "seconds": self.seconds,
        }


def run_league(
    out: str | os.PathLike[str],
    trials: int = 20,
    horizon: int = 10_000,
    seed: int = 0,
    engine: SweepEngine | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> LeagueReport:
    """Simulate every policy on every instance of the league; write ``league.csv`` and a heat map.

    Trials are kept in ``store`` inside the directory, so that repeating the call simulates only the missing ones.

    Args:
        out: The directory to write to.
        trials: Trials of each policy on each instance.
        horizon: Rounds of a trial.
        seed: The seed; the same seed gives the same bits.
        engine: Where the cells are simulated; threads of this process by default.
        progress: Called with the current step, how much of it is done, and the total.
        notify: Called with a sentence for each cell that failed and each corrupted file that was set aside.

    Returns:
        The table and the files that were written.

    Raises:
        SettingError: If a setting is wrong or ``out`` cannot be written to.
    """
    directory = make_directory(out)
    spec = league_spec(trials, horizon, seed)
    table, swept = _simulate(spec, directory, engine, progress, notify)
    csv, figures = directory / "league.csv", _write_heat_map(table, directory, "league")
    table.write_csv(csv)
    return LeagueReport(
        table=table,
        overview=overview(table),
        present=present_shares(spec),
        instances=len(spec.instances),
        csv=csv,
        figures=figures,
        failed=swept.failed,
        seconds=swept.seconds,
    )


def run_held_out(
    out: str | os.PathLike[str],
    held_out: HeldOut,
    trials: int = 20,
    seed: int = 0,
    engine: SweepEngine | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> LeagueReport:
    """Simulate every policy on fresh worlds of every family; write two tables and a heat map.

    The files are named after the seed of the worlds and the conditions: ``held_out_7.csv`` has one row per policy and
    world, ``held_out_7_families.csv`` one per policy and family; ``held_out_7_delay_200.csv`` is for late outcomes.

    Args:
        out: The directory to write to.
        held_out: Which worlds are drawn, and the conditions.
        trials: Trials of each policy on each world.
        seed: The seed of the trials.
        engine: As in :func:`run_league`.
        progress: As in :func:`run_league`.
        notify: As in :func:`run_league`.

    Returns:
        The tables and the files that were written; standard errors are over worlds.

    Raises:
        SettingError: If a setting is wrong or ``out`` cannot be written to.
    """
    chosen = held_out.conditions
    worlds = held_out_worlds(held_out.seed, held_out.per_family, held_out.horizon, chosen.arms, chosen.resources)
    spec = held_out_spec(worlds, trials, seed, chosen.delay, chosen.loose)
    directory = make_directory(out)
    table, swept = _simulate(spec, directory, engine, progress, notify)

    # Compare Adaptive with the best setting of each world, apart from worlds that get poorer.
    shares = family_shares(table, worlds)
    rivals = [policy.label for policy in spec.policies if is_rival(policy) and policy.label != CHAMPION]
    halves = {world.label: second_half(world.build()) for world in spec.instances}
    differences = against_best(table, CHAMPION, [label for label in TWELVE if label in rivals] or rivals)
    differences = differences.with_columns(second_half=pl.col("world").replace_strict(halves))
    gets_poorer = pl.col("second_half") < POORER

    # Write the tables and the heat map.
    name = f"held_out_{held_out.seed}{chosen.suffix}"
    table.write_csv(directory / f"{name}.csv")
    shares.write_csv(directory / f"{name}_families.csv")
    return LeagueReport(
        table=table,
        overview=overview(table, over_worlds=True),
        present=present_shares(spec),
        instances=len(spec.instances),
        csv=directory / f"{name}.csv",
        figures=_write_heat_map(shares.rename({"family": "world", "mean_share": "optimum_share"}), directory, name),
        failed=swept.failed,
        seconds=swept.seconds,
        families=shares,
        leaders=family_leaders(shares, spec.policies, BASELINE),
        leads=leads(table, CHAMPION, rivals),
        against_best=summarise(differences.filter(~gets_poorer)),
        poorer=differences.filter(gets_poorer).sort("second_half").to_dicts(),
        conditions=chosen,
    )


def _simulate(
    spec: Spec,
    directory: Path,
    engine: SweepEngine | None,
    progress: Callable[[str, int, int], None] | None,
    notify: Callable[[str], None] | None,
) -> tuple[pl.DataFrame, SweepResult]:
    """Simulate the cells that are missing in the directory's store; return the standings and the sweep's result."""

    def show(now: SweepProgress) -> None:
        if progress is not None:
            progress("trials", now.done, now.total)

    swept = run(spec, directory / "store", engine, show, notify)
    return standings(load(directory / "store"), swept.failed, spec), swept


def _write_heat_map(table: pl.DataFrame, directory: Path, name: str) -> list[Path]:
    """Draw a table with the columns ``policy``, ``world`` and ``optimum_share``."""
    shares, policies, columns = as_grid(table)
    return write_figure(heat_figure(shares, policies, columns, "reward, % of LP-Dynamic"), directory, name)
