"""``Log``: what was tried, round by round, checked; and its replay as a world where every arm's outcome is known."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.core.errors import CannotAnswerError, LogError
from driftsack.core.instance import Instance
from driftsack.logs.layout import ARM, OF_ARM, PROPENSITY, REWARD, TIME, Wanted
from driftsack.logs.rows import BadRow, Batch, Reader
from driftsack.logs.stream import PARQUET, Stream

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Log:
    """One row a round, in people's units. Read one with ``ds.logs.read``; all rows are in memory.

    >>> import polars as pl
    >>> log = read(pl.DataFrame({"time": [1, 2, 3], "arm": ["a", None, "b"], "reward": [1, 0, 0], "cost": [0.5, 0, 1]}))
    >>> len(log), log.arms, log.resources, log.arm
    (3, ('a', 'b'), ('cost',), array([ 0, -1,  1], dtype=int32))
    """

    arms: tuple[str, ...]
    resources: tuple[str, ...]
    time: Floats  # (n,) numbers as they came; seconds since 1970 for dates
    arm: npt.NDArray[np.int32]  # (n,) index into ``arms``, -1 for a skip
    reward: Floats  # (n,)
    costs: Floats  # (n, d)
    propensity: Floats | None  # (n,) the probability with which the arm was chosen
    table: Floats | None  # (n, m, 1 + d) reward and costs that every arm would have had
    reward_max: float
    cost_max: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        kind = "full-information table" if self.table is not None else "log"
        return (
            f"Log({len(self):,} rounds, arms {', '.join(self.arms)}, resources {', '.join(self.resources)}: a {kind})"
        )

    def as_instance(self, budget: Sequence[float] | Floats | float) -> Instance:
        """The table as a world whose outcomes are its rows: round t gives what row t says, with no noise added.

        >>> import polars as pl
        >>> rows = {"time": [1, 2], "reward:a": [1, 0], "cost:a": [0.5, 0.5], "reward:b": [0, 1], "cost:b": [1, 1]}
        >>> world = read(pl.DataFrame(rows)).as_instance(budget=1.0)
        >>> world.noise, world.rewards.tolist()
        ('deterministic', [[1.0, 0.0], [0.0, 1.0]])
        """
        if self.table is None:
            raise CannotAnswerError(
                "a replay needs what every arm would have given in every round, and this log has only the arm that was "
                f"played; add columns {REWARD}{OF_ARM}ARM and {self.resources[0]}{OF_ARM}ARM, or use ds.logs.evaluate."
            )
        rewards, costs = self.table[:, :, 0], self.table[:, :, 1:].transpose(0, 2, 1)
        return Instance.from_arrays(rewards, costs, budget, "deterministic", self.reward_max, self.cost_max)

    def to_frame(self) -> pl.DataFrame:
        """The log as a table with the columns that ``read`` wants."""
        import polars as pl  # noqa: PLC0415

        columns: dict[str, Any] = {TIME: self.time}
        if self.table is None or (self.arm != SKIP).any():
            names = np.array([*self.arms, None], dtype=object)
            columns |= {ARM: pl.Series(names[self.arm].tolist(), dtype=pl.String), REWARD: self.reward}
            columns |= {name: self.costs[:, j] for j, name in enumerate(self.resources)}
        if self.propensity is not None:
            columns[PROPENSITY] = self.propensity
        if self.table is not None:
            for i, arm in enumerate(self.arms):
                for k, part in enumerate((REWARD, *self.resources)):
                    columns[f"{part}{OF_ARM}{arm}"] = self.table[:, i, k]
        return pl.DataFrame(columns)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the log to a .csv or .parquet file."""
        frame = self.to_frame()
        (frame.write_parquet if Path(path).suffix.lower() in PARQUET else frame.write_csv)(Path(path))


def read(
    source: Any,
    resources: Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
    reward_max: float = 1.0,
    cost_max: Sequence[float] | float = 1.0,
    separator: str = ",",
) -> Log:
    """Read and check a log: a .csv or .parquet file, or a Polars DataFrame.

    ``resources`` names the columns of the resources (default: those that begin with ``cost``), ``arms`` all arms that
    may occur (default: those that do). If any row is bad, nothing is read, and the ``LogError`` names each.
    """
    stream = Stream(source, Wanted(resources, arms, reward_max, cost_max), separator)
    parts = list(stream)
    return _join(parts, stream.reader)


def check(
    source: Any,
    resources: Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
    reward_max: float = 1.0,
    cost_max: Sequence[float] | float = 1.0,
    separator: str = ",",
) -> tuple[BadRow, ...]:
    """Every bad row of a log, with its line and the reason; none if ``read`` will take it.

    After 100,000 bad values reading stops, and the last entry says where.

    >>> import polars as pl
    >>> rows = pl.DataFrame({"time": [1, 2], "arm": ["a", "a"], "reward": [0.5, -1.0], "cost": [0.5, 0.5]})
    >>> [(row.line, row.kind) for row in check(rows)]
    [(2, 'negative')]
    """
    stream = Stream(source, Wanted(resources, arms, reward_max, cost_max), separator)
    try:
        for _ in stream:
            pass
    except LogError as error:
        if not error.bad:
            raise
        return tuple(sorted(error.bad))
    return ()


def arm_order(names: Sequence[str]) -> list[int]:
    """Arms in the order that people expect: whole numbers by size, words by the alphabet."""
    numeric = all(re.fullmatch(r"-?[0-9]+", name) for name in names)
    return sorted(range(len(names)), key=lambda i: (int(names[i]), "") if numeric else (0, names[i]))


def _join(parts: list[Batch], reader: Reader) -> Log:
    """All batches as one log, arms in order."""
    layout, names = reader.layout, list(reader.arms)
    order = arm_order(names) if layout.arms is None else list(range(len(names)))
    place = np.full(len(names) + 1, SKIP, dtype=np.int32)  # the last one is for SKIP
    place[order] = np.arange(len(names))
    outcomes = np.concatenate([part.outcomes for part in parts])
    return Log(
        arms=tuple(names[i] for i in order),
        resources=layout.resources,
        time=np.concatenate([part.time for part in parts]),
        arm=place[np.concatenate([part.arm for part in parts])],
        reward=outcomes[:, 0].copy(),
        costs=outcomes[:, 1:].copy(),
        propensity=np.concatenate([part.propensity for part in parts]) if layout.propensity else None,
        table=np.concatenate([part.table for part in parts]) if layout.table else None,
        reward_max=layout.reward_max,
        cost_max=tuple(layout.cost_max.tolist()),
    )
