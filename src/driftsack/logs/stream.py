"""One pass over a log, batch by batch: memory does not grow with the file, and every bad row is reported.

If a CSV file has rows in which only the time is given, its text is read a second time: Polars pads truncated rows with
empty fields, which would make a truncated row look like a skipped round.
"""

from __future__ import annotations

import csv
import math
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from driftsack.core.checks import ROUNDING
from driftsack.core.errors import LogError, SettingError
from driftsack.core.extras import require
from driftsack.logs.layout import ARM_SEPARATOR, REWARD, find_layout, one_character
from driftsack.logs.options import ReadOptions
from driftsack.logs.rows import TOO_LARGE, BadRow, Reader, RowBatch

if TYPE_CHECKING:
    import polars as pl

ROWS_AT_ONCE: Final = 250_000
MAX_HEADER: Final = 1_000_000  # characters read to find the header
MAX_BAD_VALUES: Final = 100_000  # after which reading stops
MAX_LISTED: Final = 20  # kinds of bad rows listed in the error message; all rows are in its ``bad``
MAX_LINES: Final = 3  # line numbers listed for each kind
COMPRESSED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # gzip and zstd, which Polars decompresses
PARQUET: Final = (".parquet", ".pq")


class LogStream:
    """A log that is being read: iterate over its batches, then read the arms and the layout from ``reader``.

    Iterating raises ``LogError`` after the last batch if any row was bad, with all such rows. After ``MAX_BAD_VALUES``
    of them reading stops, and the last entry says so.
    """

    def __init__(self, source: Any, options: ReadOptions) -> None:
        self.separator = one_character(options.separator)
        self.name, frame, first_line = open_source(source, self.separator)
        self.text = text_file(source)
        if self.text is not None:
            check_header(self.text, self.separator)
        self.reader = Reader(find_layout(_columns(frame, self.name), options, self.name), first_line)
        layout = self.reader.layout
        own = {name: layout.names.get(name, name) for name in layout.columns}
        self._frame = frame.select(**own)
        self.rows = 0

    def __iter__(self) -> Iterator[RowBatch]:
        for batch in self.batches():
            self.rows += len(batch.time)
            yield batch
            if len(self.reader.bad) > MAX_BAD_VALUES:
                reason = f"reading stopped here: more than {MAX_BAD_VALUES:,} values are bad; correct these first"
                self.reader.bad.append(BadRow(self.reader.line, "", "stopped", reason))
                break
        self.reader.finish()
        if self.rows == 0:
            raise LogError(f"{self.name} is empty: it has a header and no rows; a log has one row per round.")
        if self.text is not None and self.reader.time_only_rows:
            reported = {row.line for row in self.reader.bad}
            self.reader.bad += [row for row in ragged_rows(self.text, self.separator) if row.line not in reported]
        if self.reader.bad:
            raise LogError(_message(self.name, self.reader), tuple(self.reader.bad))

    def batches(self) -> Iterator[RowBatch]:
        """Yield batches of arrays; the error for lines with too many fields names them."""
        import polars as pl

        try:
            for frame in self._frame.collect_batches(chunk_size=ROWS_AT_ONCE, maintain_order=True):
                yield self.reader.convert(frame)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            bad = tuple(ragged_rows(self.text, self.separator)) if self.text is not None else ()
            rows = "".join(f"\n  line {row.line}: {row.reason}" for row in bad[:MAX_LISTED])
            raise LogError(f"{self.name} cannot be read: {str(error).splitlines()[0]}.{rows}", bad) from error


def open_source(source: Any, separator: str) -> tuple[str, pl.LazyFrame, int]:
    """Return a name for messages, the rows (a CSV file's as text), and the line number of the first row."""
    require("polars")
    import polars as pl

    if isinstance(source, pl.DataFrame):
        return "the table", source.lazy(), 1
    if not isinstance(source, (str, os.PathLike)):
        raise SettingError(f"a log must be a .csv or .parquet file or a Polars DataFrame, got {source!r:.80}.")
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist or is not a file; name a .csv or .parquet file.")
    if path.stat().st_size == 0:
        raise LogError(f"{path.name} is empty: it has no header; a log has one row per round.")
    if path.suffix.lower() in PARQUET:
        return path.name, pl.scan_parquet(path, glob=False), 1
    return path.name, pl.scan_csv(path, infer_schema=False, separator=separator, glob=False), 2


def text_file(source: Any) -> Path | None:
    """Return the path if the source is a file of uncompressed text."""
    if not isinstance(source, (str, os.PathLike)) or Path(source).suffix.lower() in PARQUET:
        return None
    with Path(source).open("rb") as stream:
        return None if stream.read(4).startswith(COMPRESSED) else Path(source)


def check_header(path: Path, separator: str) -> None:
    """Raise if two columns have the same name, or if lines end in a way that Polars does not support."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as stream:
        start = stream.read(MAX_HEADER)
    if "\r" in start and "\n" not in start:
        raise LogError(f"{path.name} ends its lines with carriage returns only; save it with LF or CRLF line endings.")
    names = Counter(next(csv.reader([start.splitlines()[0]], delimiter=separator), []) if start.strip() else [])
    repeated = [name for name, count in names.items() if count > 1 and name]
    if repeated:
        raise LogError(f"{path.name} has more than one column {', '.join(repeated)}; rename or remove the others.")


def _columns(frame: pl.LazyFrame, name: str) -> list[str]:
    """Return the names in the header."""
    import polars as pl

    try:
        return frame.collect_schema().names()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise LogError(f"{name} cannot be read: {str(error).splitlines()[0]}; is it a CSV or Parquet file?") from error


def ragged_rows(path: Path, separator: str) -> Iterator[BadRow]:
    """Yield the rows of a CSV file with more or fewer fields than its header; empty lines are checked elsewhere."""
    with path.open(newline="", encoding="utf-8", errors="replace") as stream:
        lines = csv.reader(stream, delimiter=separator)
        width = len(next(lines, []))
        for line, fields in enumerate(lines, start=2):
            if len(fields) > width:
                reason = f"the row has {len(fields)} fields, the header {width}; quote text that contains {separator!r}"
                yield BadRow(line, "", "too many fields", reason)
            elif 0 < len(fields) < width:
                count = f"{len(fields)} field{'s' * (len(fields) > 1)}"
                reason = f"the row has {count}, the header {width}; the row may be truncated"
                yield BadRow(line, "", "too few fields", reason)


def _message(name: str, reader: Reader) -> str:
    """Format the error: one line for each column and kind of problem, with its first rows."""
    groups: dict[tuple[str, str], list[BadRow]] = {}
    for row in sorted(reader.bad):
        groups.setdefault((row.column, row.kind), []).append(row)
    kinds = ", ".join(f"{count:,} × {kind}" for kind, count in Counter(row.kind for row in reader.bad).most_common())
    shown = "".join(f"\n  {_line_of(rows, reader)}" for rows in list(groups.values())[:MAX_LISTED])
    more = f"\n  ... and {len(groups) - MAX_LISTED:,} more kinds" if len(groups) > MAX_LISTED else ""
    count = len(reader.bad)
    return (
        f"{name} has {count:,} bad value{'s' * (count != 1)} ({kinds}); no row was dropped and nothing was read."
        f"{shown}{more}"
    )


def _line_of(rows: list[BadRow], reader: Reader) -> str:
    """One line for the rows with the same problem; a wrong maximum comes with a sufficient value."""
    first = ", ".join(f"{row.line}" for row in rows[:MAX_LINES])
    where = f"line {first}" if len(rows) == 1 else f"lines {first}{', ...' * (len(rows) > MAX_LINES)} ({len(rows):,})"
    if rows[0].kind != TOO_LARGE:
        return f"{where}: {rows[0].reason}"
    quantity = rows[0].column.split(ARM_SEPARATOR, 1)[0]
    own = (reader.layout.names.get(REWARD, REWARD), *reader.layout.resources)
    k = own.index(quantity)
    most, largest = reader.layout.maxima[k], float(reader.largest[k])
    needed = f"{_rounded_up(largest):.4g}"
    setting = "reward_max" if k == 0 else "cost_max"
    value = f"{needed}" if k == 0 or len(own) == 2 else f"{{{quantity!r}: {needed}, ...}}"
    option = f"{needed}" if k == 0 else f"{quantity}={needed}"
    return (
        f"{where}: {rows[0].column} goes up to {largest:g}, above its {setting} {most:g}; pass {setting}={value} "
        f"(--{setting.replace('_', '-')} {option}), or leave it out to use the largest value of the log"
    )


def _rounded_up(value: float, digits: int = 4) -> float:
    """Round up to ``digits`` significant digits.

    >>> _rounded_up(3.99601), _rounded_up(47.3)
    (3.997, 47.3)
    """
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    return float(f"{math.ceil(value / unit - ROUNDING) * unit:.{digits}g}")
