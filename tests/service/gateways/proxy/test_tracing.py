"""Spans of the proxy: their attributes are those of the pinned version of the GenAI conventions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv.schemas import Schemas

from driftsack.core.errors import MissingExtraError
from driftsack.service.gateways.proxy import app, tracing
from driftsack.service.gateways.proxy.app import tracer_of
from driftsack.service.gateways.proxy.settings import ProxySettings, Upstream
from driftsack.service.gateways.proxy.tracing import SCHEMA, ProxyTracer
from tests.support.gateways import HELLO, PRICE, SECRET, Gate, gate

PARENT = "0af7651916cd43dd8448eb211c80319c"
KNOWN = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}


class Traced:
    """A gate whose spans are kept."""

    def __init__(self, found: Gate, exporter: InMemorySpanExporter, tracer: ProxyTracer) -> None:
        self.gate, self._exporter, self._tracer = found, exporter, tracer

    def spans(self) -> list[ReadableSpan]:
        """The spans since the last call: the calls in their order, and then the request."""
        self.gate.told()
        self._tracer.provider.force_flush()
        found = list(self._exporter.get_finished_spans())
        self._exporter.clear()
        return found


@pytest.fixture
def traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    exporter = InMemorySpanExporter()
    tracer = ProxyTracer(exporter)
    monkeypatch.setattr(app, "tracer_of", lambda settings: tracer)
    with gate(str(tmp_path), ["fine", "fails", "hangs"], attempt_seconds=1.0, fallback=False) as found:
        yield Traced(found, exporter, tracer)


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_has_a_span_and_so_has_its_call(traced: Traced, stream: bool) -> None:
    header = {"traceparent": f"00-{PARENT}-b7ad6b7169203331-01"}
    answer = traced.gate.complete("fine", stream=stream, temperature=0.5, extra_headers=header)
    assert list(answer) if stream else answer.id
    call, request = traced.spans()
    assert request.context is not None
    assert call.parent is not None
    assert (call.name, request.name) == ("chat fine", "POST /v1/chat/completions")
    assert f"{request.context.trace_id:032x}" == PARENT
    assert call.parent.span_id == request.context.span_id
    found = said(call)
    wanted = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "fine",
        "gen_ai.request.max_tokens": 50,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.output_tokens": 20,
        "server.address": "127.0.0.1",
        "driftsack.arm": "fine",
        "driftsack.decision": 1,
        "driftsack.usd": pytest.approx(float(traced.gate.upstream.charged())),
    }
    assert {name: found[name] for name in wanted} == wanted
    assert found["gen_ai.usage.input_tokens"] > 0
    assert found["gen_ai.response.id"]
    assert ("gen_ai.request.stream" in found) == stream
    assert said(request)["http.response.status_code"] == 200
    assert said(request)["driftsack.campaign"] == "chat"
    # Every name is one of the pinned version, and no prompt, answer or key is recorded.
    assert call.instrumentation_scope is not None
    assert call.instrumentation_scope.schema_url == SCHEMA == Schemas.V1_44_0.value
    assert {name for name in found if name.startswith("gen_ai.")} <= KNOWN
    assert not any(text in str(found) for text in ("Hello", SECRET, traced.gate.live.key))


@pytest.mark.parametrize(("model", "kind", "status"), [("fails", "500", 502), ("hangs", "timeout", 504)])
def test_a_call_that_fails_says_why(traced: Traced, model: str, kind: str, status: int) -> None:
    with pytest.raises(openai.APIStatusError):
        traced.gate.complete(model)
    call, request = traced.spans()
    assert said(call)["error.type"] == kind
    assert not call.status.is_ok
    assert not request.status.is_ok
    assert said(request)["http.response.status_code"] == status


def test_a_request_without_a_call_has_a_span(traced: Traced) -> None:
    with pytest.raises(openai.NotFoundError):
        traced.gate.complete("gpt-9")
    (request,) = traced.spans()
    assert said(request)["http.response.status_code"] == 404
    assert request.status.is_unset
    traced.gate.openai().models.list()  # only calls of models are traced
    assert traced.spans() == []


def test_anthropic_messages_are_chats(traced: Traced) -> None:
    list(traced.gate.anthropic().messages.create(model="fine", max_tokens=9, messages=HELLO, stream=True))
    call, request = traced.spans()
    assert request.name == "POST /v1/messages"
    assert said(call)["gen_ai.operation.name"] == "chat"
    assert said(call)["gen_ai.response.finish_reasons"]


def test_traces_need_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ProxySettings([Upstream("a", "http://localhost", "m", PRICE)], "chat", traces="http://127.0.0.1:1/v1")
    tracer = tracer_of(settings)
    assert isinstance(tracer, ProxyTracer)
    tracer.close()
    monkeypatch.setitem(__import__("sys").modules, tracing.__name__, None)
    with pytest.raises(MissingExtraError, match=r"driftsack\[otel\]"):
        tracer_of(settings)
