"""Metrics in the text format of Prometheus, under names that stay as they are (docs/metrics.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from driftsack.service.dashboard.track import Track
from driftsack.service.owned import Owned
from driftsack.service.owner import Keeper

BUDGETS: Final = {
    "granted": "The budget of the present season.",
    "reserved": "What is reserved for decisions that wait.",
    "spent": "What was spent in the present season.",
    "overrun": "What was spent beyond reservations in the present season.",
}
COUNTS: Final = {
    "commits": "Commits to the store.",
    "events": "Events that were committed.",
    "snapshots": "Snapshots that were kept.",
    "recoveries": "Campaigns that were rebuilt from the store.",
    "dropped": "Campaigns that were dropped from memory because a commit failed.",
    "divergences": "Decisions that a recovery would have made otherwise.",
}
TALLIES: Final = {
    "told": "Outcomes that were told.",
    "late": "Outcomes that came after their lease had ended.",
    "expired": "Decisions whose outcome did not come within its lease.",
    "overruns": "Decisions that cost more than was reserved.",
    "skipped": "Requests that the policy skipped.",
}
STATES: Final = ("watching", "active", "paused", "draining", "closed")
Family = GaugeMetricFamily | CounterMetricFamily


class Families(Collector):
    """Metrics at one moment, those of one name together."""

    def __init__(self) -> None:
        self._found: dict[str, Family] = {}

    def gauge(self, name: str, says: str, value: float, **labels: str) -> None:
        """Add a value that goes up and down."""
        self._add(GaugeMetricFamily(name, says, labels=list(labels)), value, labels)

    def counter(self, name: str, says: str, value: float, **labels: str) -> None:
        """Add a value that only goes up; ``_total`` is added to its name."""
        self._add(CounterMetricFamily(name, says, labels=list(labels)), value, labels)

    def _add(self, family: Family, value: float, labels: dict[str, str]) -> None:
        self._found.setdefault(family.name, family).add_metric(list(labels.values()), value)

    def collect(self) -> Iterable[Family]:
        """Every metric."""
        return self._found.values()


def exposition(keeper: Keeper, tracks: dict[str, Track]) -> str:
    """The metrics as text.

    Args:
        keeper: The campaigns.
        tracks: What the journals of its own campaigns say.

    Returns:
        In the text format of Prometheus.
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
    """What the owner of a campaign knows."""
    campaign = owned.campaign
    book, account = campaign.book, campaign.book.account
    for j, (resource, exponent) in enumerate(zip(campaign.resources, campaign.exponents, strict=True)):
        for kind, says in BUDGETS.items():
            amount = getattr(account, kind)[j] * 10.0**-exponent
            found.gauge(f"driftsack_budget_{kind}", says, amount, campaign=name, resource=resource)
        if campaign.prices is not None:
            says = "What one more unit would earn, by the latest decision."
            found.gauge("driftsack_budget_price", says, campaign.prices[j], campaign=name, resource=resource)
    for state in STATES:
        is_now = int(book.state == state)
        found.gauge("driftsack_campaign_state", "1 for the present state.", is_now, campaign=name, state=state)
    found.gauge("driftsack_campaign_pending", "Decisions that wait for an outcome.", book.pending, campaign=name)
    found.counter("driftsack_campaign_observed", "Observations of the user's own rule.", book.observed, campaign=name)
    found.gauge("driftsack_campaign_reward", "The sum of rewards.", book.reward, campaign=name)
    behind = book.seq - owned.durable
    found.gauge("driftsack_campaign_lag_events", "Events that are not durable yet.", behind, campaign=name)


def add_track(found: Families, name: str, track: Track) -> None:
    """What the journal of a campaign says."""
    for arm, count in zip(track.arms, track.chosen, strict=True):
        found.counter("driftsack_decisions", "Decisions, by arm.", count, campaign=name, arm=arm)
    for kind, says in TALLIES.items():
        found.counter(f"driftsack_campaign_{kind}", says, getattr(track, kind), campaign=name)
    says = "Changes of the outcomes of an arm that were detected."
    found.counter("driftsack_drift_alarms", says, track.alarm_count, campaign=name)
