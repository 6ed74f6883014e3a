"""OpenTelemetry traces (extra ``otel``): a span for each request of the API."""

from __future__ import annotations

from typing import Any, Final

from opentelemetry import propagate, trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from driftsack.core.release import __version__
from driftsack.service.web.api.routes import TABLE, shape_of
from driftsack.service.web.asgi import Receive, Send

FAILED: Final = 500


class Traced:
    """An application whose requests are traced.

    Args:
        app: The application.
    """

    def __init__(self, app: Any, exporter: SpanExporter) -> None:
        self.app = app
        resource = Resource.create({"service.name": "driftsack", "service.version": __version__})
        self.provider = TracerProvider(resource=resource)
        self.provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self.provider.get_tracer("driftsack")

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request within a span, which continues the trace of a ``traceparent`` header."""
        if scope["type"] != "http" or not scope["path"].startswith("/v1/"):
            await self.app(scope, receive, send)
            if scope["type"] == "lifespan":
                self.provider.shutdown()
            return
        # The name of the span is the route, not the path, so that spans can be grouped.
        shape, campaign, _ = shape_of(scope["path"])
        route = TABLE.get((scope["method"], shape))
        name = f"{scope['method']} {route.path if route else 'unknown'}"
        carrier = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        parent = propagate.extract(carrier)
        attributes = {"http.request.method": scope["method"], "http.route": route.path if route else ""}
        kind = trace.SpanKind.SERVER
        with self._tracer.start_as_current_span(name, parent, kind, attributes) as span:
            if campaign:
                span.set_attribute("driftsack.campaign", campaign[:100])

            async def noted(message: dict[str, Any]) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= FAILED:
                        span.set_status(trace.StatusCode.ERROR)
                await send(message)

            await self.app(scope, receive, noted)


def traced(app: Any, address: str) -> Traced:
    """Wrap an application so that its traces go to a collector, such as ``http://localhost:4318/v1/traces``."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return Traced(app, OTLPSpanExporter(endpoint=address))
