"""Lenient reading: formats of spreadsheets and names in other case are understood, counted and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import driftsack as ds
from driftsack.core.errors import CannotAnswerError, LogError, SettingError
from driftsack.logs import stream

HEADER = "When,Carrier,ok,Price"
ROWS = ["1/31/2024 6:30 PM,DHL,yes,$0.012", "1/31/2024 6:31 PM, dhl,no,$0.022", "2/1/2024,UPS,Yes,", "2/1/2024,UPS,y,3"]
OPTIONS: dict[str, Any] = {"columns": {"time": "When", "arm": "Carrier", "reward": "ok"}, "resources": ["Price"]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "log.csv").write_text("\n".join([HEADER, *ROWS]))
    return tmp_path / "log.csv"


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_spreadsheet_is_read_and_what_was_read_leniently_is_reported(
    path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(stream, "ROWS_AT_ONCE", size)
    options = {**OPTIONS, "dates": "us", "merge_names": True}
    mean = ds.logs.read(path, **options, missing_costs="mean")
    assert mean.arms == ("DHL", "UPS")
    assert mean.reward.tolist() == [1.0, 0.0, 1.0, 1.0]
    assert mean.costs[:, 0].tolist() == [0.012, 0.022, 3.0, 3.0]  # the mean of UPS
    np.testing.assert_array_equal(np.diff(mean.time), [60.0, 5.5 * 3600 - 60, 0.0])
    assert set(mean.lenient) == {
        "Values of ok that are yes or no, read as 1 and 0: 4.",
        "Values of Price with a currency sign, which was left out: 2.",
        "Rows of the arm 'dhl', counted as 'DHL': 1.",
        "Empty values of Price, replaced by the mean of their arm: 1.",
    }
    drop = ds.logs.read(path, **options, missing_costs="drop")
    assert (len(drop), drop.costs[:, 0].tolist()) == (3, [0.012, 0.022, 3.0])
    assert "Empty values of Price, left out with their rows: 1." in drop.lenient
    for log, kind in ((mean, "mean"), (drop, "drop")):
        summary = ds.logs.survey(path, **options, missing_costs=kind)
        assert (summary.lenient, summary.rows) == (log.lenient, len(log))
        assert summary.totals is not None
        np.testing.assert_allclose(summary.totals, [log.reward.sum(), log.costs.sum()])
        assert summary.recent is not None
        np.testing.assert_array_equal(summary.recent.costs, log.costs)
        assert summary.calendar is not None
        assert summary.calendar.at(1).isoformat() == "2024-01-31T18:31:00+00:00"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dates": "iso"}, "got '1/31/2024 6:30 PM'; pass dates='us' (--dates us)"),
        ({}, "line 4: Price is empty although an arm was played; fill it in, or pass missing_costs='mean'"),
        ({"resources": ["price"]}, "lacks the column price; it has When, Carrier, ok, Price. Did you mean `Price`"),
        ({"columns": {"time": "Wen"}}, "lacks the column Wen; it has When, Carrier, ok, Price. Did you mean `When`"),
    ],
)
def test_errors_use_the_columns_of_the_file(path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(LogError) as caught:
        ds.logs.read(path, **{**OPTIONS, "dates": "us", **changes})
    assert words in str(caught.value)


def test_a_comma_is_never_guessed_to_be_a_decimal_mark(tmp_path: Path) -> None:
    """0,012 is twelve thousandths, not twelve: it is refused until the mark is stated, and 0.5 is refused then."""
    path = tmp_path / "log.csv"
    path.write_text("time;arm;reward;cost;context_size\n1;a;1;0,012;1,5\n2;a;1;€1.234,5;2\n")
    with pytest.raises(LogError, match=r"cost must be a number, got '0,012'; pass decimal=',' \(--decimal ,\)"):
        ds.logs.read(path, separator=";")
    log = ds.logs.read(path, separator=";", decimal=",")
    assert log.costs[:, 0].tolist() == [0.012, 1234.5]
    assert log.contexts is not None
    assert log.contexts.ravel().tolist() == [1.5, 2.0]
    path.write_text("time;arm;reward;cost\n1;a;1;0.012\n")
    with pytest.raises(LogError, match=r"cost must be a number, got '0\.012'"):
        ds.logs.read(path, separator=";", decimal=",")
    path.write_text('time,arm,reward,cost\n1,a,1,"1,234.5"\n2,a,1,"1,234"\n')
    assert [row.line for row in ds.logs.check(path)] == [3]  # 1,234 could be 1.234


def test_names_that_differ_by_case_are_reported_with_counts() -> None:
    """Split in two, the cheap arm looks rarely tried; merged, there is no warning."""
    frame = pl.DataFrame(
        {"time": range(60), "arm": ["DHL", "dhl", "UPS"] * 20, "reward": 1.0, "cost": [0.5, 0.4, 1.0] * 20}
    )
    split = ds.advise(frame, budget=20, worlds=1, trials=1)
    assert "'DHL' (20) and 'dhl' (20). They were counted as different arms" in split.caution
    assert "--merge-names" in split.caution
    merged = ds.advise(frame, budget=20, worlds=1, trials=1, merge_names=True)
    assert merged.survey.arms == ("DHL", "UPS")
    assert "differ only by case" not in merged.caution
    assert "Rows of the arm 'dhl', counted as 'DHL': 20." in merged.notes
    given = ds.logs.read(frame, merge_names=True, arms=["dhl", "UPS"])
    assert given.arms == ("dhl", "UPS")


def test_costs_without_a_mean_and_unknown_options_are_refused() -> None:
    frame = pl.DataFrame({"time": [1, 2], "arm": ["a", "b"], "reward": [1, 1], "cost": [1.0, None]})
    with pytest.raises(CannotAnswerError, match=r"every cost of arm b is empty, so it has no mean"):
        ds.logs.read(frame, missing_costs="mean")
    for name, value in (("decimal", ";"), ("dates", "uk"), ("missing_costs", "zero"), ("merge_names", "yes")):
        with pytest.raises(SettingError, match=f"{name} must be"):
            ds.logs.ReadOptions(**{name: value})  # type: ignore[arg-type]
