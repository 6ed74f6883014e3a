"""The command line as people meet it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import driftsack
from driftsack.cli import app
from driftsack.cli.bench import page
from driftsack.experiments import bench, paper
from driftsack.experiments.plain import PlainSlidingWindowUCB

SMALL = ["--trials", "4", "--horizon", "300"]


def test_reproduce_writes_figure_and_table(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reproduce", *SMALL, "--out", str(tmp_path / "new" / "folder")])
    assert result.exit_code == 0, result.output
    written = {path.name for path in (tmp_path / "new" / "folder").iterdir()}
    assert written == {"figure_1.png", "figure_1.svg", "figure_1.pdf", "table.csv"}
    for word in ("Example 1", "Example 2", "SW-UCB", "naive UCB", "±"):
        assert word in result.stdout
    assert (tmp_path / "new" / "folder" / "figure_1.png").stat().st_size > 10_000
    svg = (tmp_path / "new" / "folder" / "figure_1.svg").read_text()
    for label in ("cumulative reward", "round", "Example 1", "4 trials, bernoulli outcomes"):
        assert label in svg


def test_reproduce_json_is_one_document_and_depends_on_the_seed_alone(tmp_path: Path) -> None:
    tables = []
    for seed in (1, 1, 2):
        result = CliRunner().invoke(app, ["reproduce", *SMALL, "--seed", str(seed), "--out", str(tmp_path), "--json"])
        assert result.exit_code == 0, result.output
        document = json.loads(result.stdout)
        assert set(document) == {"table", "figures", "seconds"}
        assert all(Path(path).exists() for path in document["figures"])
        tables.append(document["table"])
    assert tables[0] == tables[1] != tables[2]
    assert [(row["example"], row["policy"]) for row in tables[0]] == [
        ("Example 1", "SW-UCB"),
        ("Example 1", "naive UCB"),
        ("Example 2", "SW-UCB"),
        ("Example 2", "naive UCB"),
    ]


def test_wrong_input_is_answered_in_words(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = CliRunner().invoke(app, ["reproduce", *SMALL, "--out", str(blocked)])
    assert result.exit_code == 1
    assert "error" in result.stderr
    assert "Traceback" not in result.output
    assert CliRunner().invoke(app, ["reproduce", "--trials", "0"]).exit_code == 2
    assert CliRunner().invoke(app, ["reprodce"]).exit_code == 2


@pytest.mark.parametrize("command", [[], ["reproduce"], ["bench"]])
def test_help_teaches(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "driftsack" in result.stdout
    assert not command or "Example" in result.stdout


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout.strip() == driftsack.__version__


def test_paper_cells_use_the_windows_of_the_text() -> None:
    cells = list(paper.figure_1(horizon=10_000))
    assert len(cells) == 4
    policy = cells[2].policy
    assert isinstance(policy, driftsack.SlidingWindowUCB)
    assert policy.variation == (0.5, 1.0)


def test_bench_compares_programs_that_agree() -> None:
    """Ours, highspy kept warm and linprog solve one recording to the same values."""
    tape = bench.record(arms=6, resources=3, scale=0.1, rounds=120)
    mine, _ = bench.ours(tape, 120, cold=False)
    assert abs(mine - bench.ours(tape, 120, cold=True)[0]).max() < 1e-9
    assert abs(mine - bench.by_highspy(tape, 120)).max() < 1e-7
    assert abs(mine - bench.by_linprog(tape, 120)).max() < 1e-7
    assert 0.5 <= tape.arms.size / 120 <= 4.0  # at most a few columns change a round


def test_bench_measures_two_loops_that_do_the_same() -> None:
    """The plain Python yardstick earns what the compiled policy earns: means within 5 standard errors."""
    world = driftsack.instances.example_2(horizon=200)
    plain = driftsack.simulate(world, PlainSlidingWindowUCB(windows=(50, 60)), trials=12, seed=0)
    ours = driftsack.simulate(world, driftsack.SlidingWindowUCB(windows=(50, 60)), trials=400, seed=0)
    error = (plain.reward.var(ddof=1) / 12 + ours.reward.var(ddof=1) / 400) ** 0.5
    assert abs(plain.reward.mean() - ours.reward.mean()) < 5 * error


def test_bench_page() -> None:
    text = page({"Speed": [{"m, d": "2, 2", "ratio": 123.456, "ns": 7}]})
    assert "| m, d | ratio | ns |" in text
    assert "| 2, 2 | 123.5 | 7 |" in text
