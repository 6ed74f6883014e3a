"""An upstream that answers every chat completion at once: ``uvicorn lab.service.quick_upstream:app``."""

from __future__ import annotations

import json
from typing import Any, Final

CHOICE: Final = {"index": 0, "message": {"role": "assistant", "content": "Hello, world"}, "finish_reason": "stop"}
USAGE: Final = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
ANSWER: Final = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [CHOICE],
    "usage": USAGE,
}
BODY: Final = json.dumps(ANSWER).encode()
HEADERS: Final = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))]


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer a request."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY})
