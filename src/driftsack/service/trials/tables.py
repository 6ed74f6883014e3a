"""The tables of ``driftsack bench --serve`` and ``driftsack bench --faults``."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from driftsack.service.trials.endurance import endure
from driftsack.service.trials.faults import run_faults
from driftsack.service.trials.speed import QUICK, Plan, measure

PRECISE = 100  # numbers below it have three digits, others none after the point


class Table(NamedTuple):
    """A table of results.

    Attributes:
        title: A sentence.
        rows: Its rows.
        machine: Where it was measured, and how busy that machine was.
        passed: Whether every bar was reached or every promise kept.
        command: The command that writes it.
    """

    title: str
    rows: list[dict[str, Any]]
    machine: str
    passed: bool
    command: str

    def to_markdown(self) -> str:
        """The table as a page.

        Returns:
            Markdown.
        """
        names = list(self.rows[0])
        lines = [f"# {self.title.rstrip('.')}", "", f"Written by `{self.command}`. {self.machine}", ""]
        lines += ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
        lines += ["| " + " | ".join(shown(row[name]) for name in names) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"


def shown(value: Any) -> str:
    """A cell."""
    if isinstance(value, float) and value < PRECISE:
        return f"{value:.3g}"
    return f"{value:,.0f}" if isinstance(value, (int, float)) else str(value)


def machine(before: tuple[float, float, float]) -> str:
    """Where something was measured."""
    python = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    return f"{platform.system()}, {python}; load average {before[0]:.1f} before and {os.getloadavg()[0]:.1f} after."


def speed_table(quick: bool, folder: Path, progress: Callable[[str], None]) -> Table:
    """Measure the service.

    Args:
        quick: Whether to measure for a short time.
        folder: A folder on the disk that is measured.
        progress: Called with what is being done.

    Returns:
        The table.
    """
    plan = QUICK if quick else Plan()
    return _tried("How fast the service is.", "driftsack bench --serve", lambda: measure(plan, folder, progress))


def endurance_table(events: int, folder: Path, progress: Callable[[str], None]) -> Table:
    """Let many campaigns handle many events.

    Args:
        events: The number of events.
        folder: Where the store goes.
        progress: Called with what is being done.

    Returns:
        The table.
    """
    title, command = f"After {events:,} events over 100 campaigns.", f"driftsack bench {events} --endurance"
    return _tried(title, command, lambda: endure(events, folder, progress))


def faults_table(kills: int, folder: Path, progress: Callable[[str], None]) -> Table:
    """Try the service while things break.

    Args:
        kills: How often the service is killed under load; the other faults are repeated in proportion.
        folder: Where stores and logs go.
        progress: Called with what is being done.

    Returns:
        The table.
    """
    title, command = "Fault injection in the service.", f"driftsack bench {kills} --faults"
    return _tried(title, command, lambda: run_faults(kills, folder, progress))


def _tried(title: str, command: str, run: Callable[[], list[dict[str, Any]]]) -> Table:
    """The table of a run; the last column of each row says whether it passed."""
    before = os.getloadavg()
    rows = run()
    return Table(title, rows, machine(before), all(list(row.values())[-1] == "yes" for row in rows), command)
