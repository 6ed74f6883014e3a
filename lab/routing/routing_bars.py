"""Bars for ``LinearBwK`` on the prompts of the routing benchmark, and competitors that must miss them.

At the smallest budget, where routing pays most, it is held to the optimum and to every other router; at the larger ones
a single model is nearly optimal, and it must not lose more than a hundredth to the best of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from lab.contexts import bar_row, rejected_row
from lab.routing.routers import BUDGETS

Row = dict[str, Any]
OURS: Final = "LinearBwK"
SAFE: Final = "LinearBwK, safe"
BLIND: Final = "Adaptive, no context"
RANDOM: Final = "uniform"
BEATEN: Final = ("ParetoBandit, default", "ParetoBandit, alpha 0.5", BLIND)
FIXED: Final = ("Llama", "Mistral", "Gemini")
LEAST_OF_LP: Final = 0.98
LEAST_OF_FIXED: Final = 0.99


def routing_bars(rows: Sequence[Row]) -> list[Row]:
    """Compare the rows of ``routing_rows`` with their bars; return one row for each figure and competitor."""
    places: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows:
        places.setdefault((row["start"], row["budget"], row["drift"]), {})[row["router"]] = row
    return [bar for place, routers in places.items() for bar in _bars_of(place, routers)]


def _bars_of(place: tuple[str, str, str], routers: dict[str, Row]) -> list[Row]:
    """The bars of one start, budget and drift."""
    start, budget, drift = place
    where = f"{start}, {budget} dollars, drift {drift}"
    ours, fixed = routers[OURS], max(routers[name]["reward"] for name in FIXED)
    bars = [bar_row(f"{where}: most that {SAFE} spent / budget", routers[SAFE]["most spent / budget"], 1.0, False)]
    if float(budget) != BUDGETS[0]:
        bars += [
            bar_row(f"{where}: {OURS} over the best single model", ours["reward"] / fixed, LEAST_OF_FIXED),
            rejected_row(f"{where}: {RANDOM} over the same", routers[RANDOM]["reward"] / fixed, LEAST_OF_FIXED),
        ]
        return bars
    error = ours["se"] * ours["share of LP"] / ours["reward"]
    bars.append(bar_row(f"{where}: share of the LP of {OURS}", ours["share of LP"], LEAST_OF_LP, error=error))
    if BLIND in routers:
        bars.append(rejected_row(f"{where}: the same of {BLIND}", routers[BLIND]["share of LP"], LEAST_OF_LP))
    for name in BEATEN:
        if name in routers:  # Adaptive has no warm start
            bars.append(bar_row(f"{where}: {OURS} over {name}", ours["reward"] / routers[name]["reward"], 1.0))
    bars.append(bar_row(f"{where}: {OURS} over the best single model", ours["reward"] / fixed, 1.0))
    bars.append(rejected_row(f"{where}: {RANDOM} over the same", routers[RANDOM]["reward"] / fixed, 1.0))
    return bars
