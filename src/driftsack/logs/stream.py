"""One pass over a log, batch by batch: memory does not grow with the file, and no bad row goes unnamed.

Where a CSV file has rows of a time and nothing else, its text is looked through once more: Polars fills rows that were
cut short with empty fields, and an empty row is a skipped round, but half a row is none.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from driftsack.core.errors import LogError, SettingError
from driftsack.logs.layout import Wanted, find_layout
from driftsack.logs.rows import BadRow, Batch, Reader

if TYPE_CHECKING:
    import polars as pl

ROWS_AT_ONCE: Final = 250_000
HEADER: Final = 1_000_000  # characters in which a header ends
MOST_BAD: Final = 100_000  # bad values after which the rest of a log is not looked at
SHOWN: Final = 20  # bad rows that stand in the message; all are in its ``bad``
COMPRESSED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # gzip and zstd, which Polars unpacks
PARQUET: Final = (".parquet", ".pq")


class Stream:
    """A log that is being read: iterate for its batches, then ask the ``reader`` what it has seen.

    Raises ``LogError`` after the last batch if any row was bad, with every such row; after ``MOST_BAD`` of them it
    reads no further, and the last entry says so.
    """

    def __init__(self, source: Any, wanted: Wanted, separator: str = ",") -> None:
        separator = one_character(separator)
        self.name, frame, first_line = open_source(source, separator)
        self.text = text_file(source)
        self.separator = separator
        if self.text is not None:
            check_header(self.text, separator)
        self.reader = Reader(find_layout(_columns(frame, self.name), wanted, self.name, separator), first_line)
        self._frame = frame.select(self.reader.layout.columns)
        self.rows = 0

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.batches():
            self.rows += len(batch.time)
            yield batch
            if len(self.reader.bad) > MOST_BAD:
                reason = f"reading stopped here: more than {MOST_BAD:,} values are bad; correct them first"
                self.reader.bad.append(BadRow(self.reader.line, "", "stopped", reason))
                break
        if self.rows == 0:
            raise LogError(f"{self.name} is empty: it has a header and no rows; a log has one row a round.")
        if self.text is not None and self.reader.bare:
            named = {row.line for row in self.reader.bad}
            self.reader.bad += [row for row in ragged(self.text, self.separator) if row.line not in named]
        if self.reader.bad:
            raise LogError(_message(self.name, self.reader), tuple(self.reader.bad))

    def batches(self) -> Iterator[Batch]:
        """Batches of arrays; a line with too many fields is named."""
        import polars as pl  # noqa: PLC0415

        try:
            for frame in self._frame.collect_batches(chunk_size=ROWS_AT_ONCE, maintain_order=True):
                yield self.reader.take(frame)
        except pl.exceptions.PolarsError as error:
            bad = tuple(ragged(self.text, self.separator)) if self.text is not None else ()
            rows = "".join(f"\n  line {row.line}: {row.reason}" for row in bad[:SHOWN])
            raise LogError(f"{self.name} cannot be read: {str(error).splitlines()[0]}.{rows}", bad) from error


def open_source(source: Any, separator: str) -> tuple[str, pl.LazyFrame, int]:
    """A name for messages, the rows as text or as they are typed, and the number of the first row's line."""
    import polars as pl  # noqa: PLC0415

    if isinstance(source, pl.DataFrame):
        return "the table", source.lazy(), 1
    if not isinstance(source, (str, os.PathLike)):
        raise SettingError(f"a log is a .csv or .parquet file or a Polars DataFrame, got {source!r:.80}.")
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist or is no file; name a .csv or .parquet file.")
    if path.stat().st_size == 0:
        raise LogError(f"{path.name} is empty: it has not even a header; a log has one row a round.")
    if path.suffix.lower() in PARQUET:
        return path.name, pl.scan_parquet(path, glob=False), 1
    return path.name, pl.scan_csv(path, infer_schema=False, separator=separator, glob=False), 2


def text_file(source: Any) -> Path | None:
    """The file, if it is one of plain text."""
    if not isinstance(source, (str, os.PathLike)) or Path(source).suffix.lower() in PARQUET:
        return None
    with Path(source).open("rb") as stream:
        return None if stream.read(4).startswith(COMPRESSED) else Path(source)


def one_character(separator: str) -> str:
    """One character; a tab may be spelled as shells pass it on."""
    cut = "\t" if separator == r"\t" else str(separator)
    if len(cut) != 1 or not cut.isascii() or cut in '"\r\n':
        raise SettingError(f"separator must be one character, such as ',' or ';' or a tab, got {separator!r}.")
    return cut


def check_header(path: Path, separator: str) -> None:
    """Raise if two columns have the same name, or if lines end in a way that Polars does not know."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as stream:
        begin = stream.read(HEADER)
    if "\r" in begin and "\n" not in begin:
        raise LogError(f"{path.name} ends its lines by a carriage return alone; save it with ordinary line ends.")
    names = Counter(next(csv.reader([begin.splitlines()[0]], delimiter=separator), []) if begin.strip() else [])
    twice = [name for name, count in names.items() if count > 1 and name]
    if twice:
        raise LogError(f"{path.name} has more than one column {', '.join(twice)}; rename or remove the others.")


def _columns(frame: pl.LazyFrame, name: str) -> list[str]:
    """The header."""
    import polars as pl  # noqa: PLC0415

    try:
        return frame.collect_schema().names()
    except pl.exceptions.PolarsError as error:
        raise LogError(f"{name} cannot be read: {str(error).splitlines()[0]}; is it a CSV or Parquet file?") from error


def ragged(path: Path, separator: str) -> Iterator[BadRow]:
    """Rows of a CSV file with more or fewer fields than its header; empty lines are left to others."""
    with path.open(newline="", encoding="utf-8", errors="replace") as stream:
        lines = csv.reader(stream, delimiter=separator)
        width = len(next(lines, []))
        for line, fields in enumerate(lines, start=2):
            if len(fields) > width:
                reason = f"the row has {len(fields)} fields, the header {width}; quote text that holds a {separator!r}"
                yield BadRow(line, "", "too many fields", reason)
            elif 0 < len(fields) < width:
                reason = (
                    f"the row has {len(fields)} field{'s' * (len(fields) > 1)}, the header {width}; was it cut short?"
                )
                yield BadRow(line, "", "too few fields", reason)


def _message(name: str, reader: Reader) -> str:
    """Which rows are bad and why: the first ones, how many of each kind, and the largest of those above a maximum."""
    bad = reader.bad
    kinds = ", ".join(f"{count:,} × {kind}" for kind, count in Counter(row.kind for row in bad).most_common())
    shown = "".join(f"\n  line {row.line}: {row.reason}" for row in sorted(bad)[:SHOWN])
    more = f"\n  ... and {len(bad) - SHOWN:,} more" if len(bad) > SHOWN else ""
    units = "".join(f" {column} goes up to {value:g}." for column, value in reader.largest.items())
    return (
        f"{name} has {len(bad):,} bad value{'s' * (len(bad) != 1)} ({kinds}); nothing was left out and "
        f"nothing was read.{units} Correct these lines:{shown}{more}"
    )
