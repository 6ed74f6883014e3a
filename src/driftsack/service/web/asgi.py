"""Shared parts of the ASGI applications: lifespan, request bodies, and disconnected callers."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Final

from driftsack.service.domain.refusals import Refusal

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
SLOW: Final = 10.0  # seconds in which a header must arrive, and then a body


class AsgiApplication(ABC):
    """An ASGI application with a lifespan."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Dispatch by the type of the scope."""
        if scope["type"] == "lifespan":
            await self.live(receive, send)
        elif scope["type"] == "http":
            await self.respond(scope, receive, send)

    @abstractmethod
    async def live(self, receive: Receive, send: Send) -> None:
        """Start and stop with the server."""

    @abstractmethod
    async def respond(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""


async def whole_body(receive: Receive, limit: int) -> bytes:
    """Return the complete body of a request.

    Raises:
        Refusal: The body has more than ``limit`` bytes, takes more than ``SLOW`` seconds in all, or is cut.
    """
    task, late = asyncio.current_task(), False

    def stop() -> None:
        nonlocal late
        late = True
        if task is not None:
            task.cancel()

    timer = asyncio.get_running_loop().call_later(SLOW, stop)
    try:
        return await read_parts(receive, limit)
    except asyncio.CancelledError as error:
        if not late or task is None:
            raise
        task.uncancel()
        raise Refusal("too-slow", f"a body must arrive within {SLOW:g} seconds.") from error
    finally:
        timer.cancel()


async def read_parts(receive: Receive, limit: int) -> bytes:
    """Return the complete body of a request, however long it takes.

    Raises:
        Refusal: The body is too large, or the caller left before its end: what has come could mean something else.
    """
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal("malformed", "the connection was closed before the body was complete.")
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > limit:
            raise Refusal("too-large", f"a body may have {limit:,} bytes.")
    return b"".join(parts)


async def caller_gone(receive: Receive) -> None:
    """Wait until the caller has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
