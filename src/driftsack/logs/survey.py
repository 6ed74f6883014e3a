r"""``Survey``: all that is needed to measure drift, from one pass over a log of any length, in little memory.

Each arm's outcomes, in the order of its pulls, are summed in cells of :math:`g` pulls. When an arm's cells are full,
neighbours are joined and :math:`g` doubles, so that every cell of an arm always holds the same number of pulls: under
no drift the cells are exchangeable, which is what a permutation test needs, at ten million rows as at ten. Fewer than
:math:`g` last pulls of an arm, at most one in two thousand, wait in a cell that is not yet full; they count in
``pulls`` and in nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats, Ints
from driftsack.core.decision import SKIP
from driftsack.core.errors import CannotAnswerError
from driftsack.logs.layout import Wanted
from driftsack.logs.log import Log, arm_order
from driftsack.logs.stream import Stream
from driftsack.numerics.compiled import kernel

MOST_CELLS: Final = 4096


class Cells(NamedTuple):
    """Running sums of every arm."""

    sums: Floats  # (m, cells, 1 + d) reward, then costs
    places: Floats  # (m, cells) sums of the rounds, from 0
    counts: Ints  # (m, 4) full cells, pulls in the cell that is being filled, pulls of a full cell, all pulls


class Series(NamedTuple):
    """One arm's outcomes in time order, as kernels see them."""

    rounds: Floats  # (n,) mean round of each cell, from 0
    values: Floats  # (n, 1 + d) mean reward and costs of each cell, in [0, 1]
    size: int  # pulls of a cell
    pulls: int  # all pulls


@dataclass(frozen=True, eq=False)
class Survey:
    """A log in brief; ``series`` has one entry an arm."""

    rows: int
    skipped: int
    arms: tuple[str, ...]
    resources: tuple[str, ...]
    reward_max: float
    cost_max: tuple[float, ...]
    table: bool  # every arm was seen in every round
    series: tuple[Series, ...]

    @property
    def pulls(self) -> Ints:
        """(m,) how often each arm was seen."""
        return np.array([one.pulls for one in self.series])


@kernel
def add_rows(cells: Cells, arm: npt.NDArray[np.int32], outcomes: Floats, first: int) -> None:
    """Enter rows ``first``, ``first`` + 1, ... of a log; skips and unknown arms are below zero."""
    for t in range(arm.size):
        if arm[t] >= 0:
            add(cells, arm[t], first + t, outcomes[t])


@kernel
def add_table(cells: Cells, table: Floats, first: int) -> None:
    """Enter rows in which every arm is known."""
    for t in range(table.shape[0]):
        for i in range(table.shape[1]):
            add(cells, i, first + t, table[t, i])


@kernel
def add(cells: Cells, i: int, t: int, outcome: Floats) -> None:
    """Enter one pull; join neighbours when the cells are full."""
    counts = cells.counts[i]
    k = counts[0]
    for q in range(outcome.size):
        cells.sums[i, k, q] += outcome[q]
    cells.places[i, k] += t
    counts[1] += 1
    counts[3] += 1
    if counts[1] == counts[2]:
        counts[0] += 1
        counts[1] = 0
        if counts[0] == cells.places.shape[1]:
            join_neighbours(cells, i)


@kernel
def join_neighbours(cells: Cells, i: int) -> None:
    """Half as many cells, each of twice as many pulls."""
    half = cells.places.shape[1] // 2
    for k in range(half):
        for q in range(cells.sums.shape[2]):
            cells.sums[i, k, q] = cells.sums[i, 2 * k, q] + cells.sums[i, 2 * k + 1, q]
        cells.places[i, k] = cells.places[i, 2 * k] + cells.places[i, 2 * k + 1]
    cells.sums[i, half:] = 0.0
    cells.places[i, half:] = 0.0
    cells.counts[i, 0] = half
    cells.counts[i, 2] *= 2


def new_cells(arms: int, outcomes: int, most: int = MOST_CELLS) -> Cells:
    """Empty cells."""
    counts = np.zeros((arms, 4), dtype=np.int64)
    counts[:, 2] = 1
    return Cells(np.zeros((arms, most, outcomes)), np.zeros((arms, most)), counts)


def grown(cells: Cells, arms: int) -> Cells:
    """Cells for more arms."""
    more = new_cells(arms - len(cells.counts), cells.sums.shape[2], cells.places.shape[1])
    return Cells(*(np.concatenate(pair) for pair in zip(cells, more, strict=True)))


def survey(
    source: Any,
    resources: Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
    reward_max: float = 1.0,
    cost_max: Sequence[float] | float = 1.0,
    separator: str = ",",
    most_cells: int = MOST_CELLS,
) -> Survey:
    """Read, check and sum up a log in one pass: a ``Log``, a .csv or .parquet file, or a Polars DataFrame.

    >>> import polars as pl
    >>> rows = {"time": [1, 2, 3], "arm": ["b", "a", "b"], "reward": [1.0, 0.0, 0.5], "cost": [0.5, 0.5, 1.0]}
    >>> brief = survey(pl.DataFrame(rows))
    >>> brief.arms, brief.pulls, brief.series[1].values[:, 0]
    (('a', 'b'), array([1, 2]), array([1. , 0.5]))
    """
    if isinstance(source, Log):
        return _of_log(source, most_cells)
    stream = Stream(source, Wanted(resources, arms, reward_max, cost_max), separator)
    reader, layout = stream.reader, stream.reader.layout
    cells, skipped, row = new_cells(len(reader.arms), 1 + len(layout.resources), most_cells), 0, 0
    for batch in stream:
        cells = grown(cells, len(reader.arms)) if len(reader.arms) > len(cells.counts) else cells
        if layout.table:
            add_table(cells, batch.table, row)
        else:
            add_rows(cells, batch.arm, batch.outcomes, row)
            skipped += int((batch.arm == SKIP).sum())
        row += len(batch.time)
    names = list(reader.arms)
    order = arm_order(names) if layout.arms is None else list(range(len(names)))
    about = (layout.resources, layout.reward_max, tuple(layout.cost_max.tolist()), layout.table)
    return _brief(cells, order, names, row, skipped, about)


def _of_log(log: Log, most_cells: int) -> Survey:
    """The same of a log in memory."""
    cells = new_cells(len(log.arms), 1 + len(log.resources), most_cells)
    if log.table is not None:
        add_table(cells, log.table, 0)
    else:
        add_rows(cells, log.arm, np.column_stack([log.reward, log.costs]), 0)
    about = (log.resources, log.reward_max, log.cost_max, log.table is not None)
    skipped = 0 if log.table is not None else int((log.arm == SKIP).sum())
    return _brief(cells, list(range(len(log.arms))), list(log.arms), len(log), skipped, about)


def _brief(
    cells: Cells,
    order: list[int],
    names: list[str],
    rows: int,
    skipped: int,
    about: tuple[tuple[str, ...], float, tuple[float, ...], bool],
) -> Survey:
    """Means of the full cells, in [0, 1]."""
    resources, reward_max, cost_max, table = about
    unit = np.array([reward_max, *cost_max])
    series = []
    for i in order:
        full, _, size, pulls = cells.counts[i].tolist()
        if pulls == 0:
            raise CannotAnswerError(
                f"arm {names[i]} was never tried, so the log cannot say what it gives; leave it out of arms=[...]."
            )
        rounds, values = cells.places[i, :full] / size, cells.sums[i, :full] / (size * unit)
        series.append(Series(rounds, values, size, pulls))
    if not series:
        raise CannotAnswerError(f"every one of the {rows:,} rounds was skipped, so the log says nothing of any arm.")
    return Survey(rows, skipped, tuple(names[i] for i in order), resources, reward_max, cost_max, table, tuple(series))
