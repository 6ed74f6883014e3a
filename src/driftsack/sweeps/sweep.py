"""Run a sweep: simulate the cells that a store does not hold yet, and keep each as soon as it is done."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

from driftsack.sweeps.cells import FailedCell, Job, list_cells
from driftsack.sweeps.engines import LocalEngine, SweepEngine
from driftsack.sweeps.spec import Spec
from driftsack.sweeps.store import CellStore


class SweepProgress(NamedTuple):
    """The progress of a sweep."""

    done: int  # trials that are done
    total: int  # trials of the whole sweep


class SweepResult(NamedTuple):
    """The outcome of a sweep."""

    cells: int  # cells of the sweep
    played: list[str]  # keys of the cells that this run simulated
    kept: int  # cells that the store held already
    failed: list[FailedCell]  # cells that failed, with their errors
    set_aside: list[str]  # for each file that was moved out of the store, why, and where it is now
    seconds: float  # wall time

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name as plain data, ready for JSON."""
        return {**self._asdict(), "failed": [failure.to_dict() for failure in self.failed]}


def run(
    spec: Spec,
    directory: str | os.PathLike[str],
    engine: SweepEngine | None = None,
    progress: Callable[[SweepProgress], None] | None = None,
    report: Callable[[str], None] | None = None,
) -> SweepResult:
    """Simulate the cells of a sweep that a store does not hold yet.

    If the run is killed or interrupted, the same call continues where it stopped.

    Args:
        spec: The sweep.
        directory: The store; created if it does not exist.
        engine: Where the cells are simulated; threads of this process if None.
        progress: Called after each cell with the number of trials that are done.
        report: Called with a sentence for each file that was set aside and each cell that failed.

    Returns:
        The cells that were simulated, kept, failed and set aside.

    Raises:
        CellStoreError: The directory cannot be written to or has no room.
    """
    notify = report or (lambda _: None)
    begun = time.perf_counter()

    # Find the missing cells.
    store = CellStore(directory)
    store.open()
    cells = list_cells(spec)
    contents = store.check(cell.key for cell, _ in cells)
    for sentence in contents.set_aside:
        notify(sentence)
    store.write_plan([cell.key for cell, _ in cells], {"spec": spec.model_dump(mode="json", exclude_none=True)})
    missing = [(cell, named) for cell, named in cells if cell.key not in contents.kept]
    total = sum(cell.count for cell, _ in cells)
    done = total - sum(cell.count for cell, _ in missing)

    # Simulate them, and write each as soon as it is done.
    jobs = (Job(cell, named.instance, named.measured["lp_dynamic"]) for cell, named in missing)
    played: list[str] = []
    failed: list[FailedCell] = []
    with closing((engine or LocalEngine()).execute(jobs)) as results:  # an interrupt leaves no thread behind
        for cell, trials, error in results:
            if trials is None:
                failed.append(FailedCell.of(cell, error))
                notify(str(failed[-1]))
            else:
                store.write(cell.key, trials)
                played.append(cell.key)
            done += cell.count
            if progress is not None:
                progress(SweepProgress(done, total))
    seconds = time.perf_counter() - begun
    return SweepResult(len(cells), played, len(contents.kept), failed, contents.set_aside, seconds)
