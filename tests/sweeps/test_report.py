"""``driftsack run``, ``report`` and ``league``, called as from a shell and from Python."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import driftsack as ds
from driftsack.cli import app
from driftsack.plot import heat_figure
from driftsack.plot.rewards import Curves
from driftsack.policies import NaiveUCB, Policy, SlidingWindowUCB
from driftsack.policies.policy import recipes
from driftsack.sweeps import league as the_league
from driftsack.sweeps import make_spec
from driftsack.sweeps.cells import FailedCell
from driftsack.sweeps.forecasts import forecast, spending
from driftsack.sweeps.league import (
    ENTRIES,
    WORLDS,
    as_grid,
    entries,
    league_spec,
    needs_no_settings,
    overview,
    standings,
)
from driftsack.sweeps.store_report import report_store, split_panels
from tests.support.small_sweeps import CELLS

TOML = """
trials = 5
seeds = [0, 7]
block = 2
[[instances]]
instance = "example_1"
horizon = 200
[[instances]]
instance = "example_3"
alpha = 0.5
horizon = 200
[[policies]]
policy = "SlidingWindowUCB"
variation = "measured:variation"
[[policies]]
policy = "NaiveUCB"
[[policies]]
policy = "LagrangeBwK"
benchmark = "measured:opt_fd"
"""


def call(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == code, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("run")
    (directory / "sweep.toml").write_text(TOML)
    done = call("run", str(directory / "sweep.toml"), "--store", str(directory / "store"))
    assert (done["cells"], len(done["played"]), done["failed"]) == (CELLS, CELLS, [])
    assert len(done["table"]) == 6
    return directory / "store"


def test_run_reports_what_it_did(store: Path) -> None:
    again = CliRunner().invoke(app, ["run", str(store.parent / "sweep.toml"), "--store", str(store)])
    assert again.exit_code == 0
    assert f"0 cells simulated, {CELLS} kept, 0 failed" in " ".join(again.stderr.split())
    assert "NaiveUCB" in again.stdout


def test_run_refuses_what_it_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(TOML.replace('"NaiveUCB"', '"Unknown"'))
    result = CliRunner().invoke(app, ["run", str(tmp_path / "bad.toml"), "--store", str(tmp_path / "s")])
    assert result.exit_code == 1
    assert "policies.1: policy must be one of" in " ".join(result.stderr.split())
    assert not (tmp_path / "s").exists()


def test_a_failed_cell_is_reported_and_sets_the_exit_code(tmp_path: Path) -> None:
    poor = TOML.replace('"example_1"', '"step_change"\nk = 0')
    (tmp_path / "poor.toml").write_text(poor)
    done = call("run", str(tmp_path / "poor.toml"), "--store", str(tmp_path / "s"), code=1)
    assert len(done["failed"]) == 6
    assert "LagrangeBwK(benchmark=measured) on step_change(k=0, horizon=200)" in done["failed"][0]["cell"]
    assert len(done["played"]) == CELLS - 6
    assert {row["optimum_share"] for row in done["table"][:2]} == {None}  # the share of an optimum of 0 is undefined


def test_report_of_a_store(store: Path, tmp_path: Path) -> None:
    done = call("report", str(store), "--out", str(tmp_path))
    assert done["missing"] == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "table.csv",
        "report.html",
        *(f"{name}.{kind}" for name in ("curves_1", "shares") for kind in ("png", "svg", "pdf")),
    }
    assert pl.read_csv(tmp_path / "table.csv")["reward"].to_list() == [row["reward"] for row in done["table"]]
    text = (tmp_path / "report.html").read_text()
    assert text.count("data:image/png;base64,") == 2
    assert "All cells are complete." in text
    table = (tmp_path / "table.csv").read_bytes()
    again = report_store(store, tmp_path)
    assert again.to_dict() == done
    assert (tmp_path / "table.csv").read_bytes() == table


def test_a_figure_of_curves_has_three_panels_at_most() -> None:
    panels: dict[str, dict[str, Curves]] = {name: {} for name in "abcdefg"}
    assert [list(part) for part in split_panels(panels)] == [["a", "b", "c"], ["d", "e", "f"], ["g"]]


def test_report_of_a_store_that_is_not_done(store: Path, tmp_path: Path) -> None:
    for path in sorted(store.glob("*.parquet"))[5:]:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "plan.json").write_bytes((store / "plan.json").read_bytes())
    result = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert result.exit_code == 0
    assert "5 cells are missing" in " ".join(result.stderr.split())
    assert f"5 of {CELLS} cells are missing." in (tmp_path / "report" / "report.html").read_text()
    refused = CliRunner().invoke(app, ["report", str(tmp_path / "report")])
    assert refused.exit_code == 1
    assert "is not a store" in " ".join(refused.stderr.split())


@pytest.mark.slow
def test_league_is_one_table_and_one_heat_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = WORLDS[::4]  # the first has one resource, which Exp3BwK accepts
    monkeypatch.setattr(the_league, "WORLDS", worlds)
    done = call("league", "--trials", "2", "--horizon", "100", "--out", str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {
        "store",
        "league.csv",
        "league.png",
        "league.svg",
        "league.pdf",
    }
    policies = {row["policy"] for row in done["table"]}
    assert {entry["name"] for entry in ENTRIES} <= policies
    assert len(done["table"]) == len(worlds) * len(policies)
    means = [row["mean_share"] for row in done["table"]]
    whole = means[: means.index(next(row["mean_share"] for row in done["table"] if row["policy"] == "Exp3BwK"))]
    assert whole == sorted(whole, reverse=True)
    assert (
        done["table"][-1]["policy"] == "Exp3BwK"
    )  # it refuses some instances, so it is ranked below policies that accept all
    assert all(0 <= row["optimum_share"] <= 1.2 for row in done["table"] if row["optimum_share"] is not None)
    again = CliRunner().invoke(app, ["league", "--trials", "2", "--horizon", "100", "--out", str(tmp_path)])
    assert again.exit_code == 0
    assert "SW-UCB" in again.stdout


def test_every_policy_takes_part() -> None:
    """Policies without required settings are entered automatically; the others have an entry in the table."""
    entered = {entry["policy"] for entry in entries()}
    ours = [recipe for recipe in recipes() if recipe.__module__.startswith("driftsack.policies.")]
    whole = {recipe.__name__ for recipe in ours if not inspect.isabstract(recipe)}
    assert whole - {"LinearBwK", "DisjointBwK", "SquareCBwK", "PerSegment"} == entered  # those need contexts
    assert needs_no_settings(NaiveUCB)
    assert not needs_no_settings(SlidingWindowUCB)
    assert not needs_no_settings(Policy)  # type: ignore[type-abstract]
    assert {policy.policy for policy in league_spec(1, 100, 0).policies} == entered


def test_the_forecast_is_the_instance_in_periods() -> None:
    """Against a loop over rounds; the plan of the forecast spends what the curve says."""
    world = ds.instances.random_walk(horizon=95, seed=1)
    periods = forecast(world)
    for k in range(10):
        rounds = [t for t in range(95) if t * 10 // 95 == k]
        assert (periods.phase[rounds] == k).all()
        np.testing.assert_allclose(periods.rewards[k], np.mean([world.rewards[world.phase[t]] for t in rounds], axis=0))
        np.testing.assert_allclose(periods.costs[k], np.mean([world.costs[world.phase[t]] for t in rounds], axis=0))
    plan = ds.benchmarks.lp_dynamic(periods).plan
    assert plan is not None
    ends = [95 * n // 10 + (95 * n % 10 > 0) for n in range(1, 11)]
    spent = [sum(periods.costs[k] @ plan[k] for k in periods.phase[:end]) for end in ends]
    curve = np.atleast_2d(spending(periods))
    for j in range(world.resources):
        if spent[-1][j] > 0:
            np.testing.assert_allclose(curve[j, 1:], [part[j] / spent[-1][j] for part in spent], atol=1e-9)


def test_a_refused_instance_is_shown_as_a_dash_with_the_reason() -> None:
    spec = make_spec(
        {
            "instances": [{"instance": "example_1", "name": "one"}, {"instance": "example_2", "name": "two"}],
            "policies": [{"policy": "NaiveUCB", "name": "naive"}, {"policy": "DualDescent", "name": "dual"}],
        }
    )
    played = [("one", "naive", 4.0), ("two", "naive", 5.0), ("one", "dual", 9.0)]
    trials = pl.DataFrame(
        [
            {
                "instance": world,
                "policy": policy,
                "optimum": 10.0,
                "reward": reward,
                "stopping_time": 3,
                "spent": [1.0],
                "budget": [2.0],
                "lp_rescues": 0,
            }
            for world, policy, reward in played
        ]
    )
    failure = FailedCell("two", "dual", seed=0, first_trial=0, trials=100, error="needs d = 1")
    table = standings(trials, [failure], spec)
    assert table["reason"].to_list() == ["", "", "", "needs d = 1"]
    shares, rows, columns = as_grid(table)
    assert (rows, columns) == (["naive", "dual"], ["one", "two", "mean"])
    np.testing.assert_array_equal(shares, [[0.4, 0.5, 0.45], [0.9, np.nan, 0.9]])
    assert overview(table)["refused"].to_list() == [0, 1]
    figure = heat_figure(shares, rows, columns, "share")
    assert [text.get_text() for text in figure.axes[0].texts] == ["40", "50", "45", "90", "–", "90"]
