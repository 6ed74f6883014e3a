"""One pass over a log, batch by batch: memory does not grow with the file, and no bad row goes unnamed."""

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
SHOWN: Final = 20  # bad rows that stand in the message; all are in its ``bad``
PARQUET: Final = (".parquet", ".pq")


class Stream:
    """A log that is being read: iterate for its batches, then ask the ``reader`` what it has seen.

    Raises ``LogError`` after the last batch if any row was bad, with every such row.
    """

    def __init__(self, source: Any, wanted: Wanted, separator: str = ",") -> None:
        self.name, frame, first_line = open_source(source, separator)
        self.source = source
        self.separator = separator
        self.reader = Reader(find_layout(_columns(frame, self.name), wanted, self.name), first_line)
        self._frame = frame.select(self.reader.layout.columns)
        self.rows = 0

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.batches():
            self.rows += len(batch.time)
            yield batch
        if self.rows == 0:
            raise LogError(f"{self.name} is empty: it has a header and no rows; a log has one row a round.")
        if self.reader.bad:
            raise LogError(_message(self.name, self.reader), tuple(self.reader.bad))

    def batches(self) -> Iterator[Batch]:
        """Batches of arrays; a line with too many fields is named."""
        import polars as pl  # noqa: PLC0415

        try:
            for frame in self._frame.collect_batches(chunk_size=ROWS_AT_ONCE, maintain_order=True):
                yield self.reader.take(frame)
        except pl.exceptions.PolarsError as error:
            bad = (
                tuple(ragged(Path(self.source), self.separator)) if isinstance(self.source, (str, os.PathLike)) else ()
            )
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
        return path.name, pl.scan_parquet(path), 1
    return path.name, pl.scan_csv(path, infer_schema=False, separator=separator), 2


def _columns(frame: pl.LazyFrame, name: str) -> list[str]:
    """The header."""
    import polars as pl  # noqa: PLC0415

    try:
        return frame.collect_schema().names()
    except pl.exceptions.PolarsError as error:
        raise LogError(f"{name} cannot be read: {str(error).splitlines()[0]}; is it a CSV or Parquet file?") from error


def ragged(path: Path, separator: str) -> Iterator[BadRow]:
    """Lines of a CSV file with more fields than its header."""
    if path.suffix.lower() in PARQUET:
        return
    with path.open(newline="", encoding="utf-8", errors="replace") as stream:
        lines = csv.reader(stream, delimiter=separator)
        width = len(next(lines, []))
        for line, fields in enumerate(lines, start=2):
            if len(fields) > width:
                reason = f"the row has {len(fields)} fields, the header {width}; quote text that holds a {separator!r}"
                yield BadRow(line, "", "too many fields", reason)


def _message(name: str, reader: Reader) -> str:
    """Which rows are bad and why: the first ones, and how many of each kind."""
    kinds = ", ".join(f"{count:,} × {kind}" for kind, count in Counter(row.kind for row in reader.bad).most_common())
    shown = "".join(f"\n  line {row.line}: {row.reason}" for row in sorted(reader.bad)[:SHOWN])
    more = f"\n  ... and {reader.bad_count - SHOWN:,} more" if reader.bad_count > SHOWN else ""
    return (
        f"{name} has {reader.bad_count:,} bad value{'s' * (reader.bad_count != 1)} ({kinds}); nothing was left out and "
        f"nothing was read. Correct these lines:{shown}{more}"
    )
