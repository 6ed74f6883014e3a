"""Time from the start of a process to its first result, with a cold and with a warm kernel cache."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from typing import Final

from lab.speed.timing import Progress, median_ratio, seconds

FIRST_RESULT: Final = (
    "import driftsack as ds; ds.simulate(ds.instances.example_2(), ds.NaiveUCB(), trials=1, threads=1)"
)


def startup_rows(quick: bool, progress: Progress) -> list[dict[str, float | str]]:
    """Measure whole processes: importing numba, importing driftsack, and the first result."""
    repeats = 1 if quick else 7
    with tempfile.TemporaryDirectory() as cache:
        progress("start-up, empty cache")
        cold = process_seconds(FIRST_RESULT, cache)
        numba, ours, warm = [], [], []
        for repeat in range(repeats):
            progress(f"start-up, {repeat + 1} of {repeats}")
            numba.append(process_seconds("import numba", cache))
            ours.append(process_seconds("import driftsack", cache))
            warm.append(process_seconds(FIRST_RESULT, cache))
    return [
        {
            "import driftsack / import numba": median_ratio(ours, numba),
            "import numba s": min(numba),
            "import driftsack s": min(ours),
            "first result s, cold cache": cold,
            "first result s, warm cache": min(warm),
            "warm, more than import numba s": statistics.median(w - n for w, n in zip(warm, numba, strict=True)),
        }
    ]


def process_seconds(code: str, cache: str) -> float:
    """Wall time of ``python -c code`` with the kernel cache in a directory."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True, env=environment))
