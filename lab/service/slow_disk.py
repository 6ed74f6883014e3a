"""``driftsack`` with delayed commits on SQLite, as on a slower disk: ``slow_disk MILLISECONDS ...``."""

from __future__ import annotations

import runpy
import sys
import time
from collections.abc import Sequence

from driftsack.service.domain.journal import Segment
from driftsack.service.store.sqlite import SQLiteStore


def slow_down(seconds: float) -> None:
    """Delay every commit; like a disk, the delay leaves the processor to other threads."""
    append = SQLiteStore.append

    def slow_append(self: SQLiteStore, segments: Sequence[Segment]) -> None:
        append(self, segments)
        time.sleep(seconds)

    SQLiteStore.append = slow_append  # type: ignore[method-assign]


if __name__ == "__main__":
    slow_down(float(sys.argv.pop(1)) / 1e3)
    runpy.run_module("driftsack", run_name="__main__", alter_sys=True)
