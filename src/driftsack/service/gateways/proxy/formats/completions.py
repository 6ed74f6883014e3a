"""OpenAI's text completions."""

from __future__ import annotations

from typing import Any

from driftsack.service.gateways.proxy.formats import wire_format as wf
from driftsack.service.gateways.proxy.formats.choices import ChoicesFormat, ChoicesReader
from driftsack.service.gateways.proxy.rejections import Rejected
from driftsack.service.gateways.proxy.worst_case import Demand


class Completions(ChoicesFormat):
    """Text completions."""

    name = "completions"
    path = "/completions"
    part = "text"
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

    def reader(self) -> wf.StreamReader:
        """Return what reads a stream."""
        return CompletionsReader()


class CompletionsReader(ChoicesReader):
    """Collects a stream of text completions."""

    def read_piece(self, choice: dict[str, Any]) -> None:
        """Collect text."""
        self._text += [choice["text"]] if isinstance(choice.get("text"), str) else []

    def content(self) -> dict[str, Any]:
        """Return the text as far as it has come."""
        return {"text": "".join(self._text)}
