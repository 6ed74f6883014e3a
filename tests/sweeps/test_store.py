"""Stores: a cell is complete or absent at any moment; what is not a cell is named, set aside and simulated again."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from driftsack.cli import app
from driftsack.core.errors import FileFormatError
from driftsack.sweeps import load, make_spec, run, summary
from driftsack.sweeps.store import SET_ASIDE, CellStore, CellStoreError
from tests.support.small_sweeps import CELLS, SMALL, names, same_bits

SPEC = make_spec(SMALL)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete store; tests copy it."""
    directory = tmp_path_factory.mktemp("made") / "store"
    assert run(SPEC, directory).failed == []
    return directory


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "store")
    return tmp_path / "store"


def test_a_second_run_simulates_nothing_and_changes_nothing(store: Path) -> None:
    before, table = names(store), load(store)
    again = run(SPEC, store)
    assert (len(again.played), again.kept, again.cells) == (0, CELLS, CELLS)
    assert names(store) == before
    assert same_bits(load(store), table)


def test_the_table_has_each_trial_once_in_the_order_of_the_spec(store: Path) -> None:
    table = load(store)
    assert table.select("instance", "policy", "seed", "trial").is_unique().all()
    assert table.height == 60
    assert table["trial"].to_list()[:6] == [0, 1, 2, 3, 4, 0]
    assert table["regret"].to_list() == (table["optimum"] - table["reward"]).to_list()
    assert table["curve"].list.last().to_list() == table["reward"].to_list()
    rows = summary(table)
    assert rows.height == 6
    assert rows["trials"].to_list() == [10] * 6
    assert rows["policy"].to_list()[2] == "Lagrange"
    assert (rows["spent_share"] <= 1).all()


def corrupt(path: Path, how: str, other: Path) -> None:
    """Make a file into something that is not its cell."""
    content = path.read_bytes()
    if how == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "one bit":
        place = len(content) // 3
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    elif how == "foreign":
        pl.DataFrame({"a": [1]}).write_parquet(path)
    elif how == "another cell":
        path.write_bytes(other.read_bytes())
    else:
        notes = pl.read_parquet_metadata(path)
        altered = pl.read_parquet(path).with_columns(pl.col("reward") + 1e-9)
        altered.write_parquet(path, metadata={k: v for k, v in notes.items() if k != "ARROW:schema"})


@pytest.mark.parametrize("how", ["truncated", "empty", "one bit", "foreign", "another cell", "altered"])
def test_what_is_not_a_cell_is_named_set_aside_and_simulated_again(how: str, store: Path) -> None:
    table, (victim, other) = load(store), sorted(store.glob("*.parquet"))[:2]
    corrupt(victim, how, other)
    with pytest.raises(FileFormatError, match=victim.name):
        load(store)
    reported: list[str] = []
    again = run(SPEC, store, report=reported.append)
    assert again.played == [victim.stem]
    assert again.set_aside == reported
    assert str(victim) in reported[0]
    assert (store / SET_ASIDE / victim.name).exists()
    assert same_bits(load(store), table)


def test_a_file_with_a_foreign_name_is_set_aside_and_others_are_left_alone(store: Path) -> None:
    (store / "foreign.parquet").write_text("not a cell")
    (store / "notes.txt").write_text("left alone")
    again = run(SPEC, store)
    assert "foreign.parquet is not a cell" in again.set_aside[0]
    assert (store / "notes.txt").exists()
    (store / "foreign.parquet").write_text("again")
    run(SPEC, store)
    assert {path.name for path in (store / SET_ASIDE).iterdir()} == {"foreign.parquet", "foreign.parquet.1"}


def test_cells_of_another_plan_are_kept_but_not_loaded(store: Path) -> None:
    fewer = make_spec({**SMALL, "seeds": [7]})
    assert run(fewer, store).played == []
    assert load(store)["seed"].unique().to_list() == [7]
    assert len(names(store)) == CELLS


def test_a_cell_that_fails_is_named_and_the_rest_go_on(tmp_path: Path) -> None:
    """Nothing can be earned, and LagrangeBwK refuses a benchmark of 0."""
    poor = {"instance": "example_1", "horizon": 4, "name": "poor"}
    spec = make_spec({**SMALL, "instances": [{"instance": "step_change", "k": 0, "horizon": 40, "name": "worthless"}]})
    reported: list[str] = []
    swept = run(spec, tmp_path, report=reported.append)
    error = "OutOfRangeError: benchmark must be above 0, got 0."
    expected = {
        ("worthless", "Lagrange", seed, first, min(2, 5 - first), error) for seed in (0, 7) for first in (0, 2, 4)
    }
    assert set(swept.failed) == expected
    assert f"Lagrange on worthless, seed 0, trials 0 to 1: {error}" in reported
    failure = swept.to_dict()["failed"][0]
    assert failure["cell"].startswith("Lagrange on worthless, seed ")
    assert (failure["instance"], failure["policy"], failure["error"]) == ("worthless", "Lagrange", error)
    assert len(swept.played) == 2 * 2 * 3
    assert CellStore(tmp_path).missing() == 6
    assert run(make_spec({**SMALL, "instances": [poor]}), tmp_path).failed == []


@contextlib.contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Root may write anywhere, so drop that privilege for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_store_that_cannot_be_written_to(store: Path) -> None:
    table, before = load(store), names(store)
    store.chmod(0o555)
    with (
        as_ordinary_user(),
        pytest.raises(CellStoreError, match=f"the store {store} cannot be used: Permission denied"),
    ):
        run(SPEC, store)
    store.chmod(0o755)
    assert names(store) == before
    assert same_bits(load(store), table)


FULL = """
import resource, sys
from driftsack.sweeps import load, read_spec, run
from driftsack.sweeps.store import CellStore, CellStoreError
store, other = CellStore(sys.argv[1]), CellStore(sys.argv[2])
other.open()
key = store.plan()["cells"][0]
frame = store.read(key)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # no file may grow beyond 1,000 bytes
try:
    other.write(key, frame)
except CellStoreError as error:
    print(error)
"""


def test_a_disk_that_is_full(store: Path, tmp_path: Path) -> None:
    """Writing fails in the middle of a file: no partial file stays, and the error names the store."""
    directory = tmp_path / "full"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(store), str(directory)], capture_output=True, text=True, check=True
    )
    assert f"the store {directory} cannot be used: {os.strerror(errno.EFBIG)}" in done.stdout
    assert list(directory.iterdir()) == []


def test_a_crash_before_the_rename_leaves_no_cell(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sorted(store.glob("*.parquet"))[0]
    frame = CellStore(store).read(first.stem)
    first.unlink()

    def crash(_: Path, __: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", crash)
    with pytest.raises(CellStoreError, match="No space left"):
        CellStore(store).write(first.stem, frame)
    monkeypatch.undo()
    assert not first.exists()
    assert list(store.glob(".*")) == []
    assert run(SPEC, store).played == [first.stem]


def test_old_temporary_files_of_killed_runs_are_deleted(store: Path) -> None:
    young, old = store / ".a.part", store / ".b.part"
    for path in (young, old):
        path.write_text("half")
    os.utime(old, (0, 0))
    run(SPEC, store)
    assert young.exists()
    assert not old.exists()


def test_a_folder_that_is_not_a_store(tmp_path: Path) -> None:
    with pytest.raises(CellStoreError, match=r"is not a store: it has no plan\.json"):
        load(tmp_path)
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(FileFormatError, match="not a complete plan"):
        load(tmp_path)
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(FileFormatError, match="plan of layout 4"):
        load(tmp_path)


def test_a_file_with_any_flipped_bit_is_refused_before_it_is_decoded(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polars panics on some damaged files, so it must not see them; 300 places, each bit of a byte in turn."""
    path = sorted(store.glob("*.parquet"))[0]
    content = path.read_bytes()
    assert CellStore(store).read(path.stem).height > 0
    monkeypatch.setattr(pl, "read_parquet", lambda _: pytest.fail("a damaged file was decoded"))
    monkeypatch.setattr(pl, "read_parquet_metadata", lambda _: pytest.fail("a damaged file was decoded"))
    for k, place in enumerate(range(0, len(content), max(len(content) // 300, 1))):
        path.write_bytes(content[:place] + bytes([content[place] ^ (1 << k % 8)]) + content[place + 1 :])
        with pytest.raises(FileFormatError, match="not as it was written"):
            CellStore(store).read(path.stem)


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "7",
        '"text"',
        "null",
        "[" * 100_000,
        "\x00",
        '{"driftsack": "4"}',
        '{"driftsack": "4", "cells": 5}',
        '{"driftsack": "4", "cells": ["../../etc/passwd"]}',
        '{"driftsack": "4", "cells": [], "spec": [1]}',
    ],
    ids=range(10),
)
def test_a_plan_of_any_content_is_refused_in_one_line(content: str, store: Path) -> None:
    (store / "plan.json").write_text(content)
    with pytest.raises(FileFormatError, match=r"plan\.json"):
        load(store)
    result = CliRunner().invoke(app, ["report", str(store)])
    assert result.exit_code == 1
    assert result.stderr.startswith("error ")
    assert "Traceback" not in result.output


def test_the_report_counts_the_trials_of_all_seeds(store: Path) -> None:
    result = CliRunner().invoke(app, ["report", str(store)])
    assert result.exit_code == 0, result.output
    page = (store / "report" / "report.html").read_text()
    assert re.search(r"of all seeds</td>\s*<td[^>]*>10<", page)
    assert "all trials of all seeds" in result.stdout


def test_a_file_that_is_not_a_cell_is_reported(store: Path) -> None:
    (store / "foreign.parquet").write_text("not a cell")
    reported: list[str] = []
    run(SPEC, store, report=reported.append)
    assert "foreign.parquet is not a cell" in reported[0]
