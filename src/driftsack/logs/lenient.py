"""What is read leniently: currency signs, yes and no, decimal commas, dates by country, names that differ by case.

The reader counts what it reads leniently, and the log says what was done in one sentence for each kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.logs.columns import to_numbers

if TYPE_CHECKING:
    import polars as pl

YES_NO: Final = {"yes": 1.0, "y": 1.0, "no": 0.0, "n": 0.0}
CURRENCY: Final = r"(?:[$€£¥]|usd|eur|gbp)"
# Numbers whose groups of three digits cannot be taken for decimals, by the decimal mark.
GROUPED: Final = {
    ".": r"^[+-]?(?:[1-9]\d{0,2}(?:,\d{3})+\.\d+|[1-9]\d{0,2}(?:,\d{3}){2,})$",
    ",": r"^[+-]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?$",
}
KINDS: Final = {
    "yes or no": "Values of {} that are yes or no, read as 1 and 0: {:,}.",
    "currency": "Values of {} with a currency sign, which was left out: {:,}.",
    "thousands": "Values of {} with thousands separators: {:,}.",
}
DATE: Final = (
    r"^\s*(?<a>\d{1,2})[/.\-](?<b>\d{1,2})[/.\-](?<year>\d{4}|\d{2})"
    r"(?:[T ,]+(?<hour>\d{1,2}):(?<minute>\d{2})(?::(?<second>\d{2}(?:\.\d+)?))?\s*(?:(?<half>[AaPp])\.?[Mm]\.?)?)?\s*$"
)


def outcome_numbers(column: pl.Series, decimal: str) -> tuple[Floats, dict[str, int]]:
    """Convert rewards or costs to floats; return them and the number of values that were read leniently, by kind.

    >>> import polars as pl
    >>> outcome_numbers(pl.Series(["$0.012", "yes", "1,234.5", "0,5", "3"]), ".")
    (array([1.2000e-02, 1.0000e+00, 1.2345e+03,        nan, 3.0000e+00]), {'yes or no': 1, 'currency': 1, ...})
    """
    import polars as pl

    numbers, found = to_numbers(column, decimal), dict[str, int]()
    rest = np.isnan(numbers)
    if column.dtype != pl.String or not rest.any():
        return numbers, found
    text = column.filter(pl.Series(rest)).str.strip_chars().str.to_lowercase()
    # Try each way in turn on what is left.
    values = text.replace_strict(YES_NO, default=None, return_dtype=pl.Float64)
    found["yes or no"] = values.count()
    amounts = text.str.replace(rf"^([+-]?)\s*{CURRENCY}\s*", "${1}").str.replace(rf"\s*{CURRENCY}$", "")
    signed = amounts != text
    grouped = amounts.str.contains(GROUPED[decimal])
    plain = amounts.str.replace_all("," if decimal == "." else ".", "", literal=True)
    amounts = plain.zip_with(grouped, amounts)
    parsed = pl.Series(to_numbers(amounts, decimal)).fill_nan(None)
    found["currency"] = int((signed & parsed.is_not_null()).sum())
    found["thousands"] = int((grouped & parsed.is_not_null()).sum())
    numbers = numbers.copy()
    numbers[rest] = values.fill_null(parsed).fill_null(float("nan")).to_numpy()
    return numbers, {kind: count for kind, count in found.items() if count}


def iso_dates(column: pl.Series, order: str) -> pl.Series:
    """Rewrite dates such as 1/31/2024 6:30 PM (order ``us``) or 31.1.2024 18:30 (``eu``) as ISO dates.

    >>> import polars as pl
    >>> iso_dates(pl.Series(["1/31/2024 6:30 PM", "2024-02-01"]), "us").to_list()
    ['2024-01-31T18:30:00', '2024-02-01']
    """
    import polars as pl

    part = column.str.extract_groups(DATE).struct
    month, day = (part.field("a"), part.field("b")) if order == "us" else (part.field("b"), part.field("a"))
    year = part.field("year")
    year = ("20" + year).zip_with(year.str.len_chars() == 2, year)
    hour = part.field("hour").cast(pl.Int64).fill_null(0)
    half = part.field("half").str.to_lowercase()
    hour = hour.set((half == "a").fill_null(value=False) & (hour == 12), 0)
    hour = (hour + 12).zip_with((half == "p").fill_null(value=False) & (hour < 12), hour)
    clock = hour.cast(pl.String).str.zfill(2) + ":" + part.field("minute").fill_null("00")
    seconds = part.field("second").fill_null("00")
    written = year + "-" + month.str.zfill(2) + "-" + day.str.zfill(2) + "T" + clock + ":" + seconds
    return written.zip_with(written.is_not_null(), column)


def name_key(name: str) -> str:
    """Return what names that differ only by case and blanks have in common.

    >>> name_key("Red  Cab") == name_key("red cab")
    True
    """
    return " ".join(name.split()).casefold()


class Spellings:
    """The spelling of each arm that the others are merged into: the one that was given, or the first in the log."""

    def __init__(self, given: Iterable[str] = ()) -> None:
        self.first = {name_key(name): name for name in given}
        self.known = set(given)
        self.merged: Counter[tuple[str, str]] = Counter()  # rows by the spelling in the log and the one it became

    def merge(self, names: pl.Series) -> pl.Series:
        """Replace every name by the spelling of its group, and count the rows."""
        changes = {}
        for name in names.unique(maintain_order=True).drop_nulls().to_list():
            own = name if name in self.known else self.first.setdefault(name_key(name), name)
            if own != name:
                changes[name] = own
                self.merged[name, own] += int((names == name).sum())
        return names.replace(changes) if changes else names


def sentences(
    formats: Mapping[tuple[str, str], int], spellings: Spellings, missing: Mapping[str, int], treatment: str
) -> list[str]:
    """Say what was read leniently.

    Args:
        formats: The number of values by column and kind, as :func:`outcome_numbers` returns them.
        spellings: The names that were merged.
        missing: The number of missing costs by column.
        treatment: What was done with them, ``mean`` or ``drop``.
    """
    texts = [KINDS[kind].format(column, count) for (column, kind), count in formats.items()]
    merged = spellings.merged.items()
    texts += [f"Rows of the arm {name!r}, counted as {own!r}: {count:,}." for (name, own), count in merged]
    done = "replaced by the mean of their arm" if treatment == "mean" else "left out with their rows"
    return texts + [f"Empty values of {column}, {done}: {count:,}." for column, count in missing.items() if count]
