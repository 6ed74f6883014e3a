"""Metrics in the text format of Prometheus, with stable names (docs/metrics.md)."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from driftsack.service.domain.refusals import Refusal
from driftsack.service.projections.track import Track
from driftsack.service.projections.watcher import Watcher
from driftsack.service.runtime.keeper import Keeper
from driftsack.service.runtime.owned import Owned

BUDGETS: Final = {
    "granted": "The budget of the current season.",
    "reserved": "The amount reserved for pending decisions.",
    "spent": "The amount spent in the current season.",
    "overrun": "The amount spent beyond reservations in the current season.",
}
COUNTS: Final = {
    "commits": "Commits to the store.",
    "events": "Committed events.",
    "snapshots": "Snapshots written.",
    "recoveries": "Campaigns rebuilt from the store.",
    "dropped": "Campaigns dropped from memory because a commit failed.",
    "divergences": "Decisions for which a recovery computed a different arm.",
}
WEBHOOKS: Final = {
    "webhooks_sent": "Alerts that a webhook has accepted.",
    "webhooks_retried": "Alerts that a webhook has not accepted at once.",
    "webhooks_dropped": "Alerts that a webhook has never accepted.",
}
TALLIES: Final = {
    "told": "Told outcomes.",
    "late": "Outcomes that arrived after the end of their lease.",
    "expired": "Decisions whose outcome did not arrive within the lease.",
    "overruns": "Decisions that cost more than their reservation.",
    "refused": "Decisions with an outcome that was refused because its cost is absurd.",
    "skipped": "Requests that the policy skipped.",
}
READING: Final = 0.5  # seconds in which the journals are read for one answer
QUICK: Final = 0.1  # seconds that metrics may take without being kept
KEPT: Final = 10  # so that they never take more than a tenth of the time of a processor
STATES: Final = ("watching", "active", "paused", "draining", "closed")
Family = GaugeMetricFamily | CounterMetricFamily


class Families(Collector):
    """The metrics at one moment, grouped by name."""

    def __init__(self) -> None:
        self._found: dict[str, Family] = {}

    def gauge(self, name: str, says: str, value: float, **labels: str) -> None:
        """Add a gauge."""
        self._add(GaugeMetricFamily(name, says, labels=list(labels)), value, labels)

    def counter(self, name: str, says: str, value: float, **labels: str) -> None:
        """Add a counter; ``_total`` is appended to its name."""
        self._add(CounterMetricFamily(name, says, labels=list(labels)), value, labels)

    def _add(self, family: Family, value: float, labels: dict[str, str]) -> None:
        self._found.setdefault(family.name, family).add_metric(list(labels.values()), value)

    def collect(self) -> Iterable[Family]:
        """Return all metrics."""
        return self._found.values()


def exposition(keeper: Keeper, tracks: dict[str, Track]) -> str:
    """Return the metrics in the text format of Prometheus.

    Args:
        keeper: The campaigns of this process.
        tracks: The tracks of the campaigns that it owns.
    """
    found = Families()
    for name, says in COUNTS.items():
        found.counter(f"driftsack_{name}", says, keeper.counts[name])
    if keeper.alerts is not None:
        for name, says in WEBHOOKS.items():
            found.counter(f"driftsack_{name}", says, keeper.alerts.counts[name])
    found.gauge("driftsack_ready", "Whether requests are answered.", int(keeper.is_ready))
    found.gauge("driftsack_unloaded_campaigns", "Campaigns that are not in memory yet.", len(keeper.unloaded))
    found.gauge("driftsack_damaged_campaigns", "Campaigns that cannot be read.", len(keeper.damaged))
    for name in sorted(keeper.damaged):
        found.gauge("driftsack_campaign_damaged", "1 for a campaign that cannot be read.", 1, campaign=name)
    for name, owned in sorted(keeper.owned.copy().items()):
        add_owned(found, name, owned)
    for name, track in sorted(tracks.items()):
        add_track(found, name, track)
    registry = CollectorRegistry()
    registry.register(found)
    registry.register(keeper.commits.seconds)
    return generate_latest(registry).decode()


def add_owned(found: Families, name: str, owned: Owned) -> None:
    """Add the metrics of a campaign in memory."""
    campaign = owned.campaign
    book, account = campaign.book, campaign.book.account
    for j, (resource, exponent) in enumerate(zip(campaign.resources, campaign.exponents, strict=True)):
        for kind, says in BUDGETS.items():
            amount = getattr(account, kind)[j] * 10.0**-exponent
            found.gauge(f"driftsack_budget_{kind}", says, amount, campaign=name, resource=resource)
        if campaign.prices is not None:
            says = "The shadow price at the latest decision."
            found.gauge("driftsack_budget_price", says, campaign.prices[j], campaign=name, resource=resource)
    for state in STATES:
        is_now = int(book.state == state)
        found.gauge("driftsack_campaign_state", "1 for the current state.", is_now, campaign=name, state=state)
    found.gauge("driftsack_campaign_pending", "Pending decisions.", book.pending, campaign=name)
    found.counter("driftsack_campaign_observed", "Observations of the user's own rule.", book.observed, campaign=name)
    says = "Requests that were skipped only because the money was reserved for pending decisions."
    blocked = campaign.blocked + campaign.learner.blocked
    found.counter("driftsack_campaign_blocked", says, blocked, campaign=name)
    found.gauge("driftsack_campaign_reward", "The sum of rewards.", book.reward, campaign=name)
    for rule, accounts, refused in zip(campaign.limits.rules, campaign.limits.accounts, campaign.limited, strict=True):
        labels = {"campaign": name, "by": rule.limit.by, "every": rule.limit.every or ""}
        found.gauge("driftsack_limit_labels", "Labels with an account in memory.", len(accounts), **labels)
        says = "Requests that a limit refused."
        found.counter("driftsack_limit_refused", says, refused, **labels)
    behind = book.seq - owned.durable
    found.gauge("driftsack_campaign_lag_events", "Events that are not durable yet.", behind, campaign=name)


def add_track(found: Families, name: str, track: Track) -> None:
    """Add the metrics of a campaign's journal."""
    for arm, count in zip(track.arms, track.chosen, strict=True):
        found.counter("driftsack_decisions", "Decisions, by arm.", count, campaign=name, arm=arm)
    for kind, says in TALLIES.items():
        found.counter(f"driftsack_campaign_{kind}", says, getattr(track, kind), campaign=name)
    for (number, percent), count in sorted(track.crossed.items(), key=str):
        limit = None if number is None else track.config.limits[number]
        labels = {"by": "", "every": ""} if limit is None else {"by": limit.by, "every": limit.every or ""}
        says = "Thresholds of budgets and limits that were crossed."
        found.counter("driftsack_thresholds_crossed", says, count, campaign=name, percent=str(percent), **labels)
    says = "Detected changes in the outcomes of an arm."
    found.counter("driftsack_drift_alarms", says, track.alarm_count, campaign=name)


class Metrics:
    """The metrics of a service, kept for a while if they took long.

    Args:
        keeper: The campaigns of this process.
        watcher: The projections of their journals.
    """

    def __init__(self, keeper: Keeper, watcher: Watcher) -> None:
        self._keeper, self._watcher = keeper, watcher
        self._lock = asyncio.Lock()
        self._text, self._until = "", 0.0

    async def text(self) -> str:
        """Return the metrics in the text format of Prometheus; they are at most ``KEPT`` times as old as they took."""
        async with self._lock:
            begin = time.monotonic()
            if begin >= self._until:
                tracks = await self._tracks(begin + READING)
                self._text = await self._keeper.in_thread(exposition, self._keeper, tracks)
                end = time.monotonic()
                self._until = end + KEPT * (end - begin) if end - begin > QUICK else 0.0
            return self._text

    async def _tracks(self, until: float) -> dict[str, Track]:
        """Bring the tracks of campaigns with new events up to date; after some time, the others stay as they are."""
        tracks = self._watcher.tracks
        for name, owned in list(self._keeper.owned.items()):
            if name not in tracks or tracks[name].seq < owned.durable:
                with contextlib.suppress(Refusal):
                    await self._watcher.track(name, goes=2)
            if time.monotonic() > until:
                break
        return {name: tracks[name] for name in list(self._keeper.owned) if name in tracks}
