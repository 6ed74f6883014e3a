"""``driftsack reproduce`` and ``driftsack.paper``: figures, claims, the calibration and the report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import driftsack.paper
from driftsack.cli import app
from driftsack.core.errors import SettingError
from driftsack.paper import calibration
from driftsack.paper import experiments as paper
from driftsack.paper.speed import compare_speed
from driftsack.plot import page
from driftsack.sweeps import load
from driftsack.sweeps.cells import list_cells
from tests.support.paths import ROOT

SMALL = ["--trials", "4", "--horizon", "200"]
FIGURES = ("figure_1a", "figure_1b", "figure_2a", "figure_2b", "figure_3")


def reproduce(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["reproduce", *SMALL, *arguments, "--json"])
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("paper") / "new" / "directory"
    return out, reproduce("--out", str(out))


@pytest.mark.slow
def test_every_figure_and_every_claim(made: tuple[Path, dict[str, Any]]) -> None:
    out, document = made
    assert {"claims", "figures", "seconds", "speed", "settings"} <= set(document)
    assert {Path(path).name for path in document["figures"]} == {
        f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg", "pdf")
    }
    assert all(Path(path).stat().st_size > 5_000 for path in document["figures"])
    assert len(document["claims"]) == 12 + 2 * 19
    for one in document["claims"]:
        assert one["verdict"] in {"holds", "fails", "undecided"}
        assert one["setting"] in {"both", "printed", "calibrated"}
        assert one["numbers"]
    assert document["speed"]["ratio"] > 0
    assert {"report.html", "claims.csv", "table.csv"} <= {path.name for path in out.iterdir()}


def test_the_figures_name_their_axes_and_settings(made: tuple[Path, dict[str, Any]]) -> None:
    words = {
        "figure_1a": ("cumulative reward", "round", "printed: scale 1, bernoulli", "best plan", "LagrangeBwK"),
        "figure_2a": (
            "regret",
            "change point α, as a share of the horizon",
            "standard errors",
            "0.6",
            "calibrated: scale",
            "Example 3. 4 trials",
        ),
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


@pytest.mark.slow
def test_a_second_run_simulates_nothing_and_gives_the_same_results(made: tuple[Path, dict[str, Any]]) -> None:
    again = reproduce("--out", str(made[0]))
    assert again["claims"] == made[1]["claims"]
    assert again["table"] == made[1]["table"]
    assert again["speed"]["ratio"] is None  # nothing was simulated, so no speed is reported


@pytest.mark.slow
def test_another_seed_gives_another_table(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    assert reproduce("--out", str(tmp_path), "--seed", "0")["table"] != made[1]["table"]


@pytest.mark.slow
def test_the_command_prints_verdicts(made: tuple[Path, dict[str, Any]]) -> None:
    result = CliRunner().invoke(app, ["reproduce", *SMALL, "--out", str(made[0])])
    assert result.exit_code == 0, result.output
    printed = " ".join(result.stdout.split())
    for text in ("policies in the printed setting; ± are", "selected on seed 0, judged on seed 1", "holds", "fails"):
        assert text in printed


@pytest.mark.slow
def test_python_and_the_command_give_the_same_results(made: tuple[Path, dict[str, Any]]) -> None:
    """The same files and claims; progress is reported in trials, up to the last one of each sweep."""
    calls: list[tuple[str, int, int]] = []
    kept = (made[0] / "claims.csv").read_bytes(), (made[0] / "table.csv").read_bytes()
    result = driftsack.paper.reproduce(made[0], trials=4, horizon=200, progress=lambda *call: calls.append(call))
    document = result.to_dict()
    assert {name: document[name] for name in ("claims", "table", "figures", "report", "settings")} == {
        name: made[1][name] for name in ("claims", "table", "figures", "report", "settings")
    }
    assert (result.cells_played, result.cells_kept) == (0, made[1]["cells"]["played"])
    assert ((made[0] / "claims.csv").read_bytes(), (made[0] / "table.csv").read_bytes()) == kept
    assert ("printed", 0, 4 * 3 * len(paper.paper_instances(200))) in calls
    assert calls[-1] == ("figures", 1, 1)
    with pytest.raises(SettingError, match="out must be a writable directory"):
        driftsack.paper.reproduce(made[0] / "claims.csv")


def test_the_worlds_and_windows_are_those_of_the_text() -> None:
    main = paper.sweep(paper.PRINTED, trials=100, horizon=10_000, seed=0)
    assert len(main.instances) == 2 + 11 + 8
    cell = next(cell for cell, _ in list_cells(main) if cell.instance == "Example 2" and cell.policy == "SW-UCB")
    assert json.loads(cell.settings)["variation"] == [0.5, 1.0]
    assert {part.noise for part in (one.build() for one in paper.paper_instances(100))} == {"bernoulli"}


def test_slopes_are_measured_before_and_after_the_middle() -> None:
    curve = [0.5 * t if t <= 100 else 50 + 0.2 * (t - 100) for t in range(1, 201)]
    slopes = pl.DataFrame({"curve": [curve]}).select(*paper.slopes(200)).row(0)
    assert slopes == pytest.approx((0.5, 0.2, 0.2))


@pytest.mark.slow
def test_the_grid_counts_claims_and_keeps_names_apart(tmp_path: Path) -> None:
    document = reproduce("--calibrate", "--out", str(tmp_path))
    assert len(document["grid"]) == 2 * 8 * 2
    assert all(row["holds"] + row["fails"] + row["undecided"] == 19 for row in document["grid"])
    counts = [row["holds"] for row in document["grid"]]
    assert counts == sorted(counts, reverse=True)
    setting = paper.Setting("x", 1.0, "bernoulli", divide=True)
    alone = paper.sweep(setting, trials=4, horizon=200, seed=0)
    grid = calibration.trials_of_setting(load(tmp_path / "store" / "grid-bernoulli"), setting)
    assert set(grid["policy"]) == set(paper.POLICIES)
    (cell, _), *_ = list_cells(alone)
    row = grid.filter((pl.col("instance") == cell.instance) & (pl.col("policy") == cell.policy))
    assert row["settings"].unique().to_list() == [cell.settings]


def test_the_calibrated_setting_is_the_best_point_of_the_documented_grid() -> None:
    """The page's rows are sorted as the rule says, and the constant is the first of them."""
    text = (ROOT / "docs" / "calibration.md").read_text()
    lines = text[text.index("## The grid") :].splitlines()
    rows = [[field.strip() for field in line.strip("|").split("|")] for line in lines if line.startswith("| ")][2:]
    assert len(rows) == len(list(calibration.grid_settings()))
    keys = [(int(row[3]), row[0] == "bernoulli", float(row[1])) for row in rows]
    assert keys == sorted(keys, reverse=True)
    noise, scale, start = rows[0][:3]
    assert paper.Setting("calibrated", float(scale), noise, divide=start == "OPT_FD/(d+1)") == paper.CALIBRATED


def test_speed_is_measured_on_a_slice() -> None:
    speed = compare_speed(rounds=1_000_000, seconds=2.0)
    assert speed.plain_seconds == pytest.approx(1e6 * speed.plain_round_seconds)
    assert speed.ratio == pytest.approx(speed.plain_seconds / 2.0)
    assert 1e-4 < speed.plain_round_seconds < 1.0


def test_pages_escape_what_they_show() -> None:
    rows: list[list[Any]] = [["<script>"], [None], [page.Badge("✓ <holds>", "good")], [1234.5]]
    text = page.page("<b>", "a & b", [page.table(["<x>"], rows)])
    assert "<script>" not in text
    for word in ("&lt;b&gt;", "a &amp; b", '<td class="badge good">✓ &lt;holds&gt;</td>', "1,234"):
        assert word in text


def test_only_a_badge_is_coloured() -> None:
    """A text that equals a verdict is not coloured, because only the type of the cell counts."""
    assert page.table([], [["holds"]]).count("<td>holds</td>") == 1
