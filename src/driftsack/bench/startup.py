"""How long a new process takes to its first result, with an empty cache of kernels and with a full one."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Final

FIRST_RESULT: Final = (
    "import driftsack as ds; ds.simulate(ds.instances.example_2(), ds.NaiveUCB(), trials=1, threads=1)"
)


def startup_rows(quick: bool, said: Callable[[str], None]) -> list[dict[str, float | str]]:
    """Seconds of whole processes, in turns: import numba, import driftsack, first result cold and warm."""
    repeats = 3 if quick else 7
    with tempfile.TemporaryDirectory() as cache:
        said("start-up, empty cache")
        cold = process_seconds(FIRST_RESULT, cache)
        numba, ours, warm = [], [], []
        for turn in range(repeats):
            said(f"start-up, {turn + 1} of {repeats}")
            numba.append(process_seconds("import numba", cache))
            ours.append(process_seconds("import driftsack", cache))
            warm.append(process_seconds(FIRST_RESULT, cache))
    return [
        {
            "import driftsack / import numba": statistics.median(o / n for o, n in zip(ours, numba, strict=True)),
            "import numba s": min(numba),
            "import driftsack s": min(ours),
            "first result s, cold cache": cold,
            "first result s, warm cache": min(warm),
            "warm, more than import numba s": statistics.median(w - n for w, n in zip(warm, numba, strict=True)),
        }
    ]


def process_seconds(code: str, cache: str) -> float:
    """Wall time of ``python -c code`` with its own cache of kernels."""
    begun = time.perf_counter()
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)  # noqa: S603
    return time.perf_counter() - begun
