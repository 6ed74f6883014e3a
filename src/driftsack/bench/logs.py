"""How long a log takes to be read, checked and measured in one pass, and how much memory, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

# Linux lets a process inherit its parent's ru_maxrss; the peak of its own memory is VmHWM.
MEASURE: Final = """
import pathlib, re, resource, sys, time
import driftsack as ds
from driftsack.advice.drift_detection import detect_drift
ds.logs.survey(ds.gather(ds.instances.example_2(horizon=100)))  # compile or load the kernels first
begun = time.perf_counter()
brief = ds.logs.survey(sys.argv[1])
read = time.perf_counter() - begun
detect_drift(brief)
taken = time.perf_counter() - begun
status = pathlib.Path("/proc/self/status")
own = re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text()) if status.exists() else None
peak = int(own[1]) if own else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(brief.rows, read, taken, peak / 1024)
"""
PLAIN: Final = """
import sys, time
import polars as pl
begun = time.perf_counter()
name = sys.argv[1]
(pl.read_csv if name.endswith("csv") else pl.read_parquet)(name).group_by("arm").mean()
print(time.perf_counter() - begun)
"""


def log_rows(quick: bool, said: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row for CSV and one for Parquet: five arms, two resources, ten million rounds."""
    rows = 200_000 if quick else 10_000_000
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("csv", "parquet"):
            said(f"a log of {rows:,} rows, {kind}")
            path = Path(folder) / f"log.{kind}"
            write_log(path, rows)
            count, read, measured, megabytes = (float(part) for part in run(MEASURE, path).split())
            plain = float(run(PLAIN, path))
            found.append(
                {
                    "file": kind,
                    "one pass / Polars reads it whole": read / plain,
                    "rows": int(count),
                    "read and checked s": read,
                    "and measured s": measured,
                    "peak MB": megabytes,
                }
            )
    return found


def write_log(path: Path, rows: int) -> None:
    """A log of uniform outcomes."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {"time": np.arange(rows), "arm": rng.integers(0, 5, rows)}
    columns |= {name: rng.random(rows).round(3) for name in ("reward", "cost_a", "cost_b")}
    frame = pl.DataFrame(columns)
    (frame.write_csv if path.suffix == ".csv" else frame.write_parquet)(path)


def run(code: str, path: Path) -> str:
    """What ``python -c code path`` prints."""
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True)  # noqa: S603
    return done.stdout
