"""Anthropic's messages."""

from __future__ import annotations

import json
from typing import Any, Final

from driftsack.service.gateways.proxy.formats import wire_format as wf
from driftsack.service.gateways.proxy.prices import Usage, count
from driftsack.service.gateways.proxy.rejections import Rejected
from driftsack.service.gateways.proxy.worst_case import Demand

CLIENT_TOOLS: Final = ("custom", "bash_", "text_editor_", "computer_", "memory_")
KINDS: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


class Messages(wf.WireFormat):
    """Messages."""

    name = "messages"
    path = "/messages"
    limits = ("max_tokens",)
    fields = wf.words(
        "model messages system max_tokens stream temperature top_p top_k stop_sequences metadata tools tool_choice "
        "thinking service_tier cache_control"
    )

    def demand(self, request: dict[str, Any], size: int) -> Demand:
        """Return what a request asks for."""
        messages = wf.listed(request, "messages")
        limit = wf.smallest_limit(request, self.limits)
        if limit is None:
            raise Rejected.invalid("max_tokens must be the maximum number of tokens of the answer; it is missing.")
        parts = [message.get("content") for message in messages]
        return Demand(
            size=size + wf.tools_tokens(request, CLIENT_TOOLS),
            limit=limit,
            bounded=all(wf.is_text(part) for part in [*parts, request.get("system")]),
            writes_cache='"cache_control"' in json.dumps(request),
        )

    def verdict(self, answer: dict[str, Any]) -> wf.Judgement:
        """Judge an answer: it needs content and a reason for its end."""
        finished = isinstance(answer.get("content"), list) and isinstance(answer.get("stop_reason"), str)
        return wf.Judgement(finished and not wf.failed(answer), message_usage(answer.get("usage")))

    def reader(self) -> wf.StreamReader:
        """Return what reads a stream."""
        return MessagesReader()

    def problem(self, rejected: Rejected) -> bytes:
        """Return an error in Anthropic's format."""
        error = {"type": KINDS.get(rejected.status, "api_error"), "message": rejected.message, "code": rejected.code}
        return json.dumps({"type": "error", "error": error}).encode()

    def error_event(self, rejected: Rejected) -> bytes:
        """Return an error as the last event of a stream."""
        return b"event: error\ndata: " + self.problem(rejected) + b"\n\n"


class MessagesReader(wf.StreamReader):
    """Collects a stream of a message, whose counts grow until its end."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[Any, dict[str, Any]] = {}
        self._pieces: dict[Any, list[str]] = {}
        self._usage: dict[str, Any] = {}
        self._end: Any = None
        self._counted = False  # whether the last count of the answer has come

    def collect(self, content: dict[str, Any]) -> bool:
        """Collect an event."""
        index, delta = str(content.get("index")), content.get("delta")
        match content.get("type"):
            case "message_start" if isinstance(content.get("message"), dict):
                self._count(content["message"].get("usage"))
            case "content_block_start" if isinstance(content.get("content_block"), dict):
                self._blocks[index] = content["content_block"]
            case "content_block_delta" if isinstance(delta, dict):
                piece = delta.get("text") or delta.get("partial_json") or delta.get("thinking") or ""
                self._pieces.setdefault(index, []).append(str(piece))
            case "message_delta" if isinstance(delta, dict):
                self._end = delta.get("stop_reason") or self._end
                self._counted = isinstance(content.get("usage"), dict)
                self._count(content.get("usage"))
        return True

    def _count(self, usage: Any) -> None:
        """Note a usage; a later one replaces the counts that it has."""
        self._usage |= {k: v for k, v in usage.items() if v is not None} if isinstance(usage, dict) else {}

    def answer(self) -> dict[str, Any]:
        """Return the answer as far as it has come; the usage only if it is complete."""
        content = []
        for index, block in self._blocks.items():
            text = "".join(self._pieces.get(index, []))
            if block.get("type") == "tool_use":
                content.append({**block, "input": _parsed(text)})
            else:
                field = "thinking" if block.get("type") == "thinking" else "text"
                content.append({**block, field: str(block.get(field) or "") + text})
        usage = self._usage if self._counted else None
        return {"type": "message", "role": "assistant", "content": content, "stop_reason": self._end, "usage": usage}


def _parsed(text: str) -> Any:
    """Return the arguments of a tool; the text itself if it is no JSON."""
    try:
        return json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return text


def message_usage(found: Any) -> Usage | None:
    """Return the usage of a message; its parts are counted apart.

    >>> message_usage({"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 100})
    Usage(input=10, output=5, cached=100, written=0, reasoning=0, audio_in=0, audio_out=0)
    """
    if not isinstance(found, dict) or found.get("input_tokens") is None:
        return None
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = [whole for name in names if (whole := count(found.get(name))) is not None]
    return Usage(*counts) if len(counts) == len(names) else None
