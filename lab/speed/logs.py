"""Time and memory to read, check and measure a log in one pass, in a separate process."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from lab.speed.timing import Progress

# On Linux ru_maxrss includes what the parent process had used; VmHWM is the peak of the process itself.
MEASURE_SCRIPT: Final = """
import pathlib, re, resource, sys, time
import driftsack as ds
from driftsack.advice.drift_detection import detect_drift
ds.logs.survey(ds.gather(ds.instances.example_2(horizon=100)))  # compile or load the kernels first
begun = time.perf_counter()
summary = ds.logs.survey(sys.argv[1])
read = time.perf_counter() - begun
detect_drift(summary)
measured = time.perf_counter() - begun
status = pathlib.Path("/proc/self/status")
own = re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text()) if status.exists() else None
peak = int(own[1]) if own else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(summary.rows, read, measured, peak / 1024)
"""
POLARS_SCRIPT: Final = """
import sys, time
import polars as pl
begun = time.perf_counter()
name = sys.argv[1]
(pl.read_csv if name.endswith("csv") else pl.read_parquet)(name).group_by("arm").mean()
print(time.perf_counter() - begun)
"""


def log_rows(quick: bool, progress: Progress) -> list[dict[str, Any]]:
    """Measure a log of five arms, two resources and ten million rounds as CSV and as Parquet."""
    rounds = 200_000 if quick else 10_000_000
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for kind in ("csv", "parquet"):
            progress(f"a log of {rounds:,} rows, {kind}")
            path = Path(directory) / f"log.{kind}"
            write_log(path, rounds)
            count, read, measured, megabytes = (float(part) for part in run_script(MEASURE_SCRIPT, path).split())
            polars = float(run_script(POLARS_SCRIPT, path))
            rows.append(
                {
                    "file": kind,
                    "one pass / Polars reads it whole": read / polars,
                    "rows": int(count),
                    "read and checked s": read,
                    "and measured s": measured,
                    "peak MB": megabytes,
                }
            )
    return rows


def write_log(path: Path, rows: int) -> None:
    """Write a log with uniform outcomes."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {"time": np.arange(rows), "arm": rng.integers(0, 5, rows)}
    columns |= {name: rng.random(rows).round(3) for name in ("reward", "cost_a", "cost_b")}
    frame = pl.DataFrame(columns)
    (frame.write_csv if path.suffix == ".csv" else frame.write_parquet)(path)


def run_script(code: str, path: Path) -> str:
    """Run ``python -c code path`` and return what it prints."""
    completed = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True)
    return completed.stdout
