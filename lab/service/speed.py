"""The speed of the service and of an application that does nothing, measured in turns in one run."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import Campaign, Now
from driftsack.service.domain.config import Config
from driftsack.service.domain.journal import START
from driftsack.service.runtime.owned import Owned, ServiceClock
from driftsack.service.runtime.recovery import encode_config, recover
from driftsack.service.store import open_store
from driftsack.service.store.interface import Owner
from lab.service.load import run_load
from lab.service.processes import CONFIG, Process, call, open_campaign
from tests.support.local_postgres import LocalPostgres

CONNECTIONS = 64
SLOWER = 4.0  # milliseconds that commits take longer on the slower disk
Progress = Callable[[str], None]


class Plan(NamedTuple):
    """The lengths of the measurements."""

    seconds: float = 5.0  # of each measurement
    repeats: int = 3  # of each pair of measurements
    events: int = 1_000_000  # in the recovered journal
    snapshot_every: int = 10_000  # events


QUICK = Plan(1.0, 2, 20_000, 5_000)


def measure(plan: Plan, directory: Path, progress: Progress, postgres: bool = True) -> list[dict[str, Any]]:
    """Measure throughput, latency, exchange and recovery.

    Args:
        plan: The lengths of the measurements.
        directory: A directory on the measured disk.
        progress: Called with the current measurement.
        postgres: Whether to measure on PostgreSQL, too.

    Returns:
        One row for each figure, with its bar and whether it is reached.
    """
    rows = _measure_store(plan, directory, progress, str(directory / "speed.db"), "SQLite", 0.35)
    rows.append(_direct_path(plan, directory, progress))
    rows += _on_slower_disk(plan, directory, progress, str(directory / "slower.db"), "SQLite", pause=SLOWER)
    if postgres:
        server = LocalPostgres(Path(tempfile.mkdtemp(dir=directory)))
        try:
            rows += _measure_store(plan, directory, progress, server.new_database(), "PostgreSQL", 0.25)
            server.slow_down(SLOWER)  # so the service itself need not pause
            rows += _on_slower_disk(plan, directory, progress, server.new_database(), "PostgreSQL", pause=0.0)
        finally:
            server.remove()
    progress(f"recovery of {plan.events:,} events")
    seconds = recovery_seconds(directory, plan.events, plan.snapshot_every)
    rows.append(row(f"recovery, {plan.events:,} events", "seconds", seconds, 3.0, most=True))
    return rows


def row(what: str, unit: str, found: float, bar: float, most: bool = False) -> dict[str, Any]:
    """Return the row of a figure and its bar."""
    reached = found <= bar if most else found >= bar
    return {"figure": what, "unit": unit, "found": found, "bar": bar, "reached": "yes" if reached else "no"}


def fdatasync_seconds(directory: Path) -> float:
    """The median time of writing and syncing a page."""
    times = []
    with (directory / "sync").open("wb") as file:
        for _ in range(200):
            begin = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def _measure_store(
    plan: Plan, directory: Path, progress: Progress, store: str, name: str, share: float
) -> list[dict[str, Any]]:
    """Measure throughput and latency on one kind of store."""
    nothing, service = Process(directory, None), Process(directory, store)
    try:
        open_campaign(service.url, service.key)
        run_load(service.url, service.key, plan.seconds / 2, CONNECTIONS)
        # Throughput, in turns with an application that does nothing.
        ratios, rates, floors = [], [], []
        for turn in range(plan.repeats):
            progress(f"{name}: throughput {turn + 1}/{plan.repeats}")
            floor = run_load(nothing.url, "", plan.seconds, CONNECTIONS).rate
            rate = run_load(service.url, service.key, plan.seconds, CONNECTIONS).rate
            ratios.append(rate / floor)
            rates.append(rate)
            floors.append(floor)
        rate = statistics.median(rates)
        progress(f"{name}: latency")
        # Latency of a single client and at half the rate.
        beside_one = _beside_one(plan, directory, service, name, rate)
        half = run_load(service.url, service.key, plan.seconds, CONNECTIONS, rate=rate / 2)
        progress(f"{name}: exchange")
        events = exchange_rate(service, plan.seconds)
        return [
            row(f"{name}: asked and told, 64 connections", "requests/s", rate, 0.0),
            row(f"{name}: share of doing nothing ({statistics.median(floors):,.0f}/s)", "", _middle(ratios), share),
            *beside_one,
            row(f"{name}: p99 at half the rate", "ms", 1e3 * half.quantile(0.99), 100.0, most=True),
            row(f"{name}: exchange", "events/s", events, 5000.0),
            row(f"{name}: start until ready, warm cache", "seconds", service.took, 3.0, most=True),
        ]  # fmt: skip
    finally:
        nothing.stop()
        service.stop()


def _direct_path(plan: Plan, directory: Path, progress: Progress) -> dict[str, Any]:
    """Compare the service with itself without the direct path, in turns."""
    usual = Process(directory, str(directory / "direct.db"))
    other = Process(directory, str(directory / "asgi.db"), direct=False)
    services = (usual, other)
    rates: tuple[list[float], list[float]] = ([], [])
    try:
        for service in services:
            open_campaign(service.url, service.key)
            run_load(service.url, service.key, plan.seconds / 2, CONNECTIONS)
        for turn in range(plan.repeats):
            progress(f"direct path {turn + 1}/{plan.repeats}")
            for service, found in zip(services, rates, strict=True):
                found.append(run_load(service.url, service.key, plan.seconds, CONNECTIONS).rate)
    finally:
        for service in services:
            service.stop()
    ratio = _middle([direct / asgi for direct, asgi in zip(*rates, strict=True)])
    return row(f"SQLite: beside ASGI for every request ({_middle(rates[1]):,.0f}/s)", "times", ratio, 1.0)


def _on_slower_disk(
    plan: Plan, directory: Path, progress: Progress, store: str, name: str, pause: float
) -> list[dict[str, Any]]:
    """Measure with delayed commits what depends on the disk: on a fast disk 64 connections wait for the processor."""
    progress(f"{name}: disk that takes {SLOWER:g} ms longer")
    service = Process(directory, store, slower=pause)
    try:
        open_campaign(service.url, service.key)
        run_load(service.url, service.key, plan.seconds / 2, CONNECTIONS)
        rate = run_load(service.url, service.key, plan.seconds, CONNECTIONS).rate
        return _beside_one(plan, directory, service, f"{name}, slower disk", rate, SLOWER / 1e3)
    finally:
        service.stop()


def _beside_one(
    plan: Plan, directory: Path, service: Process, name: str, rate: float, slower: float = 0.0
) -> list[dict[str, Any]]:
    """Compare many connections with one, and the latency of that one with fdatasync before and after it."""
    before = fdatasync_seconds(directory)
    single = run_load(service.url, service.key, plan.seconds, 1)
    sync = slower + (before + fdatasync_seconds(directory)) / 2
    beside = f"{name}: p50, one connection, beside fdatasync ({1e3 * sync:.2f} ms)"
    return [
        row(f"{name}: beside one connection ({single.rate:,.0f}/s)", "times", rate / single.rate, 10.0),
        row(beside, "times", single.quantile(0.5) / sync, 2.0, most=True),
    ]


def _middle(values: list[float]) -> float:
    return statistics.median(values)


def exchange_rate(service: Process, seconds: float) -> float:
    """Events per second in exchanges of 250 outcomes and 250 decisions."""
    tells: list[dict[str, Any]] = []
    events, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        _, found = call(service.url, service.key, "POST", "/v1/campaigns/chat/exchange", {"tells": tells, "ask": 250})
        events += len(tells) + len(found["decisions"])
        made = [each["decision"] for each in found["decisions"] if not each["skipped"]]
        tells = [{"decision": number, "reward": 1, "costs": {"usd": "0.02"}} for number in made]
    return events / (time.perf_counter() - begin)


def recovery_seconds(directory: Path, events: int, snapshot_every: int) -> float:
    """Seconds to recover a campaign with loaded kernels; half of the events between two snapshots are replayed."""
    with closing(open_store(str(directory / "recovery.db"))) as store:
        config = Config(**CONFIG)
        campaign = Campaign.open(config, Now(0, 0))
        owned = Owned("chat", 1, campaign, START, ServiceClock(), grace=0)
        owned.forget_accounts()
        store.create(owned.collect(10**12)[0], encode_config(config), Owner("trial"))
        total = events + snapshot_every // 2
        while campaign.book.seq < total:
            for _ in range(500):
                asked = campaign.handle(ms.Ask(), owned.now())
                if not asked.skipped:
                    campaign.handle(ms.Tell(1.0, {"usd": "0.02"}), owned.now(), number=asked.decision)
            segment, snapshot = owned.collect(snapshot_every)
            store.append([segment])
            if snapshot is not None:
                store.save_snapshot("chat", snapshot)
        found = store.claim("chat", Owner("trial"))
        if found is None:
            raise RuntimeError("the campaign of the trial is gone")
        begin = time.perf_counter()
        again = recover(store, found)
        seconds = time.perf_counter() - begin
        if again.learner.state_hash() != campaign.learner.state_hash():
            raise RuntimeError("the recovered campaign differs")
        return seconds
