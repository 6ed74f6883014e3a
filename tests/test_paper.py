"""``driftsack reproduce``: what is drawn and judged is what was played; the report needs nothing but itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import driftsack as ds
from driftsack.cli import app
from driftsack.cli.reproduce import show
from driftsack.paper import calibration
from driftsack.paper import experiments as paper
from driftsack.paper.speed import speed
from driftsack.plot import page
from driftsack.policies.until import Until
from driftsack.sweeps import load
from driftsack.sweeps.cells import list_cells

SMALL = ["--trials", "4", "--horizon", "200"]
FIGURES = ("figure_1a", "figure_1b", "figure_2a", "figure_2b", "figure_3")


def reproduce(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["reproduce", *SMALL, *arguments, "--json"])
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("paper") / "new" / "folder"
    return out, reproduce("--out", str(out))


def test_every_figure_and_every_claim(made: tuple[Path, dict[str, Any]]) -> None:
    out, document = made
    assert {"claims", "figures", "seconds", "speed", "settings"} <= set(document)
    assert {Path(path).name for path in document["figures"]} == {
        f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg", "pdf")
    }
    assert all(Path(path).stat().st_size > 5_000 for path in document["figures"])
    assert len(document["claims"]) == 6 + 2 * 16
    for one in document["claims"]:
        assert one["verdict"] in {"holds", "fails", "undecided"}
        assert one["setting"] in {"both", "printed", "calibrated"}
        assert one["numbers"]
    assert document["speed"]["ratio"] > 0
    assert {"report.html", "claims.csv", "table.csv"} <= {path.name for path in out.iterdir()}


def test_the_figures_name_their_axes_and_settings(made: tuple[Path, dict[str, Any]]) -> None:
    words = {
        "figure_1a": ("cumulative reward", "round", "printed: scale 1, bernoulli", "best plan", "LagrangeBwK"),
        "figure_2a": ("regret", "global variation", "calibrated: scale", "Example 3. 4 trials"),
        "figure_2b": ("regret", "local variation", "naive UCB"),
        "figure_3": ("change point k", "global variation of the rewards", "best centre"),
    }
    for name, labels in words.items():
        svg = (made[0] / f"{name}.svg").read_text()
        for label in labels:
            assert label in svg


def test_the_report_needs_no_network(made: tuple[Path, dict[str, Any]]) -> None:
    text = (made[0] / "report.html").read_text()
    assert text.count("data:image/png;base64,") == 5
    assert not re.search(r'(src|href)="(?!data:)', text)
    assert "<script" not in text
    assert "url(" not in text
    for word in ("versions", "seed", "time taken", "numba", "undecided", "Example 3: OPT(T) = T/4 for every α"):
        assert word in text


def test_a_second_run_plays_nothing_and_says_the_same(made: tuple[Path, dict[str, Any]]) -> None:
    again = reproduce("--out", str(made[0]))
    assert again["claims"] == made[1]["claims"]
    assert again["table"] == made[1]["table"]
    assert again["speed"]["ratio"] is None  # nothing was played, so nothing is claimed


def test_the_seed_decides(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    assert reproduce("--out", str(tmp_path), "--seed", "1")["table"] != made[1]["table"]


def test_people_see_verdicts(made: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    show(made[1])
    told = capsys.readouterr().out.replace("\u00a0", " ")
    for word in ("Claims, printed", "Claims, calibrated", "holds", "fails"):
        assert word in told


def test_the_worlds_and_windows_are_those_of_the_text() -> None:
    main, half = paper.sweeps(paper.PRINTED, trials=100, horizon=10_000, seed=0)
    assert len(main.instances) == 2 + 11 + 8
    cell = next(cell for cell, _ in list_cells(main) if cell.instance == "Example 2" and cell.policy == "SW-UCB")
    assert json.loads(cell.settings)["variation"] == [0.5, 1.0]
    assert [part.label for part in half.instances] == ["Example 1"]
    assert {part.noise for part in (place.build() for place in paper.places(100))} == {"bernoulli"}


def test_until_is_the_inner_policy_and_then_nothing() -> None:
    """Its pulls are those of the first half, counted by ask and tell; the whole run's would not be."""
    world, inner = ds.instances.example_1(horizon=300), ds.NaiveUCB(scale=0.3)
    run = ds.simulate(world, Until(inner, part=0.5), trials=3, seed=5)
    whole = ds.simulate(world, inner, trials=3, seed=5)
    half = np.searchsorted(whole.times, 150)
    np.testing.assert_array_equal(run.curve[:, : half + 1], whole.curve[:, : half + 1])
    assert (run.pulls.sum(axis=1) <= 150).all()
    assert (whole.pulls.sum(axis=1) > run.pulls.sum(axis=1)).all()
    assert (run.curve[:, half] == run.curve[:, -1]).all()


def test_slopes_are_read_beside_the_middle() -> None:
    curve = [0.5 * t if t <= 100 else 50 + 0.2 * (t - 100) for t in range(1, 201)]
    before, after = pl.DataFrame({"curve": [curve]}).select(*paper.slopes(200)).row(0)
    assert (before, after) == (pytest.approx(0.5), pytest.approx(0.2))


def test_the_grid_counts_claims_and_keeps_names_apart(tmp_path: Path) -> None:
    document = reproduce("--calibrate", "--out", str(tmp_path))
    assert len(document["grid"]) == 2 * 8 * 2
    assert all(row["holds"] + row["fails"] + row["undecided"] == 16 for row in document["grid"])
    counts = [row["holds"] for row in document["grid"]]
    assert counts == sorted(counts, reverse=True)
    setting = paper.Setting("x", 1.0, "bernoulli", divide=True)
    alone, _ = paper.sweeps(setting, trials=4, horizon=200, seed=0)
    grid = calibration.chosen(load(tmp_path / "store" / "grid-bernoulli-0"), setting)
    assert set(grid["policy"]) == set(paper.POLICIES)
    (cell, _), *_ = list_cells(alone)
    row = grid.filter((pl.col("instance") == cell.instance) & (pl.col("policy") == cell.policy))
    assert row["settings"].unique().to_list() == [cell.settings]


def test_the_calibrated_setting_is_the_best_point_of_the_documented_grid() -> None:
    """The page's rows are sorted as the rule says, and the constant is the first of them."""
    lines = (Path(__file__).parents[1] / "docs" / "calibration.md").read_text().splitlines()
    rows = [[field.strip() for field in line.strip("|").split("|")] for line in lines if line.startswith("| ")][2:]
    assert len(rows) == len(list(calibration.settings()))
    keys = [(int(row[3]), row[0] == "bernoulli", float(row[1])) for row in rows]
    assert keys == sorted(keys, reverse=True)
    noise, scale, start = rows[0][:3]
    assert paper.Setting("calibrated", float(scale), noise, divide=start == "OPT_FD/(d+1)") == paper.CALIBRATED


def test_speed_is_measured_on_a_slice() -> None:
    said = speed(rounds=1_000_000, seconds=2.0)
    assert said["plain_seconds"] == pytest.approx(1e6 * said["plain_round_seconds"])
    assert said["ratio"] == pytest.approx(said["plain_seconds"] / 2.0)
    assert 1e-4 < said["plain_round_seconds"] < 1.0


def test_pages_escape_what_they_show() -> None:
    text = page.page("<b>", "a & b", [page.grid(["<x>"], [["<script>"], [None], ["holds"], [1234.5]])])
    assert "<script>" not in text
    for word in ("&lt;b&gt;", "a &amp; b", "✓ holds", "1,234"):
        assert word in text
    assert page.numbers_in_words({"a": 12.0, "a ±": 0.5, "b": 3.0, "b ±": 0.0}) == "a 12 ± 0.5, b 3"
