"""A million labels in one campaign: the memory that they take and give back, and how long the longest steps are.

A process of its own asks and tells once for each label, takes a snapshot, and lets the day end. Afterwards other labels
ask, which free the accounts that have ended.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from driftsack.service.domain import messages as ms
from driftsack.service.domain.calendar import DAY_MS
from driftsack.service.domain.campaign import Campaign, Now
from driftsack.service.domain.config import Config, Limit
from driftsack.service.runtime.keeper import SWEPT
from driftsack.service.runtime.snapshots import read_snapshot, write_snapshot
from lab.service.processes import CONFIG, TrialError
from lab.service.speed import Progress, row

MOST_MEMORY = 1024.0  # MiB for a million labels
MOST_STALL = 1000.0  # ms of a snapshot
START = 1_700_000_000_000
AT_ONCE = 1000  # events that are taken together, as a commit takes them


def measure_labels(labels: int, progress: Progress) -> list[dict[str, Any]]:
    """Measure a campaign with many labels in a process of its own.

    Args:
        labels: The number of labels.
        progress: Called with the current step.

    Returns:
        One row for each figure, with its bar and whether it is reached.
    """
    progress(f"asking with {labels:,} labels")
    command = [sys.executable, "-m", "lab.service.labels", str(labels)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TrialError(f"the process ended with code {done.returncode}: {done.stderr[-500:]}")
    found = json.loads(done.stdout)
    scale = labels / 10**6
    return [
        row("memory of the process without labels", "MiB", found["before"], MOST_MEMORY, True),
        row(f"with {labels:,} labels", "MiB", found["full"], MOST_MEMORY * max(scale, 1.0), True),
        row("and once a snapshot was taken", "MiB", found["snapshot memory"], MOST_MEMORY * max(scale, 1.0), True),
        row(
            "after their day has ended",
            "MiB",
            found["after"],
            found["before"] + 0.5 * (found["full"] - found["before"]),
            True,
        ),
        row("accounts after their day has ended", "", found["accounts"], 0.01 * labels, True),
        row("ask and tell with a label", "µs", found["pair"], 1000.0, True),
        row("a snapshot", "ms", found["snapshot"], MOST_STALL * max(scale, 1.0), True),
        row("its size", "MB", found["size"], 100.0 * max(scale, 1.0), True),
        row("reading it", "ms", found["read"], 3 * MOST_STALL * max(scale, 1.0), True),
        row("the longest of the steps that free accounts", "ms", found["sweep"], 100.0 * max(scale, 1.0), True),
    ]


def memory() -> float:
    """The resident memory of this process in MiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Call a function; return the milliseconds of the processor that it took, and its result."""
    begin = time.process_time()
    result = function()
    return 1000 * (time.process_time() - begin), result


def play(campaign: Campaign, labels: int, name: str, at: int) -> None:
    """Ask and tell once for each label."""
    for k in range(labels):
        now = Now(at + k // 100, at + k // 100 - START)
        made = campaign.handle(ms.Ask(labels={"user": f"{name}-{k:012}"}), now)
        if made.decision is not None and not made.skipped:
            campaign.handle(ms.Tell(1.0, {"usd": "0.02"}), now, number=made.decision)
        if len(campaign.events) >= AT_ONCE:
            campaign.take()


def run(labels: int) -> dict[str, float]:
    """Measure a campaign with many labels in this process."""
    config = Config(**{**CONFIG, "limits": [Limit("user", {"usd": "5"}, "day")]})
    campaign = Campaign.open(config, Now(START, 0))
    play(campaign, AT_ONCE, "first", START)
    gc.freeze()
    found = {"before": memory()}
    # Fill the accounts, and take a snapshot.
    took, _ = timed(lambda: play(campaign, labels, "user", START))
    found |= {"pair": 1000 * took / labels, "full": memory()}
    took, body = timed(lambda: write_snapshot(campaign))
    found |= {"snapshot": took, "snapshot memory": memory(), "size": len(body) / 1e6}
    found["read"], again = timed(partial(read_snapshot, config, body))
    if again.limits.live(campaign.book.at) != campaign.limits.live(campaign.book.at):
        raise TrialError("the snapshot has other accounts.")
    del again, body
    # Let the day end, and free what has ended as the keeper does.
    play(campaign, 1, "next", START + 2 * DAY_MS)
    at, steps = campaign.book.at, 2 * (labels + AT_ONCE) // SWEPT + 2
    found["sweep"] = max(timed(lambda: campaign.limits.sweep(at, SWEPT))[0] for _ in range(steps))
    gc.collect()
    return found | {"accounts": float(campaign.limits.size()), "after": memory()}


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]))))
