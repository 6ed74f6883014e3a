r"""``Survey``: a summary of a log from which drift is measured, computed in one pass and bounded memory.

Each arm's outcomes, in the order of its pulls, are summed in cells of :math:`g` pulls. When all cells of an arm are
full, neighbours are merged and :math:`g` doubles, so that every cell of an arm always holds the same number of pulls.
Under no drift the cells are therefore exchangeable, as a permutation test requires, for logs of any length. The last
pulls of an arm, fewer than :math:`g` and at most one in two thousand, stay in a cell that is not full; they count in
``pulls`` only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats, Ints
from driftsack.core.decision import SKIP
from driftsack.core.errors import CannotAnswerError
from driftsack.logs.calendar import Calendar, TimeSamples
from driftsack.logs.log import Log, arm_order, join, read
from driftsack.logs.options import ReadKeywords, ReadOptions, read_options
from driftsack.logs.rows import RowBatch
from driftsack.logs.stream import LogStream
from driftsack.numerics.compiled import kernel

MAX_CELLS: Final = 4096
MAX_RECENT: Final = 100_000  # rounds of a file, at least, that are kept for a policy to learn


class Cells(NamedTuple):
    """Sums of the outcomes of every arm, in cells of equally many pulls."""

    sums: Floats  # (m, cells, 1 + d) sums of rewards, then of costs
    rounds: Floats  # (m, cells) sums of the rounds of the pulls, from 0
    full: Ints  # (m,) number of full cells
    partial: Ints  # (m,) pulls in the cell that is being filled
    size: Ints  # (m,) pulls of a full cell
    pulls: Ints  # (m,) all pulls


class Series(NamedTuple):
    """One arm's outcomes in time order, normalised to [0, 1]."""

    rounds: Floats  # (n,) mean round of each cell, from 0
    values: Floats  # (n, 1 + d) mean reward and costs of each cell
    size: int  # pulls of a cell
    pulls: int  # all pulls


@dataclass(frozen=True, eq=False)
class Survey:
    """A summary of a log: each arm's outcomes over time.

    Attributes:
        rows: Number of rounds.
        skipped: Number of skipped rounds.
        arms: Names of the arms.
        resources: Names of the resources.
        reward_max: Largest possible reward of a round.
        cost_max: Largest possible cost of a round, for each resource.
        table: Whether the outcomes of every arm are known in every round (full information).
        series: Outcomes of each arm in time order, normalised to [0, 1].
        lost: Number of rounds whose outcome was lost.
        repeated: Number of rows of the file that repeat an earlier one in every column.
        without_repeats: Whether these rows were left out.
        inferred: The quantities, ``reward`` or a resource, whose maximum is the largest value of the log.
        lenient: What was read leniently, one sentence for each kind.
        totals: Total reward and costs of the arms that were played, in the problem's units; None if the log has only
            a table.
        calendar: When the rounds took place; None if the times are not dates.
        recent: The last rounds of the log, which a policy can learn; at most 250,000 more than ``MAX_RECENT``.
    """

    rows: int
    skipped: int
    arms: tuple[str, ...]
    resources: tuple[str, ...]
    reward_max: float
    cost_max: tuple[float, ...]
    table: bool
    series: tuple[Series, ...]
    lost: int = 0
    repeated: int = 0
    without_repeats: bool = False
    inferred: tuple[str, ...] = ()
    lenient: tuple[str, ...] = ()
    totals: Floats | None = None
    calendar: Calendar | None = None
    recent: Log | None = None

    @property
    def pulls(self) -> Ints:
        """(m,) Number of observed outcomes of each arm."""
        return np.array([one.pulls for one in self.series])


@kernel
def add_rows(cells: Cells, arm: npt.NDArray[np.int32], outcomes: Floats, first: int) -> None:
    """Add rows ``first``, ``first`` + 1, ... of a log; skips and unknown arms have negative indices."""
    for t in range(arm.size):
        if arm[t] >= 0:
            add(cells, arm[t], first + t, outcomes[t])


@kernel
def add_table(cells: Cells, table: Floats, first: int) -> None:
    """Add rows with the outcomes of every arm."""
    for t in range(table.shape[0]):
        for i in range(table.shape[1]):
            add(cells, i, first + t, table[t, i])


@kernel
def add(cells: Cells, i: int, t: int, outcome: Floats) -> None:
    """Add one pull; merge neighbours when all cells are full."""
    k = cells.full[i]
    for q in range(outcome.size):
        cells.sums[i, k, q] += outcome[q]
    cells.rounds[i, k] += t
    cells.partial[i] += 1
    cells.pulls[i] += 1
    if cells.partial[i] == cells.size[i]:
        cells.full[i] += 1
        cells.partial[i] = 0
        if cells.full[i] == cells.rounds.shape[1]:
            merge_neighbours(cells, i)


@kernel
def merge_neighbours(cells: Cells, i: int) -> None:
    """Merge pairs of cells: half as many cells, each of twice as many pulls."""
    half = cells.rounds.shape[1] // 2
    for k in range(half):
        for q in range(cells.sums.shape[2]):
            cells.sums[i, k, q] = cells.sums[i, 2 * k, q] + cells.sums[i, 2 * k + 1, q]
        cells.rounds[i, k] = cells.rounds[i, 2 * k] + cells.rounds[i, 2 * k + 1]
    cells.sums[i, half:] = 0.0
    cells.rounds[i, half:] = 0.0
    cells.full[i] = half
    cells.size[i] *= 2


def new_cells(arms: int, outcomes: int, most: int = MAX_CELLS) -> Cells:
    """Return empty cells, at most ``most`` of each arm."""
    full, partial, pulls = (np.zeros(arms, dtype=np.int64) for _ in range(3))
    size = np.ones(arms, dtype=np.int64)
    return Cells(np.zeros((arms, most, outcomes)), np.zeros((arms, most)), full, partial, size, pulls)


def with_more_arms(cells: Cells, arms: int) -> Cells:
    """Return the cells with empty ones added for new arms."""
    more = new_cells(arms - len(cells.pulls), cells.sums.shape[2], cells.rounds.shape[1])
    return Cells(*(np.concatenate(pair) for pair in zip(cells, more, strict=True)))


def survey(
    source: Any,
    options: ReadOptions | None = None,
    *,
    most_cells: int = MAX_CELLS,
    **changes: Unpack[ReadKeywords],
) -> Survey:
    """Read, check and summarise a log in one pass.

    Args:
        source: A ``Log``, a .csv or .parquet file, or a Polars DataFrame.
        options: How to read it. A ``Log`` was read already, so its options are not used.
        most_cells: Maximum number of cells that each arm's outcomes are summed in.
        **changes: Options by name, such as ``resources=["usd"]``; see :class:`~driftsack.logs.ReadOptions`.

    Raises:
        LogError: If the log cannot be read or any row is bad; the error lists every such row.
        CannotAnswerError: If an arm was never played, or no arm was.

    >>> import polars as pl
    >>> rows = {"time": [1, 2, 3], "arm": ["b", "a", "b"], "reward": [1.0, 0.0, 0.5], "cost": [0.5, 0.5, 1.0]}
    >>> summary = survey(pl.DataFrame(rows))
    >>> summary.arms, summary.pulls, summary.series[1].values[:, 0]
    (('a', 'b'), array([1, 2]), array([1. , 0.5]))
    """
    if isinstance(source, Log):
        return _of_log(source, most_cells)
    chosen = read_options(options, **changes)
    if chosen.missing_costs == "mean":  # which is known after the last row
        return _of_log(read(source, chosen), most_cells)
    stream = LogStream(source, chosen)
    reader, layout = stream.reader, stream.reader.layout

    # Sum the batches in cells; new arms may appear in any of them.
    cells, skipped, row = new_cells(len(reader.arms), 1 + len(layout.resources), most_cells), 0, 0
    clock, totals, recent = TimeSamples(), np.zeros(1 + len(layout.resources)), list[RowBatch]()
    for batch in stream:
        clock.add(batch.time)
        totals += batch.outcomes[batch.arm >= 0].sum(axis=0)
        recent = [*_still_recent(recent, len(batch.time)), batch]
        if len(reader.arms) > len(cells.pulls):
            cells = with_more_arms(cells, len(reader.arms))
        if layout.table:
            add_table(cells, batch.table, row)
        else:
            add_rows(cells, batch.arm, batch.outcomes, row)
            skipped += int((batch.arm == SKIP).sum())
        row += len(batch.time)

    # List the arms in their natural order, unless the caller named them.
    names = list(reader.arms)
    order = arm_order(names) if layout.arms is None else list(range(len(names)))
    return Survey(
        rows=row,
        skipped=skipped - reader.lost,
        arms=tuple(names[i] for i in order),
        resources=layout.resources,
        reward_max=reader.maxima[0],
        cost_max=reader.maxima[1:],
        table=layout.table,
        series=_series(cells, order, names, reader.maxima, row),
        lost=reader.lost,
        repeated=reader.repeated,
        without_repeats=layout.options.drop_duplicates,
        inferred=reader.inferred,
        lenient=reader.lenient,
        totals=totals if layout.played else None,
        calendar=clock.calendar(reader.dates is True),
        recent=join(recent, reader),
    )


def _still_recent(batches: Sequence[RowBatch], more: int) -> list[RowBatch]:
    """Return the batches that are still needed for the last ``MAX_RECENT`` rows when ``more`` rows are added."""
    after = np.cumsum([more, *(len(batch.time) for batch in reversed(batches))])[:-1][::-1]
    return [batch for batch, rows in zip(batches, after.tolist(), strict=True) if rows < MAX_RECENT]


def _of_log(log: Log, most_cells: int) -> Survey:
    """Summarise a log in memory."""
    cells, clock, played = new_cells(len(log.arms), 1 + len(log.resources), most_cells), TimeSamples(), log.arm != SKIP
    clock.add(log.time)
    if log.table is not None:
        add_table(cells, log.table, 0)
    else:
        add_rows(cells, log.arm, np.column_stack([log.reward, log.costs]), 0)
    return Survey(
        rows=len(log),
        skipped=0 if log.table is not None else int((log.arm == SKIP).sum()) - log.lost,
        arms=log.arms,
        resources=log.resources,
        reward_max=log.reward_max,
        cost_max=log.cost_max,
        table=log.table is not None,
        series=_series(cells, range(len(log.arms)), log.arms, (log.reward_max, *log.cost_max), len(log)),
        lost=log.lost,
        repeated=log.repeated,
        without_repeats=log.without_repeats,
        inferred=log.inferred,
        lenient=log.lenient,
        totals=np.array([log.reward[played].sum(), *log.costs[played].sum(axis=0)]) if played.any() else None,
        calendar=clock.calendar(log.dates),
        recent=log,
    )


def _series(
    cells: Cells, order: Sequence[int], names: Sequence[str], maxima: Sequence[float], rows: int
) -> tuple[Series, ...]:
    """Compute the means of the full cells of each arm, normalised to [0, 1] by the ``maxima`` of reward and costs."""
    series = []
    for i in order:
        full, size, pulls = int(cells.full[i]), int(cells.size[i]), int(cells.pulls[i])
        if pulls == 0:
            raise CannotAnswerError(
                f"arm {names[i]} was never played, so the log has no outcomes of it; leave it out of arms=[...]."
            )
        rounds, values = cells.rounds[i, :full] / size, cells.sums[i, :full] / (size * np.asarray(maxima))
        series.append(Series(rounds, values, size, pulls))
    if not series:
        raise CannotAnswerError(
            f"all {rows:,} rounds of the log were skipped or lost, so it has no outcomes of any arm."
        )
    return tuple(series)
