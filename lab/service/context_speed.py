"""The throughput of campaigns with features beside one without, measured in turns on one service.

On a busy machine the shares vary by a third from turn to turn. With 64 connections the processor time of the service is
the limit, so the processor time of a request, which hardly depends on other processes, is compared as well.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np

from driftsack.client import open_campaign
from lab.service.load import run_load
from lab.service.processes import Process
from lab.service.speed import CONNECTIONS, Progress, row

BODIES = 200  # different requests
TELL = b'{"reward":1,"costs":{"usd":"0.02","seconds":"0.5"}}'
COMMON: dict[str, Any] = {
    "arms": ["one", "two", "three", "four", "five"],
    "budget": {"usd": "100000000", "seconds": "3000000000"},
    "cost_max": {"usd": "0.1", "seconds": "2"},
    "horizon": 10**9,
}
KINDS = [f"kind{k}" for k in range(11)]
NUMBERS = [f"number{k}" for k in range(20)]
SEEING = {"numbers": NUMBERS, "categories": {"kind": KINDS}}  # 20 + 11 + 1 encoded features
EMBEDDED = {"embeddings": {"prompt": 384}, "project": 32}
CAMPAIGNS = {"plain": None, "features": SEEING, "embedded": EMBEDDED}
BARS = {"features": 0.75, "embedded": 0.6}


def bodies(kind: str) -> list[bytes]:
    """Return requests of a campaign, as clients send them."""
    rng, found = np.random.default_rng(0), []
    for _ in range(BODIES):
        if kind == "features":
            numbers = dict(zip(NUMBERS, rng.lognormal(size=len(NUMBERS)).round(4).tolist(), strict=True))
            found.append({"context": {**numbers, "kind": str(rng.choice(KINDS))}})
        elif kind == "embedded":
            found.append({"context": {"prompt": (rng.standard_normal(384) / 20).round(6).tolist()}})
        else:
            found.append({})
    return [json.dumps(body).encode() for body in found]


def measure_contexts(seconds: float, turns: int, directory: Path, progress: Progress) -> list[dict[str, Any]]:
    """Measure the throughput of three campaigns in turns.

    Args:
        seconds: The duration of each load.
        turns: The number of turns; each load has the same neighbours, so that a busy machine slows down all of them.
        directory: A directory on the measured disk.
        progress: Called with the current measurement.

    Returns:
        One row for each figure.
    """
    service = Process(directory, str(directory / "contexts.db"))
    rates: dict[str, list[float]] = {name: [] for name in CAMPAIGNS}
    costs: dict[str, list[float]] = {name: [] for name in CAMPAIGNS}  # seconds of the processor for each request
    try:
        for name, features in CAMPAIGNS.items():
            open_campaign(service.url, service.key, name, COMMON | ({"features": features} if features else {}))
        for turn in range(-1, turns):  # the first one warms up
            for name in CAMPAIGNS:
                progress(f"{name}, turn {turn + 1}/{turns}")
                asks, before = tuple(bodies(name)), service.processor_seconds()
                found = run_load(service.url, service.key, seconds, CONNECTIONS, campaign=name, asks=asks, told=TELL)
                if found.failures:
                    raise RuntimeError(f"{found.failures} requests to {name} failed")
                if turn >= 0:
                    rates[name].append(found.rate)
                    costs[name].append((service.processor_seconds() - before) / found.requests)
    finally:
        service.stop()
    plain, rows = "without features, 5 arms and 2 budgets", []
    rows.append(row(plain, "requests/s", statistics.median(rates["plain"]), 0.0))
    rows.append(row(f"{plain}: processor", "µs a request", 1e6 * statistics.median(costs["plain"]), 0.0))
    for name, what in (("features", "32 features"), ("embedded", "384 numbers projected to 32")):
        shares = [one / other for one, other in zip(rates[name], rates["plain"], strict=True)]
        cheaper = [other / one for one, other in zip(costs[name], costs["plain"], strict=True)]
        rows.append(row(f"{what}: throughput beside it", "", statistics.median(shares), BARS[name]))
        rows.append(row(f"{what}: processor time beside it, inverse", "", statistics.median(cheaper), BARS[name]))
    return rows
