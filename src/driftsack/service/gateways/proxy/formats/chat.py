"""OpenAI's chat completions."""

from __future__ import annotations

from typing import Any, Final

from driftsack.service.gateways.proxy.formats import wire_format as wf
from driftsack.service.gateways.proxy.prices import Usage, usage_of
from driftsack.service.gateways.proxy.worst_case import Demand

MESSAGE: Final = wf.words(
    "role content name tool_calls tool_call_id refusal function_call reasoning_content annotations audio"
)


class Chat(wf.WireFormat):
    """Chat completions."""

    name = "chat"
    path = "/chat/completions"
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

    def streamed(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return a request for a stream that ends with the usage."""
        return with_usage(request)

    def hides_usage(self, request: dict[str, Any]) -> bool:
        """Return whether the caller did not ask for the usage."""
        return not asked_for_usage(request)

    def verdict(self, answer: dict[str, Any]) -> wf.Judgement:
        """Judge an answer: each choice needs a message and a reason for its end."""
        return wf.Judgement(not wf.failed(answer) and all_finished(answer, "message"), chat_usage(answer.get("usage")))

    def reader(self) -> wf.StreamReader:
        """Return what reads a stream."""
        return ChatReader()


class ChatReader(wf.StreamReader):
    """Collects a stream of chat completions."""

    def __init__(self) -> None:
        super().__init__()
        self._text: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._ends: dict[Any, Any] = {}
        self._usage: Any = None

    def collect(self, content: dict[str, Any]) -> bool:
        """Collect an event; the one with only the usage may be hidden."""
        self._usage = content.get("usage") or self._usage
        choices = content.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if not isinstance(choice, dict):
                continue
            key = str(choice.get("index"))
            self._ends[key] = choice.get("finish_reason") or self._ends.get(key)
            delta = choice.get("delta")
            if isinstance(delta, dict):
                self._text += [delta["content"]] if isinstance(delta.get("content"), str) else []
                self._collect_calls(delta.get("tool_calls"))
        return bool(choices) or not content.get("usage")

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

    def answer(self) -> dict[str, Any]:
        """Return the answer as far as it has come; the choices of several answers are joined."""
        ends = list(self._ends.values())
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._text)}
        message |= {"tool_calls": [self._calls[k] for k in sorted(self._calls)]} if self._calls else {}
        end = ends[0] if ends and all(ends) else None
        return {"choices": [{"index": 0, "message": message, "finish_reason": end}], "usage": self._usage}


def all_finished(answer: dict[str, Any], part: str) -> bool:
    """Return whether an answer has choices, each with its content and a reason for its end."""
    choices = answer.get("choices")
    return (
        isinstance(choices, list)
        and bool(choices)
        and all(
            isinstance(choice, dict) and part in choice and isinstance(choice.get("finish_reason"), str)
            for choice in choices
        )
    )


def chat_usage(found: Any) -> Usage | None:
    """Return the usage of chat and text completions and of embeddings.

    >>> chat_usage({"prompt_tokens": 10, "completion_tokens": 5})
    Usage(input=10, output=5, cached=0, written=0, reasoning=0, audio_in=0, audio_out=0)
    >>> chat_usage({"prompt_tokens": -10, "completion_tokens": 5}) is None
    True
    """
    if not isinstance(found, dict):
        return None
    into, out = _details(found, "prompt_tokens_details"), _details(found, "completion_tokens_details")
    parts = {"cached": into.get("cached_tokens"), "audio_in": into.get("audio_tokens")}
    parts |= {"reasoning": out.get("reasoning_tokens"), "audio_out": out.get("audio_tokens")}
    return usage_of(found.get("prompt_tokens"), found.get("completion_tokens"), parts)


def _details(found: dict[str, Any], name: str) -> dict[str, Any]:
    details = found.get(name)
    return details if isinstance(details, dict) else {}


def asked_for_usage(request: dict[str, Any]) -> bool:
    """Return whether a caller asked for the usage at the end of a stream."""
    options = request.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def with_usage(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request for a stream that ends with the usage."""
    options = request.get("stream_options")
    return {**request, "stream_options": {**(options if isinstance(options, dict) else {}), "include_usage": True}}
