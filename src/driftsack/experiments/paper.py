"""The paper's experiments as data: which worlds, which policies; and one pure step from runs to a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import polars as pl

from driftsack.benchmarks import lp_dynamic
from driftsack.core.instance import Instance
from driftsack.instances import example_1, example_2
from driftsack.measures import variation
from driftsack.policies import NaiveUCB, Policy, SlidingWindowUCB
from driftsack.simulation import Run, simulate

FIGURE_1: Final[dict[str, Callable[[int], Instance]]] = {"Example 1": example_1, "Example 2": example_2}


class Cell(NamedTuple):
    """One policy on one world, and what the best plan earns there."""

    example: str
    name: str
    instance: Instance
    policy: Policy
    optimum: float  # LP-Dynamic


def figure_1(horizon: int) -> Iterator[Cell]:
    """Cumulative reward on Examples 1 and 2: SW-UCB with windows from the true (V1, V2), and naive UCB."""
    for example, build in FIGURE_1.items():
        instance = build(horizon)
        moves, optimum = variation(instance), lp_dynamic(instance).value
        yield Cell(example, "SW-UCB", instance, SlidingWindowUCB(variation=(moves.v1, moves.v2)), optimum)
        yield Cell(example, "naive UCB", instance, NaiveUCB(), optimum)


def run_cell(cell: Cell, trials: int, seed: int, progress: Callable[[int], None] | None = None) -> Run:
    """Play the trials of one cell."""
    return simulate(cell.instance, cell.policy, trials=trials, seed=seed, progress=progress)


def optima(cells: list[Cell]) -> dict[str, float]:
    """What the best plan earns in each world."""
    return {cell.example: cell.optimum for cell in cells}


def panels(cells: list[Cell], runs: list[Run]) -> dict[str, dict[str, Run]]:
    """Runs by world and policy, as the figure wants them."""
    grouped: dict[str, dict[str, Run]] = {}
    for cell, run in zip(cells, runs, strict=True):
        grouped.setdefault(cell.example, {})[cell.name] = run
    return grouped


def table(cells: list[Cell], runs: list[Run]) -> pl.DataFrame:
    """One row a cell: mean reward and stopping time with standard errors, and shares.

    ``optimum_share`` is the mean reward over LP-Dynamic; ``spent_share`` the share of the budget that was used most.
    """
    rows = []
    for cell, run in zip(cells, runs, strict=True):
        said = run.summary()
        budget = cell.instance.problem.budget
        share = max(used / amount for used, amount in zip(said["spent"], budget, strict=True))
        rows.append(
            {
                "example": cell.example,
                "policy": cell.name,
                "trials": said["trials"],
                "reward": said["reward"],
                "reward_se": said["reward_se"],
                "optimum_share": said["reward"] / cell.optimum,
                "stopping_time": said["stopping_time"],
                "stopping_time_se": said["stopping_time_se"],
                "spent_share": share,
                "fallbacks": said["fallbacks"],
            }
        )
    return pl.DataFrame(rows)
