"""OpenAI's responses."""

from __future__ import annotations

from typing import Any, Final

from driftsack.service.gateways.proxy.formats import wire_format as wf
from driftsack.service.gateways.proxy.prices import Usage, usage_of
from driftsack.service.gateways.proxy.rejections import Rejected
from driftsack.service.gateways.proxy.worst_case import Demand

REFERENCES: Final = ("previous_response_id", "conversation", "prompt")  # input that the upstream keeps
ENDS: Final = ("completed", "incomplete")


class Responses(wf.WireFormat):
    """Responses, without tools that run at the upstream and without work in the background."""

    name = "responses"
    path = "/responses"
    limits = ("max_output_tokens",)
    fields = wf.words(
        "model input instructions max_output_tokens stream stream_options temperature top_p user store metadata tools "
        "tool_choice parallel_tool_calls reasoning text truncation include previous_response_id conversation prompt "
        "service_tier safety_identifier prompt_cache_key top_logprobs max_tool_calls"
    )

    def demand(self, request: dict[str, Any], size: int) -> Demand:
        """Return what a request asks for; what the upstream keeps has no bound."""
        given = request.get("input")
        if given is not None and not isinstance(given, (str, list)):
            raise Rejected.invalid(f"input must be a string or a list, got {given!r:.60}.")
        kept = any(request.get(name) is not None for name in REFERENCES)
        return Demand(
            size=size + wf.tools_tokens(request, ("function", "custom")),
            limit=wf.smallest_limit(request, self.limits),
            bounded=not kept and wf.is_text(given),
        )

    def verdict(self, answer: dict[str, Any]) -> wf.Judgement:
        """Judge an answer by its status and its output."""
        finished = answer.get("status") in ENDS and isinstance(answer.get("output"), list)
        return wf.Judgement(finished and not wf.failed(answer), response_usage(answer.get("usage")))

    def reader(self) -> wf.StreamReader:
        """Return what reads a stream."""
        return ResponsesReader()


class ResponsesReader(wf.StreamReader):
    """Collects a stream of a response, whose last event has all of it."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, Any] = {}

    def collect(self, content: dict[str, Any]) -> bool:
        """Collect an event."""
        found = content.get("response")
        self._last = found if isinstance(found, dict) else self._last
        return True

    def answer(self) -> dict[str, Any]:
        """Return the answer as far as it has come."""
        return self._last


def response_usage(found: Any) -> Usage | None:
    """Return the usage of a response."""
    if not isinstance(found, dict):
        return None
    into, out = found.get("input_tokens_details"), found.get("output_tokens_details")
    parts = {
        "cached": into.get("cached_tokens") if isinstance(into, dict) else None,
        "reasoning": out.get("reasoning_tokens") if isinstance(out, dict) else None,
    }
    return usage_of(found.get("input_tokens"), found.get("output_tokens"), parts)
