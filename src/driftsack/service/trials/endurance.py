"""Many events over many campaigns: memory must not grow, nor the cost of an event."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from driftsack.service import messages as ms
from driftsack.service.campaign import Campaign, Now
from driftsack.service.config import Config
from driftsack.service.journal import START
from driftsack.service.owned import Owned, ServiceClock
from driftsack.service.recovery import encode_config, recover
from driftsack.service.store import open_store
from driftsack.service.store.interface import Owner, Store
from driftsack.service.trials.processes import CONFIG

CAMPAIGNS: Final = 100
SAMPLES: Final = 20
WARM: Final = 5  # samples: every campaign remembers as many settled decisions as it ever will
MOST_GROWTH: Final = 1.05
MOST_COST: Final = 1.25  # the time of an event varies by this much on a busy machine
AT_ONCE: Final = 100  # requests of a campaign in one commit
SNAPSHOT_EVERY: Final = 10_000
REBUILT: Final = 3  # campaigns
PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def endure(events: int, folder: Path, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Let campaigns handle events in turn, each commit durable, and sample memory and processor time.

    Args:
        events: The number of events of all campaigns together.
        folder: Where the store goes.
        progress: Called with what is being done.

    Returns:
        A row for the memory and one for the cost of an event: the median of the last samples beside that of the first
        ones after the warm-up, and whether it grew. A third one for the events that were handled, beside those in the
        journals, from which some campaigns are rebuilt.
    """
    with closing(open_store(str(folder / "endurance.db"))) as store:
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
    """A campaign of the default policy."""
    config = Config(**{**CONFIG, "policy": {"policy": "Adaptive"}})
    owned = Owned(name, 1, Campaign.open(config, Now(0, 0)), START, ServiceClock(), grace=0)
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
    """Whether the journals have what was handled, and give the same campaigns again."""
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
    """Memory of this process, in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 2**20


def row(figure: str, unit: str, samples: list[float], most: float) -> dict[str, Any]:
    """The growth of a figure over its samples.

    Args:
        figure: What was sampled.
        unit: Its unit.
        samples: The samples, in order.
        most: By which factor it may grow.

    Returns:
        The row.
    """
    first, last = sorted(samples[WARM : 2 * WARM])[WARM // 2], sorted(samples[-WARM:])[WARM // 2]
    kept = "yes" if last / first <= most else "no"
    found = {"figure": figure, "unit": unit, "first": first, "last": last}
    return {**found, "growth": last / first, "at most": most, "kept": kept}
