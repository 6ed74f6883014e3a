"""The study of the flights of 2013: its figures, and the page of the gallery."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import driftsack as ds
from lab.flights import half_year, league_entries, optima, windowed

ROOT = Path(__file__).parents[2]


def test_the_figures_of_the_gallery_are_reproduced() -> None:
    """LP-Dynamic, single steps and LP-Static per round; the number of changes of the best carrier; weekly V1."""
    table = ds.datasets.flights()
    assert len(table) == 9_489
    found = optima(ds.datasets.flights_world("week"))
    assert found["LP-Dynamic"] == pytest.approx(0.786, abs=0.002)
    assert found["single steps"] == pytest.approx(0.659, abs=0.003)
    assert found["LP-Static"] == pytest.approx(0.643, abs=0.002)
    assert table.table is not None
    weekly = table.table[: 52 * 182].reshape(52, 182, 6, 3).mean(axis=1)[:, :, 0]
    assert (np.diff(weekly.argmax(axis=1)) != 0).sum() == 33
    assert np.abs(np.diff(weekly, axis=0)).max(axis=1).sum() == pytest.approx(14.31, abs=0.01)


def test_short_windows_lose_reward_on_the_real_rows() -> None:
    """A window of one week against no window: 0.572 and 0.618 per round, 8 standard errors apart at 40 trials."""
    world = ds.datasets.flights_world()
    entries = league_entries(ds.datasets.flights_world("week"))
    remembers = ds.simulate(world, next(e.policy for e in entries if e.name == "NaiveUCB, no window"), trials=12)
    forgets = ds.simulate(world, windowed(1), trials=12)
    error = np.sqrt((remembers.reward.var(ddof=1) + forgets.reward.var(ddof=1)) / 12)
    assert remembers.reward.mean() - forgets.reward.mean() > 2 * error
    assert {type(entry.policy).__name__ for entry in entries} == set(ds.policies.__all__) - {
        "DisjointBwK",  # needs contexts, as the next four do
        "LagrangeCBwK",
        "LinearBwK",
        "PerSegment",
        "SquareCBwK",
        "Exp3BwK",  # takes one resource
        "WithExploration",  # wraps another policy
        "Learner",
        "Policy",
        "from_spec",
    }


def test_averages_of_the_last_half_year_help_if_learning_continues() -> None:
    rows = {row["policy"]: row["reward"] for row in half_year(trials=6)}
    trusted = rows["the first half's averages, trust 0.9"]
    assert trusted > rows["NaiveUCB, no forecast"]
    assert trusted > rows["the first half's averages, trust 1 (never learns)"] + 0.05


def test_the_gallery_prints_its_tables_and_draws_its_figure(tmp_path: Path) -> None:
    script = ROOT / "docs" / "gallery" / "flights.py"
    done = subprocess.run([sys.executable, script, tmp_path, "1"], check=True, capture_output=True, text=True)
    listed = [line.split("|")[1].strip() for line in done.stdout.splitlines() if line.startswith("|")]
    entries = {entry.name for entry in league_entries(ds.datasets.flights_world("week"))}
    assert entries <= set(listed)
    assert "the first half's averages, trust 0.9" in set(listed) - entries
    assert imread(tmp_path / "flights.png").shape == imread(ROOT / "docs" / "figures" / "flights.png").shape
