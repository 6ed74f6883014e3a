"""The command line, called as from a shell."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import driftsack
from driftsack.bench import step_lp as bench
from driftsack.bench import versions
from driftsack.bench.plain_python import PlainSlidingWindowUCB
from driftsack.bench.tables import PARTS, BenchTables
from driftsack.cli import app
from driftsack.cli.console import columns_of, number_column, share_column, text_column

SMALL = ["--trials", "4", "--horizon", "300"]


def test_wrong_input_gives_an_error_message_without_a_traceback(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = CliRunner().invoke(app, ["reproduce", *SMALL, "--out", str(blocked)])
    assert result.exit_code == 1
    assert "error" in result.stderr
    assert "Traceback" not in result.output
    assert CliRunner().invoke(app, ["reproduce", "--trials", "0"]).exit_code == 2
    assert CliRunner().invoke(app, ["reprodce"]).exit_code == 2


@pytest.mark.parametrize("command", [[], ["reproduce"], ["run"], ["report"], ["league"], ["advise"], ["bench"]])
def test_help_shows_an_example(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "driftsack" in result.stdout
    assert not command or "Example" in result.stdout


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout.strip() == driftsack.__version__


def test_bench_compares_solvers_that_agree() -> None:
    """Our simplex, HiGHS with a kept basis and linprog find the same values for one recording."""
    tape = bench.record(arms=6, resources=3, scale=0.1, rounds=120)
    values, _ = bench.by_simplex(tape, 120, cold=False)
    assert abs(values - bench.by_simplex(tape, 120, cold=True)[0]).max() < 1e-9
    assert abs(values - bench.by_highspy(tape, 120)).max() < 1e-7
    assert abs(values - bench.by_linprog(tape, 120)).max() < 1e-7
    assert 0.5 <= tape.arms.size / 120 <= 4.0  # at most a few columns change per round


def test_bench_compares_loops_that_agree() -> None:
    """The plain Python loop earns what the compiled policy earns: means within 5 standard errors."""
    world = driftsack.instances.example_2(horizon=200)
    plain = driftsack.simulate(world, PlainSlidingWindowUCB(windows=(50, 60)), trials=12, seed=0)
    ours = driftsack.simulate(world, driftsack.SlidingWindowUCB(windows=(50, 60)), trials=400, seed=0)
    error = (plain.reward.var(ddof=1) / 12 + ours.reward.var(ddof=1) / 400) ** 0.5
    assert abs(plain.reward.mean() - ours.reward.mean()) < 5 * error


def test_bench_page() -> None:
    text = BenchTables({"Speed": [{"m, d": "2, 2", "ratio": 123.456, "ns": 7}]}, "a machine").to_markdown()
    assert "| m, d | ratio | ns |" in text
    assert "| 2, 2 | 123.5 | 7 |" in text


def test_measure_shows_one_page_and_a_figure(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["measure", "--example", "3", "--alpha", "0.6", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for word in ("q_bar_full", "LP-Dynamic", "2,500", "OPT_FD", "Theorem 1", "budget timing", "w2"):
        assert word in result.stdout
    assert "Drift mainly changes when to spend" in " ".join(result.stdout.split())
    svg = (tmp_path / "drift.svg").read_text()
    for label in ("mean reward", "resource 1", "price in the best plan: 0.5", "arm 0", "round"):
        assert label in svg


def test_measure_json_of_a_file(tmp_path: Path) -> None:
    world = driftsack.instances.example_2(horizon=500)
    world.save(tmp_path / "world.npz")
    result = CliRunner().invoke(app, ["measure", str(tmp_path / "world.npz"), "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    page = json.loads(result.stdout)
    assert page["measures"]["v1"] == 0.5
    assert page["benchmarks"]["LP-Dynamic"]["value"] == pytest.approx(250.0)
    assert page["bounds"]["theorem_1"]["total"] > page["bounds"]["theorem_1"]["printed_total"]
    assert page["windows"]["w1"] <= 500
    assert (page["kind"], page["meaning"][:34]) == ("which", "Drift mainly changes which arm is ")
    assert len(page["figures"]) == 3


def test_measure_never_shows_a_lower_bound_above_what_can_be_lost(tmp_path: Path) -> None:
    """At the rate 0.01 the printed rate of Theorem 2 (ii) is ten times the optimum; q̄ is shown as an interval."""
    driftsack.instances.cost_switching(horizon=2_000, v2=1.0, rate=0.01).save(tmp_path / "world.npz")
    command = ["measure", str(tmp_path / "world.npz"), "--out", str(tmp_path)]
    page = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert max(page["bounds"]["theorem_2"].values()) <= page["bounds"]["trivial"]["regret"]
    assert page["measures"]["q_bar_least"] <= page["measures"]["q_bar"] <= page["measures"]["q_bar_largest"] + 1e-6
    assert page["measures"]["v2"] <= page["measures"]["v2_sum"]
    shown = CliRunner().invoke(app, command).stdout
    assert "A rate, its constant taken as 1" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name one instance"),
        (["x.npz", "--example", "1"], "name one instance"),
        (["nothing.npz"], "does not exist"),
    ],
)
def test_measure_says_what_it_needs(arguments: list[str], words: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["measure", *arguments, "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert words in " ".join(result.stderr.split())


def test_bench_runs_every_part(tmp_path: Path) -> None:
    """Each part is run once on the smallest sizes, through the command."""
    result = CliRunner().invoke(app, ["bench", "--quick", "--markdown", str(tmp_path / "page.md"), "--json"])
    assert result.exit_code == 0, result.output
    tables = json.loads(result.stdout)["tables"]
    assert list(tables) == list(PARTS)
    assert {row["m, d"] for row in tables["Step LP on recorded rounds of SW-UCB"]} == {
        f"{m}, {d}" for m, d in bench.SIZES
    }
    assert {row["file"] for row in tables["A log, read, checked and measured in one pass"]} == {"csv", "parquet"}
    assert {row["what grows"] for row in tables["Growth of the cost of a round"]} == {"m", "d", "window", "T"}
    assert all(row["largest difference"] < 1e-3 for row in tables["A round of online convex optimisation"])
    for row in tables["Step LP on recorded rounds of SW-UCB"]:
        assert row["largest difference"] < 1e-6
    assert all(row["peak MB"] < 1_000 for row in tables["A log, read, checked and measured in one pass"])
    assert "## Start-up" in (tmp_path / "page.md").read_text()
    refused = CliRunner().invoke(app, ["bench", "--quick", "--markdown", str(tmp_path / "no" / "page.md")])
    assert refused.exit_code == 2


def test_columns_say_how_they_are_printed() -> None:
    """Formats come from the columns, not from names: a number called share is a number, and errors are named."""
    row = {"name": None, "x_share": 0.5, "reward": 4935.2, "e": 1.26, "share": 0.9741, "se": 0.0042}
    columns = [
        text_column("name"),
        number_column("x_share"),
        number_column("reward", error="e"),
        share_column("share", "of the optimum", error="se"),
        share_column("x_share", "half"),
    ]
    assert [column.cell(row) for column in columns] == ["", "0.5", "4,935 ± 1.3", "97.4% ± 0.42%", "50%"]
    assert [column.title for column in columns_of([row])] == list(row)
    assert [column.numeric for column in columns_of([{"a": 1, "b": "1", "c": 0.5}])] == [True, False, True]


def test_bench_compares_versions(tmp_path: Path) -> None:
    """A version against itself in another folder; a folder without the package is refused."""
    refused = CliRunner().invoke(app, ["bench", "--against", str(tmp_path)])
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
