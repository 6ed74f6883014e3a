"""From a batch of a file's rows to arrays; every row that cannot be taken is named, with its line and the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools, Floats
from driftsack.core.checks import ROUNDING
from driftsack.core.decision import SKIP
from driftsack.core.errors import LogError
from driftsack.logs.layout import ARM, OF_ARM, PROPENSITY, REWARD, TIME, Layout

if TYPE_CHECKING:  # a quarter of a second that ``import driftsack`` does not need
    import polars as pl

UNKNOWN: Final = -2  # an arm that there is not: its row is bad, but not a skip
MOST_ARMS: Final = 1_000
ISO_DATE: Final = r"^\s*\d{4}-\d\d-\d\d"
LOOKED_AT: Final = 1_000  # times that decide whether they are dates
TABLE_ROUNDING: Final = 1e-9  # of the most that a value may be: by how much a row may differ from its table


class BadRow(NamedTuple):
    """Why one row cannot be taken."""

    line: int  # of the file, the header being line 1; of a Parquet file, the row from 1
    column: str
    kind: str  # such as empty, not a number, negative, too large, unsorted, duplicate, unknown arm
    reason: str


class Batch(NamedTuple):
    """Rows as arrays, in people's units; a skipped round has arm -1 and zeros."""

    time: Floats  # (n,) seconds since 1970 for dates
    arm: npt.NDArray[np.int32]  # (n,) by first appearance, or as in the layout
    outcomes: Floats  # (n, 1 + d) reward, then costs
    propensity: Floats  # (n,) or (0,)
    table: Floats  # (n, m, 1 + d) or (0, 0, 1 + d)


class Reader:
    """Turns batches into arrays, one after the other; remembers the last time, the arms and what was bad."""

    def __init__(self, layout: Layout, first_line: int) -> None:
        self.layout = layout
        self.line = first_line
        self.arms = {name: i for i, name in enumerate(layout.arms or ())}
        self.last_time: int | float = -np.inf
        self.dates: bool | None = None  # known after the first rows
        self.bad: list[BadRow] = []
        self.largest: dict[str, float] = {}  # of the columns with values above their maximum
        self.bare = 0  # rows that have a time and nothing else

    def take(self, frame: pl.DataFrame) -> Batch:
        """Arrays of the batch; rows that cannot be taken go to ``bad`` and leave zeros."""
        layout, rows = self.layout, len(frame)
        frame = _plain(frame)
        time = self._times(frame[TIME])
        arm, outcomes = np.full(rows, SKIP, dtype=np.int32), np.zeros((rows, 1 + len(layout.resources)))
        propensity, table = np.zeros(0), np.zeros((0, 0, outcomes.shape[1]))
        if layout.played:
            arm = self._arms(frame[ARM])
            for k, name in enumerate((REWARD, *layout.resources)):
                outcomes[:, k] = self._numbers(frame[name], name, k, arm)
            self.bare += int(np.all([_empty(frame[name]) for name in (ARM, REWARD, *layout.resources)], axis=0).sum())
        if layout.propensity:
            propensity = self._propensities(frame[PROPENSITY], arm)
        if layout.table and layout.arms is not None:
            names = [[f"{part}{OF_ARM}{a}" for part in (REWARD, *layout.resources)] for a in layout.arms]
            table = np.stack(
                [
                    np.stack([self._numbers(frame[n], n, k, None) for k, n in enumerate(parts)], axis=1)
                    for parts in names
                ],
                axis=1,
            )
            if layout.played:
                self._compare(arm, outcomes, table)
        self.line += rows
        return Batch(time, arm, outcomes, propensity, table)

    def blame(self, rows: Bools, column: str, kind: str, reason: str, values: Any = None) -> None:
        """Note every row of ``rows``; ``reason`` may name the row's value as ``{}``."""
        for i in np.flatnonzero(rows).tolist():
            spelled = reason if values is None else reason.replace("{}", _spelled(values[i]))
            self.bad.append(BadRow(self.line + i, column, kind, spelled))

    def _times(self, column: pl.Series) -> Floats:
        """Times as numbers; each must be after the one before."""
        if self.dates is None and len(column):
            self.dates = _are_dates(column)
        times = _moments(column) if self.dates else _as_numbers(column)
        empty = _empty(column)
        self.blame(empty, TIME, "empty", "time is empty; every round needs its time")
        wrong = ~np.isfinite(times) & ~empty
        advice = "; write numbers or ISO dates such as 2024-01-31T06:30, one kind in the whole log"
        self.blame(wrong, TIME, "not a number", f"time must be a number or a date, got {{}}{advice}", column)
        good = np.isfinite(times)
        if not good.any():
            return times
        ticks = _ticks(column, times)[good]
        first = ticks[0].item()  # Python compares whole numbers with floats exactly
        back, same = np.zeros(len(times), dtype=bool), np.zeros(len(times), dtype=bool)
        back[good] = np.concatenate([[first < self.last_time], ticks[1:] < ticks[:-1]])
        same[good] = np.concatenate([[first == self.last_time], ticks[1:] == ticks[:-1]])
        self.blame(back, TIME, "unsorted", "time {} is earlier than the row before; sort the log by time", column)
        twice = "time {} is that of the row before; a log has one row a round"
        self.blame(same, TIME, "duplicate", twice, column)
        self.last_time = ticks[-1].item()
        return times

    def _arms(self, column: pl.Series) -> npt.NDArray[np.int32]:
        """Arms as numbers; an empty one is a skip."""
        import polars as pl  # noqa: PLC0415

        names = _names(column)
        odd = ~np.isfinite(column.fill_null(0.0).to_numpy()) if column.dtype.is_float() else _is_nan(column)
        self.blame(odd, ARM, "not finite", "arm must be a name or a number, or empty for a skip, got {}", column)
        if self.layout.arms is None:
            for name in names.unique(maintain_order=True).drop_nulls().to_list():
                self.arms.setdefault(name, len(self.arms))
            if len(self.arms) > MOST_ARMS:
                raise LogError(f"the column {ARM} has more than {MOST_ARMS:,} different values; is it the right one?")
        if not self.arms:
            return np.full(len(names), SKIP, dtype=np.int32)
        keys, numbers = list(self.arms), list(self.arms.values())
        codes = names.replace_strict(keys, numbers, default=None, return_dtype=pl.Int32)
        strange = (codes.is_null() & names.is_not_null()).to_numpy()
        expected = f"arm must be one of {', '.join(keys):.200}, or empty for a skip, got {{}}"
        self.blame(strange, ARM, "unknown arm", expected, names)
        arm: npt.NDArray[np.int32] = np.where(strange, UNKNOWN, codes.fill_null(SKIP).to_numpy()).astype(np.int32)
        return arm

    def _numbers(self, column: pl.Series, name: str, k: int, arm: npt.NDArray[np.int32] | None) -> Floats:
        """Rewards (k = 0) or costs in [0, max]; in skipped rounds nothing or zero."""
        most = self.layout.reward_max if k == 0 else float(self.layout.cost_max[k - 1])
        setting = "reward_max" if k == 0 else "cost_max"
        values = _as_numbers(column)
        empty = _empty(column)
        skipped = np.zeros(len(values), dtype=bool) if arm is None else arm == SKIP
        self.blame(empty & ~skipped, name, "empty", f"{name} is empty although an arm was played; fill it in")
        self._check_numbers(column, values, empty, name)
        finite = np.isfinite(values)
        idle = skipped & finite & (values != 0)
        self.blame(idle, name, "not skipped", f"{name} is {{}} although no arm was played; name the arm", values)
        low, high = finite & (values < 0) & ~idle, finite & (values > most * (1 + ROUNDING)) & ~idle
        advice = " by adding the same to all of them" if k == 0 else ""
        self.blame(low, name, "negative", f"{name} must be 0 or more, got {{}}; shift or correct it{advice}", values)
        option = setting.replace("_", "-")
        too_much = f"{name} must be at most {most:g}, got {{}}; pass {setting} (--{option}), the most that it can be"
        self.blame(high, name, "too large", too_much, values)
        if high.any():
            self.largest[name] = max(self.largest.get(name, 0.0), float(values[high].max()))
        return np.where(finite & ~skipped, np.clip(values, 0.0, most), 0.0)

    def _propensities(self, column: pl.Series, arm: npt.NDArray[np.int32]) -> Floats:
        """Probabilities in (0, 1]; of a skip it may be missing."""
        values, played = _as_numbers(column), arm != SKIP
        empty = _empty(column)
        self.blame(empty & played, PROPENSITY, "empty", "propensity is empty although an arm was played; fill it in")
        self._check_numbers(column, values, empty, PROPENSITY)
        outside = np.isfinite(values) & ((values <= 0) | (values > 1))
        wanted = "propensity must be above 0 and at most 1, got {}"
        self.blame(outside, PROPENSITY, "not a probability", wanted, values)
        return np.where(np.isfinite(values) & ~outside, values, 1.0)

    def _compare(self, arm: npt.NDArray[np.int32], outcomes: Floats, table: Floats) -> None:
        """What was played must be what the table says of that arm."""
        played = arm >= 0
        said = table[np.arange(len(arm)), np.maximum(arm, 0)]
        for k, name in enumerate((REWARD, *self.layout.resources)):
            most = self.layout.reward_max if k == 0 else float(self.layout.cost_max[k - 1])
            apart = played & (np.abs(outcomes[:, k] - said[:, k]) > TABLE_ROUNDING * most)
            reason = f"{name} is {{}} but the table has another value for that arm in this row; correct one of them"
            self.blame(apart, name, "not the table's", reason, outcomes[:, k])

    def _check_numbers(self, column: pl.Series, values: Floats, empty: Bools, name: str) -> None:
        """Note what is no number, and what is one but not finite."""
        nan = _is_nan(column)
        wrong = np.isnan(values) & ~empty & ~nan
        self.blame(wrong, name, "not a number", f"{name} must be a number, got {{}}", column)
        endless = (np.isinf(values) | nan) & ~empty
        self.blame(
            endless, name, "not finite", f"{name} must be finite, got {{}}; replace it or leave the row out", column
        )


def _spelled(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(value) if isinstance(value, str) else str(value)


def _empty(column: pl.Series) -> Bools:
    import polars as pl  # noqa: PLC0415

    blank = column.is_null() | (column.str.strip_chars() == "") if column.dtype == pl.String else column.is_null()
    return blank.to_numpy()


def _is_nan(column: pl.Series) -> Bools:
    """Where NaN was written on purpose."""
    import polars as pl  # noqa: PLC0415

    if column.dtype == pl.String:
        return column.str.strip_chars().str.to_lowercase().is_in(["nan", "-nan"]).fill_null(value=False).to_numpy()
    return (
        (column.is_nan() & column.is_not_null()).to_numpy() if column.dtype.is_float() else np.zeros(len(column), bool)
    )


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns of text and numbers only; categories are text, and what is neither is refused by its name."""
    import polars as pl  # noqa: PLC0415

    for name, kind in frame.schema.items():
        simple = kind.is_numeric() or kind in (pl.String, pl.Boolean, pl.Null, pl.Categorical, pl.Enum)
        if not (simple or (name == TIME and kind in (pl.Date, pl.Datetime))):
            also = {TIME: " or dates", ARM: " or names"}.get(name, "")
            raise LogError(f"the column {name} must hold numbers{also}, but its type is {kind}.")
    return frame.cast({pl.Categorical: pl.String, pl.Enum: pl.String})


def _names(column: pl.Series) -> pl.Series:
    """Arms as text, None for a skip. Whole numbers have no point, whatever other numbers are in the column."""
    import polars as pl  # noqa: PLC0415

    names = column.cast(pl.String).str.strip_chars()
    if column.dtype.is_float():
        names = names.str.strip_suffix(".0").set(~column.is_finite().fill_null(value=False), None)
    return names.set(names == "", None)


def _as_numbers(column: pl.Series) -> Floats:
    """Numbers, NaN where there is none."""
    import polars as pl  # noqa: PLC0415

    text = column.str.strip_chars() if column.dtype == pl.String else column
    return text.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()


def _are_dates(column: pl.Series) -> bool:
    """Whether the first times are dates rather than numbers."""
    first = column.head(LOOKED_AT)
    return bool(np.isfinite(_moments(first)).sum() > np.isfinite(_as_numbers(first)).sum())


def _moments(column: pl.Series) -> Floats:
    """Dates as seconds since 1970, NaN where there is none."""
    import polars as pl  # noqa: PLC0415

    if column.dtype == pl.String:
        dates = column.set(~column.str.contains(ISO_DATE), None)
        if dates.null_count() == len(dates):
            return np.full(len(dates), np.nan)
        column = dates.str.strip_chars().str.strip_suffix("Z").str.to_datetime(time_unit="us", strict=False)
    elif not column.dtype.is_temporal():
        return np.full(len(column), np.nan)
    ticks = column.cast(pl.Datetime("us"), strict=False).cast(pl.Int64).cast(pl.Float64)
    return ticks.fill_null(float("nan")).to_numpy() / 1e6


def _ticks(column: pl.Series, times: Floats) -> npt.NDArray[Any]:
    """The times to compare by: whole numbers, such as nanoseconds, may differ where floats do not."""
    import polars as pl  # noqa: PLC0415

    text = column.str.strip_chars() if column.dtype == pl.String else column
    if text.dtype.is_float():
        return times
    whole = text.cast(pl.Int64, strict=False)
    return whole.to_numpy() if whole.null_count() == 0 else times
