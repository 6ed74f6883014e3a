"""Engines: who plays the cells. Each takes jobs and yields outcomes as they come; all give the same bits.

Jobs are taken a few at a time, so that a sweep of any size waits in the plan and not in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final, Protocol

from driftsack.core.checks import one_of
from driftsack.simulation.simulate import cores
from driftsack.sweeps.cells import Job, Outcome, attempt

NAMES: Final = ("local", "ray")


class Engine(Protocol):
    """Something that plays jobs."""

    def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Play every job; an outcome is yielded as soon as it is there, in any order."""


@dataclass(frozen=True)
class LocalEngine:
    """Threads of this process, one a core unless told otherwise; kernels run without the GIL."""

    workers: int | None = None

    def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Play every job in threads; when the caller stops early, what has begun ends and the rest is dropped."""
        workers = self.workers or cores()
        pool = ThreadPoolExecutor(workers)
        waiting: set[Future[Outcome]] = set()
        try:
            for job in jobs:
                waiting.add(pool.submit(attempt, job))
                while len(waiting) > workers:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def make_engine(name: str, workers: int | None = None, address: str | None = None) -> Engine:
    """The engine that a command names."""
    one_of(name, "engine", NAMES)
    if name == "local":
        return LocalEngine(workers)
    from driftsack.sweeps.ray_engine import RayEngine  # noqa: PLC0415  (Ray is an extra)

    return RayEngine(workers=workers, address=address)
