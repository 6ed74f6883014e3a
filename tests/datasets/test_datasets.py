"""The flights of 2013: every round agrees with the raw table, and so do the figures of the gallery."""

from __future__ import annotations

import importlib.util
from datetime import datetime, timedelta

import numpy as np
import pytest

import driftsack as ds
from driftsack.advice.drift_detection import detect_drift
from driftsack.advice.time_windows import merge_blocks
from driftsack.core.errors import DriftsackError, SettingError
from driftsack.datasets.flights import CARRIERS, chicago_flights
from lab.flights import half_year, league_entries, optima, windowed


@pytest.fixture(scope="module")
def table() -> ds.logs.Log:
    return ds.datasets.flights()


def test_rounds_are_those_of_the_raw_table(table: ds.logs.Log) -> None:
    """150 rounds, each looked up flight by flight."""
    raw = list(chicago_flights().iter_rows(named=True))
    start = datetime.fromisoformat("2013-01-01T06:00")  # local time, as in the table
    assert table.table is not None
    for t in np.random.default_rng(0).choice(9_489, 150, replace=False).tolist():
        now = start + timedelta(days=t // 26, minutes=30 * (t % 26))
        for i, carrier in enumerate(CARRIERS):
            later = [row for row in raw if row["carrier"] == carrier and row["departure"] >= now]
            first = min(later, key=lambda row: (row["departure"], row["flight"], row["origin"]))
            delay, wait = first["arr_delay"], (first["departure"] - now).total_seconds() / 60
            cancelled = delay is None
            expected = [
                0.0 if cancelled else delay <= 15,
                1.0 if cancelled else min(max(delay / 180, 0.0), 1.0),
                min(wait / 720, 1.0),
            ]
            np.testing.assert_allclose(table.table[t, i], expected)


def test_the_figures_of_the_gallery_are_reproduced(table: ds.logs.Log) -> None:
    """LP-Dynamic, single steps and LP-Static per round; the number of changes of the best carrier; weekly V1."""
    assert len(table) == 9_489
    found = optima(ds.datasets.flights_world("week"))
    assert found["LP-Dynamic"] == pytest.approx(0.786, abs=0.002)
    assert found["single steps"] == pytest.approx(0.659, abs=0.003)
    assert found["LP-Static"] == pytest.approx(0.643, abs=0.002)
    assert table.table is not None
    weekly = table.table[: 52 * 182].reshape(52, 182, 6, 3).mean(axis=1)[:, :, 0]
    assert (np.diff(weekly.argmax(axis=1)) != 0).sum() == 33
    assert np.abs(np.diff(weekly, axis=0)).max(axis=1).sum() == pytest.approx(14.31, abs=0.01)


def test_most_of_the_weekly_drift_is_variation_between_days(table: ds.logs.Log) -> None:
    rows = ds.logs.survey(table, most_cells=2**14)
    by_round, by_day = detect_drift(rows, windows=52), detect_drift(merge_blocks(rows, 26), windows=52)
    assert by_round.measures["v1"].floor == pytest.approx(3.9, abs=0.1)
    assert by_day.measures["v1"].floor == pytest.approx(13.1, abs=0.3)
    assert by_day.measures["v1"].share < 0.15
    assert by_round.measures["v1"].share > 0.6
    assert by_day.found  # schedules do change, slowly


def test_short_windows_lose_reward_on_the_real_rows() -> None:
    """A window of one week against no window: 0.572 and 0.618 per round, 8 standard errors apart at 40 trials."""
    world = ds.datasets.flights_world()
    entries = league_entries(ds.datasets.flights_world("week"))
    remembers = ds.simulate(world, next(e.policy for e in entries if e.name == "NaiveUCB, no window"), trials=12)
    forgets = ds.simulate(world, windowed(1), trials=12)
    error = np.sqrt((remembers.reward.var(ddof=1) + forgets.reward.var(ddof=1)) / 12)
    assert remembers.reward.mean() - forgets.reward.mean() > 2 * error
    assert {type(entry.policy).__name__ for entry in entries} == set(ds.policies.__all__) - {
        "DisjointBwK",  # needs contexts, as the next three do
        "LinearBwK",
        "PerSegment",
        "SquareCBwK",
        "Exp3BwK",  # takes one resource
        "Learner",
        "Policy",
        "from_spec",
    }


def test_averages_of_the_last_half_year_help_if_learning_continues() -> None:
    rows = {row["policy"]: row["reward"] for row in half_year(trials=6)}
    trusted = rows["the first half's averages, trust 0.9"]
    assert trusted > rows["NaiveUCB, no forecast"]
    assert trusted > rows["the first half's averages, trust 1 (never learns)"] + 0.05


def test_a_missing_extra_and_a_wrong_setting_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(DriftsackError, match=r"pip install 'driftsack\[flights\]'"):
        ds.datasets.flights()
    with pytest.raises(SettingError, match="means must be one of"):
        ds.datasets.flights_world("month")
