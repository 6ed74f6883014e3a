"""Speed of this version against another one, measured in turns: what a change costs before it lands.

Each measurement runs in processes of their own, in which ``PYTHONPATH`` names the version. Times are CPU times of the
process, which other programs on the machine disturb less than wall time; of repeated measurements the least counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from driftsack.bench.timing import Progress
from driftsack.core.errors import SettingError
from driftsack.core.stamp import PACKAGE

WARM_SCRIPT: Final = """
import json, time
import numpy as np, driftsack as ds
def world(arms, resources, horizon):
    means = np.random.default_rng(1).random((resources + 1, arms))
    return ds.Instance.stationary(means[0], means[1:], horizon, budget=0.3 * horizon)
def round_ns(arms, resources, horizon, repeats):
    policy, best = ds.SlidingWindowUCB(windows=(1000, 1000), scale=0.1, budget_rule="remaining"), np.inf
    for _ in range(repeats):
        begun = time.process_time()
        run = ds.simulate(world(arms, resources, horizon), policy, trials=1, seed=0, threads=1)
        best = min(best, (time.process_time() - begun) / min(int(run.stopping_time[0]), horizon))
    return 1e9 * best
def ask_tell_us(repeats, rounds=3000):
    best = np.inf
    for _ in range(repeats):
        problem = ds.Problem(20_000, 3, [6_000.0, 6_000.0])
        learner = ds.SlidingWindowUCB(windows=(1000, 1000), scale=0.1).start(problem, seed=0)
        learner.tell(learner.ask(), 0.5, [0.2, 0.2])
        begun = time.process_time()
        for _ in range(rounds):
            decision = learner.ask()
            if not decision.skipped:
                learner.tell(decision, 0.5, [0.2, 0.2])
        best = min(best, (time.process_time() - begun) / rounds)
    return 1e6 * best
print(json.dumps({
    "simulated round at (2, 2), ns": round_ns(2, 2, 20_000, 12),
    "simulated round at (10, 3), ns": round_ns(10, 3, 20_000, 8),
    "simulated round at (100, 10), ns": round_ns(100, 10, 4_000, 8),
    "ask and tell, µs": ask_tell_us(3),
}))
"""
FIRST_ASK_SCRIPT: Final = """
import json, time, driftsack as ds
learner = ds.SlidingWindowUCB(windows=(100, 100)).start(ds.Problem(1_000, 3, [500.0, 500.0]), seed=0)
learner.tell(learner.ask(), 0.5, [0.1, 0.2])
print(json.dumps({"first ask and tell, cold cache, s": time.process_time()}))
"""
FIRST_RUN_SCRIPT: Final = """
import json, time, driftsack as ds
ds.simulate(ds.instances.example_2(), ds.SlidingWindowUCB(variation=(0.5, 1.0)), trials=1, threads=1)
print(json.dumps({"first simulate, cold cache, s": time.process_time()}))
"""


def version_rows(other: Path, quick: bool, progress: Progress) -> list[dict[str, float | str]]:
    """Compare this version with the one in the folder ``other``, such as the ``src`` of another checkout."""
    if not (other / "driftsack" / "__init__.py").is_file():
        raise SettingError(f"the folder {other} must contain the package driftsack, such as src of another checkout.")
    versions = (PACKAGE.parent, other.resolve())
    best: tuple[dict[str, float], dict[str, float]] = ({}, {})
    with tempfile.TemporaryDirectory() as folder:
        caches = [Path(folder) / "this", Path(folder) / "other"]
        for repeat in range(2 if quick else 5):
            for place, cache, times in zip(versions, caches, best, strict=True):
                progress(f"{place}, {repeat + 1}")
                keep_least(times, run_script(WARM_SCRIPT, place, cache))
                for k, script in enumerate((FIRST_ASK_SCRIPT, FIRST_RUN_SCRIPT)):
                    keep_least(times, run_script(script, place, cache / f"cold-{k}-{repeat}"))
    return [
        {"what": name, "this / other": best[0][name] / best[1][name], "this": best[0][name], "other": best[1][name]}
        for name in best[0]
    ]


def keep_least(times: dict[str, float], measured: dict[str, float]) -> None:
    """Update the least time of each measurement."""
    for name, value in measured.items():
        times[name] = min(value, times.get(name, value))


def run_script(script: str, version: Path, cache: Path) -> dict[str, Any]:
    """Run a program on a version, with its kernel cache in a folder; returns the JSON that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(version), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", script], check=True, env=environment, capture_output=True, text=True)  # noqa: S603
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured
