"""The flights of 2013: every round agrees with the raw table."""

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


def test_most_of_the_weekly_drift_is_variation_between_days(table: ds.logs.Log) -> None:
    rows = ds.logs.survey(table, most_cells=2**14)
    by_round, by_day = detect_drift(rows, windows=52), detect_drift(merge_blocks(rows, 26), windows=52)
    assert by_round.measures["v1"].floor == pytest.approx(3.9, abs=0.1)
    assert by_day.measures["v1"].floor == pytest.approx(13.1, abs=0.3)
    assert by_day.measures["v1"].share < 0.15
    assert by_round.measures["v1"].share > 0.6
    assert by_day.found  # schedules do change, slowly


def test_a_missing_extra_and_a_wrong_setting_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(DriftsackError, match=r"pip install 'driftsack\[flights\]'"):
        ds.datasets.flights()
    with pytest.raises(SettingError, match="means must be one of"):
        ds.datasets.flights_world("month")
