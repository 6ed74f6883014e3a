"""``Log``: the arms played and their outcomes, round by round, read and checked; full information can be replayed."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.contextual import ContextualInstance
from driftsack.core.decision import SKIP
from driftsack.core.encoder import Encoder
from driftsack.core.errors import CannotAnswerError, LogError, NamesError
from driftsack.core.extras import require
from driftsack.core.instance import Instance
from driftsack.core.names import Amounts
from driftsack.logs.contexts import decoded, encoded, encoder_of
from driftsack.logs.layout import ARM, ARM_SEPARATOR, PROPENSITY, REWARD, TIME
from driftsack.logs.options import ReadKeywords, ReadOptions, read_options
from driftsack.logs.rows import BadRow, Reader, RowBatch
from driftsack.logs.stream import PARQUET, LogStream

if TYPE_CHECKING:
    import polars as pl

    from driftsack.logs.context_value import LoggedContextValue


@dataclass(frozen=True, eq=False)
class Log:
    """A log in memory, one row per round, in the problem's units. Read one with ``ds.logs.read``.

    Attributes:
        arms: Names of the m arms.
        resources: Names of the d resources.
        time: (n,) Times as in the log; seconds since 1970 for dates.
        arm: (n,) Index into ``arms`` of the arm that was played, -1 for a round that was skipped or whose outcome was
            lost.
        reward: (n,) Rewards.
        costs: (n, d) Costs.
        propensity: (n,) Probability with which the arm was chosen, or None.
        table: (n, m, 1 + d) Reward and costs of every arm (full information), or None.
        reward_max: Largest possible reward of a round.
        cost_max: Largest possible cost of a round, for each resource.
        lost: Number of rounds whose outcome was lost.
        repeated: Number of rows of the file that repeat an earlier one in every column.
        without_repeats: Whether these rows were left out.
        inferred: The quantities, ``reward`` or a resource, whose maximum is the largest value of the log.
        contexts: (n, features) The features of each request as numbers, or None without columns ``context_NAME``.
        features: How the features are encoded, or None.
        lenient: What was read leniently, one sentence for each kind.
        dates: Whether times were written as dates.

    >>> import polars as pl
    >>> log = read(pl.DataFrame({"time": [1, 2, 3], "arm": ["a", None, "b"], "reward": [1, 0, 0], "cost": [0.5, 0, 1]}))
    >>> len(log), log.arms, log.resources, log.arm
    (3, ('a', 'b'), ('cost',), array([ 0, -1,  1], dtype=int32))
    """

    arms: tuple[str, ...]
    resources: tuple[str, ...]
    time: Floats
    arm: npt.NDArray[np.int32]
    reward: Floats
    costs: Floats
    propensity: Floats | None
    table: Floats | None
    reward_max: float
    cost_max: tuple[float, ...]
    lost: int = 0
    repeated: int = 0
    without_repeats: bool = False
    inferred: tuple[str, ...] = ()
    contexts: Floats | None = None
    features: Encoder | None = None
    lenient: tuple[str, ...] = ()
    dates: bool = False

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        kind = "full-information table" if self.table is not None else "log"
        contexts = f", contexts {', '.join(self.features.inputs)}" if self.features is not None else ""
        arms, resources = ", ".join(self.arms), ", ".join(self.resources)
        return f"Log({len(self):,} rounds, arms {arms}, resources {resources}{contexts}: a {kind})"

    def part(self, rows: slice | Bools | Ints) -> Log:
        """Return a log with some of the rows.

        Args:
            rows: A slice, a mask (n,) or positions, which may repeat.
        """
        return replace(
            self,
            time=self.time[rows],
            arm=self.arm[rows],
            reward=self.reward[rows],
            costs=self.costs[rows],
            propensity=None if self.propensity is None else self.propensity[rows],
            table=None if self.table is None else self.table[rows],
            contexts=None if self.contexts is None else self.contexts[rows],
        )

    def as_instance(self, budget: Amounts) -> Instance | ContextualInstance:
        """Replay a full-information table: in round t, each arm has exactly the outcome of row t, without noise.

        A log with contexts shows them as well, so that policies with contexts can be simulated on it.

        Args:
            budget: Budget of the whole log, one number for all resources or one for each, in their order or by name.

        Returns:
            An instance with deterministic outcomes and the names of the log; a ``ContextualInstance`` if the log has
            contexts.

        Raises:
            CannotAnswerError: If the log has only the outcomes of the arms that were played.

        >>> import polars as pl
        >>> rows = {"time": [1, 2], "reward:a": [1, 0], "cost:a": [0.5, 0.5], "reward:b": [0, 1], "cost:b": [1, 1]}
        >>> world = read(pl.DataFrame(rows)).as_instance(budget=1.0)
        >>> world.noise, world.rewards.tolist()
        ('deterministic', [[1.0, 0.0], [0.0, 1.0]])
        """
        if self.table is None:
            names = f"{REWARD}{ARM_SEPARATOR}ARM and {self.resources[0]}{ARM_SEPARATOR}ARM"
            raise CannotAnswerError(
                "a replay needs the outcomes of every arm in every round, but this log has only those of the arms that "
                f"were played; add the columns {names}, or use ds.logs.evaluate."
            )
        rewards, costs = self.table[:, :, 0], self.table[:, :, 1:].transpose(0, 2, 1)
        if self.contexts is not None:
            return ContextualInstance.by_table(
                self.contexts,
                rewards,
                costs,
                budget,
                noise="deterministic",
                reward_max=self.reward_max,
                cost_max=self.cost_max,
                arm_names=self.arms,
                resource_names=self.resources,
                features=self.features,
            )
        return Instance.from_arrays(
            rewards, costs, budget, "deterministic", self.reward_max, self.cost_max, self.arms, self.resources
        )

    def value_of_context(self, budget: Amounts, horizon: int | None = None, seed: int = 0) -> LoggedContextValue:
        """Estimate the value of contexts: how much more a plan that sees them earns than one that does not.

        Both plans are evaluated on rows that they were not made from (:mod:`driftsack.logs.context_value`).

        Args:
            budget: Budget for ``horizon`` rounds, one number for all resources or one for each, in order or by name.
            horizon: Rounds that the budget is for. Default: those of the log.
            seed: Seed of the folds.

        Returns:
            The rewards of both plans over the horizon, and the 95% interval of the difference.

        Raises:
            CannotAnswerError: If the log has no contexts or no propensities, they are inconsistent with the arms
                played, or the plans are too different from what was played.

        >>> import driftsack as ds
        >>> world = ds.ContextualInstance.by_table(
        ...     np.eye(2), [[0.9, 0.1], [0.1, 0.9]], [[[0.5, 0.5]]] * 2, budget=500, horizon=4_000
        ... )
        >>> worth = ds.gather(world).value_of_context(budget=1_000)  # enough for half of the rounds
        >>> worth.low < 800 < worth.high, worth.pays
        (True, True)
        """
        from driftsack.logs.context_value import value_of_context

        return value_of_context(self, budget, horizon, seed=seed)

    def to_frame(self) -> pl.DataFrame:
        """Convert the log to a DataFrame with the columns that ``read`` expects.

        Values of categories that share a spare slot of the encoder are written as ``?``.

        Returns:
            One row per round.

        Raises:
            NamesError: A resource has the name of another column.
        """
        require("polars")
        import polars as pl

        taken = [name for name in self.resources if name in (TIME, ARM, REWARD, PROPENSITY) or ARM_SEPARATOR in name]
        if taken:
            raise NamesError(
                f"the resources of a log must not be called {TIME}, {ARM}, {REWARD} or {PROPENSITY} or contain "
                f"{ARM_SEPARATOR!r}, which have another meaning in its columns, got {', '.join(taken)}; rename them, "
                "for example with dataclasses.replace(log, resources=(...))."
            )
        columns: dict[str, Any] = {TIME: self.time}
        if self.table is None or (self.arm != SKIP).any():
            names = np.array([*self.arms, None], dtype=object)
            columns |= {ARM: pl.Series(names[self.arm].tolist(), dtype=pl.String), REWARD: self.reward}
            columns |= {name: self.costs[:, j] for j, name in enumerate(self.resources)}
        if self.propensity is not None:
            columns[PROPENSITY] = self.propensity
        if self.features is not None and self.contexts is not None:
            columns |= decoded(self.features, self.contexts)
        if self.table is not None:
            for i, arm in enumerate(self.arms):
                for k, part in enumerate((REWARD, *self.resources)):
                    columns[f"{part}{ARM_SEPARATOR}{arm}"] = self.table[:, i, k]
        return pl.DataFrame(columns)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the log to a file that ``read`` can read.

        Args:
            path: The file; Parquet if it ends in .parquet or .pq, else CSV.
        """
        frame = self.to_frame()
        (frame.write_parquet if Path(path).suffix.lower() in PARQUET else frame.write_csv)(Path(path))


def read(source: Any, options: ReadOptions | None = None, **changes: Unpack[ReadKeywords]) -> Log:
    """Read and check a log.

    Args:
        source: A .csv or .parquet file, or a Polars DataFrame, with the columns described in :mod:`driftsack.logs`.
        options: How to read it.
        **changes: Options by name, such as ``resources=["usd"]``; see :class:`~driftsack.logs.ReadOptions`.

    Returns:
        The log, with all rows in memory.

    Raises:
        LogError: If the log cannot be read or any row is bad; the error lists every such row.
        SettingError: If an option is wrong.
    """
    stream = LogStream(source, read_options(options, **changes))
    parts = list(stream)
    return join(parts, stream.reader)


def check(source: Any, options: ReadOptions | None = None, **changes: Unpack[ReadKeywords]) -> tuple[BadRow, ...]:
    """List every bad row of a log, with its line and the reason.

    Args:
        source: A .csv or .parquet file, or a Polars DataFrame, with the columns described in :mod:`driftsack.logs`.
        options: How to read it.
        **changes: Options by name, such as ``resources=["usd"]``; see :class:`~driftsack.logs.ReadOptions`.

    Returns:
        The bad rows by line; empty if ``read`` accepts the log. After 100,000 bad values reading stops, and the last
        entry says where.

    Raises:
        LogError: If the log cannot be read at all, for example because a column is missing.
        SettingError: If an option is wrong.

    >>> import polars as pl
    >>> rows = pl.DataFrame({"time": [1, 2], "arm": ["a", "a"], "reward": [0.5, -1.0], "cost": [0.5, 0.5]})
    >>> [(row.line, row.kind) for row in check(rows)]
    [(2, 'negative')]
    """
    try:
        for _ in LogStream(source, read_options(options, **changes)):
            pass
    except LogError as error:
        if not error.bad:
            raise
        return tuple(sorted(error.bad))
    return ()


def arm_order(names: Sequence[str]) -> list[int]:
    """Return the natural order of arms: by value if all names are integers, else alphabetically."""
    numeric = all(re.fullmatch(r"-?[0-9]+", name) for name in names)
    return sorted(range(len(names)), key=lambda i: (int(names[i]), "") if numeric else (0, names[i]))


def join(parts: list[RowBatch], reader: Reader) -> Log:
    """Concatenate all batches into one log, with the arms in their natural order."""
    layout, names = reader.layout, list(reader.arms)
    order = arm_order(names) if layout.arms is None else list(range(len(names)))
    # Map the arms in the order of their first rows to their natural order.
    index = np.full(len(names) + 1, SKIP, dtype=np.int32)  # the last entry is that of SKIP
    index[order] = np.arange(len(names))
    outcomes = np.concatenate([part.outcomes for part in parts])
    if layout.options.missing_costs == "mean":
        outcomes = _with_mean_costs(outcomes, np.concatenate([part.arm for part in parts]), names, layout.resources)
    encoder = encoder_of(reader.features, layout.options.features) if reader.features else None
    return Log(
        arms=tuple(names[i] for i in order),
        resources=layout.resources,
        time=np.concatenate([part.time for part in parts]),
        arm=index[np.concatenate([part.arm for part in parts])],
        reward=outcomes[:, 0].copy(),
        costs=outcomes[:, 1:].copy(),
        propensity=np.concatenate([part.propensity for part in parts]) if layout.propensity else None,
        table=np.concatenate([part.table for part in parts]) if layout.table else None,
        reward_max=reader.maxima[0],
        cost_max=reader.maxima[1:],
        lost=reader.lost,
        repeated=reader.repeated,
        without_repeats=layout.options.drop_duplicates,
        inferred=reader.inferred,
        contexts=(
            None
            if encoder is None
            else encoded(reader.features, np.concatenate([part.contexts for part in parts]), encoder)
        ),
        features=encoder,
        lenient=reader.lenient,
        dates=reader.dates is True,
    )


def _with_mean_costs(
    outcomes: Floats, arm: npt.NDArray[np.int32], names: Sequence[str], resources: Sequence[str]
) -> Floats:
    """(n, 1 + d) Outcomes with each missing cost, NaN, replaced by the mean of its arm."""
    filled = outcomes.copy()
    for i, k in np.argwhere([np.isnan(outcomes[arm == i]).any(axis=0) for i in range(len(names))]).tolist():
        column = filled[:, k]
        known = column[(arm == i) & ~np.isnan(column)]
        if not known.size:
            raise CannotAnswerError(
                f"every {resources[k - 1]} of arm {names[i]} is empty, so it has no mean; fill some in, or pass "
                "missing_costs='drop' (--missing-costs drop)."
            )
        column[(arm == i) & np.isnan(column)] = known.mean()
    return filled
