"""Batches of rows as arrays; every row that cannot be used is recorded with its line and the reason."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools, Floats
from driftsack.core.checks import ROUNDING
from driftsack.core.decision import SKIP
from driftsack.core.errors import LogError
from driftsack.logs import columns
from driftsack.logs.contexts import feature_columns
from driftsack.logs.layout import ARM, ARM_SEPARATOR, PROPENSITY, REWARD, TIME, Layout
from driftsack.logs.lenient import Spellings, iso_dates, outcome_numbers, sentences

if TYPE_CHECKING:  # loading Polars takes a quarter of a second, which ``import driftsack`` does not need
    import polars as pl

UNKNOWN: Final = -2  # an arm that is not in the list: the row is bad, but not a skip
TOO_LARGE: Final = "too large"  # the kind of a value above its maximum
MAX_ARMS: Final = 1_000
TABLE_ROUNDING: Final = 1e-9  # relative to the largest possible value: tolerated difference of a row from its table


class BadRow(NamedTuple):
    """Why one row of a log cannot be used.

    Attributes:
        line: Line in the file, counting the header as line 1; in a Parquet file or a DataFrame, the row, from 1.
        column: Name of the column; empty if the whole row is concerned.
        kind: Short name of the problem, such as ``empty``, ``not a number``, ``negative``, ``too large``, ``unsorted``
            or ``unknown arm``.
        reason: The problem as a sentence: what was expected, what was found and what to do.
    """

    line: int
    column: str
    kind: str
    reason: str


class RowBatch(NamedTuple):
    """Rows as arrays, in the problem's units; a skipped round, or one whose outcome was lost, has arm -1 and zeros."""

    time: Floats  # (n,) times; seconds since 1970 for dates
    arm: npt.NDArray[np.int32]  # (n,) indices of the arms, in order of first appearance or as in the layout
    outcomes: Floats  # (n, 1 + d) rewards, then costs
    propensity: Floats  # (n,) propensities, or (0,) without them
    table: Floats  # (n, m, 1 + d) outcomes of every arm, or (0, 0, 1 + d) without full information
    # (n, columns, 2) Each feature as a number and as the code of a string, or (0, 0, 2) without features.
    contexts: Floats

    def select(self, rows: Bools) -> RowBatch:
        """Return the batch with these rows only."""
        propensity = self.propensity[rows] if self.propensity.size else self.propensity
        table = self.table[rows] if self.table.size else self.table
        contexts = self.contexts[rows] if self.contexts.size else self.contexts
        return RowBatch(self.time[rows], self.arm[rows], self.outcomes[rows], propensity, table, contexts)


class Reader:
    """Convert batches of rows to arrays, one after the other."""

    def __init__(self, layout: Layout, first_line: int) -> None:
        self.layout = layout
        self.line = first_line  # of the next row
        self.arms = {name: i for i, name in enumerate(layout.arms or ())}  # those seen so far
        self.last_time: int | float = -np.inf  # time of the last row
        self.dates: bool | None = None  # whether times are dates; None before the first row
        self.formats: Counter[tuple[str, str]] = Counter()  # values that were read leniently, by column and kind
        self.spellings = Spellings(layout.arms or ())
        self.missing: Counter[str] = Counter()  # missing costs, by resource
        self.bad: list[BadRow] = []
        self.largest = np.zeros(1 + len(layout.resources))  # the largest reward and costs so far
        self.lost = 0  # rows whose outcome was lost
        self.repeated = 0  # rows that repeat an earlier one in every column
        self.time_only_rows = 0  # rows in which only the time is given
        self.features = feature_columns(layout.contexts, layout.options)
        self._latest: pl.DataFrame | None = None  # the rows of the last time

    @property
    def maxima(self) -> tuple[float, ...]:
        """Largest possible reward and costs: as given, or the largest in the log, 1 if all are 0."""
        seen = np.where(self.largest > 0, self.largest, 1.0)
        most: list[float] = np.where(np.isfinite(self.layout.maxima), self.layout.maxima, seen).tolist()
        return tuple(most)

    @property
    def inferred(self) -> tuple[str, ...]:
        """The quantities, ``reward`` or a resource, whose maximum was taken from the log."""
        quantities = zip((REWARD, *self.layout.resources), self.layout.maxima.tolist(), strict=True)
        return tuple(name for name, most in quantities if np.isinf(most))

    @property
    def lenient(self) -> tuple[str, ...]:
        """What was read leniently, one sentence for each kind."""
        return tuple(sentences(self.formats, self.spellings, self.missing, self.layout.options.missing_costs))

    def convert(self, frame: pl.DataFrame) -> RowBatch:
        """Convert a batch to arrays; unusable values are recorded in ``bad`` and replaced by zeros."""
        layout, rows = self.layout, len(frame)
        frame = columns.with_supported_types(frame, layout.names)
        time, same = self._times(frame[TIME])
        arm, outcomes = np.full(rows, SKIP, dtype=np.int32), np.zeros((rows, 1 + len(layout.resources)))
        lost, propensity, table = np.zeros(rows, dtype=bool), np.zeros(0), np.zeros((0, 0, outcomes.shape[1]))

        # Convert the columns of the arms that were played.
        if layout.played:
            arm = self._arms(frame[ARM])
            if layout.options.lost:
                lost = (arm >= 0) & columns.is_empty(frame[REWARD])
            for k, name in enumerate((REWARD, *layout.resources)):
                outcomes[:, k] = self._numbers(frame[name], name, k, arm, lost)
            empty = [columns.is_empty(frame[name]) for name in (ARM, REWARD, *layout.resources)]
            self.time_only_rows += int(np.all(empty, axis=0).sum())
        if layout.propensity:
            propensity = self._propensities(frame[PROPENSITY], arm)
        contexts = self._contexts(frame)

        # Mark repeated and lost rows.
        repeated = self._repeated(frame, same) & ((arm >= 0) | ~np.array(layout.played))
        arm[lost] = SKIP

        # Convert the table of all arms, and compare it with the outcomes of those that were played.
        if layout.table and layout.arms is not None:
            table = self._table(frame, layout.arms)
            if layout.played:
                self._check_against_table(arm, outcomes, table)

        # Count the rows and leave out those that are dropped.
        self.line += rows
        self.repeated += int(repeated.sum())
        kept = ~(repeated & layout.options.drop_duplicates)
        if layout.options.missing_costs == "drop":
            kept &= ~np.isnan(outcomes).any(axis=1)
        self.lost += int((lost & kept).sum())
        return RowBatch(time, arm, outcomes, propensity, table, contexts).select(kept)

    def finish(self) -> None:
        """Record the columns of features that turned out to be neither numbers nor categories."""
        for one in self.features:
            if problem := one.problem():
                self.bad.append(BadRow(one.example[0], one.column, "not a feature", problem))

    def _contexts(self, frame: pl.DataFrame) -> Floats:
        """(n, columns, 2) The features of the requests."""
        if not self.features:
            return np.zeros((0, 0, 2))
        return np.stack([one.convert(frame[one.column], self.line, self.reject) for one in self.features], axis=1)

    def _table(self, frame: pl.DataFrame, arms: tuple[str, ...]) -> Floats:
        """(n, m, 1 + d) The outcomes of every arm."""
        by_arm = []
        for arm in arms:
            names = [f"{quantity}{ARM_SEPARATOR}{arm}" for quantity in (REWARD, *self.layout.resources)]
            by_arm.append(np.stack([self._numbers(frame[name], name, k) for k, name in enumerate(names)], axis=1))
        return np.stack(by_arm, axis=1)

    def reject(self, rows: Bools, column: str, kind: str, reason: str, values: Any = None) -> None:
        """Record every row marked in ``rows``; ``{}`` in ``reason`` is replaced by the row's entry of ``values``."""
        own = self.layout.names.get(column, column)
        for i in np.flatnonzero(rows).tolist():
            formatted = reason if values is None else reason.replace("{}", _formatted(values[i]))
            self.bad.append(BadRow(self.line + i, own, kind, formatted))

    def _times(self, column: pl.Series) -> tuple[Floats, Bools]:
        """Times as numbers, none earlier than the one before, and whether each is the same as the one before."""
        import polars as pl

        order, given = self.layout.options.dates, column
        if order != "iso" and column.dtype == pl.String:
            column = iso_dates(column, order)
        if self.dates is None and len(column):
            self.dates = columns.holds_dates(column)
        times = columns.to_timestamps(column) if self.dates else columns.to_numbers(column)
        empty, own = columns.is_empty(column), self._own(TIME)
        self.reject(empty, TIME, "empty", f"{own} is empty; every row needs one")
        invalid = ~np.isfinite(times) & ~empty
        advice = "; write numbers or ISO dates such as 2024-01-31T06:30, the same kind in the whole log"
        if (
            given.dtype == pl.String
            and invalid.any()
            and iso_dates(given.filter(pl.Series(invalid)), "us").str.contains("T").any()
        ):
            advice = "; pass dates='us' (--dates us) if that is month/day/year, or 'eu' if it is day/month/year"
        self.reject(invalid, TIME, "not a number", f"{own} must be a number or a date, got {{}}{advice}", given)
        valid = np.isfinite(times)
        earlier, same = np.zeros(len(times), dtype=bool), np.zeros(len(times), dtype=bool)
        if not valid.any():
            return times, same
        ticks = columns.exact_times(column, times)[valid]
        first = ticks[0].item()  # Python compares integers with floats exactly
        earlier[valid] = np.concatenate([[first < self.last_time], ticks[1:] < ticks[:-1]])
        same[valid] = np.concatenate([[first == self.last_time], ticks[1:] == ticks[:-1]])
        self.reject(
            earlier, TIME, "unsorted", f"{own} {{}} is earlier than in the row before; sort the log by time", given
        )
        self.last_time = ticks[-1].item()
        return times, same

    def _repeated(self, frame: pl.DataFrame, same: Bools) -> Bools:
        """Whether each row repeats one with the same time, in this batch or at the end of the last, in every column."""
        import polars as pl

        repeated = np.zeros(len(frame), dtype=bool)
        tied = same | np.append(same[1:], values=False)
        if tied.any():
            rows = frame.filter(pl.Series(tied))
            known = rows.clear() if self._latest is None else self._latest
            distinct = pl.concat([known, rows]).select(pl.struct(pl.all()).is_first_distinct()).to_series()
            repeated[tied] = ~distinct.to_numpy()[len(known) :]
        self._latest = frame[int(np.flatnonzero(~same)[-1]) if not same.all() else 0 :]
        return repeated

    def _own(self, name: str) -> str:
        """The file's own name of a column."""
        return self.layout.names.get(name, name)

    def _arms(self, column: pl.Series) -> npt.NDArray[np.int32]:
        """Arms as indices; an empty field is a skip."""
        import polars as pl

        # Reject arms that are not finite numbers.
        names = columns.arm_names(column)
        if self.layout.options.merge_names:
            names = self.spellings.merge(names)
        is_float = column.dtype.is_float()
        not_finite = ~np.isfinite(column.fill_null(0.0).to_numpy()) if is_float else columns.is_nan(column)
        expected = f"{self._own(ARM)} must be a name or a finite number, or empty for a skip, got {{}}"
        self.reject(not_finite, ARM, "not finite", expected, column)
        # Number new arms in the order of their first appearance.
        if self.layout.arms is None:
            for name in names.unique(maintain_order=True).drop_nulls().to_list():
                self.arms.setdefault(name, len(self.arms))
            if len(self.arms) > MAX_ARMS:
                raise LogError(
                    f"the column {self._own(ARM)} must have at most {MAX_ARMS:,} different values, got more; check "
                    "that it holds the arms."
                )
        # Convert names to numbers.
        if not self.arms:
            return np.full(len(names), SKIP, dtype=np.int32)
        keys, indices = list(self.arms), list(self.arms.values())
        codes = names.replace_strict(keys, indices, default=None, return_dtype=pl.Int32)
        unknown = (codes.is_null() & names.is_not_null()).to_numpy()
        expected = f"{self._own(ARM)} must be one of {', '.join(keys):.200}, or empty for a skip, got {{}}"
        self.reject(unknown, ARM, "unknown arm", expected, names)
        arm: npt.NDArray[np.int32] = np.where(unknown, UNKNOWN, codes.fill_null(SKIP).to_numpy()).astype(np.int32)
        return arm

    def _numbers(
        self,
        column: pl.Series,
        name: str,
        k: int,
        arm: npt.NDArray[np.int32] | None = None,
        lost: Bools | None = None,
    ) -> Floats:
        """Rewards (k = 0) or costs, which must lie in [0, max]; in skipped rounds empty or zero."""
        most, own = float(self.layout.maxima[k]), self._own(name)
        values, formats = outcome_numbers(column, self.layout.options.decimal)
        self.formats.update({(own, kind): count for kind, count in formats.items()})
        empty = columns.is_empty(column)
        none = np.zeros(len(values), dtype=bool)
        skipped, unknown = none if arm is None else arm == SKIP, none if lost is None else lost
        missing = empty & ~skipped & ~unknown
        if k > 0 and arm is not None and self.layout.options.missing_costs != "refuse":
            self.missing[own] += int(missing.sum())
        else:
            other = ", or pass lost=True (--lost) if the outcome was lost"
            other = other if k == 0 else ", or pass missing_costs='mean' or 'drop' (--missing-costs)"
            advice = f"fill it in{other * (arm is not None)}"
            self.reject(missing, name, "empty", f"{own} is empty although an arm was played; {advice}")
            missing = none
        self._reject_non_numbers(column, values, empty, name)
        finite = np.isfinite(values)
        idle = skipped & finite & (values != 0)
        self.reject(idle, name, "not skipped", f"{own} is {{}} although no arm was played; name the arm", values)
        low, high = finite & (values < 0) & ~idle, finite & (values > most * (1 + ROUNDING)) & ~idle
        shift = " or add the same constant to all rewards" if k == 0 else ""
        self.reject(low, name, "negative", f"{own} must be 0 or more, got {{}}; correct it{shift}", values)
        setting = "reward_max" if k == 0 else "cost_max"
        self.reject(high, name, TOO_LARGE, f"{own} must be at most its {setting} {most:g}, got {{}}", values)
        used = np.where(finite & ~skipped & ~unknown, np.maximum(values, 0.0), 0.0)
        self.largest[k] = max(self.largest[k], float(used.max(initial=0.0)))
        return np.where(missing, np.nan, np.minimum(used, most))

    def _propensities(self, column: pl.Series, arm: npt.NDArray[np.int32]) -> Floats:
        """Probabilities in (0, 1]; they may be missing in skipped rounds."""
        values, played = columns.to_numbers(column, self.layout.options.decimal), arm != SKIP
        empty = columns.is_empty(column)
        self.reject(
            empty & played,
            PROPENSITY,
            "empty",
            f"{self._own(PROPENSITY)} is empty although an arm was played; fill it in",
        )
        self._reject_non_numbers(column, values, empty, PROPENSITY)
        outside = np.isfinite(values) & ((values <= 0) | (values > 1))
        expected = f"{self._own(PROPENSITY)} must be above 0 and at most 1, got {{}}"
        self.reject(outside, PROPENSITY, "not a probability", expected, values)
        return np.where(np.isfinite(values) & ~outside, values, 1.0)

    def _check_against_table(self, arm: npt.NDArray[np.int32], outcomes: Floats, table: Floats) -> None:
        """Reject rows whose outcome differs from the table's entry for the arm that was played."""
        played = arm >= 0
        expected = table[np.arange(len(arm)), np.maximum(arm, 0)]
        for k, name in enumerate((REWARD, *self.layout.resources)):
            differs = played & (np.abs(outcomes[:, k] - expected[:, k]) > TABLE_ROUNDING * self.maxima[k])
            other = "but the table has another value for that arm in this row; correct one of them"
            reason = f"{self._own(name)} is {{}} {other}"
            self.reject(differs, name, "not the table's", reason, outcomes[:, k])

    def _reject_non_numbers(self, column: pl.Series, values: Floats, empty: Bools, name: str) -> None:
        """Reject what is not a number, and numbers that are not finite."""
        import polars as pl

        nan = columns.is_nan(column)
        invalid = np.isnan(values) & ~empty & ~nan
        comma = (
            invalid.any() and column.filter(pl.Series(invalid)).cast(pl.String).str.contains(r"^\D*\d+,\d+\D*$").any()
        )
        hint = "; pass decimal=',' (--decimal ,) if that is a decimal comma" if comma else ""
        self.reject(invalid, name, "not a number", f"{self._own(name)} must be a number, got {{}}{hint}", column)
        not_finite = (np.isinf(values) | nan) & ~empty
        expected = f"{self._own(name)} must be finite, got {{}}; replace the value or remove the row"
        self.reject(not_finite, name, "not finite", expected, column)


def _formatted(value: Any) -> str:
    """Format a value for a message: strings in quotes, floats without trailing zeros."""
    return f"{value:g}" if isinstance(value, float) else repr(value) if isinstance(value, str) else str(value)
