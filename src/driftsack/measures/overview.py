"""One page on an instance: how it moves, what it is worth, what the theory says, and what that means."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from driftsack import theory
from driftsack.benchmarks import Benchmark, fixed_distribution, lp_dynamic, lp_static, single_step
from driftsack.core.errors import TooLargeError
from driftsack.core.instance import Instance
from driftsack.measures import Variation, variation


class Page(NamedTuple):
    """What ``driftsack measure`` shows; all plain numbers but the plan."""

    instance: dict[str, Any]
    measures: dict[str, float | None]
    benchmarks: dict[str, dict[str, Any]]
    windows: dict[str, int]
    bounds: dict[str, dict[str, float]]
    meaning: str
    best: Benchmark  # LP-Dynamic, with its plan


def measure(instance: Instance, said: Callable[[str], None] = lambda _: None) -> Page:
    """Compute everything; ``said`` is told what is being computed."""
    said("LP-Dynamic")
    best = lp_dynamic(instance)
    said("the single rounds' LPs")
    even = single_step(instance)
    said("the best fixed mix")
    static, fixed = lp_static(instance), fixed_distribution(instance)
    moves = variation(instance)
    measures = _measures(moves, said)
    said("bounds")
    return Page(
        _about(instance),
        measures,
        {
            "LP-Dynamic": _worth(best),
            "single steps": _worth(even),
            "OPT_FD (fluid)": {**_worth(fixed), "stopping_time": fixed.stopping_time},
            "LP-Static": _worth(static),
        },
        dict(zip(("w1", "w2"), _windows(instance, moves), strict=True)),
        _bounds(instance, moves, best.value),
        meaning(best.value, even.value, fixed.value),
        best,
    )


def _about(instance: Instance) -> dict[str, Any]:
    return {
        "horizon": instance.horizon,
        "arms": instance.arms,
        "resources": instance.resources,
        "distinct_rows": len(instance.rewards),
        "rate": instance.problem.rate.tolist(),
        "noise": instance.noise,
    }


def _worth(found: Benchmark) -> dict[str, Any]:
    prices = None if found.prices is None else found.prices.tolist()
    return {"value": found.value, "gap": found.gap, "prices": prices}


def _measures(moves: Variation, said: Callable[[str], None]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    names = ("v1", "v2", "w1", "w2", "w1_min", "w2_min", "w1_pair", "w2_pair", "q_bar", "q_bar_full")
    for name in names:
        said(name)
        try:
            found[name] = getattr(moves, name)
        except TooLargeError:
            found[name] = None
    return found


def _windows(instance: Instance, moves: Variation) -> tuple[int, int]:
    return theory.windows(instance.horizon, instance.arms, instance.resources, (moves.v1, moves.v2))


def _bounds(instance: Instance, moves: Variation, optimum: float) -> dict[str, dict[str, float]]:
    """Each bound's terms; with a budget of zero there are none."""
    horizon, arms, resources = instance.horizon, instance.arms, instance.resources
    rate = float(instance.problem.rate.min())
    if rate == 0:
        return {}
    local, wide, prices = (moves.v1, moves.v2), (moves.w1, moves.w2), moves.q_bar_full
    upper = theory.regret_bound(horizon, arms, resources, rate, local, wide, prices)
    lower = theory.regret_lower_bounds(horizon, arms, rate, local, wide, prices)
    unit_optimum = optimum / instance.problem.reward_max
    refined = theory.refined_regret_bound(horizon, arms, resources, rate * horizon, unit_optimum, local, wide, prices)
    sums = theory.concentration_bounds(horizon, arms, resources, _windows(instance, moves), local)
    stop = theory.stopping_time_bound(horizon, arms, resources, rate, moves.v2)
    return {
        "theorem_1": {**upper._asdict(), "total": upper.total, "printed_total": upper.printed_total},
        "refined": {**refined._asdict(), "total": refined.total},
        "theorem_2": lower._asdict(),
        "lemma_3": sums._asdict(),
        "corollary_1": {"total": stop},
        "trivial": {"regret": unit_optimum, "rounds": float(horizon)},
    }


def meaning(best: float, even: float, fixed: float) -> str:
    """One sentence on whether it is when to spend or what to play that moves.

    >>> meaning(best=100.0, even=70.0, fixed=68.0)
    'Budget timing, not learning, costs most here: spending evenly gives up 30% of the optimum, so plan when to spend.'
    """
    if best <= 0:
        return "Nothing can be earned here."
    timing, tracking = (best - even) / best, (even - fixed) / best
    if max(timing, tracking) < 0.02:  # noqa: PLR2004
        return "This world hardly moves for a budget: one fixed mix earns 98% of the optimum or more."
    if timing >= tracking:
        return (
            f"Budget timing, not learning, costs most here: spending evenly gives up {_percent(timing)} of the "
            "optimum, so plan when to spend."
        )
    return (
        f"What to play changes, more than when to spend: following the changes is worth {_percent(tracking)} of the "
        f"optimum over the best fixed mix, and even spending gives up {_percent(timing)}; windows help."
    )


def _percent(share: float) -> str:
    return f"{math.floor(100 * share + 0.5)}%"
