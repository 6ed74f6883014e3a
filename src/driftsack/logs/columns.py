"""Conversions of single Polars columns to NumPy arrays: numbers, dates, names of arms and missing values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Bools, Floats
from driftsack.core.errors import LogError
from driftsack.logs.layout import ARM, TIME

if TYPE_CHECKING:  # loading Polars takes a quarter of a second, which ``import driftsack`` does not need
    import polars as pl

ISO_DATE: Final = r"^\s*\d{4}-\d\d-\d\d"
DATE_SAMPLE: Final = 1_000  # leading times that decide whether the column holds dates


def with_supported_types(frame: pl.DataFrame, own: Mapping[str, str]) -> pl.DataFrame:
    """Cast categories to strings; raise if a column holds anything but strings, numbers or, for the time, dates.

    ``own`` has the file's own names of the columns that were mapped, for the message.
    """
    import polars as pl

    for name, kind in frame.schema.items():
        simple = kind.is_numeric() or kind in (pl.String, pl.Boolean, pl.Null, pl.Categorical, pl.Enum)
        if not (simple or (name == TIME and kind in (pl.Date, pl.Datetime))):
            also = {TIME: " or dates", ARM: " or names"}.get(name, "")
            raise LogError(f"the column {own.get(name, name)} must hold numbers{also}, but its type is {kind}.")
    return frame.cast({pl.Categorical: pl.String, pl.Enum: pl.String})


def is_empty(column: pl.Series) -> Bools:
    """Whether each value is missing or blank."""
    import polars as pl

    blank = column.is_null() | (column.str.strip_chars() == "") if column.dtype == pl.String else column.is_null()
    return blank.to_numpy()


def is_nan(column: pl.Series) -> Bools:
    """Whether each value was written as NaN, in contrast to being missing or not a number."""
    import polars as pl

    if column.dtype == pl.String:
        return column.str.strip_chars().str.to_lowercase().is_in(["nan", "-nan"]).fill_null(value=False).to_numpy()
    return (
        (column.is_nan() & column.is_not_null()).to_numpy() if column.dtype.is_float() else np.zeros(len(column), bool)
    )


def arm_names(column: pl.Series) -> pl.Series:
    """Names of arms as strings, None for a skip; integers have no decimal point, whatever the column's type."""
    import polars as pl

    names = column.cast(pl.String).str.strip_chars()
    if column.dtype.is_float():
        names = names.str.strip_suffix(".0").set(~column.is_finite().fill_null(value=False), None)
    return names.set(names == "", None)


def to_numbers(column: pl.Series, decimal: str = ".") -> Floats:
    """Convert to floats, with 1 for ``true`` and 0 for ``false``; values that are not numbers become NaN."""
    import polars as pl

    text = column.str.strip_chars() if column.dtype == pl.String else column
    if decimal == "," and column.dtype == pl.String:
        digits = text.set(text.str.contains(".", literal=True), None).str.replace(",", ".", literal=True)
        numbers = digits.cast(pl.Float64, strict=False)
    else:
        numbers = text.cast(pl.Float64, strict=False)
    if column.dtype == pl.String and numbers.null_count() > text.null_count():
        truth = text.str.to_lowercase().replace_strict(
            {"true": 1.0, "false": 0.0}, default=None, return_dtype=pl.Float64
        )
        numbers = numbers.fill_null(truth)
    return numbers.fill_null(float("nan")).to_numpy()


def holds_dates(column: pl.Series) -> bool:
    """Whether the first values are dates rather than numbers."""
    first = column.head(DATE_SAMPLE)
    return bool(np.isfinite(to_timestamps(first)).sum() > np.isfinite(to_numbers(first)).sum())


def to_timestamps(column: pl.Series) -> Floats:
    """Convert dates to seconds since 1970; values that are not dates become NaN."""
    import polars as pl

    if column.dtype == pl.String:
        dates = column.set(~column.str.contains(ISO_DATE), None)
        if dates.null_count() == len(dates):
            return np.full(len(dates), np.nan)
        column = dates.str.strip_chars().str.strip_suffix("Z").str.to_datetime(time_unit="us", strict=False)
    elif not column.dtype.is_temporal():
        return np.full(len(column), np.nan)
    ticks = column.cast(pl.Datetime("us"), strict=False).cast(pl.Int64).cast(pl.Float64)
    return ticks.fill_null(float("nan")).to_numpy() / 1e6


def exact_times(column: pl.Series, times: Floats) -> npt.NDArray[Any]:
    """Times for comparisons: integers such as nanoseconds where floats could not tell neighbours apart."""
    import polars as pl

    text = column.str.strip_chars() if column.dtype == pl.String else column
    if text.dtype.is_float():
        return times
    whole = text.cast(pl.Int64, strict=False)
    return whole.to_numpy() if whole.null_count() == 0 else times
