"""An upstream that bills all that it may, keeps its own books, and fails in every way that we know of.

The name of the model selects its behaviour. It counts a token for each byte of the text that it is given, writes as
many tokens as the request allows, and, if a request has several limits, takes the largest.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NamedTuple

from tests.support.upstream_formats import FORMATS, Spoken

INPUT_PRICE: Final = Decimal("0.000001")  # dollars a token
OUTPUT_PRICE: Final = Decimal("0.00001")
UNLIMITED: Final = 200_000  # tokens of an answer without a limit
SECRET: Final = "sk-upstream-secret"
FREE: Final = ("html", "redirect", "dead-key", "unpaid", "missing", "busy", "fails", "cut-5xx", "refuses", "quotes")
SILENT: Final = ("no-usage", "huge-usage", "wrong-usage", "breaks", "error-in-200", "error-in-stream", "hangs")
FAULTS: Final = (*FREE, *SILENT, "no-finish", "separator", "slow")


class Bill(NamedTuple):
    """What the upstream charged for a request.

    Attributes:
        model: The model.
        dollars: The charge.
        reported: Whether it said so in a usage that can be believed.
    """

    model: str
    dollars: Decimal
    reported: bool


class HostileUpstream:
    """The upstream, an ASGI application.

    Args:
        most: The number of output tokens that it writes at most; None for as many as the request allows.

    Attributes:
        bills: What it charged.
        seen: The requests: path, headers and body.
        finished: The number of streams that were sent completely.
        behaviour: Selects the behaviour of a model; a test may replace it.
    """

    def __init__(self, most: int | None = None, seed: int = 0) -> None:
        self._most, self._random = most, random.Random(seed)
        self.bills: list[Bill] = []
        self.seen: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.finished = 0
        self.behaviour: Callable[[str], str] = lambda model: model

    def charged(self, reported: bool | None = None) -> Decimal:
        """Return the sum of all charges, or of those that were or were not reported."""
        found = [bill.dollars for bill in self.bills if reported is None or bill.reported == reported]
        return sum(found, Decimal(0))

    def at_random(self, model: str) -> str:
        """Return a random behaviour; every second one is not a fault."""
        return self._random.choice(FAULTS) if self._random.random() < 0.5 else "fine"

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        raw, more = b"", True
        while more:
            message = await receive()
            raw, more = raw + message.get("body", b""), message.get("more_body", False)
        body = json.loads(raw)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.seen.append((scope["path"], headers, body))
        spoken = FORMATS[scope["path"].removeprefix("/v1/")]
        kind = self.behaviour(body["model"])
        tokens = spoken.bytes_of(body), self._written(spoken, body, kind)
        if kind not in FREE:
            dollars = tokens[0] * INPUT_PRICE + tokens[1] * OUTPUT_PRICE
            self.bills.append(Bill(body["model"], dollars, kind not in SILENT))
        await self._answer(spoken, kind, body, tokens, send)

    def _written(self, spoken: Spoken, body: dict[str, Any], kind: str) -> int:
        """Return the number of output tokens: all that the request allows."""
        if not spoken.limits:
            return 0
        given = [int(body[name]) for name in spoken.limits if body.get(name) is not None]
        limit = max(given) if given else UNLIMITED
        answers = int(body.get("n") or 1)
        return (limit if self._most is None else min(limit, self._most)) * max(answers, int(body.get("best_of") or 1))

    async def _answer(
        self, spoken: Spoken, kind: str, body: dict[str, Any], tokens: tuple[int, int], send: Any
    ) -> None:
        """Send the answer, as the behaviour says."""
        if kind in REFUSALS:
            status, content, extra = REFUSALS[kind]
            await whole(send, status, content, extra)
        elif kind == "cut-5xx":
            await start(send, 503, [(b"content-length", b"1000")])
            await send({"type": "http.response.body", "body": b'{"err', "more_body": True})
            raise BrokenAnswerError
        elif kind == "html":
            await whole(send, 200, b"<html>Welcome to the network of your hotel</html>", [])
        elif kind == "hangs":
            await asyncio.sleep(3)
            await whole(send, 200, b"{}", [])
        else:
            await asyncio.sleep(0.2 if kind == "slow" else 0)
            usage = None if kind == "no-usage" else spoken.usage(*tokens)
            if kind == "huge-usage":
                usage = spoken.usage(10**11, 10**11)
            elif kind == "wrong-usage":
                usage = spoken.usage(-5, 1.5)
            if body.get("stream"):
                await self._stream(spoken, kind, usage, send)
            elif kind in ("error-in-200", "error-in-stream"):
                await whole(send, 200, {"error": {"message": "the model has crashed", "type": "server_error"}}, [])
            elif kind == "breaks":
                await start(send, 200, [(b"content-length", b"1000")])
                await send({"type": "http.response.body", "body": b'{"id": "x"', "more_body": True})
                raise BrokenAnswerError
            else:
                await whole(send, 200, spoken.answer(text_of(kind), usage, finished=kind != "no-finish"), [])

    async def _stream(self, spoken: Spoken, kind: str, usage: Any, send: Any) -> None:
        """Stream an answer, with the faults of the behaviour."""
        await start(send, 200, [(b"content-type", b"text/event-stream")])
        events = spoken.events(text_of(kind), usage, finished=kind != "no-finish")
        if kind in ("error-in-200", "error-in-stream"):
            failed = b'data: {"error": {"message": "the model has crashed"}}\n\n'
            events = [failed] if kind == "error-in-200" else [*events[:2], failed]
        for k, event in enumerate(events):
            await send({"type": "http.response.body", "body": event, "more_body": True})
            await asyncio.sleep(0.1 if kind == "slow" else 0)
            if kind == "breaks" and k == 1:
                raise BrokenAnswerError
        self.finished += 1
        await send({"type": "http.response.body", "body": b""})


class BrokenAnswerError(Exception):
    """The connection is cut in the middle of an answer."""


def text_of(kind: str) -> list[str]:
    """Return the words of an answer, none if it calls a tool; a line separator is no line break of a stream."""
    if kind == "calls":
        return []
    return ["Hello", ", ", "wor\u2028ld"] if kind == "separator" else ["Hello", ", ", "world"]


def quoting(message: str) -> bytes:
    """Return an error that quotes our key."""
    return json.dumps({"error": {"message": f"{message}: {SECRET}", "type": "invalid_request_error"}}).encode()


REFUSALS: Final[dict[str, tuple[int, Any, list[tuple[bytes, bytes]]]]] = {
    "redirect": (302, b"", [(b"location", b"http://127.0.0.1:9/elsewhere")]),
    "dead-key": (401, quoting("Incorrect API key provided"), []),
    "unpaid": (402, quoting("Your credit has run out"), []),
    "missing": (404, quoting("There is no such model for"), []),
    "busy": (429, {"error": {"message": "slow down"}}, [(b"retry-after", b"7")]),
    "fails": (500, {"error": {"message": "the model has crashed"}}, []),
    "refuses": (400, {"error": {"message": "top_p is too large", "type": "invalid_request_error"}}, []),
    "quotes": (400, quoting("The request was wrong"), []),
}
"""Answers that are not billed."""


async def start(send: Any, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    """Send the head of an answer."""
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def whole(send: Any, status: int, content: Any, extra: list[tuple[bytes, bytes]]) -> None:
    """Send a complete answer."""
    body = content if isinstance(content, bytes) else json.dumps(content, ensure_ascii=False).encode()
    kind = b"text/html" if body.startswith(b"<html>") else b"application/json"
    await start(send, status, [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *extra])
    await send({"type": "http.response.body", "body": body})
