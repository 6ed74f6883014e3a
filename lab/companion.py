"""Write the numbers of the LaTeX companion, `docs/companion/`: one macro for each, and the table of checks.

The text contains no measured number of its own, so that it cannot disagree with the library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

import driftsack as ds
from driftsack import oco, theory
from driftsack.policies import InventoryReserving
from driftsack.policies.always_arm import AlwaysArm
from driftsack.verify import Effort, verify
from driftsack.verify.auditor import audit
from driftsack.verify.concentration import many_arms, probability_for_some_count
from driftsack.verify.frontier import SCALE, WINDOW, largest_ratio
from driftsack.verify.hard_violation import DIAMETER, GRADIENT
from driftsack.verify.minimax import trap_forms, trap_value
from driftsack.verify.minimisers_in_hull import SUM, SUP, least_sum
from driftsack.verify.regret_bounds import refined_bounds, refined_regret, regrets, tracking_loss
from driftsack.verify.two_point import value_of_costs
from driftsack.verify.w_min import hull_pair_margin

DIRECTORY: Final = Path("docs/companion")
QUICK: Final = Effort(quick=True)
Numbers = Iterator[tuple[str, str]]
SPREADS: Final = {"Ten": 10.0, "Hundred": 100.0, "Thousand": 1000.0}


def whole(value: float) -> str:
    """Format an integer with thin spaces between thousands.

    >>> len(whole(38123.4)), whole(7.2)
    (7, '7')
    """
    return f"{round(value):,}".replace(",", r"\,")


def benchmark_numbers() -> Numbers:
    """Examples about Proposition 1, the chain of benchmarks and the claims on hulls."""
    two = ds.Instance.from_arrays(rewards=[[1, 1], [1, 1]], costs=[[[0.1, 1]], [[1, 0.1]]], budget=1.0)
    yield "TwoRoundsDynamic", f"{ds.benchmarks.lp_dynamic(two).value:.3f}"
    yield "TwoRoundsMean", f"{ds.benchmarks.lp_static(two).value:.3f}"
    example = ds.instances.example_1()
    yield "ExampleDynamic", whole(ds.benchmarks.lp_dynamic(example).value)
    yield "ExampleStatic", whole(ds.benchmarks.lp_static(example).value)
    yield "ExampleFixed", whole(ds.benchmarks.fixed_distribution(example).value)
    tiny = ds.instances.example_1(horizon=8, noise="deterministic")
    yield "TinyFixed", f"{ds.benchmarks.hard_fixed_distribution(tiny).value:.2f}"
    yield "TinyStatic", f"{ds.benchmarks.lp_static(tiny).value:.2f}"
    one = ds.Instance.stationary([0.5], [[0.2]], horizon=1, budget=0.1)
    yield "OneRoundProgram", f"{ds.benchmarks.dynamic_program(one).value:.2f}"
    yield "OneRoundDynamic", f"{ds.benchmarks.lp_dynamic(one).value:.2f}"
    yield "HullPrice", f"{-hull_pair_margin():.0f}"
    for norm, name in ((SUP, "Rewards"), (SUM, "Costs")):
        yield f"Free{name}", f"{least_sum(np.eye(3), in_hull=False, norm=norm):.1f}"
        yield f"Hull{name}", f"{least_sum(np.eye(3), in_hull=True, norm=norm):.1f}"
    trap = ds.instances.nonbinding(horizon=600)
    drift, best = ds.variation(trap), ds.benchmarks.lp_dynamic(trap)
    yield "InevitableLoss", whole(drift.q_bar * drift.w2)
    yield "InevitableRegret", whole(abs(ds.simulate(trap, AlwaysArm(0), trials=1).regret(best)[0]))


def learning_numbers() -> Numbers:
    """Examples about Theorem 1, Appendices D and E, and the lemmas on concentration."""
    turns, window = ds.instances.drift_in_turn(resources=8), 3_125
    drift = ds.variation(turns)
    yield "TurnsLoss", whole(tracking_loss(turns, window))
    yield "TurnsPrinted", whole(2 * window * drift.v2)
    yield "TurnsRepaired", whole(2 * window * drift.v2_sum)
    played = regrets(ds.SlidingWindowUCB(variation=(drift.v1, drift.v2)), turns, 1, 0)
    yield "TurnsRegret", whole(float(played[0]))
    free = ds.instances.free_best_arm(horizon=1_000_000)
    run = ds.simulate(free, ds.SlidingWindowUCB(variation=(0, 0)), trials=2, seed=0)
    yield "FreeStop", f"{run.stopping_time.max() / free.horizon:.2f}"
    yield "FreeRegret", whole(float(run.regret(ds.benchmarks.lp_dynamic(free)).mean()))
    for horizon, name in ((100_000, "Short"), (1_000_000, "Long")):
        world = ds.instances.flipping_costs(horizon=horizon)
        printed, corrected = refined_bounds(world)
        regret = refined_regret(world, QUICK)
        yield f"Flipping{name}Printed", f"{regret / printed:.1f}"
        yield f"Flipping{name}Corrected", f"{regret / corrected:.1f}"
    for arms, name in ((2, "Few"), (32, "Many")):
        world, g = many_arms(arms, 20_000), theory.refined.gamma(20_000, arms)
        moves = ds.variation(world)
        policy = ds.SlidingWindowUCB(variation=(moves.v1, moves.v2), radius="refined")
        terms = math.sqrt(g * 10_000) + (arms * moves.v2 * 20_000**2 * g) ** (1 / 3)
        yield f"Deviation{name}", f"{audit(world, policy, 1, 0)[0].farthest[1] / terms:.1f}"
    yield "StopsWhenItLikes", f"{probability_for_some_count(0.05, 3_000):.2f}"


def lower_bound_numbers() -> Numbers:
    """The cap of Theorem 2 (i), the price of a small budget, and the ratio of Theorem 2 (iii)."""
    yield "UncappedRate", f"{(1_000 * 0.5) ** (1 / 3):.1f}"
    yield "SmallBudgetRatio", f"{value_of_costs(1.0, 2e6, 0.01) / value_of_costs(1.0, 2e6, 0.1):.1f}"
    yield "SmallBudgetTheory", f"{10 ** (2 / 3):.1f}"
    for y, name in ((0.1, "Low"), (0.9, "High"), (0.99, "Highest")):
        regret, budget = trap_value(10_000, 0.25, 0.5, (0.0, y / 2))
        yield f"TrapRatio{name}", f"{regret / budget:.3f}"
    yield "TrapForm", f"{trap_forms(0.25, 0.5, (0.0, 0.05))[1]:.3f}"
    yield "TrapLimit", f"{math.floor(1e3 * (1 - math.sqrt(0.4))) / 1e3:.3f}"


def convex_numbers() -> Numbers:
    """Examples about section 4, and the hard violation."""
    for parameters, name in (("printed", "Printed"), ("given", "Given")):
        for horizon, size in ((1_000, "Short"), (100_000, "Long")):
            world = oco.instances.iid(horizon=horizon, noise=0.0)
            play = oco.VirtualQueue(parameters=parameters).play(world)
            yield f"Queue{name}{size}", whole(float(play.regret(oco.static_optimum(world))[0]))
    forms = oco.instances.proposition_2_forms(horizon=1_000)
    ratio = (forms.restricted - forms.optimum) / (forms.q_bar * forms.variation)
    yield "GapRatio", f"{ratio:.3f}"
    yield "GapConcentrated", f"{ratio / 500:.5f}"
    world = oco.instances.tight_and_loose(horizon=1_000_000)
    algorithms = {"Queue": oco.VirtualQueue(), "Penalty": oco.ExponentialPenalty(GRADIENT, DIAMETER)}
    for name, algorithm in algorithms.items():
        play = algorithm.play(world)
        yield f"Hard{name}", whole(float(play.hard_violation[0]))
        yield f"Soft{name}", whole(float(play.violation[0]))


def frontier_numbers() -> Numbers:
    """The largest optimum over reward, for reserving and for even pacing."""
    for name, spread in SPREADS.items():
        reserving = InventoryReserving((0.5 / spread, 1.0), WINDOW, SCALE)
        even = ds.SlidingWindowUCB(windows=WINDOW, scale=SCALE)
        yield f"Reserving{name}", f"{largest_ratio(reserving, spread, 40_000, 0):.1f}"
        yield f"Even{name}", f"{largest_ratio(even, spread, 40_000, 0):.1f}"
        yield f"Factor{name}", f"{reserving.factor:.1f}"


def row_numbers(rows: list[dict[str, Any]]) -> Numbers:
    """The number of checks, by verdict, and the fitted exponents of two of them."""
    yield "Checks", str(len(rows))
    for verdict, name in (("holds", "Hold"), ("weak", "Weak"), ("false as printed", "False")):
        yield f"Checks{name}", str(sum(row["verdict"] == verdict for row in rows))
    by_name = {row["name"]: row for row in rows}
    for row, name in (("theorem-2-i", "Rewards"), ("theorem-2-ii", "Costs"), ("window-pacing", "Pacing")):
        for rate in by_name[row]["rates"]:
            yield f"Exponent{name}{rate['varied'].upper()}", f"{rate['value']:.2f}"


def macros(numbers: Iterator[tuple[str, str]]) -> str:
    r"""Write numbers as LaTeX macros.

    >>> macros(iter([("Limit", "0.4")]))
    '\\newcommand{\\Limit}{0.4}\n'
    """
    return "".join(f"\\newcommand{{\\{name}}}{{{value}}}\n" for name, value in numbers)


def table(rows: list[dict[str, Any]]) -> str:
    r"""Write the checks as rows of a LaTeX table: name, place, power and verdict.

    >>> table([{"name": "lemma-1", "source": "Lemma 1", "power": 1.0, "verdict": "holds"}])
    '\\texttt{lemma-1} & Lemma 1 & 1.00 & holds \\\\\n'
    """
    lines = [
        f"\\texttt{{{row['name']}}} & {row['source']} & {int(row['power'] * 100) / 100:.2f} & {row['verdict']} \\\\\n"
        for row in rows
    ]
    return "".join(lines)


def write_companion(progress: Callable[[str, int, int], None]) -> int:
    """Run the quick checks and the examples; write numbers.tex and rows.tex. Return the number of macros."""
    rows = verify(QUICK, progress=progress)
    parts = (benchmark_numbers, learning_numbers, lower_bound_numbers, convex_numbers, frontier_numbers)
    numbers = [*(pair for part in parts for pair in part()), *row_numbers(rows)]
    note = "% Written by `python -m lab companion`; do not edit.\n"
    (DIRECTORY / "numbers.tex").write_text(note + macros(iter(numbers)))
    (DIRECTORY / "rows.tex").write_text(note + table(rows))
    return len(numbers)
