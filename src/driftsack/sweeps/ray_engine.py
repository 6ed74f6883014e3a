"""The Ray engine: cells as tasks of a running cluster, or of one that is started on this machine.

A task whose worker dies is run again, which cannot be seen in the result: the bits of a cell depend on the cell alone.
Each worker compares its code with the caller's before it simulates, since another version could give other bits.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import socket
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from driftsack.core.errors import DriftsackError, SettingError
from driftsack.core.instance import Instance
from driftsack.sweeps.cells import Cell, CellResult, Job, code_stamp, try_cell

RAY_ENVIRONMENT: Final = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""Environment variables that disable Ray's usage statistics and its warning about machines without a GPU."""

CONNECT_SECONDS: Final = 10.0  # how long to wait for a cluster's port


@dataclass(frozen=True)
class RayEngine:
    """A Ray cluster, or processes on this machine."""

    workers: int | None = None  # how many processes to start on this machine; if None, one per core
    # Address of a running cluster (``"auto"`` or host:port); if None, Ray is started on this machine.
    address: str | None = None
    retries: int = 5  # how often a task is run again if its worker dies

    def execute(self, jobs: Iterable[Job]) -> Generator[CellResult]:
        """Execute every job as a task; Ray is shut down afterwards unless it was already running."""
        ray = import_ray()
        started_here = not ray.is_initialized()
        if started_here:
            self._connect(ray)
        try:
            yield from self._execute(ray, jobs)
        finally:
            if started_here:
                ray.shutdown()

    def _connect(self, ray: Any) -> None:
        """Connect to the cluster, or start Ray on this machine."""
        for name, value in RAY_ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        if self.address and ":" in self.address.removeprefix("ray://"):
            check_reachable(self.address)
        local_settings = {} if self.address else {"num_cpus": self.workers, "include_dashboard": False}
        try:
            ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR, **local_settings)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise DriftsackError(f"Ray could not be reached or started ({self.address or 'local'}): {error}") from error

    def _execute(self, ray: Any, jobs: Iterable[Job]) -> Iterator[CellResult]:
        """Keep two tasks per core in flight."""
        task = ray.remote(max_retries=self.retries, num_cpus=1)(simulate_remotely)
        capacity = 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        instances: dict[str, Any] = {}  # each instance is sent once
        pending: dict[Any, Cell] = {}
        for cell, instance, optimum in jobs:
            if cell.content not in instances:
                instances[cell.content] = ray.put(instance)
            pending[task.remote(cell, instances[cell.content], optimum, code_stamp())] = cell
            while len(pending) >= capacity:
                yield from _finished(ray, pending)
        while pending:
            yield from _finished(ray, pending)


def _finished(ray: Any, pending: dict[Any, Cell]) -> Iterator[CellResult]:
    """Wait for at least one task and yield the results of those that have ended."""
    done, _ = ray.wait(list(pending), num_returns=1)
    for reference in done:
        cell = pending.pop(reference)
        try:
            yield ray.get(reference)
        except ray.exceptions.RayError as error:
            first_line = str(error).strip().splitlines()[0]
            yield CellResult(cell, None, f"{type(error).__name__}: {first_line}")


def simulate_remotely(cell: Cell, instance: Instance, optimum: float, stamp: str) -> CellResult:
    """Simulate a cell in a worker, provided that its code is the caller's."""
    if code_stamp() != stamp:
        return CellResult(
            cell,
            None,
            "this worker's driftsack, NumPy or Numba is not the caller's; install the same versions on every node.",
        )
    # A new instance has read-only arrays, which are the types that the kernels are compiled for everywhere else.
    return try_cell(Job(cell, dataclasses.replace(instance), optimum))


def check_reachable(address: str) -> None:
    """Raise an error if nothing listens at an address; Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise DriftsackError(
            f"Ray could not be reached at {address}: {error}; is `ray start --head` running?"
        ) from error


def import_ray() -> Any:
    """Import Ray, or raise an error that says how to install it."""
    try:
        import ray
    except ImportError as error:
        raise SettingError("the ray engine needs Ray: pip install 'driftsack[ray]'; or use --engine local.") from error
    return ray
