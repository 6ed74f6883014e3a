"""OpenTelemetry spans of the proxy (extra ``otel``): one for each request, and one in it for each call of an upstream.

The call of an upstream has the attributes of the GenAI semantic conventions, in the version ``CONVENTIONS``. They are
still in development, so the version is pinned, and the names are written here. Prompts and answers are not recorded.
"""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import propagate, trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, SpanKind, StatusCode

from driftsack.core.release import __version__
from driftsack.service.gateways.proxy.prices import Usage

if TYPE_CHECKING:
    from driftsack.service.gateways.proxy.attempt import Attempt, AttemptTerms

CONVENTIONS: Final = "1.44.0"
SCHEMA: Final = f"https://opentelemetry.io/schemas/{CONVENTIONS}"
OPERATIONS: Final = {"completions": "text_completion", "embeddings": "embeddings"}  # by format; the others are chats
LARGEST_SETTING: Final = 1e9  # an integer of JSON may have hundreds of digits
REQUEST: Final = {"temperature": float, "top_p": float, "frequency_penalty": float, "presence_penalty": float}
FAILED: Final = 500


class ProxyTracer:
    """Traces requests.

    Args:
        exporter: Where the spans go.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        resource = Resource.create({"service.name": "driftsack-proxy", "service.version": __version__})
        self.provider = TracerProvider(resource=resource)
        self.provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self.provider.get_tracer("driftsack.proxy", __version__, schema_url=SCHEMA)

    def begin(self, request_id: str, method: str, path: str, headers: dict[bytes, bytes]) -> Span:
        """Begin the span of a request, which continues the trace of a ``traceparent`` header."""
        carrier = {key.decode("latin-1"): value.decode("latin-1") for key, value in headers.items()}
        attributes = {"http.request.method": method, "http.route": path, "driftsack.request": request_id}
        return self._tracer.start_span(f"{method} {path}", propagate.extract(carrier), SpanKind.SERVER, attributes)

    def end(self, span: Span, status: int, campaign: str) -> None:
        """End the span of a request."""
        span.set_attributes({"http.response.status_code": status, "driftsack.campaign": campaign})
        if status >= FAILED or not status:
            span.set_status(StatusCode.ERROR)
        span.end()

    def begin_call(self, request: Span, terms: AttemptTerms) -> Span:
        """Begin the span of a call of an upstream."""
        upstream, wire = terms.upstream, terms.translation.upstream
        operation, address = OPERATIONS.get(wire.name, "chat"), urllib.parse.urlsplit(upstream.url)
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": upstream.protocol,
            "gen_ai.request.model": upstream.model,
            "server.address": address.hostname or "",
            "server.port": address.port or (443 if address.scheme == "https" else 80),
            "driftsack.arm": upstream.arm,
        }
        if operation != "embeddings":
            attributes["gen_ai.request.max_tokens"] = terms.limit
        if terms.request.get("stream"):
            attributes["gen_ai.request.stream"] = True
        for name, kind in REQUEST.items():
            given = terms.request.get(name)
            if isinstance(given, (int, float)) and abs(given) <= LARGEST_SETTING:
                attributes[f"gen_ai.request.{name}"] = kind(given)
        parent = trace.set_span_in_context(request)
        return self._tracer.start_span(f"{operation} {upstream.model}", parent, SpanKind.CLIENT, attributes)

    def end_call(self, span: Span, attempt: Attempt, decision: int | None) -> None:
        """End the span of a call, with what the upstream said and what it was charged."""
        span.set_attributes({"driftsack.decision": decision or 0, "driftsack.usd": float(attempt.outcome.dollars)})
        span.set_attributes(response_attributes(attempt.answer))
        if attempt.usage is not None:
            span.set_attributes(usage_attributes(attempt.usage))
        if attempt.failed:
            span.set_status(StatusCode.ERROR)
            span.set_attribute("error.type", attempt.failed)
        span.end()

    def close(self) -> None:
        """Export what has not been exported."""
        self.provider.shutdown()


def response_attributes(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an answer of any format.

    >>> response_attributes({"id": "x", "choices": [{"finish_reason": "stop"}]})
    {'gen_ai.response.id': 'x', 'gen_ai.response.finish_reasons': ['stop']}
    """
    found = {f"gen_ai.response.{name}": answer[name] for name in ("id", "model") if isinstance(answer.get(name), str)}
    choices = answer.get("choices")
    ends = [choice.get("finish_reason") for choice in choices or [] if isinstance(choice, dict)]
    ends += [answer.get("stop_reason"), answer.get("status")]
    reasons = [end for end in ends if isinstance(end, str)]
    return found | ({"gen_ai.response.finish_reasons": reasons} if reasons else {})


def usage_attributes(usage: Usage) -> dict[str, int]:
    """Return the attributes of a usage, whose totals include their parts.

    >>> usage_attributes(Usage(10, 5, cached=4, reasoning=2))["gen_ai.usage.input_tokens"]
    14
    """
    return {
        "gen_ai.usage.input_tokens": usage.input + usage.cached + usage.written + usage.audio_in,
        "gen_ai.usage.output_tokens": usage.output + usage.reasoning + usage.audio_out,
        "gen_ai.usage.cache_read.input_tokens": usage.cached,
        "gen_ai.usage.cache_creation.input_tokens": usage.written,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }


def tracer_to(address: str) -> ProxyTracer:
    """Return a tracer whose spans go to a collector, such as ``http://localhost:4318/v1/traces``."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return ProxyTracer(OTLPSpanExporter(endpoint=address))
