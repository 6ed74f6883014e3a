"""Compare the speed of this version with that of another one before a change lands.

Each version runs in a separate process, in which ``PYTHONPATH`` points to it. Both processes wait for questions, so
that they are measured in turns, within milliseconds of each other. Times are CPU times, which other programs on the
machine disturb less than wall times. Disturbances only make them longer, so the minimum of a process counts. Processes
are started many times, because their memory layout makes a difference of a few percent, and the median of the ratios is
reported. For the first call with an empty cache, the minimum over all starts counts.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from driftsack.core.errors import SettingError
from driftsack.core.stamp import PACKAGE
from lab.speed.timing import Progress, median_ratio

Pair = tuple[Path, Path]
Row = dict[str, float | str]
WARM_SCRIPT: Final = """
import sys, time
import numpy as np, driftsack as ds
def simulated_round(arms, resources, horizon):
    means = np.random.default_rng(1).random((resources + 1, arms))
    world = ds.Instance.stationary(means[0], means[1:], horizon, budget=0.3 * horizon)
    policy = ds.SlidingWindowUCB(windows=(1000, 1000), scale=0.1, budget_rule="remaining")
    begun = time.process_time()
    run = ds.simulate(world, policy, trials=1, seed=0, threads=1)
    return 1e9 * (time.process_time() - begun) / min(int(run.stopping_time[0]), horizon)
def ask_and_tell(rounds):
    problem = ds.Problem(20_000, 3, [6_000.0, 6_000.0])
    learner = ds.SlidingWindowUCB(windows=(1000, 1000), scale=0.1).start(problem, seed=0)
    learner.tell(learner.ask(), 0.5, [0.2, 0.2])
    begun = time.process_time()
    for _ in range(rounds):
        decision = learner.ask()
        if not decision.skipped:
            learner.tell(decision, 0.5, [0.2, 0.2])
    return 1e6 * (time.process_time() - begun) / rounds
def ask_and_tell_many(rounds):
    problem = ds.Problem(50_000, 3, [15_000.0, 15_000.0])
    learner = ds.SlidingWindowUCB(windows=(1000, 1000), scale=0.1).start(problem, seed=0)
    if not hasattr(learner, "ask_many"):
        return ask_and_tell(rounds)
    rewards, costs = np.full(rounds, 0.5), np.full((rounds, 2), 0.2)
    learner.tell_many(learner.ask_many(rounds), rewards, costs)
    begun = time.process_time()
    for _ in range(20):
        learner.tell_many(learner.ask_many(rounds), rewards, costs)
    return 1e6 * (time.process_time() - begun) / (20 * rounds)
for question in sys.stdin:
    print(eval(question), flush=True)
"""
QUESTIONS: Final = {
    "simulated round at (2, 2), ns": "simulated_round(2, 2, 200_000)",
    "simulated round at (10, 3), ns": "simulated_round(10, 3, 200_000)",
    "simulated round at (100, 10), ns": "simulated_round(100, 10, 40_000)",
    "ask and tell, µs": "ask_and_tell(1_000)",
    "ask_many and tell_many, 1,000 at once, µs for each": "ask_and_tell_many(1_000)",
}
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


def version_rows(other: Path, quick: bool, progress: Progress) -> list[Row]:
    """Compare this version with the one in the directory ``other``, the ``src`` of another checkout."""
    if not (other / "driftsack" / "__init__.py").is_file():
        raise SettingError(
            f"the directory {other} must contain the package driftsack, such as src of another checkout."
        )
    versions = (PACKAGE.parent, other.resolve())
    with tempfile.TemporaryDirectory() as directory:
        caches = (Path(directory) / "this", Path(directory) / "other")
        return warm_rows(versions, caches, quick, progress) + first_rows(versions, caches, quick, progress)


def warm_rows(versions: Pair, caches: Pair, quick: bool, progress: Progress) -> list[Row]:
    """Compare simulated rounds and learners with compiled kernels."""
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in QUESTIONS}
    starts, turns = (2, 5) if quick else (16, 8)
    for start in range(starts):
        progress(f"rounds and learners, process {start + 1} of {starts}")
        with answering(versions[0], caches[0]) as this, answering(versions[1], caches[1]) as that:
            for name, question in QUESTIONS.items():
                answers = [(this(question), that(question)) for _ in range(turns + 1)]
                for column, best in zip(times[name], map(min, zip(*answers[1:], strict=True)), strict=True):
                    column.append(best)  # without the first answer, which includes compilation
    return [
        {
            "what": name,
            "this / other": median_ratio(*both),
            "this": statistics.median(both[0]),
            "other": statistics.median(both[1]),
        }
        for name, both in times.items()
    ]


def first_rows(versions: Pair, caches: Pair, quick: bool, progress: Progress) -> list[Row]:
    """Compare the first call of a process with an empty cache."""
    best: tuple[dict[str, float], dict[str, float]] = ({}, {})
    for repeat in range(1 if quick else 3):
        for place, cache, least in zip(versions, caches, best, strict=True):
            progress(f"first calls of {place}, {repeat + 1}")
            for k, script in enumerate((FIRST_ASK_SCRIPT, FIRST_RUN_SCRIPT)):
                keep_least(least, run_script(script, place, cache / f"cold-{k}-{repeat}"))
    return [
        {"what": name, "this / other": best[0][name] / best[1][name], "this": best[0][name], "other": best[1][name]}
        for name in best[0]
    ]


@contextmanager
def answering(version: Path, cache: Path) -> Iterator[Callable[[str], float]]:
    """Start a process that runs a version and evaluates questions by ``WARM_SCRIPT``."""
    with subprocess.Popen(
        [sys.executable, "-c", WARM_SCRIPT],
        env=environment(version, cache),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as process:
        stdin, stdout = process.stdin, process.stdout
        if stdin is None or stdout is None:
            raise AssertionError("both were opened as pipes")

        def answer(question: str) -> float:
            stdin.write(f"{question}\n")
            return float(stdout.readline())

        yield answer
        stdin.close()


def environment(version: Path, cache: Path) -> dict[str, str]:
    """The environment variables of a process that runs a version with its own kernel cache."""
    return {**os.environ, "PYTHONPATH": str(version), "NUMBA_CACHE_DIR": str(cache)}


def keep_least(times: dict[str, float], measured: dict[str, float]) -> None:
    """Update the minimum time of each measurement."""
    for name, value in measured.items():
        times[name] = min(value, times.get(name, value))


def run_script(script: str, version: Path, cache: Path) -> dict[str, Any]:
    """Run a script on a version with its own kernel cache, and return the JSON document that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, env=environment(version, cache), capture_output=True, text=True
    )
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured
