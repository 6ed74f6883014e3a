"""Backups under load: they end, write about as much as the store has, and can be served."""

from __future__ import annotations

import itertools
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from driftsack.service.store.interface import AuditRow
from lab.service.load import run_load
from lab.service.processes import Process, TrialError, call, open_campaign
from lab.service.speed import row
from lab.service.witness import Findings, Witness

MOST_WRITTEN: Final = 1.2  # bytes written for each byte of the store
LIMIT: Final = 600.0  # seconds after which a backup counts as endless
ENTRY: Final = 2000  # bytes of an audit entry
BLOCK: Final = 512  # bytes in which the system counts what a process writes


class Backup(NamedTuple):
    """The measurements of a backup."""

    seconds: float
    size: int  # bytes of the copy
    written: int  # bytes that the process wrote


def backed_up(store: str, copy: Path) -> Backup:
    """Run ``driftsack backup`` and return its measurements.

    Raises:
        TrialError: It failed, or did not end within ``LIMIT`` seconds.
    """
    begin = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "driftsack", "backup", str(copy), "--store", store], stdout=subprocess.DEVNULL
    )
    ended = threading.Timer(LIMIT, process.kill)
    ended.start()
    _, status, usage = os.wait4(process.pid, 0)
    ended.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise TrialError(f"the backup ended with code {process.returncode}.")
    return Backup(time.monotonic() - begin, copy.stat().st_size, BLOCK * usage.ru_oublock)


def checked_backup(store: str, copy: Path, witness: Witness) -> tuple[Backup, Findings]:
    """Back up a store in use, and compare the copy with everything that was acknowledged before."""
    before = Witness("http://localhost", "", "chat", 0)
    before.asked, before.told = witness.acknowledged()
    found = backed_up(store, copy)
    return found, before.audit(str(copy))


def back_up_under_load(
    size: int, decisions: int, directory: Path, progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Back up a store while decisions are made, and serve the copy.

    Args:
        size: The size of the store in bytes.
        decisions: Decisions per second during the backup.
        directory: Where the stores are written.
        progress: Called with the current step.

    Returns:
        One row for each figure, with its bar and whether it is reached.
    """
    store, copy = str(directory / "large.db"), directory / "copy.db"
    progress("filling the store")
    service = Process(directory, store)
    key = service.key
    open_campaign(service.url, key)
    service.stop()
    fill(store, size)

    # Back up while some clients are compared and many connections make decisions.
    service = Process(directory, store)
    witness, stop, answered = Witness(service.url, key, "chat", 2), threading.Event(), list[int]()
    thread = threading.Thread(target=keep_busy, args=(service.url, key, decisions, stop, answered))
    thread.start()
    try:
        time.sleep(3.0)
        progress(f"backup under {decisions:,} decisions a second")
        answered.clear()
        found, findings = checked_backup(store, copy, witness)
    finally:
        stop.set()
        witness.stop()
        thread.join()
        service.stop()

    # Serve the copy.
    progress("serving the copy")
    restored = Process(directory, str(copy))
    status = call(restored.url, key, "POST", "/v1/campaigns/chat/decisions", {})[0]
    restored.stop()
    rate = sum(answered) / found.seconds / 2
    return [
        row(f"seconds of a backup of {found.size / 2**20:,.0f} MiB", "seconds", found.seconds, LIMIT, most=True),
        row("decisions during the backup", "1/s", rate, 0.9 * decisions),
        row("bytes written for each byte of the store", "", found.written / found.size, MOST_WRITTEN, most=True),
        row("acknowledged decisions missing in the copy", "", findings.lost, 0, most=True),
        row("the copy verifies and replays", "", float(findings.clean), 1),
        row("the copy decides when it is served", "", float(status == 200), 1),
    ]  # fmt: skip


def keep_busy(url: str, key: str, decisions: int, stop: threading.Event, answered: list[int]) -> None:
    """Make decisions at a steady rate until stopped; each is told, which is another request."""
    while not stop.is_set():
        answered.append(run_load(url, key, 1.0, 32, rate=2.0 * decisions).requests)


def fill(path: str, size: int) -> None:
    """Add audit entries to a store until its file has about a size."""
    entry = AuditRow(0, "0123456789ab", "POST /v1/campaigns/chat/grants", "chat", "x" * ENTRY)
    query = "INSERT INTO audit (at, who, action, campaign, detail) VALUES (?, ?, ?, ?, ?)"
    with closing(sqlite3.connect(path)) as file, file:
        file.executemany(query, itertools.repeat(entry, size // ENTRY))
