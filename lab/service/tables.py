"""The tables of ``python -m lab serve``, ``faults`` and ``endurance``."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lab.service.backups import back_up_under_load
from lab.service.context_speed import measure_contexts
from lab.service.endurance import endure
from lab.service.faults import run_faults
from lab.service.labels import measure_labels
from lab.service.many_campaigns import measure_many
from lab.service.neighbours import measure_neighbours
from lab.service.partition import run_partitions
from lab.service.speed import QUICK, Plan, measure

DECISIONS = 500  # a second during a backup
LOOKED = 10.0  # seconds of each load beside a viewer
PRECISE = 100  # numbers below it have three digits, others none after the point


class Table(NamedTuple):
    """A table of results."""

    title: str  # a sentence
    rows: list[dict[str, Any]]
    machine: str  # with its load before and after
    passed: bool  # whether every bar was reached and every promise kept
    command: str  # that repeats the trial

    def to_markdown(self) -> str:
        """Format the table as a Markdown page."""
        names = list(self.rows[0])
        lines = [f"# {self.title.rstrip('.')}", "", f"Written by `{self.command}`. {self.machine}", ""]
        lines += ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
        lines += ["| " + " | ".join(shown(row[name]) for name in names) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"


def shown(value: Any) -> str:
    """Format a cell."""
    if isinstance(value, float) and value < PRECISE:
        return f"{value:.3g}"
    return f"{value:,.0f}" if isinstance(value, (int, float)) else str(value)


def machine(before: tuple[float, float, float]) -> str:
    """Describe the machine, with its load average before and after the trial."""
    python = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    return f"{platform.system()}, {python}; load average {before[0]:.1f} before and {os.getloadavg()[0]:.1f} after."


def speed_table(quick: bool, directory: Path, progress: Callable[[str], None]) -> Table:
    """Measure the speed of the service on the disk of a directory."""
    plan = QUICK if quick else Plan()
    return _tried("How fast the service is.", "python -m lab serve", lambda: measure(plan, directory, progress))


def backup_table(megabytes: int, directory: Path, progress: Callable[[str], None]) -> Table:
    """Back up a store of a size under load."""
    title, command = "A backup under load.", f"python -m lab backup {megabytes}"
    return _tried(title, command, lambda: back_up_under_load(2**20 * megabytes, DECISIONS, directory, progress))


def many_table(campaigns: int, directory: Path, progress: Callable[[str], None]) -> Table:
    """Measure a service with many campaigns."""
    title, command = "A service with many campaigns.", f"python -m lab many-campaigns {campaigns}"
    return _tried(title, command, lambda: measure_many(campaigns, LOOKED, directory, progress))


def contexts_table(seconds: float, turns: int, directory: Path, progress: Callable[[str], None]) -> Table:
    """Measure campaigns with features beside one without."""
    title, command = "Throughput with features.", "python -m lab context-speed"
    return _tried(title, command, lambda: measure_contexts(seconds, turns, directory, progress))


def routing_table(orders: int, directory: Path, progress: Callable[[str], None]) -> Table:
    """Route the prompts of the routing benchmark through the service."""
    from lab.routing.through_service import service_rows

    title, command = "Real prompts through the service, at 3e-4 dollars a request.", "python -m lab routing-service"
    return _tried(title, command, lambda: service_rows(orders, directory, progress))


def context_alarms_table(weeks: int, progress: Callable[[str], None]) -> Table:
    """Measure the alarms about the requests of a campaign."""
    from lab.service.context_alarms import TRIALS, WEEKS, alarm_rows

    title, command = "Alarms about the mix of requests.", "python -m lab context-alarms"
    return _tried(title, command, lambda: alarm_rows(WEEKS[:weeks], TRIALS[: max(weeks // 2, 2)], progress))


def neighbours_table(decisions: int, seconds: float, directory: Path, progress: Callable[[str], None]) -> Table:
    """Measure how much a key that hammers the service delays others."""
    title, command = "Beside a key that hammers the service.", f"python -m lab neighbours {decisions}"
    return _tried(title, command, lambda: measure_neighbours(decisions, seconds, directory, progress))


def labels_table(labels: int, progress: Callable[[str], None]) -> Table:
    """Measure a campaign with many labels."""
    title, command = f"A campaign with {labels:,} labels.", f"python -m lab labels {labels}"
    return _tried(title, command, lambda: measure_labels(labels, progress))


def endurance_table(events: int, directory: Path, progress: Callable[[str], None]) -> Table:
    """Let many campaigns handle many events."""
    title, command = f"After {events:,} events over 100 campaigns.", f"python -m lab endurance {events}"
    return _tried(title, command, lambda: endure(events, directory, progress))


def faults_table(kills: int, directory: Path, progress: Callable[[str], None]) -> Table:
    """Inject faults; ``kills`` is the number of kills, and the other faults are repeated in proportion."""
    title, command = "Fault injection in the service.", f"python -m lab faults {kills}"

    def run() -> list[dict[str, Any]]:
        return [*run_faults(kills, directory, progress), *run_partitions(-(-2 * kills // 15), directory, progress)]

    return _tried(title, command, run)


def _tried(title: str, command: str, run: Callable[[], list[dict[str, Any]]]) -> Table:
    """Run a trial and return its table; the last column of each row says whether it passed."""
    before = os.getloadavg()
    rows = run()
    return Table(title, rows, machine(before), all(list(row.values())[-1] == "yes" for row in rows), command)
