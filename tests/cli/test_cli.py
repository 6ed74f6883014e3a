"""The command line, called as from a shell."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

import driftsack
import driftsack as ds
from driftsack.cli import app
from driftsack.cli.console import columns_of, number_column, rich_table, share_column, text_column
from driftsack.core.errors import LogError

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


@pytest.mark.parametrize("command", [[], ["reproduce"], ["run"], ["report"], ["league"], ["advise"]])
def test_help_shows_an_example(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "driftsack" in result.stdout
    assert not command or "Example" in result.stdout


def test_help_is_wrapped_by_the_terminal_alone() -> None:
    """The line breaks of docstrings would leave half-empty lines; every example starts a line."""
    result = CliRunner().invoke(app, ["league", "--help"], env={"COLUMNS": "1000", "TERMINAL_WIDTH": "1000"})
    lines = [line.strip() for line in result.stdout.split("╭")[0].splitlines() if line.strip()]
    assert [line.split()[0] for line in lines] == ["Usage:", "Compare", "Rewards", "A", *["Example:"] * 3]


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout.strip() == driftsack.__version__


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["measure", "world.npz", "--alpha", "0.3"], "--alpha has no effect on an instance from a file"),
        (["measure", "--example", "1", "--periods", "3"], "--periods has no effect with --example 1"),
        (["measure", "--example", "4", "--alpha", "0.3"], "--alpha has no effect with --example 4"),
        (["reproduce", "--oco", "--trials", "5"], "--trials has no effect with --oco"),
        (["reproduce", "--oco", "--calibrate"], "--calibrate has no effect with --oco"),
        (["league", "--address", "auto"], "--address has no effect without --engine ray"),
        (["league", "--loose", "2"], "--loose needs --held-out SEED"),
        (["advise", "log.parquet", "--budget", "1", "--separator", ";"], "--separator has no effect on a Parquet file"),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert words in " ".join(result.stderr.split())


def shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell, in a terminal of 80 columns."""
    environment = {**os.environ, "COLUMNS": "80", "DRIFTSACK": f"{sys.executable} -m driftsack"}
    return subprocess.run(command, shell=True, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_output_that_cannot_be_written_ends_in_one_line(tmp_path: Path) -> None:
    """A full device and a closed pipe."""
    full = shell("$DRIFTSACK measure --example 1 --out . > /dev/full", tmp_path)
    assert full.returncode == 1
    assert full.stderr.strip().splitlines()[-1] == "error the output could not be written: No space left on device."
    assert "Traceback" not in full.stderr
    closed = shell("$DRIFTSACK measure --example 1 --out . | true", tmp_path)
    assert "Traceback" not in closed.stderr
    assert "Exception ignored" not in closed.stderr


@pytest.mark.slow
def test_an_interrupt_ends_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "driftsack", "reproduce", "--trials", "3000", "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not list(tmp_path.rglob("*.parquet")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.strip().splitlines()[-1] == "interrupted"
    assert "Traceback" not in errors


def test_a_damaged_parquet_file_ends_in_one_line(tmp_path: Path) -> None:
    """Damage that makes Polars panic, which also writes a backtrace to stderr, and damage that it reports."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"time": range(2_000), "arm": ["a", "b"] * 1_000, "reward": 1.0, "cost": rng.random(2_000)})
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    for _ in range(60):
        content = bytearray(buffer.getvalue())
        for place in rng.integers(len(content) - 600, len(content) - 8, 3).tolist():
            content[place] = 255
        (tmp_path / "log.parquet").write_bytes(content)
        try:
            ds.logs.read(tmp_path / "log.parquet")
        except LogError:
            break
    done = shell("$DRIFTSACK advise log.parquet --budget 5 --out page.html", tmp_path)
    assert done.returncode == 1
    assert "error log.parquet cannot be read" in " ".join(done.stderr.split())
    assert "panicked" not in done.stderr


def test_messages_of_compiled_libraries_are_dropped(tmp_path: Path) -> None:
    """What is written to the file descriptor is dropped; what Python prints is shown."""
    script = (
        "import os, sys\nfrom driftsack.cli.console import messages, native_messages_dropped\n"
        "with native_messages_dropped():\n    os.write(2, b'panicked')\n    messages.print('shown [x]')\n"
        "os.write(2, b'after')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == "shown [x]\nafter"


def test_tables_break_no_words_at_80_columns() -> None:
    """Every word of caption, headers and cells is found in one piece, also in a terminal that is too narrow."""
    rows: list[dict[str, Any]] = [
        {"policy": "SlidingWindowUCB(windows=(1000,1000))", "instance": "heavy-tailed [costs] :x:", "n": 123456.0}
        | {f"number {k}": 1234.5 for k in range(4)}
    ]
    columns = [text_column("policy"), text_column("instance"), number_column("n", "observations")]
    columns += [number_column(f"number {k}", f"measurement{k}") for k in range(4)]
    caption = (
        "A caption is a sentence that may be much longer than the table below it, and it is wrapped between words."
    )
    for width in (40, 80, 200):
        shown = io.StringIO()
        console = Console(file=shown, width=width, markup=False, emoji=False)
        console.print(rich_table(rows, columns, caption, width), crop=False)
        words = [*caption.split(), *rows[0]["policy"].split(), *rows[0]["instance"].split(), "observations"]
        missing = [word for word in [*words, "measurement3"] if word not in shown.getvalue()]
        assert missing == [], (width, shown.getvalue())


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
