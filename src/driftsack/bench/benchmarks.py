"""Speed of the benchmarks and measures: against HiGHS on the full LP, and in passes over the data."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from driftsack.benchmarks import Benchmark, lp_dynamic, reference
from driftsack.core.instance import Instance
from driftsack.core.seeding import generator
from driftsack.measures import variation

Row = dict[str, float | str | None]


def random_world(horizon: int, arms: int, resources: int, rows: int | None = None) -> Instance:
    """All rounds distinct, or ``rows`` phases of equal length; a quarter of the highest costs as budget."""
    count = horizon if rows is None else rows
    means = generator(0).random((count, resources + 1, arms))
    lengths = np.full(count, horizon // count)
    return Instance.piecewise(means[:, 0], means[:, 1:], lengths.tolist(), budget=0.25 * horizon)


def plain_pass(instance: Instance) -> float:
    """Seconds to read every mean once, as NumPy sums them."""
    begun = time.perf_counter()
    float(instance.rewards.sum() + instance.costs.sum())
    return time.perf_counter() - begun


def timed(instance: Instance) -> tuple[float, Benchmark]:
    """Seconds of LP-Dynamic, and what it found."""
    begun = time.perf_counter()
    best = lp_dynamic(instance)
    return time.perf_counter() - begun, best


def yardstick_rows(quick: bool, said: Callable[[str], None]) -> list[Row]:
    """LP-Dynamic against HiGHS, in passes, in memory, and as T grows but the phases do not."""
    rows: list[Row] = []
    lp_dynamic(random_world(100, 3, 2))

    horizon = 1_000 if quick else 10_000
    said(f"LP-Dynamic against HiGHS on the full LP, T = {horizon:,}")
    world = random_world(horizon, 5, 3)
    ours, best = timed(world)
    begun = time.perf_counter()
    full = reference.lp_dynamic(world)
    theirs = time.perf_counter() - begun
    rows.append(_row(f"T = {horizon:,}, m = 5, d = 3", "HiGHS full LP / ours", theirs / ours, best, ours))
    rows[-1]["relative difference"] = abs(full - best.value) / full

    horizon = 100_000 if quick else 1_000_000
    said(f"LP-Dynamic in passes, T = {horizon:,}")
    world = random_world(horizon, 10, 3)
    ratios = []
    for _ in range(3):
        passing = statistics.median(plain_pass(world) for _ in range(5))
        ours, best = timed(world)
        ratios.append(ours / passing)
    rows.append(_row(f"T = {horizon:,}, m = 10, d = 3", "time in plain passes", statistics.median(ratios), best, ours))
    rows.append(_row(f"T = {horizon:,}, m = 10, d = 3", "peak memory / instance", _memory(world), best, ours))
    rows += _variation_rows(world, said)
    del world
    rows += _centre_rows(10_000 if quick else 100_000, said)

    horizon = 10_000 if quick else 100_000
    said("LP-Dynamic, ten resources")
    ours, best = timed(random_world(horizon, 10, 10))
    rows.append(_row(f"T = {horizon:,}, m = 10, d = 10", "passes", float(best.passes), best, ours))

    said("LP-Dynamic, 1,000 phases")
    short, long = random_world(100_000, 10, 3, rows=1_000), random_world(10_000_000, 10, 3, rows=1_000)
    ratios = [timed(long)[0] / timed(short)[0] for _ in range(5)]
    ours, best = timed(long)
    rows.append(
        _row("T = 10,000,000 in 1,000 phases", "time / same at T = 100,000", statistics.median(ratios), best, ours)
    )
    return rows


def _row(world: str, what: str, value: float, best: Benchmark | None = None, seconds: float | None = None) -> Row:
    return {
        "world": world,
        "figure": what,
        "value": value,
        "passes": best.passes if best else None,
        "seconds": seconds,
        "gap": best.gap if best else None,
        "relative difference": None,
    }


def _memory(world: Instance) -> float:
    """Peak memory while LP-Dynamic runs, the instance included, over the instance's size."""
    size = world.rewards.nbytes + world.costs.nbytes + world.phase.nbytes
    tracemalloc.start()
    lp_dynamic(world)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return 1.0 + peak / size


def _centre_rows(count: int, said: Callable[[str], None]) -> list[Row]:
    """W about the best centre, for distinct rows, in plain passes; the gap is its certificate."""
    world = random_world(count, 10, 3)
    moves = variation(world)
    rows: list[Row] = []
    for name in ("w1", "w2"):
        said(f"measure {name}_min of {count:,} rows")
        passing = statistics.median(plain_pass(world) for _ in range(5))
        begun = time.perf_counter()
        found = getattr(moves, f"{name}_best")
        spent = time.perf_counter() - begun
        what = f"{name.upper()}_min: time in plain passes"
        rows.append({**_row(f"K = {count:,}, m = 10, d = 3", what, spent / passing, None, spent), "gap": found.gap})
    return rows


def _variation_rows(world: Instance, said: Callable[[str], None]) -> list[Row]:
    """V and W in plain passes over the same data."""
    rows: list[Row] = []
    for name in ("v1", "w1", "w2"):
        said(f"measure {name}")
        ratios = []
        for _ in range(4):
            passing = statistics.median(plain_pass(world) for _ in range(3))
            begun = time.perf_counter()
            getattr(variation(world), name)
            ratios.append((time.perf_counter() - begun) / passing)
        what = {"v1": "V1 and V2", "w1": "W1", "w2": "W2"}[name]
        rows.append(_row(f"T = {world.horizon:,}, m = 10, d = 3", f"{what}: time in plain passes", min(ratios)))
    return rows
