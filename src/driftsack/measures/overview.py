"""An overview of an instance: variation measures, benchmarks, the paper's windows and bounds, and the kind of drift."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from driftsack import theory
from driftsack.benchmarks import Benchmark, fixed_distribution, lp_dynamic, lp_static, single_step
from driftsack.core.errors import TooLargeError
from driftsack.core.instance import Instance
from driftsack.measures import Variation, variation
from driftsack.measures.drift_kind import DriftKind, Optima, drift_kind, explain


class Overview(NamedTuple):
    """The result of ``driftsack measure``."""

    instance: dict[str, Any]  # size, names, rate and noise of the instance
    # Each measure of variation; None if it would take too long, and for the largest price if a resource has no budget.
    measures: dict[str, float | None]
    benchmarks: dict[str, dict[str, Any]]  # value, certified gap and prices of each optimum
    windows: dict[str, int]  # the paper's windows
    # The terms of each regret bound; empty with a budget of zero. The terms of ``"theorem_2"`` are rates without
    # constants, capped at the optimum.
    bounds: dict[str, dict[str, float]]
    kind: DriftKind  # whether drift changes which arm is best or when to spend
    meaning: str  # ``kind`` explained in one sentence
    best: Benchmark  # LP-Dynamic, with its plan


def measure(instance: Instance, progress: Callable[[str], None] = lambda _: None) -> Overview:
    """Compute the overview of an instance; ``progress`` is called with the name of each step before it starts."""
    # Benchmarks.
    progress("LP-Dynamic")
    best = lp_dynamic(instance)
    progress("single-step LPs")
    even = single_step(instance)
    progress("the best fixed mix")
    static, fixed = lp_static(instance), fixed_distribution(instance)
    # Measures of variation.
    measured = variation(instance)
    measures = _measures(measured, progress)
    # The kind of drift, and bounds.
    progress("bounds")
    optima = Optima(best.value, even.value, fixed.value)
    kind = drift_kind(optima, drifts=measured.v1 > 0 or measured.v2 > 0)
    return Overview(
        instance=_about(instance),
        measures=measures,
        benchmarks={
            "LP-Dynamic": _numbers(best),
            "single steps": _numbers(even),
            "OPT_FD (fluid)": {**_numbers(fixed), "stopping_time": fixed.stopping_time},
            "LP-Static": _numbers(static),
        },
        windows=dict(zip(("w1", "w2"), _windows(instance, measured), strict=True)),
        bounds=_bounds(instance, measured, best.value),
        kind=kind,
        meaning=explain(kind, optima),
        best=best,
    )


def _about(instance: Instance) -> dict[str, Any]:
    """Return the size, names, rate and noise of an instance."""
    return {
        "horizon": instance.horizon,
        "arms": instance.arms,
        "arm_names": list(instance.problem.arm_names),
        "resources": instance.resources,
        "resource_names": list(instance.problem.resource_names),
        "distinct_rows": len(instance.rewards),
        "rate": instance.problem.rate.tolist(),
        "noise": instance.noise,
    }


def _numbers(benchmark: Benchmark) -> dict[str, Any]:
    """Return the value, gap and prices of a benchmark."""
    prices = None if benchmark.prices is None else benchmark.prices.tolist()
    return {"value": benchmark.value, "gap": benchmark.gap, "prices": prices}


def _measures(measured: Variation, progress: Callable[[str], None]) -> dict[str, float | None]:
    """Return each measure by name; None if the instance is too large for it."""
    values: dict[str, float | None] = {}
    names = ("v1", "v2", "v2_sum", "w1", "w2", "w1_min", "w2_min", "w1_pair", "w2_pair", "q_bar", "q_bar_full")
    for name in names:
        progress(name)
        try:
            values[name] = getattr(measured, name)
        except TooLargeError:
            values[name] = None
    progress("the interval of q_bar")
    try:
        least, largest = measured.q_bar_interval
        values |= {"q_bar_least": least, "q_bar_largest": largest if math.isfinite(largest) else None}
    except TooLargeError:
        values |= {"q_bar_least": None, "q_bar_largest": None}
    return values


def _windows(instance: Instance, measured: Variation) -> tuple[int, int]:
    """Return the paper's windows for the variation of this instance."""
    return theory.windows(instance.horizon, instance.arms, instance.resources, (measured.v1, measured.v2))


def _bounds(instance: Instance, measured: Variation, optimum: float) -> dict[str, dict[str, float]]:
    """Return the terms of each bound; empty with a budget of zero, for which the bounds are undefined."""
    horizon, arms, resources = instance.horizon, instance.arms, instance.resources
    rate = float(instance.problem.rate.min())
    if rate == 0:
        return {}
    local, wide, prices = (measured.v1, measured.v2), (measured.w1, measured.w2), measured.q_bar_full
    upper = theory.regret_bound(horizon, arms, resources, rate, local, wide, prices)
    unit_optimum = optimum / instance.problem.reward_max
    rates = theory.regret_lower_bounds(horizon, arms, rate, local, wide, prices)._asdict()
    lower = {name: min(value, unit_optimum) for name, value in rates.items()}  # the regret cannot exceed the optimum
    refined = theory.refined_regret_bound(horizon, arms, resources, rate * horizon, unit_optimum, local, wide, prices)
    sums = theory.concentration_bounds(horizon, arms, resources, _windows(instance, measured), local)
    stop = theory.stopping_time_bound(horizon, arms, resources, rate, measured.v2)
    return {
        "theorem_1": {**upper._asdict(), "total": upper.total, "printed_total": upper.printed_total},
        "refined": {**refined._asdict(), "total": refined.total},
        "theorem_2": lower,
        "lemma_3": sums._asdict(),
        "corollary_1": {"total": stop},
        "trivial": {"regret": unit_optimum, "rounds": float(horizon)},
    }
