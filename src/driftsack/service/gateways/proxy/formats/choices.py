"""What OpenAI's chat and text completions have in common: answers with choices, and a usage at the end of a stream."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from driftsack.service.gateways.proxy.formats import wire_format as wf
from driftsack.service.gateways.proxy.prices import Usage, usage_of


class ChoicesFormat(wf.WireFormat):
    """A format whose answers have choices.

    Attributes:
        part: The field of a choice with its content.
    """

    part: ClassVar[str]

    def streamed(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return a request for a stream that ends with the usage."""
        options = request.get("stream_options")
        return {**request, "stream_options": {**(options if isinstance(options, dict) else {}), "include_usage": True}}

    def hides_usage(self, request: dict[str, Any]) -> bool:
        """Return whether the caller did not ask for the usage."""
        return not asked_for_usage(request)

    def verdict(self, answer: dict[str, Any]) -> wf.Judgement:
        """Judge an answer: each choice needs its content and a reason for its end."""
        return wf.Judgement(not wf.failed(answer) and all_finished(answer, self.part), chat_usage(answer.get("usage")))


class ChoicesReader(wf.StreamReader):
    """Collects a stream of choices."""

    def __init__(self) -> None:
        super().__init__()
        self._text: list[str] = []
        self._ends: dict[Any, Any] = {}
        self._usage: Any = None

    def collect(self, content: dict[str, Any]) -> bool:
        """Collect an event; the one with only the usage may be hidden."""
        self._usage = content.get("usage") or self._usage
        choices = content.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, dict):
                key = str(choice.get("index"))
                self._ends[key] = choice.get("finish_reason") or self._ends.get(key)
                self.read_piece(choice)
        return bool(choices) or not content.get("usage")

    @abstractmethod
    def read_piece(self, choice: dict[str, Any]) -> None:
        """Collect the content of a choice."""

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """Return the content as far as it has come, by its field."""

    def answer(self) -> dict[str, Any]:
        """Return the answer as far as it has come; the choices of several answers are joined."""
        ends = list(self._ends.values())
        end = ends[0] if ends and all(ends) else None
        return {"choices": [{"index": 0, **self.content(), "finish_reason": end}], "usage": self._usage}


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
