"""A store: a folder with one Parquet file a cell, and a plan that says which cells belong together.

A file is written whole to a temporary name, flushed to disk and renamed: whatever happens, and whenever, a cell is
either there and complete or not there. Each file carries its key and a digest of its table, so a file that was cut
short, altered or put there by something else is noticed when it is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from driftsack.core.errors import DriftsackError, FileFormatError
from driftsack.core.release import __version__
from driftsack.sweeps.cells import SCHEMA

LAYOUT: Final = "2"
PLAN: Final = "plan.json"
SET_ASIDE: Final = "set-aside"
LEFTOVER_SECONDS: Final = 3600.0  # a temporary file this old belongs to nobody: writing one takes far less
KEY: Final = re.compile(r"[0-9a-f]{32}")


class StoreError(DriftsackError, OSError):
    """A store cannot be written to or read from."""


class Survey(NamedTuple):
    """What a store holds of the cells that are wanted."""

    kept: set[str]  # keys whose files are whole
    set_aside: list[str]  # what was found instead of a cell, and why it is none


class Store:
    """A folder of cells.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> store.survey(["0" * 32])
    Survey(kept=set(), set_aside=[])
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, key: str) -> Path:
        """Where a cell's file stands."""
        return self.folder / f"{key}.parquet"

    def open(self) -> None:
        """Make the folder, see that it can be written to, and drop what killed runs left half-written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for leftover in self.folder.glob(".*.part"):
                if time.time() - leftover.stat().st_mtime > LEFTOVER_SECONDS:
                    leftover.unlink(missing_ok=True)
        except OSError as error:
            raise self._trouble(error) from error
        self._put(self.folder / ".probe", b"")
        (self.folder / ".probe").unlink(missing_ok=True)

    def write(self, key: str, frame: pl.DataFrame) -> None:
        """Keep a cell's table."""
        buffer = io.BytesIO()
        notes = {"driftsack": LAYOUT, "release": __version__, "key": key, "digest": digest(frame)}
        frame.write_parquet(buffer, metadata=notes)
        self._put(self.path(key), buffer.getvalue())

    def read(self, key: str) -> pl.DataFrame:
        """A cell's table, or an error that names the file and says what is wrong with it."""
        path = self.path(key)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise self._trouble(error) from error
        fault = "it is cut short, or something else wrote it"
        try:
            notes = pl.read_parquet_metadata(content)
            frame = pl.read_parquet(content)
        except (pl.exceptions.PolarsError, OSError, ValueError) as error:
            raise FileFormatError(f"{path} is not a whole cell: {fault}.") from error
        if notes.get("driftsack") != LAYOUT or frame.schema != SCHEMA:
            raise FileFormatError(f"{path} is not a cell: something else wrote it.")
        if notes.get("key") != key:
            raise FileFormatError(f"{path} holds another cell, {notes.get('key')}: it was renamed or copied.")
        if notes.get("digest") != digest(frame):
            raise FileFormatError(f"{path} is not as it was written: its table has changed.")
        return frame

    def survey(self, wanted: Iterable[str]) -> Survey:
        """Which of the wanted cells are there; files that are no cells are moved out of the way, not deleted."""
        kept: set[str] = set()
        foreign = [path for path in sorted(self.folder.glob("*.parquet")) if not KEY.fullmatch(path.stem)]
        aside = [self._set_aside(path, f"{path} is not a cell: its name is no key.") for path in foreign]
        for key in dict.fromkeys(wanted):
            if not self.path(key).exists():
                continue
            try:
                self.read(key)
                kept.add(key)
            except FileFormatError as fault:
                aside.append(self._set_aside(self.path(key), str(fault)))
        return Survey(kept, aside)

    def write_plan(self, keys: Sequence[str], about: dict[str, Any]) -> None:
        """Say which cells the store's result consists of, in order."""
        plan = {"driftsack": LAYOUT, "release": __version__, "cells": list(keys), **about}
        self._put(self.folder / PLAN, (json.dumps(plan, indent=1) + "\n").encode())

    def plan(self) -> dict[str, Any]:
        """The plan of the last run, or an error if the folder is no store."""
        path = self.folder / PLAN
        try:
            plan: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise StoreError(f"{self.folder} is not a store: it has no {PLAN}; `driftsack run` makes one.") from error
        except ValueError as error:
            raise FileFormatError(f"{path} is not a whole plan; run the sweep again.") from error
        if plan.get("driftsack") != LAYOUT:
            raise FileFormatError(f"{path} must be a plan of layout {LAYOUT}, got {plan.get('driftsack')!r}.")
        return plan

    def load(self) -> pl.DataFrame:
        """The trials of all cells of the plan that are there, in the plan's order, with their regret."""
        frames = [self.read(key) for key in self.plan()["cells"] if self.path(key).exists()]
        whole = pl.concat([SCHEMA.to_frame(), *frames])
        regret = (pl.col("optimum") - pl.col("reward")).alias("regret")
        return whole.with_columns(regret)

    def missing(self) -> int:
        """How many cells of the plan are not there yet."""
        return sum(not self.path(key).exists() for key in self.plan()["cells"])

    def _put(self, path: Path, content: bytes) -> None:
        """Write a file whole or not at all."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
        try:
            with temporary.open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        except OSError as error:
            raise self._trouble(error) from error
        finally:
            with contextlib.suppress(OSError):  # the first error is the one to tell
                temporary.unlink(missing_ok=True)

    def _set_aside(self, path: Path, why: str) -> str:
        """Move a file that is no cell into a folder of its own; returns what to tell people."""
        place = self.folder / SET_ASIDE
        try:
            place.mkdir(exist_ok=True)
            target = place / path.name
            count = 1
            while target.exists():
                target = place / f"{path.name}.{count}"
                count += 1
            path.replace(target)
        except OSError as error:
            raise self._trouble(error) from error
        return f"{why} It was moved to {target}."

    def _trouble(self, error: OSError) -> StoreError:
        reason = error.strerror or str(error)
        return StoreError(
            f"the store {self.folder} cannot be used: {reason}. What was written is whole; name a folder that can be "
            "written to and has room, then run again: only what is missing is played."
        )


def load(folder: str | os.PathLike[str]) -> pl.DataFrame:
    """All trials of a store as one table, a row each; the columns are described in docs/experiments.md."""
    return Store(folder).load()


def digest(frame: pl.DataFrame) -> str:
    """A hash of every value of a table, bit for bit."""
    found = hashlib.sha256()
    for column in frame.iter_columns():
        found.update(f"{column.name}:{column.dtype};".encode())
        flat = column
        if isinstance(column.dtype, pl.List):
            found.update(column.list.len().to_numpy().tobytes())
            flat = column.explode()
        if flat.dtype == pl.String:
            for text in flat:
                found.update(f"{len(text)}:{text}".encode())
        else:
            found.update(flat.to_numpy().tobytes())
    return found.hexdigest()
