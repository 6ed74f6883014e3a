"""Answers that break or have values of other types: they failed, and are charged at least what they cost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import httpx
import pytest

from driftsack.service.gateways.proxy.attempt import Attempt, AttemptTerms, UpstreamFailedError
from driftsack.service.gateways.proxy.formats.registry import FORMATS, translation_of
from driftsack.service.gateways.proxy.outcomes import CallOutcome
from driftsack.service.gateways.proxy.reply import Reply
from driftsack.service.gateways.proxy.settings import Upstream
from tests.support.gateways import HELLO, PRICE

RESERVED = Decimal("0.01")
FAILED = CallOutcome("failed", RESERVED)
USAGE = {"prompt_tokens": 10, "completion_tokens": 5}
TEN_AND_FIVE = Decimal("0.00006")  # what this usage costs


class Parts(httpx.AsyncByteStream):
    """A body in parts, after which the connection breaks if it is to."""

    def __init__(self, parts: list[Any], breaks: bool) -> None:
        self._parts, self._breaks = parts, breaks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part if isinstance(part, bytes) else b"data: " + json.dumps(part).encode() + b"\n\n"
        if self._breaks:
            raise httpx.ReadError("planted")


def outcome(name: str, protocol: Any, parts: list[Any], breaks: bool = False, stream: bool = True) -> Attempt:
    """Call an upstream that answers with these parts; return the attempt after its end."""
    upstream = Upstream("a", "http://localhost", "m", PRICE, protocol)
    body = {"model": "m", "messages": HELLO, "max_tokens": 9, "stream": stream}
    terms = AttemptTerms(upstream, PRICE, translation_of(FORMATS[name], upstream), body, 9, RESERVED)

    async def run() -> Attempt:
        answer = httpx.MockTransport(lambda _: httpx.Response(200, stream=Parts(parts, breaks)))
        async with httpx.AsyncClient(transport=answer) as http:
            attempt = Attempt(http, terms, lambda *_: 1.0)
            try:
                await attempt.run(Reply(), [])
            except UpstreamFailedError:
                assert attempt.outcome.kind == "failed" or breaks
            else:
                assert attempt.outcome.kind == "answered"
            return attempt

    return asyncio.run(run())


def chunk(end: str | None = None, index: int = 0, **delta: Any) -> dict[str, Any]:
    """Return an event of a chat completion with the usage up to it."""
    return {"choices": [{"index": index, "delta": delta, "finish_reason": end}], "usage": USAGE}


def test_a_usage_before_a_break_is_not_what_is_charged() -> None:
    words = [chunk(content="Hello"), chunk(content=", world")]
    assert outcome("chat", "openai", words, breaks=True).outcome == FAILED
    assert outcome("chat", "openai", [*words, {"error": {"message": "planted"}}]).outcome == FAILED
    # The first of several answers has ended, and the others have not.
    assert outcome("chat", "openai", [*words, chunk("stop")], breaks=True).outcome.dollars == RESERVED
    # A stream that says that it is complete is, although the connection breaks after that.
    whole = [*words, chunk("stop"), b"data: [DONE]\n\n"]
    assert outcome("chat", "openai", whole).outcome == CallOutcome("answered", TEN_AND_FIVE, 1.0)
    assert outcome("chat", "openai", whole, breaks=True).outcome.dollars == TEN_AND_FIVE


def completion(**message: Any) -> bytes:
    """Return a chat completion as a whole."""
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], "usage": USAGE}).encode()


def test_a_whole_answer_that_cannot_be_translated_has_failed() -> None:
    charged = CallOutcome("failed", TEN_AND_FIVE)
    for message in ({"tool_calls": ["bad"]}, {"tool_calls": 5}, {"tool_calls": [{"function": 7}]}):
        assert outcome("messages", "openai", [completion(**message)], stream=False).outcome == charged
    assert outcome("messages", "openai", [completion(content="x")], stream=False).outcome.kind == "answered"


@pytest.mark.parametrize(
    ("name", "protocol", "event"),
    [
        ("messages", "openai", {"choices": 5}),
        ("messages", "openai", chunk("stop", tool_calls=["bad"])),
        ("messages", "openai", chunk("stop", tool_calls=5)),
        ("chat", "anthropic", {"type": "message_start", "message": {"usage": [1]}}),
        ("chat", "anthropic", {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": [1]}),
    ],
)
def test_a_stream_that_cannot_be_translated_has_failed(name: str, protocol: Any, event: Any) -> None:
    assert outcome(name, protocol, [event]).outcome == FAILED
