"""OpenAI's chat completions."""

from __future__ import annotations

from typing import Any, Final

from driftsack.service.gateways.proxy.formats import wire_format as wf
from driftsack.service.gateways.proxy.formats.choices import ChoicesFormat, ChoicesReader
from driftsack.service.gateways.proxy.worst_case import Demand

MESSAGE: Final = wf.words(
    "role content name tool_calls tool_call_id refusal function_call reasoning_content annotations audio"
)


class Chat(ChoicesFormat):
    """Chat completions."""

    name = "chat"
    path = "/chat/completions"
    part = "message"
    limits = ("max_tokens", "max_completion_tokens")
    fields = wf.words(
        "model messages max_tokens max_completion_tokens n stream stream_options temperature top_p stop seed user "
        "store metadata logprobs top_logprobs logit_bias frequency_penalty presence_penalty response_format tools "
        "tool_choice parallel_tool_calls functions function_call reasoning_effort verbosity prediction modalities "
        "audio service_tier safety_identifier prompt_cache_key"
    )

    def demand(self, request: dict[str, Any], size: int) -> Demand:
        """Return what a request asks for."""
        messages = wf.listed(request, "messages")
        known = all(message.keys() <= MESSAGE and not message.get("audio") for message in messages)
        speaks = request.get("audio") is not None or request.get("modalities") not in (None, ["text"])
        text = known and not speaks and all(wf.is_text(message.get("content")) for message in messages)
        return Demand(
            size=size + wf.tools_tokens(request, ("function", "custom")),
            limit=wf.smallest_limit(request, self.limits),
            answers=wf.whole_number(request, "n", wf.MOST_ANSWERS) or 1,
            extra=size if request.get("prediction") else 0,
            bounded=text,
        )

    def limited(self, request: dict[str, Any], limit: int, style: str) -> dict[str, Any]:
        """Return a request with a limit, in the field that the upstream knows."""
        given = [name for name in self.limits if request.get(name) is not None]
        names = given if style == "none" else [style]
        rest = {name: value for name, value in request.items() if name not in self.limits}
        return {**rest, **dict.fromkeys(names, limit)}

    def reader(self) -> wf.StreamReader:
        """Return what reads a stream."""
        return ChatReader()


class ChatReader(ChoicesReader):
    """Collects a stream of chat completions."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[int, dict[str, Any]] = {}

    def read_piece(self, choice: dict[str, Any]) -> None:
        """Collect text and calls of tools."""
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._text += [delta["content"]] if isinstance(delta.get("content"), str) else []
            self._collect_calls(delta.get("tool_calls"))

    def _collect_calls(self, calls: Any) -> None:
        """Join the pieces of calls of tools."""
        for piece in calls if isinstance(calls, list) else []:
            if not isinstance(piece, dict) or not isinstance(piece.get("index"), int):
                continue
            function = piece.get("function")
            function = function if isinstance(function, dict) else {}
            call = self._calls.setdefault(
                piece["index"],
                {"id": piece.get("id"), "type": "function", "function": {"name": "", "arguments": ""}},
            )
            for name in ("name", "arguments"):
                call["function"][name] += str(function.get(name) or "")

    def content(self) -> dict[str, Any]:
        """Return the message as far as it has come."""
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._text)}
        message |= {"tool_calls": [self._calls[k] for k in sorted(self._calls)]} if self._calls else {}
        return {"message": message}
