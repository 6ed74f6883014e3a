"""OpenAI's text completions."""

from __future__ import annotations

from typing import Any

from driftsack.service.gateways.proxy.formats import wire_format as wf
from driftsack.service.gateways.proxy.formats.chat import all_finished, asked_for_usage, chat_usage, with_usage
from driftsack.service.gateways.proxy.rejections import Rejected
from driftsack.service.gateways.proxy.worst_case import Demand


class Completions(wf.WireFormat):
    """Text completions."""

    name = "completions"
    path = "/completions"
    limits = ("max_tokens",)
    fields = wf.words(
        "model prompt max_tokens n best_of stream stream_options temperature top_p stop seed user suffix echo logprobs "
        "logit_bias frequency_penalty presence_penalty"
    )

    def demand(self, request: dict[str, Any], size: int) -> Demand:
        """Return what a request asks for: answers for each of its prompts."""
        prompt = request.get("prompt")
        if not isinstance(prompt, (str, list)) or not prompt:
            raise Rejected.invalid(f"prompt must be a string or a list, got {prompt!r:.60}.")
        several = isinstance(prompt, list) and not all(isinstance(part, int) for part in prompt)
        answers = [whole for name in ("n", "best_of") if (whole := wf.whole_number(request, name, wf.MOST_ANSWERS))]
        return Demand(
            size=size,
            limit=wf.smallest_limit(request, self.limits),
            answers=max([1, *answers]) * (len(prompt) if several else 1),
        )

    def streamed(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return a request for a stream that ends with the usage."""
        return with_usage(request)

    def hides_usage(self, request: dict[str, Any]) -> bool:
        """Return whether the caller did not ask for the usage."""
        return not asked_for_usage(request)

    def verdict(self, answer: dict[str, Any]) -> wf.Judgement:
        """Judge an answer: each choice needs a text and a reason for its end."""
        return wf.Judgement(not wf.failed(answer) and all_finished(answer, "text"), chat_usage(answer.get("usage")))

    def reader(self) -> wf.StreamReader:
        """Return what reads a stream."""
        return CompletionsReader()


class CompletionsReader(wf.StreamReader):
    """Collects a stream of text completions."""

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
                self._text += [choice["text"]] if isinstance(choice.get("text"), str) else []
        return bool(choices) or not content.get("usage")

    def answer(self) -> dict[str, Any]:
        """Return the answer as far as it has come."""
        ends = list(self._ends.values())
        end = ends[0] if ends and all(ends) else None
        return {"choices": [{"index": 0, "text": "".join(self._text), "finish_reason": end}], "usage": self._usage}
