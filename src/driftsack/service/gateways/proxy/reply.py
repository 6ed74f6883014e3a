"""``Reply``: the answer on its way from the task that calls upstreams to the connection of the caller.

The two run apart: a caller that reads slowly or leaves delays no settlement, and what is written after it has left is
dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from driftsack.service.web.asgi import Send

JSON: Final = b"application/json"
STREAM: Final = b"text/event-stream"
Headers = list[tuple[bytes, bytes]]


class Reply:
    """An answer in parts.

    Attributes:
        status: Its status; 0 before it has begun.
        headers: Headers that every answer to the request gets.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: Headers = []
        self._parts: deque[bytes] = deque()
        self._more = asyncio.Event()
        self._ended = self._dropped = False

    def start(self, status: int, kind: bytes, headers: Headers | None = None, length: int | None = None) -> None:
        """Begin the answer."""
        self.status = status
        self.headers = [(b"content-type", kind), (b"cache-control", b"no-store"), *self.headers, *(headers or [])]
        self.headers += [] if length is None else [(b"content-length", b"%d" % length)]
        self._more.set()

    def write(self, part: bytes) -> None:
        """Add a part of the body."""
        if not self._dropped:
            self._parts.append(part)
            self._more.set()

    def end(self) -> None:
        """End the answer."""
        self._ended = True
        self._more.set()

    def whole(self, status: int, body: bytes, headers: Headers | None = None) -> None:
        """Give a complete answer in JSON."""
        self.start(status, JSON, headers, len(body))
        self.write(body)
        self.end()

    def drop(self) -> None:
        """Forget what the caller will not read any more."""
        self._dropped = True
        self._parts.clear()

    async def send(self, send: Send) -> None:
        """Send the answer as it comes."""
        while not self.status:
            await self._more.wait()
            self._more.clear()
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        while self._parts or not self._ended:
            while self._parts:
                body = b"".join(self._parts)
                self._parts.clear()
                await send({"type": "http.response.body", "body": body, "more_body": True})
            if not self._ended:
                await self._more.wait()
                self._more.clear()
        await send({"type": "http.response.body", "body": b""})
