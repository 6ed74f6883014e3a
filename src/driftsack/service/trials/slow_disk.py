"""``driftsack`` on SQLite with commits that take longer, as on a slower disk: ``slow_disk MILLISECONDS ...``."""

from __future__ import annotations

import runpy
import sys
import time
from collections.abc import Sequence

from driftsack.service.journal import Segment
from driftsack.service.store.sqlite import SQLiteStore


def slow_down(seconds: float) -> None:
    """Let every commit of events take longer; like a disk, it leaves the processor to others while it waits.

    Args:
        seconds: How much longer.
    """
    append = SQLiteStore.append

    def slow_append(self: SQLiteStore, segments: Sequence[Segment]) -> None:
        append(self, segments)
        time.sleep(seconds)

    SQLiteStore.append = slow_append  # type: ignore[method-assign]


if __name__ == "__main__":
    slow_down(float(sys.argv.pop(1)) / 1e3)
    runpy.run_module("driftsack", run_name="__main__", alter_sys=True)
