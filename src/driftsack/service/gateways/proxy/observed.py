"""What the proxy shows of itself: one line in the access log for each request, metrics for Prometheus, and spans."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from driftsack.service.gateways.proxy.attempt import Attempt, AttemptTerms
    from driftsack.service.gateways.proxy.tracing import ProxyTracer

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
        span: Its span; None without traces.
    """

    request_id: str
    format: str = ""
    key: str = ""
    campaign: str = ""
    arms: list[str] = field(default_factory=list)
    dollars: Decimal = Decimal(0)
    start: float = field(default_factory=time.monotonic)
    span: Span | None = None


class ProxyObserver:
    """Counts, logs and traces requests.

    Args:
        tracer: Makes spans; None for none.
    """

    def __init__(self, tracer: ProxyTracer | None = None) -> None:
        self._tracer = tracer
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

    def began(self, journey: Journey, method: str, path: str, headers: dict[bytes, bytes]) -> None:
        """Begin the span of a request."""
        if self._tracer is not None:
            journey.span = self._tracer.begin(journey.request_id, method, path, headers)

    def calls(self, journey: Journey, terms: AttemptTerms) -> Span | None:
        """Begin the span of a call of an upstream."""
        if self._tracer is None or journey.span is None:
            return None
        return self._tracer.begin_call(journey.span, terms)

    def called(self, span: Span | None, attempt: Attempt | None, decision: int | None) -> None:
        """End the span of a call of an upstream."""
        if self._tracer is not None and span is not None and attempt is not None:
            self._tracer.end_call(span, attempt, decision)

    def close(self) -> None:
        """Export the last spans."""
        if self._tracer is not None:
            self._tracer.close()

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
        if self._tracer is not None and journey.span is not None:
            self._tracer.end(journey.span, status, journey.campaign)

    def text(self, unsettled: int, arms: list[str], resting: list[str]) -> bytes:
        """Return the metrics in the text format of Prometheus."""
        self._unsettled.set(unsettled)
        for arm in arms:
            self._resting.labels(arm).set(arm in resting)
        return generate_latest(self._registry)
