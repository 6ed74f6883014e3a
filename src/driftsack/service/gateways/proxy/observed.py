"""What the proxy shows of itself: an access log with one line for each request, and metrics for Prometheus."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
access: Final = logging.getLogger("driftsack.proxy.access")


@dataclass
class Journey:
    """What is logged of a request.

    Attributes:
        request_id: Its id, which the answer has, too.
        format: Its format.
        key: The public prefix of its key.
        campaign: The campaign.
        arms: The arms that were tried, in order, each with its outcome.
        dollars: The charge of all attempts.
        start: When it began, on the monotonic clock.
    """

    request_id: str
    format: str = ""
    key: str = ""
    campaign: str = ""
    arms: list[str] = field(default_factory=list)
    dollars: Decimal = Decimal(0)
    start: float = field(default_factory=time.monotonic)


class ProxyMetrics:
    """The metrics of the proxy."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = self._counter("requests", "Requests by answer.", "campaign", "format", "status")
        self._attempts = self._counter("attempts", "Calls of upstreams by outcome.", "campaign", "arm", "outcome")
        self._dollars = self._counter("dollars", "Charges.", "campaign", "arm")
        self._alarms = self._counter("usage_alarms", "Usages above the worst case.", "campaign", "arm")
        name, says = "driftsack_proxy_seconds", "Seconds until a request was answered completely."
        self._seconds = Histogram(name, says, ["format"], buckets=SECONDS, registry=self._registry)
        says = "Decisions whose outcome is being told."
        self._unsettled = Gauge("driftsack_proxy_unsettled", says, registry=self._registry)
        says = "Whether an arm is not used because its upstream fails."
        self._resting = Gauge("driftsack_proxy_resting", says, ["arm"], registry=self._registry)

    def _counter(self, name: str, says: str, *labels: str) -> Counter:
        return Counter(f"driftsack_proxy_{name}", says, labels, registry=self._registry)

    def tried(self, journey: Journey, arm: str, outcome: str, dollars: Decimal, alarm: bool) -> None:
        """Count a call of an upstream."""
        journey.arms.append(f"{arm}:{outcome}")
        journey.dollars += dollars
        self._attempts.labels(journey.campaign, arm, outcome).inc()
        self._dollars.labels(journey.campaign, arm).inc(float(dollars))
        if alarm:
            self._alarms.labels(journey.campaign, arm).inc()

    def answered(self, journey: Journey, status: int) -> None:
        """Count and log a request."""
        seconds = time.monotonic() - journey.start
        self._requests.labels(journey.campaign, journey.format, str(status)).inc()
        self._seconds.labels(journey.format).observe(seconds)
        fields: dict[str, Any] = {
            "request": journey.request_id,
            "key": journey.key,
            "campaign": journey.campaign,
            "format": journey.format,
            "status": status,
            "arms": journey.arms,
            "dollars": f"{journey.dollars:f}",
            "seconds": round(seconds, 4),
        }
        access.info("request", extra={"fields": fields})

    def text(self, unsettled: int, arms: list[str], resting: list[str]) -> bytes:
        """Return the metrics in the text format of Prometheus."""
        self._unsettled.set(unsettled)
        for arm in arms:
            self._resting.labels(arm).set(arm in resting)
        return generate_latest(self._registry)
