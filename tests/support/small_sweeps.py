"""Helpers for the tests of sweeps: a small sweep, and a bit-for-bit comparison of tables."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import polars as pl

SMALL: dict[str, Any] = {
    "instances": [
        {"instance": "example_1", "horizon": 200},
        {"instance": "example_3", "alpha": 0.5, "horizon": 200, "noise": "deterministic"},
    ],
    "policies": [
        {"policy": "SlidingWindowUCB", "variation": "measured:variation", "scale": 0.1},
        {"policy": "NaiveUCB"},
        {"policy": "LagrangeBwK", "benchmark": "measured:opt_fd", "name": "Lagrange"},
    ],
    "trials": 5,
    "seeds": [0, 7],
    "block": 2,
}
CELLS = 2 * 3 * 2 * 3  # worlds, policies, seeds, blocks of 2, 2 and 1 trials


def same_bits(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    return digest(one) == digest(other)


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.glob("*.parquet")}


def digest(frame: pl.DataFrame) -> str:
    """Hash every value of a table, bit for bit."""
    result = hashlib.sha256()
    for column in frame.iter_columns():
        result.update(f"{column.name}:{column.dtype};".encode())
        flat = column
        if isinstance(column.dtype, pl.List):
            result.update(column.list.len().to_numpy().tobytes())
            flat = column.explode()
        if flat.dtype == pl.String:
            for text in flat:
                result.update(f"{len(text)}:{text}".encode())
        else:
            result.update(flat.to_numpy().tobytes())
    return result.hexdigest()
