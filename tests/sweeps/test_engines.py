"""Engines: each gives the same results bit for bit, even if processes are killed."""

from __future__ import annotations

import builtins
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from driftsack.core.errors import DriftsackError, SettingError
from driftsack.sweeps import load, make_spec, ray_engine, run
from driftsack.sweeps.cells import CellResult, Job, list_cells
from driftsack.sweeps.engines import LocalEngine, make_engine
from driftsack.sweeps.ray_engine import RayEngine
from driftsack.sweeps.store import CellStore
from driftsack.sweeps.sweep import SweepProgress
from tests.support.small_sweeps import CELLS, SMALL, names, same_bits


@pytest.fixture(autouse=True)
def own_print(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the built-in ``print`` back, which Ray replaces for good; Numba does not know its replacement."""
    monkeypatch.setattr(builtins, "print", print)


LONGER = {**SMALL, "trials": 24, "instances": [{"instance": "example_1", "horizon": 100_000}]}  # 72 cells
LONGEST = {**LONGER, "trials": 48}  # 144 cells, more than the killed runs complete
KILLED = """
import sys
from driftsack.sweeps import make_spec, run
from driftsack.sweeps.engines import LocalEngine
from tests.support.small_sweeps import SMALL
from tests.sweeps.test_engines import LONGEST, RecordingEngine

run(make_spec({**SMALL, "trials": 1, "seeds": [3]}), sys.argv[2])  # load the kernels
print("ready", flush=True)
run(make_spec(LONGEST), sys.argv[1], RecordingEngine(sys.argv[3]))
"""


class RecordingEngine:
    """The local engine, which records each cell that it starts."""

    def __init__(self, log: str) -> None:
        self.log = Path(log)

    def execute(self, jobs: Iterable[Job]) -> Generator[CellResult]:
        def recorded() -> Iterator[Job]:
            for job in jobs:
                with self.log.open("a") as stream:
                    stream.write(f"{job.cell.key}.parquet\n")
                yield job

        return LocalEngine(workers=2).execute(recorded())


@pytest.mark.slow
def test_after_kills_the_table_is_the_same_and_no_finished_cell_is_simulated_again(tmp_path: Path) -> None:
    """SIGKILL at random moments (seeded), every other time after a cell has started; then a last run to the end."""
    spec, rng = make_spec(LONGEST), np.random.default_rng(0)
    run(spec, tmp_path / "whole")
    store, log = tmp_path / "killed", tmp_path / "log"
    interrupted = 0
    for turn in range(8):
        before = names(store) if store.exists() else set()
        log.write_text("")
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(store), str(tmp_path / f"warm-{turn}"), str(log)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        while turn % 2 and not log.read_text() and process.poll() is None:
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.15))
        process.kill()
        process.wait()
        process.stdout.close()
        started = set(log.read_text().split())
        assert not started & before
        interrupted += bool(started)
    assert interrupted >= 2  # some kills came while cells were being simulated
    last = run(spec, store)
    assert not last.set_aside
    assert not last.failed
    assert last.kept + len(last.played) == 144
    assert same_bits(load(store), load(tmp_path / "whole"))


def test_an_interrupt_leaves_a_valid_store(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(
        'trials = 4000\nblock = 4\n[[instances]]\ninstance = "example_1"\n[[policies]]\npolicy = "NaiveUCB"\n'
    )
    command = [sys.executable, "-m", "driftsack", "run", str(tmp_path / "sweep.toml"), "--store", str(tmp_path / "s")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while len(names(tmp_path / "s")) < 5:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate()
    assert process.returncode == 130
    assert b"interrupted" in stderr
    keys = [path.stem for path in (tmp_path / "s").glob("*.parquet")]
    assert CellStore(tmp_path / "s").check(keys).kept == set(keys)
    assert 5 <= len(keys) < 1000


def test_the_caller_may_stop_early() -> None:
    jobs = (Job(cell, named.instance, 1.0) for cell, named in list_cells(make_spec(SMALL)))
    results = LocalEngine(workers=2).execute(jobs)
    assert next(results).trials is not None
    results.close()
    assert next(jobs, None) is not None  # most were never taken


def test_progress_counts_trials(tmp_path: Path) -> None:
    seen: list[SweepProgress] = []
    run(make_spec(SMALL), tmp_path, LocalEngine(workers=1), progress=seen.append)
    assert len(seen) == CELLS
    assert seen[-1] == (60, 60)
    assert all(one.done < two.done for one, two in pairwise(seen))


def ray_workers() -> list[int]:
    """Descendants of this process that simulate cells for Ray."""
    parents, simulating = {}, []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            if b"ray::simulate_remotely" in (place / "cmdline").read_bytes():
                simulating.append(int(place.name))
        except (FileNotFoundError, ProcessLookupError):
            continue

    def ours(process: int) -> bool:
        while process > 1:
            if process == os.getpid():
                return True
            process = parents.get(process, 0)
        return False

    return [process for process in simulating if ours(process)]


class KillOne:
    """A progress callback that kills one of Ray's workers in the middle of the sweep."""

    def __init__(self) -> None:
        self.killed = 0

    def __call__(self, now: SweepProgress) -> None:
        workers = ray_workers()
        if not self.killed and now.done > 10 and len(workers) == 2:
            os.kill(workers[0], signal.SIGKILL)
            self.killed = workers[0]


@pytest.mark.slow
def test_ray_gives_the_same_bits_as_local_although_a_worker_is_killed(tmp_path: Path) -> None:
    spec, kill = make_spec(LONGER), KillOne()
    swept = run(spec, tmp_path / "ray", RayEngine(workers=2), progress=kill)
    assert kill.killed
    assert swept.failed == []
    run(spec, tmp_path / "local")
    assert same_bits(load(tmp_path / "ray"), load(tmp_path / "local"))


@pytest.mark.slow
def test_ray_without_retries_names_the_cells_of_a_killed_worker(tmp_path: Path) -> None:
    """Planted fault: without retries cells are lost, so the test above does kill a worker that simulates."""
    spec, kill = make_spec(LONGER), KillOne()
    swept = run(spec, tmp_path, RayEngine(workers=2, retries=0), progress=kill)
    assert kill.killed
    assert 1 <= len(swept.failed) <= 4
    assert swept.failed[0].instance == "example_1(horizon=100000)"
    assert "Error: " in swept.failed[0].error
    assert len(swept.played) == 72 - len(swept.failed)
    assert run(spec, tmp_path).failed == []


def test_a_worker_with_other_code_refuses() -> None:
    cell, named = list_cells(make_spec(SMALL))[0]
    refused = ray_engine.simulate_remotely(cell, named.instance, 1.0, stamp="other")
    assert refused.trials is None
    assert "is not the caller's; install the same versions" in refused.error


def test_what_engines_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingError, match="engine must be one of 'local', 'ray', got 'dask'"):
        make_engine("dask")
    with pytest.raises(DriftsackError, match="Ray could not be reached"):
        next(make_engine("ray", address="127.0.0.1:1").execute(iter([])))
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SettingError, match="pip install 'driftsack\\[ray\\]'"):
        list(make_engine("ray").execute([]))
