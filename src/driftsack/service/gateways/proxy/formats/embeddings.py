"""OpenAI's embeddings, which have no output tokens."""

from __future__ import annotations

from typing import Any

from driftsack.service.gateways.proxy.formats import wire_format as wf
from driftsack.service.gateways.proxy.formats.choices import chat_usage
from driftsack.service.gateways.proxy.rejections import Rejected
from driftsack.service.gateways.proxy.worst_case import Demand


class Embeddings(wf.WireFormat):
    """Embeddings."""

    name = "embeddings"
    path = "/embeddings"
    limits = ()
    fields = wf.words("model input encoding_format dimensions user")

    def demand(self, request: dict[str, Any], size: int) -> Demand:
        """Return what a request asks for."""
        given = request.get("input")
        if not isinstance(given, (str, list)) or not given:
            raise Rejected.invalid(f"input must be a string or a list, got {given!r:.60}.")
        text = isinstance(given, str) or all(isinstance(each, (str, int, list)) for each in given)
        return Demand(size=size, limit=None, answers=0, bounded=text)

    def verdict(self, answer: dict[str, Any]) -> wf.Judgement:
        """Judge an answer: it needs at least one embedding."""
        data = answer.get("data")
        found = isinstance(data, list) and bool(data) and all(isinstance(e, dict) and e.get("embedding") for e in data)
        return wf.Judgement(found and not wf.failed(answer), chat_usage(answer.get("usage")))

    def reader(self) -> wf.StreamReader:
        """Reject a stream, which embeddings do not have."""
        raise Rejected.invalid("embeddings are not streamed; omit stream.")
