"""Speed of the benchmarks and measures, compared with HiGHS on the full LP and with a pass over the data."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from dataclasses import replace

import numpy as np

from driftsack.benchmarks import Benchmark, lp_contextual, lp_dynamic
from driftsack.core.contextual import ContextualInstance
from driftsack.core.instance import Instance
from driftsack.core.seeding import generator
from driftsack.instances.contextual import linear_contexts
from driftsack.measures import variation
from lab.speed.timing import Progress, median_ratio, seconds
from tests.support import reference_lps as reference

Row = dict[str, float | str | None]


def random_means(horizon: int, arms: int, resources: int, phases: int | None = None) -> Instance:
    """Return an instance with uniform means in phases of equal length (default: one round each) and a rate of 1/4."""
    count = horizon if phases is None else phases
    means = generator(0).random((count, resources + 1, arms))
    lengths = np.full(count, horizon // count)
    return Instance.piecewise(means[:, 0], means[:, 1:], lengths.tolist(), budget=0.25 * horizon)


def pass_seconds(instance: Instance, repeats: int) -> float:
    """Median wall time of one pass over all means: NumPy sums them."""
    return statistics.median(
        seconds(lambda: float(instance.rewards.sum() + instance.costs.sum())) for _ in range(repeats)
    )


def timed_lp_dynamic(instance: Instance) -> tuple[float, Benchmark]:
    """Wall time of LP-Dynamic, and its result."""
    begun = time.perf_counter()
    best = lp_dynamic(instance)
    return time.perf_counter() - begun, best


def benchmark_rows(quick: bool, progress: Progress) -> list[Row]:
    """Measure LP-Dynamic against HiGHS, in passes over the data, in memory and as T grows; then the measures."""
    lp_dynamic(random_means(100, 3, 2))  # compiles or loads the kernels
    return [
        _highs_row(1_000 if quick else 10_000, progress),
        *_large_instance_rows(100_000 if quick else 1_000_000, progress),
        *_centre_rows(10_000 if quick else 100_000, progress),
        _resources_row(10_000 if quick else 100_000, progress),
        _phases_row(progress),
        *_contexts_rows(2_000 if quick else 20_000, progress),
    ]


def _highs_row(horizon: int, progress: Progress) -> Row:
    """LP-Dynamic against HiGHS on the full LP."""
    progress(f"LP-Dynamic against HiGHS on the full LP, T = {horizon:,}")
    world = random_means(horizon, 5, 3)
    ours, best = timed_lp_dynamic(world)
    begun = time.perf_counter()
    full = reference.lp_dynamic(world)
    highs = time.perf_counter() - begun
    row = _row(f"T = {horizon:,}, m = 5, d = 3", "HiGHS full LP / ours", highs / ours, best, ours)
    return {**row, "relative difference": abs(full - best.value) / full}


def _large_instance_rows(horizon: int, progress: Progress) -> list[Row]:
    """LP-Dynamic in passes over the data, its peak memory, and the measures V and W, all on one instance."""
    progress(f"LP-Dynamic in passes, T = {horizon:,}")
    world = random_means(horizon, 10, 3)
    solve_seconds, data_seconds = [], []
    for _ in range(3):
        data_seconds.append(pass_seconds(world, repeats=5))
        ours, best = timed_lp_dynamic(world)
        solve_seconds.append(ours)
    passes = median_ratio(solve_seconds, data_seconds)
    sizes = f"T = {horizon:,}, m = 10, d = 3"
    return [
        _row(sizes, "time in passes over the data", passes, best, ours),
        _row(sizes, "peak memory / instance", _memory(world), best, ours),
        *_variation_rows(world, progress),
    ]


def _resources_row(horizon: int, progress: Progress) -> Row:
    """LP-Dynamic with ten resources."""
    progress("LP-Dynamic, ten resources")
    ours, best = timed_lp_dynamic(random_means(horizon, 10, 10))
    return _row(f"T = {horizon:,}, m = 10, d = 10", "passes", float(best.passes), best, ours)


def _phases_row(progress: Progress) -> Row:
    """LP-Dynamic when the horizon grows and the number of phases does not."""
    progress("LP-Dynamic, 1,000 phases")
    short, long = random_means(100_000, 10, 3, phases=1_000), random_means(10_000_000, 10, 3, phases=1_000)
    ratios = [timed_lp_dynamic(long)[0] / timed_lp_dynamic(short)[0] for _ in range(5)]
    ours, best = timed_lp_dynamic(long)
    return _row("T = 10,000,000 in 1,000 phases", "time / same at T = 100,000", statistics.median(ratios), best, ours)


def _contexts_rows(pool: int, progress: Progress) -> list[Row]:
    """LP-Contextual, which computes its means, against LP-Dynamic on an instance that has them."""
    world = linear_contexts(1_000_000, drift="drift", pool=pool)
    phase, context, rounds = world.pairs()
    size, budget = rounds.size, np.array(world.problem.budget)
    rewards, costs = (part.reshape(-1, pool, *part.shape[1:]) for part in world.means_at(phase, context))
    return [
        _contexts_row("linear", world, progress),
        _contexts_row("logistic", replace(world, means="logistic"), progress),
        _contexts_row("by table", ContextualInstance.by_table(world.contexts, rewards, costs, budget, size), progress),
    ]


def _contexts_row(kind: str, world: ContextualInstance, progress: Progress) -> Row:
    """Both optima in alternation, on one kind of means."""
    phase, context, rounds = world.pairs()
    progress(f"LP-Contextual, {rounds.size:,} pairs of phase and context, means {kind}")
    means = world.means_at(phase, context)
    share = rounds.size / world.horizon  # all pairs have as many rounds, so one of each is the same program
    same = Instance.piecewise(*means, [1] * rounds.size, budget=share * np.array(world.problem.budget))
    taken, others = [], []
    for _ in range(5):
        begun = time.perf_counter()
        best = lp_contextual(world)
        taken.append(time.perf_counter() - begun)
        other, plain = timed_lp_dynamic(same)
        others.append(other)
    figure = f"LP-Contextual / LP-Dynamic on the same means, {kind}"
    row = _row(f"{rounds.size:,} pairs, m = 4, d = 2", figure, median_ratio(taken, others), best, taken[-1])
    return {**row, "relative difference": abs(plain.value / share - best.value) / best.value}


def _row(world: str, figure: str, value: float, best: Benchmark | None = None, taken: float | None = None) -> Row:
    """Return a row of the table."""
    return {
        "instance": world,
        "figure": figure,
        "value": value,
        "passes": best.passes if best else None,
        "seconds": taken,
        "gap": best.gap if best else None,
        "relative difference": None,
    }


def _memory(world: Instance) -> float:
    """Peak memory while LP-Dynamic runs, divided by the size of the instance, which is included."""
    size = world.rewards.nbytes + world.costs.nbytes + world.phase.nbytes
    tracemalloc.start()
    lp_dynamic(world)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return 1.0 + peak / size


def _centre_rows(count: int, progress: Progress) -> list[Row]:
    """W about the best centre, for distinct rows, in passes over the data; the gap is its certificate."""
    world = random_means(count, 10, 3)
    measured = variation(world)
    rows: list[Row] = []
    for name in ("w1", "w2"):
        progress(f"measure {name}_min of {count:,} rows")
        data_seconds = pass_seconds(world, repeats=5)
        begun = time.perf_counter()
        centre = getattr(measured, f"{name}_best")
        taken = time.perf_counter() - begun
        figure = f"{name.upper()}_min: time in passes over the data"
        row = _row(f"K = {count:,}, m = 10, d = 3", figure, taken / data_seconds, None, taken)
        rows.append({**row, "gap": centre.gap})
    return rows


def _variation_rows(world: Instance, progress: Progress) -> list[Row]:
    """V and W in passes over the data."""
    rows: list[Row] = []
    for name, title in (("v1", "V1 and V2"), ("w1", "W1"), ("w2", "W2")):
        progress(f"measure {name}")
        ratios = []
        for _ in range(4):
            data_seconds = pass_seconds(world, repeats=3)
            begun = time.perf_counter()
            getattr(variation(world), name)
            ratios.append((time.perf_counter() - begun) / data_seconds)
        rows.append(
            _row(f"T = {world.horizon:,}, m = 10, d = 3", f"{title}: time in passes over the data", min(ratios))
        )
    return rows
