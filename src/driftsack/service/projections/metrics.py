"""Metrics in the text format of Prometheus, with stable names (docs/metrics.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from driftsack.service.projections.track import Track
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
TALLIES: Final = {
    "told": "Told outcomes.",
    "late": "Outcomes that arrived after the end of their lease.",
    "expired": "Decisions whose outcome did not arrive within the lease.",
    "overruns": "Decisions that cost more than their reservation.",
    "refused": "Decisions with an outcome that was refused because its cost is absurd.",
    "skipped": "Requests that the policy skipped.",
}
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
    found.gauge("driftsack_ready", "Whether every campaign is in memory.", int(keeper.is_ready))
    found.gauge("driftsack_damaged_campaigns", "Campaigns whose journal is damaged.", len(keeper.damaged))
    for name, owned in sorted(keeper.owned.items()):
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
    behind = book.seq - owned.durable
    found.gauge("driftsack_campaign_lag_events", "Events that are not durable yet.", behind, campaign=name)


def add_track(found: Families, name: str, track: Track) -> None:
    """Add the metrics of a campaign's journal."""
    for arm, count in zip(track.arms, track.chosen, strict=True):
        found.counter("driftsack_decisions", "Decisions, by arm.", count, campaign=name, arm=arm)
    for kind, says in TALLIES.items():
        found.counter(f"driftsack_campaign_{kind}", says, getattr(track, kind), campaign=name)
    says = "Detected changes in the outcomes of an arm."
    found.counter("driftsack_drift_alarms", says, track.alarm_count, campaign=name)
