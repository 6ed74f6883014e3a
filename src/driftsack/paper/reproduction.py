"""Reproduce the paper: run every experiment, judge every claim, draw every figure and write the report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from driftsack.core.errors import DriftsackError
from driftsack.paper.claims import judge
from driftsack.paper.experiments import HELD_OUT_SEED, SETTINGS, Setting, evidence, exact_evidence, lp_rounds, sweep
from driftsack.paper.figures import figure_data
from driftsack.paper.html_report import write_report
from driftsack.paper.judging import JudgedClaim
from driftsack.paper.speed import Speed, compare_speed
from driftsack.plot.paper import paper_figures
from driftsack.plot.style import make_directory
from driftsack.sweeps.spec import Spec
from driftsack.sweeps.store import load
from driftsack.sweeps.summary import summary
from driftsack.sweeps.sweep import SweepProgress, run

Report = Callable[[str, int, int], None]
Notify = Callable[[str], None]


class Reproduction(NamedTuple):
    """The results of :func:`reproduce` and the files that it wrote.

    Attributes:
        claims: Every claim with its verdict and its numbers, in every setting.
        table: One row per setting, instance and policy: means with standard errors, and shares.
        figures: The paths of the figures.
        report: The path of the HTML report.
        settings: The settings, by name.
        trials: The number of trials of each policy on each instance.
        horizon: The number of rounds of a trial.
        seed: The seed of all trials.
        cells_played: The number of cells played by this call.
        cells_kept: The number of cells kept from earlier calls.
        seconds: The time taken.
        speed: A comparison with a plain Python loop.
    """

    claims: list[JudgedClaim]
    table: pl.DataFrame
    figures: list[Path]
    report: Path
    settings: dict[str, Setting]
    trials: int
    horizon: int
    seed: int
    cells_played: int
    cells_kept: int
    seconds: float
    speed: Speed

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, ready for JSON."""
        return {
            "claims": [claim.to_dict() for claim in self.claims],
            "figures": [str(path) for path in self.figures],
            "seconds": self.seconds,
            "speed": self.speed._asdict(),
            "settings": {name: setting._asdict() for name, setting in self.settings.items()},
            "trials": self.trials,
            "horizon": self.horizon,
            "seed": self.seed,
            "cells": {"played": self.cells_played, "kept": self.cells_kept},
            "table": self.table.to_dicts(),
            "report": str(self.report),
        }


def reproduce(
    out: str | os.PathLike[str] = "out",
    trials: int = 100,
    horizon: int = 10_000,
    seed: int = HELD_OUT_SEED,
    progress: Report | None = None,
    notify: Notify | None = None,
) -> Reproduction:
    """Reproduce the paper's experiments in both settings, judge its claims and write the report.

    The calibrated setting was selected on another seed than the default one (:mod:`driftsack.paper.calibration`).

    Writes ``figure_1a`` to ``figure_3`` as PNG, SVG and PDF, ``claims.csv``, ``table.csv`` and ``report.html``. Trials
    are kept in ``store`` inside the directory, so that a repeated call plays only the missing ones.

    Args:
        out: The directory to write to.
        trials: The number of trials of each policy on each instance.
        horizon: The number of rounds of a trial; budgets grow with it.
        seed: The seed; the same seed gives the same bits.
        progress: Called with the name of the current step, the amount done and the total.
        notify: Called with a message for each corrupted file that was set aside.

    Returns:
        The claims, the table and the files that were written.

    Raises:
        SettingError: If a setting is wrong or ``out`` cannot be written to.
        DriftsackError: If a cell fails, since the figures need every cell.
    """
    begun = time.perf_counter()
    directory, tell = make_directory(out), progress or (lambda *_: None)
    played = play_settings(directory, trials, horizon, seed, tell, notify)
    claims = judge(played.evidence)
    tell("figures", 0, 1)
    figures = paper_figures(figure_data(played.trials, played.evidence, trials), directory)
    tell("figures", 1, 1)
    seconds = time.perf_counter() - begun
    reproduction = Reproduction(
        claims=claims,
        table=rewards_table(played.trials),
        figures=figures,
        report=directory / "report.html",
        settings={setting.name: setting for setting in SETTINGS},
        trials=trials,
        horizon=horizon,
        seed=seed,
        cells_played=played.cells_played,
        cells_kept=played.cells - played.cells_played,
        seconds=seconds,
        speed=compare_speed(played.lp_rounds, seconds),
    )
    write_report(reproduction, directory)
    return reproduction


class PlayedSettings(NamedTuple):
    """The trials of all settings."""

    trials: dict[str, pl.DataFrame]  # the trials of all policies on all instances, by setting
    evidence: dict[str, pl.DataFrame]  # the evidence on the claims, by setting
    cells: int  # the number of cells
    cells_played: int  # the number of cells played by this call
    lp_rounds: int  # the number of rounds in which these solved a linear program


def play_settings(
    directory: Path, trials: int, horizon: int, seed: int, progress: Report, notify: Notify | None
) -> PlayedSettings:
    """Play the cells of every setting that are missing from the stores, and collect the evidence."""
    exact = exact_evidence(horizon)
    found: dict[str, pl.DataFrame] = {}
    tables: dict[str, pl.DataFrame] = {}
    cells = cells_played = rounds = 0
    for setting in SETTINGS:
        store = directory / "store" / setting.name
        played = run_completely(sweep(setting, trials, horizon, seed), store, setting.name, progress, notify)
        frame = load(store)
        cells += frame["cell"].n_unique()
        cells_played += len(played)
        rounds += lp_rounds(frame.filter(pl.col("cell").is_in(list(played))))
        found[setting.name] = frame
        tables[setting.name] = evidence(frame, exact)
    return PlayedSettings(found, tables, cells, cells_played, rounds)


def run_completely(spec: Spec, store: Path, name: str, progress: Report, notify: Notify | None) -> set[str]:
    """Run a sweep and return the keys of the cells that were played; raise an error if a cell fails."""

    def show(now: SweepProgress) -> None:
        progress(name, now.done, now.total)

    progress(name, 0, len(spec.instances) * len(spec.policies) * len(spec.seeds) * spec.trials)
    swept = run(spec, store, None, show, notify)
    if swept.failed:
        raise DriftsackError(f"{len(swept.failed)} cells failed; the first: {swept.failed[0]}")
    return set(swept.played)


def rewards_table(trials: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Summarise the trials, one row per setting, instance and policy."""
    parts = [summary(frame).select(pl.lit(name).alias("setting"), pl.all()) for name, frame in trials.items()]
    return pl.concat(parts)
