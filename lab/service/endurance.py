"""Many events in many campaigns: neither memory nor the cost of an event may grow."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from driftsack.service.domain import messages as ms
from driftsack.service.domain.campaign import Campaign, Now
from driftsack.service.domain.config import Config
from driftsack.service.domain.journal import START
from driftsack.service.runtime.owned import Owned, ServiceClock
from driftsack.service.runtime.recovery import encode_config, recover
from driftsack.service.store import open_store
from driftsack.service.store.interface import Owner, Store
from lab.service.processes import CONFIG

CAMPAIGNS: Final = 100
SAMPLES: Final = 20
WARM: Final = 5  # samples until every idempotency cache is full
MOST_GROWTH: Final = 1.05
MOST_COST: Final = 1.25  # the time of an event varies by this much on a busy machine
AT_ONCE: Final = 100  # requests of a campaign in one commit
SNAPSHOT_EVERY: Final = 10_000
REBUILT: Final = 3  # campaigns
PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def endure(events: int, directory: Path, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Let campaigns handle events in turn, each commit durable, and sample memory and processor time.

    Args:
        events: The total number of events.
        directory: Where the store is written.
        progress: Called with the number of events so far.

    Returns:
        A row that compares the handled events with the journals, from which some campaigns are rebuilt, and rows for
        memory and the cost of an event, which compare the last samples with the first ones after the warm-up.
    """
    with closing(open_store(str(directory / "endurance.db"))) as store:
        campaigns = [begun(store, f"c{k}") for k in range(CAMPAIGNS)]
        memory, cost, total = [], [], 0
        for sample in range(SAMPLES):
            progress(f"events, {sample * events // SAMPLES:,} of {events:,}")
            begin, handled = time.process_time(), 0
            while handled < events // SAMPLES:
                handled += sum(work(store, owned) for owned in campaigns)
            cost.append(1e6 * (time.process_time() - begin) / handled)
            memory.append(resident())
            total += handled
        journals = journal_row(store, campaigns, total)
    return [
        journals,
        row("memory, 100 campaigns", "MiB", memory, MOST_GROWTH),
        row("processor time of an event", "µs", cost, MOST_COST),
    ]


def begun(store: Store, name: str) -> Owned:
    """Open a campaign with the default policy."""
    config = Config(**{**CONFIG, "policy": {"policy": "Adaptive"}})
    clock = ServiceClock()
    owned = Owned(name, 1, Campaign.open(config, Now(clock.at(), 0)), START, clock, grace=0)
    owned.forget_accounts()
    store.create(owned.collect(SNAPSHOT_EVERY)[0], encode_config(config), Owner("endurance"))
    return owned


def work(store: Store, owned: Owned) -> int:
    """Ask and tell, commit, and return the number of events."""
    campaign, now = owned.campaign, owned.now()
    before = campaign.book.seq
    for _ in range(AT_ONCE // 2):
        asked = campaign.handle(ms.Ask(), now)
        if not asked.skipped:
            campaign.handle(ms.Tell(1.0, {"usd": "0.02"}), now, number=asked.decision)
    segment, snapshot = owned.collect(SNAPSHOT_EVERY)
    store.append([segment])
    owned.done(segment)
    if snapshot is not None:
        store.save_snapshot(owned.name, snapshot)
    return campaign.book.seq - before


def journal_row(store: Store, campaigns: list[Owned], handled: int) -> dict[str, Any]:
    """Check that the journals hold every event, and that campaigns rebuilt from them are the same."""
    rows = {row.name: row for row in store.campaigns()}
    written = sum(row.seq - 1 for row in rows.values())  # the first event opened the campaign
    same = all(
        recover(store, rows[owned.name]).learner.state_hash() == owned.campaign.learner.state_hash()
        for owned in campaigns[:REBUILT]
    )
    found = {"figure": "events handled, and in the journals", "unit": "", "first": handled, "last": written}
    kept = "yes" if same and handled == written > 0 else "no"
    return {**found, "growth": written / max(handled, 1), "at most": 1.0, "kept": kept}


def resident() -> float:
    """The resident memory of this process in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 2**20


def row(figure: str, unit: str, samples: list[float], most: float) -> dict[str, Any]:
    """Return the row of a sampled figure, which may grow by the factor ``most``."""
    first, last = sorted(samples[WARM : 2 * WARM])[WARM // 2], sorted(samples[-WARM:])[WARM // 2]
    kept = "yes" if last / first <= most else "no"
    found = {"figure": figure, "unit": unit, "first": first, "last": last}
    return {**found, "growth": last / first, "at most": most, "kept": kept}
