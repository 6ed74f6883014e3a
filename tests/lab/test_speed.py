"""What the speed comparisons compare agrees, and ``python -m lab speed`` runs every part."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

import driftsack
from driftsack import oco
from lab.__main__ import app
from lab.speed import logs, step_lp, versions
from lab.speed import oco as speed_oco
from lab.speed.tables import PARTS, MeasuredTables


def test_it_compares_solvers_that_agree() -> None:
    """Our simplex, HiGHS with a kept basis and linprog find the same values for one recording."""
    tape = step_lp.record(arms=6, resources=3, scale=0.1, rounds=120)
    values, _ = step_lp.by_simplex(tape, 120, cold=False)
    assert abs(values - step_lp.by_simplex(tape, 120, cold=True)[0]).max() < 1e-9
    assert abs(values - step_lp.by_highspy(tape, 120)).max() < 1e-7
    assert abs(values - step_lp.by_linprog(tape, 120)).max() < 1e-7
    assert 0.5 <= tape.arms.size / 120 <= 4.0  # at most a few columns change per round


def test_it_compares_loops_of_convex_optimisation_that_agree() -> None:
    """Clarabel's points are accurate to about 1e-5 per round."""
    problem = oco.instances.one_switch(dimension=4, constraints=2, horizon=40)
    assert np.abs(speed_oco.by_cvxpy(problem) - oco.VirtualQueue().play(problem).last_point[0]).max() < 1e-3


def test_a_million_rows_need_little_memory(tmp_path: Path) -> None:
    """Measured in a separate process; ``python -m lab speed`` does the same with ten million rows."""
    logs.write_log(tmp_path / "log.csv", 1_000_000)
    read, _, _, megabytes = logs.run_script(logs.MEASURE_SCRIPT, tmp_path / "log.csv").split()
    assert int(read) == 1_000_000
    assert float(megabytes) < 1_000


def test_the_page_has_the_tables_and_the_command() -> None:
    text = MeasuredTables(
        {"Speed": [{"m, d": "2, 2", "ratio": 123.456, "ns": 7}]}, "a machine", "python -m lab speed"
    ).to_markdown()
    assert "| m, d | ratio | ns |" in text
    assert "| 2, 2 | 123.5 | 7 |" in text
    assert "Written by `python -m lab speed`" in text


def test_the_program_runs_every_part(tmp_path: Path) -> None:
    """Each part is run once on the smallest sizes, through the command."""
    result = CliRunner().invoke(app, ["speed", "--quick", "--markdown", str(tmp_path / "page.md"), "--json"])
    assert result.exit_code == 0, result.output
    tables = json.loads(result.stdout)["tables"]
    assert list(tables) == list(PARTS)
    assert {row["m, d"] for row in tables["Step LP on recorded rounds of SW-UCB"]} == {
        f"{m}, {d}" for m, d in step_lp.SIZES
    }
    assert {row["file"] for row in tables["A log, read, checked and measured in one pass"]} == {"csv", "parquet"}
    assert {row["what grows"] for row in tables["Growth of the cost of a round"]} == {"m", "d", "window", "T"}
    assert all(row["largest difference"] < 1e-3 for row in tables["A round of online convex optimisation"])
    for row in tables["Step LP on recorded rounds of SW-UCB"]:
        assert row["largest difference"] < 1e-6
    compared = [row["relative difference"] for row in tables["Benchmarks and measures"]]
    assert (
        sum(one is not None for one in compared) == 4
    )  # with HiGHS, and LP-Contextual with LP-Dynamic on three kinds of means
    assert all(one is None or one < 1e-6 for one in compared)
    assert all(row["peak MB"] < 1_000 for row in tables["A log, read, checked and measured in one pass"])
    assert "## Start-up" in (tmp_path / "page.md").read_text()
    refused = CliRunner().invoke(app, ["speed", "--quick", "--markdown", str(tmp_path / "no" / "page.md")])
    assert refused.exit_code == 2


def test_it_compares_versions(tmp_path: Path) -> None:
    """A version against itself in another directory; a directory without the package is refused."""
    refused = CliRunner().invoke(app, ["versions", str(tmp_path)])
    assert refused.exit_code == 1
    assert "must contain the package driftsack" in " ".join(refused.stderr.split())
    where = "import json, driftsack; print(json.dumps({'file': driftsack.__file__}))"
    copy = shutil.copytree(
        Path(driftsack.__file__).parent, tmp_path / "driftsack", ignore=shutil.ignore_patterns("*.nb?")
    )
    measured = versions.run_script(where, tmp_path, tmp_path / "cache")
    assert measured == {"file": str(copy / "__init__.py")}
    least = {"a": 2.0}
    versions.keep_least(least, {"a": 3.0, "b": 1.0})
    assert least == {"a": 2.0, "b": 1.0}
