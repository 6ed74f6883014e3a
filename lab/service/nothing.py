"""A raw ASGI application that reads a body and answers a few bytes: an upper bound on the speed of any service."""

from __future__ import annotations

from typing import Any

ANSWER = (
    b'{"decision":1,"arm":"small","skipped":false,"reason":null,"probability":0.5,"reserved":{"usd":"0.1"},"lease":600}'
)


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Send the same answer to every request."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await receive()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": ANSWER})
