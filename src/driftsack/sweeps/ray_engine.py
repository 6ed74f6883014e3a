"""The Ray engine: cells as tasks of a cluster, one that runs already or one that is started on this machine.

A task whose worker dies is run again; since a cell's bits depend on the cell alone, nobody can tell afterwards. Each
worker compares its code with the caller's before it plays: another version could give other bits.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from driftsack.core.errors import DriftsackError, SettingError
from driftsack.core.instance import Instance
from driftsack.sweeps.cells import Cell, Job, Outcome, attempt, code_stamp

QUIET: Final = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""Settings of Ray that keep it from reporting home and from warning about graphics cards that nobody has."""

PATIENCE: Final = 10.0  # seconds to wait for a cluster's port


@dataclass(frozen=True)
class RayEngine:
    """A cluster by ``address`` (``"auto"`` or host:port), or ``workers`` processes on this machine.

    A task is run up to 1 + ``retries`` times if its worker dies.
    """

    workers: int | None = None
    address: str | None = None
    retries: int = 5

    def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Play every job as a task; a Ray that was running before goes on running."""
        ray = load_ray()
        ours = not ray.is_initialized()
        if ours:
            self._connect(ray)
        try:
            yield from self._play(ray, jobs)
        finally:
            if ours:
                ray.shutdown()

    def _connect(self, ray: Any) -> None:
        """Reach the cluster, or start one here."""
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        if self.address and ":" in self.address.removeprefix("ray://"):
            check_reachable(self.address)
        here = {} if self.address else {"num_cpus": self.workers, "include_dashboard": False}
        try:
            ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR, **here)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise DriftsackError(f"Ray could not be reached or started ({self.address or 'local'}): {error}") from error

    def _play(self, ray: Any, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Keep two tasks for each core in flight."""
        task = ray.remote(max_retries=self.retries, num_cpus=1)(play_remotely)
        room = 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        worlds: dict[str, Any] = {}  # each instance travels once
        waiting: dict[Any, Cell] = {}
        for cell, instance, optimum in jobs:
            if cell.content not in worlds:
                worlds[cell.content] = ray.put(instance)
            waiting[task.remote(cell, worlds[cell.content], optimum, code_stamp())] = cell
            while len(waiting) >= room:
                yield from _finished(ray, waiting)
        while waiting:
            yield from _finished(ray, waiting)


def _finished(ray: Any, waiting: dict[Any, Cell]) -> Iterator[Outcome]:
    """Outcomes of the tasks that have ended; at least one."""
    done, _ = ray.wait(list(waiting), num_returns=1)
    for reference in done:
        cell = waiting.pop(reference)
        try:
            yield ray.get(reference)
        except ray.exceptions.RayError as error:
            first = str(error).strip().splitlines()[0]
            yield Outcome(cell, None, f"{cell}: {type(error).__name__}: {first}")


def play_remotely(cell: Cell, instance: Instance, optimum: float, stamp: str) -> Outcome:
    """What a worker does."""
    if code_stamp() != stamp:
        advice = "is not the caller's; install the same versions on every node."
        return Outcome(cell, None, f"{cell}: this worker's driftsack, NumPy or Numba {advice}")
    # A new object freezes its arrays: the kernels then see the types that they see everywhere else.
    return attempt(Job(cell, dataclasses.replace(instance), optimum))


def check_reachable(address: str) -> None:
    """Ray itself would wait for minutes for a cluster that is not there."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except (OSError, ValueError, OverflowError) as error:
        raise DriftsackError(
            f"Ray could not be reached at {address}: {error}; is `ray start --head` running?"
        ) from error


def load_ray() -> Any:
    """Ray, or how to get it."""
    try:
        import ray  # noqa: PLC0415  (an extra, and slow to load)
    except ImportError as error:
        raise SettingError("the ray engine needs Ray: pip install 'driftsack[ray]'; or use --engine local.") from error
    return ray
