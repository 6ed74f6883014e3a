"""Stores: a directory with one Parquet file per cell, and a plan that lists the cells of the last sweep.

Files are written atomically: at any moment a cell's file is either complete or absent. Each file carries its key and a
digest of its bytes, so a file that was truncated, altered or written by another program is detected before it is
decoded. The digest is in the metadata of the file itself: it is computed with zeros in its place.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from driftsack.core.errors import DriftsackError, FileFormatError
from driftsack.core.file_format import atomic_write
from driftsack.core.release import __version__
from driftsack.sweeps.cells import SCHEMA

LAYOUT: Final = "4"
SEAL: Final = b"sha256:"  # before the digest in the bytes of a file
BLANK: Final = b"0" * 64
PLAN: Final = "plan.json"
SET_ASIDE: Final = "set-aside"
LEFTOVER_SECONDS: Final = 3600.0  # no process still writes to a temporary file of this age
KEY: Final = re.compile(r"[0-9a-f]{32}")


class CellStoreError(DriftsackError, OSError):
    """A store cannot be written to or read from."""


class StoreContents(NamedTuple):
    """Which of the requested cells a store holds."""

    kept: set[str]  # keys of the cells whose files are complete
    set_aside: list[str]  # for each file that was moved out of the store, why, and where it is now


class CellStore:
    """A directory of cells; :meth:`open` creates it.

    >>> import tempfile
    >>> store = CellStore(tempfile.mkdtemp())
    >>> store.check(["0" * 32])
    StoreContents(kept=set(), set_aside=[])
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)

    def path(self, key: str) -> Path:
        """The path of a cell's file."""
        return self.directory / f"{key}.parquet"

    def open(self) -> None:
        """Create the directory, check that it can be written to, and delete the temporary files of killed runs."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            for leftover in self.directory.glob(".*.part"):
                if time.time() - leftover.stat().st_mtime > LEFTOVER_SECONDS:
                    leftover.unlink(missing_ok=True)
        except OSError as error:
            raise self._unusable(error) from error
        self._write_file(self.directory / ".probe", b"")
        (self.directory / ".probe").unlink(missing_ok=True)

    def write(self, key: str, frame: pl.DataFrame) -> None:
        """Write a cell's table."""
        buffer = io.BytesIO()
        metadata = {"driftsack": LAYOUT, "release": __version__, "key": key, "seal": (SEAL + BLANK).decode()}
        frame.write_parquet(buffer, metadata=metadata)
        self._write_file(self.path(key), sealed(buffer.getvalue()))

    def read(self, key: str) -> pl.DataFrame:
        """Read a cell's table; raise an error that names the file and what is wrong with it."""
        path = self.path(key)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise self._unusable(error) from error
        if sealed(content) != content or SEAL not in content:
            raise FileFormatError(f"{path} is not as it was written: it is truncated or altered, or another file.")
        try:
            metadata, frame = pl.read_parquet_metadata(content), pl.read_parquet(content)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise FileFormatError(f"{path} is not a cell: something else wrote it.") from error
        if metadata.get("driftsack") != LAYOUT or frame.schema != SCHEMA:
            raise FileFormatError(f"{path} is not a cell: something else wrote it.")
        if metadata.get("key") != key:
            raise FileFormatError(f"{path} holds another cell, {metadata.get('key')}: it was renamed or copied.")
        return frame

    def check(self, keys: Iterable[str]) -> StoreContents:
        """Check which of these cells the store holds; invalid files are moved, not deleted."""
        kept: set[str] = set()
        foreign = [path for path in sorted(self.directory.glob("*.parquet")) if not KEY.fullmatch(path.stem)]
        set_aside = [self._set_aside(path, f"{path} is not a cell: its name is not a key.") for path in foreign]
        for key in dict.fromkeys(keys):
            if not self.path(key).exists():
                continue
            try:
                self.read(key)
                kept.add(key)
            except FileFormatError as fault:
                set_aside.append(self._set_aside(self.path(key), str(fault)))
        return StoreContents(kept, set_aside)

    def write_plan(self, keys: Sequence[str], details: dict[str, Any]) -> None:
        """Record which cells the store's result consists of, in order, with further details of the sweep."""
        plan = {"driftsack": LAYOUT, "release": __version__, "cells": list(keys), **details}
        self._write_file(self.directory / PLAN, (json.dumps(plan, indent=1) + "\n").encode())

    def plan(self) -> dict[str, Any]:
        """Read the plan of the last run; raise an error if the directory is not a store."""
        path = self.directory / PLAN
        try:
            plan: Any = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise CellStoreError(
                f"{self.directory} is not a store: it has no {PLAN}; `driftsack run` creates one."
            ) from error
        except (ValueError, RecursionError) as error:
            raise FileFormatError(f"{path} is not a complete plan; run the sweep again.") from error
        layout = plan.get("driftsack") if isinstance(plan, dict) else None
        if layout != LAYOUT:
            raise FileFormatError(f"{path} must be a plan of layout {LAYOUT}, got {layout!r:.80}; run the sweep again.")
        cells, spec = plan.get("cells"), plan.get("spec", {})
        are_keys = isinstance(cells, list) and all(isinstance(key, str) and KEY.fullmatch(key) for key in cells)
        if not are_keys or not isinstance(spec, dict):
            raise FileFormatError(f"{path} must list the keys of cells and a spec; run the sweep again.")
        return dict(plan)

    def load(self) -> pl.DataFrame:
        """Load the trials of those cells of the plan that exist, in the plan's order, with their regret."""
        frames = [self.read(key) for key in self.plan()["cells"] if self.path(key).exists()]
        trials = pl.concat([SCHEMA.to_frame(), *frames])
        return trials.with_columns((pl.col("optimum") - pl.col("reward")).alias("regret"))

    def missing(self) -> int:
        """Count the cells of the plan that do not exist yet."""
        return sum(not self.path(key).exists() for key in self.plan()["cells"])

    def _write_file(self, path: Path, content: bytes) -> None:
        """Write a file atomically."""
        try:
            with atomic_write(path) as stream:
                stream.write(content)
        except OSError as error:
            raise self._unusable(error) from error

    def _set_aside(self, path: Path, reason: str) -> str:
        """Move a file that is not a valid cell into a directory of its own; return the reason and the new path."""
        directory = self.directory / SET_ASIDE
        try:
            directory.mkdir(exist_ok=True)
            target = directory / path.name
            count = 1
            while target.exists():
                target = directory / f"{path.name}.{count}"
                count += 1
            path.replace(target)
        except OSError as error:
            raise self._unusable(error) from error
        return f"{reason} It was moved to {target}."

    def _unusable(self, error: OSError) -> CellStoreError:
        """The error of a store that cannot be read or written."""
        reason = error.strerror or str(error)
        return CellStoreError(
            f"the store {self.directory} cannot be used: {reason}. The cells in it are complete; choose a writable "
            "directory with free space, then run again: only missing cells are simulated."
        )


def load(directory: str | os.PathLike[str]) -> pl.DataFrame:
    """Load all trials of a store as one table.

    Args:
        directory: The store.

    Returns:
        One row per trial; docs/experiments.md describes the columns.

    Raises:
        CellStoreError: The directory is not a store.
        FileFormatError: A cell's file is truncated or altered.
    """
    return CellStore(directory).load()


def sealed(content: bytes) -> bytes:
    """Return the bytes of a cell's file with their digest in its place; other bytes are returned as they are."""
    place = content.rfind(SEAL) + len(SEAL)
    if place < len(SEAL):
        return content
    before, after = content[:place], content[place + len(BLANK) :]
    return before + hashlib.sha256(before + BLANK + after).hexdigest().encode() + after
