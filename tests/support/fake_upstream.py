"""A fake OpenAI-compatible upstream; the name of the model selects its behaviour."""

from __future__ import annotations

import asyncio
import json
from typing import Any

USAGE = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
WRONG = {"wrong-usage": {"prompt_tokens": -5, "completion_tokens": "many"}, "no-usage": None}
WORDS = ["Hello", ", ", "world"]


class LanguageModel:
    """The upstream, an ASGI application.

    Attributes:
        seen: The bodies of all requests.
        keys: Their API keys.
        finished: The number of streams that were sent completely.
    """

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.finished = 0

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        raw, more = b"", True
        while more:
            message = await receive()
            raw, more = raw + message.get("body", b""), message.get("more_body", False)
        body = json.loads(raw)
        self.seen.append(body)
        self.keys.append(dict(scope["headers"]).get(b"authorization", b"").decode())
        model = body["model"]
        if model == "slow":
            await asyncio.sleep(0.3)
        if model == "hangs":
            await asyncio.sleep(5)
        if model in ("fails", "refuses"):
            await whole(send, 500 if model == "fails" else 400, {"error": {"message": model, "type": model}})
        elif body.get("stream"):
            await self._stream(model, send)
        else:
            usage = WRONG.get(model, USAGE)
            choice = {"index": 0, "message": {"role": "assistant", "content": "".join(WORDS)}, "finish_reason": "stop"}
            await whole(send, 200, {**head("chat.completion", model), "choices": [choice], "usage": usage})

    async def _stream(self, model: str, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        chunk = head("chat.completion.chunk", model)
        for k, word in enumerate(WORDS):
            delta = {"index": 0, "delta": {"content": word}, "finish_reason": None}
            await event(send, {**chunk, "choices": [delta], "usage": None})
            await asyncio.sleep(0.15 if model == "slow" else 0)
            if model == "breaks" and k == 1:
                raise RuntimeError("the upstream breaks in the middle of a stream")
        await event(send, {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": None})
        await event(send, {**chunk, "choices": [], "usage": WRONG.get(model, USAGE)})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": True})
        self.finished += 1
        await send({"type": "http.response.body", "body": b""})


def head(kind: str, model: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": model}


async def event(send: Any, content: dict[str, Any]) -> None:
    await send({"type": "http.response.body", "body": f"data: {json.dumps(content)}\n\n".encode(), "more_body": True})


async def whole(send: Any, status: int, content: dict[str, Any]) -> None:
    body = json.dumps(content).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
