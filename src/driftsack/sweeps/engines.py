"""Engines: where the cells of a sweep are simulated. All of them give the same bits.

An engine takes a few jobs at a time and yields results as they come, so the memory in use does not grow with the sweep.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final, Protocol

from driftsack.core.checks import one_of
from driftsack.simulation.simulate import cores
from driftsack.sweeps.cells import CellResult, Job, try_cell

ENGINES: Final = ("local", "ray")


class SweepEngine(Protocol):
    """Something that executes jobs."""

    def execute(self, jobs: Iterable[Job]) -> Generator[CellResult]:
        """Execute the jobs, taken a few at a time, and yield each result as soon as it is there, in any order."""


@dataclass(frozen=True)
class LocalEngine:
    """Threads of this process; kernels run without the GIL."""

    workers: int | None = None  # how many threads; if None, one per core

    def execute(self, jobs: Iterable[Job]) -> Generator[CellResult]:
        """Execute every job in threads; if the caller stops early, started jobs finish and the others are dropped."""
        workers = self.workers or cores()
        pool = ThreadPoolExecutor(workers)
        pending: set[Future[CellResult]] = set()
        try:
            for job in jobs:
                pending.add(pool.submit(try_cell, job))
                while len(pending) > workers:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def make_engine(name: str, workers: int | None = None, address: str | None = None) -> SweepEngine:
    """Make one of ``ENGINES``; without ``workers`` one per core, without an ``address`` Ray starts on this machine."""
    one_of(name, "engine", ENGINES)
    if name == "local":
        return LocalEngine(workers)
    from driftsack.sweeps.ray_engine import RayEngine

    return RayEngine(workers=workers, address=address)
