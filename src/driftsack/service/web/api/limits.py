"""``LimitedProtocol``: uvicorn's protocol with limits on the time and the size of request headers.

With httptools, uvicorn limits neither: a client that sends nothing, or its header byte by byte, keeps its connection
indefinitely, and a header may have any size. :func:`driftsack.service.web.asgi.whole_body` limits the body.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from driftsack.service.domain.refusals import Refusal
from driftsack.service.web import asgi
from driftsack.service.web.api.responses import CLOSE, Response, refuse

LARGEST_HEAD: Final = 64 * 1024
LARGEST_MESSAGE: Final = 32 * 1024 * 1024  # with the framing of a body in small chunks, and trailers


class HeadTooLargeError(Exception):
    """The header of a request is too large."""


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed if a header arrives too slowly or is too large.

    The time is measured from the connection, or from the first byte after a response, to the end of the header. Between
    requests uvicorn's own limit for idle connections applies.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._in_head = False
        self._part = 0  # size of the latest read
        self._first = 0  # size of the read in which the current message began
        self._bytes = 0  # of the current message after that read
        self._too_large = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first header."""
        super().connection_made(transport)
        self.await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        self._cancel_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read, and start the deadline of the next header."""
        self._part = len(data)
        self._bytes += self._part
        super().data_received(data)
        if self._in_head or (self.timeout_keep_alive_task is None and self._all_answered()):
            self.await_head()
        if self._bytes > LARGEST_HEAD and self._in_head:
            self._refuse(too_large())
        elif self._bytes > LARGEST_MESSAGE:
            self.transport.close()

    def on_message_begin(self) -> None:
        """Start counting the bytes of a header."""
        self._in_head, self._first, self._bytes = True, self._part, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Cancel the deadline, and refuse a header that is too large."""
        self._in_head = False
        self._cancel_deadline()
        if self._first + self._bytes > LARGEST_HEAD and self._head_size() > LARGEST_HEAD:
            self._too_large = True
            raise HeadTooLargeError  # the parser stops, and uvicorn calls send_400_response
        super().on_headers_complete()
        self.headers = [*self.headers]  # a copy: trailers after the body must not become headers

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be parsed, or whose header is too large."""
        if self._too_large:
            self._refuse(too_large())
        else:
            super().send_400_response(msg)

    def await_head(self) -> None:
        """Start the deadline of a header, unless it is running already."""
        if self._deadline is None:
            self._deadline = self.loop.call_later(asgi.SLOW, self._end)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end(self) -> None:
        """Close the connection of a client that was too slow."""
        self._deadline = None
        if self.flow.read_paused:  # its next request waits for earlier responses
            self.await_head()
        elif self._in_head:
            self._refuse(Refusal("too-slow", f"a header must arrive within {asgi.SLOW:g} seconds."))
        else:
            self.transport.close()

    def _refuse(self, refusal: Refusal) -> None:
        """Refuse a request whose header was not read completely, and close the connection."""
        if self.transport.is_closing():
            return
        if self._all_answered():  # otherwise the client would take it for an earlier response
            self.transport.write(self.serialised(refuse(refusal)))
        self.transport.close()

    def serialised(self, response: Response, keep_alive: bool = True) -> bytes:
        """Return a response as bytes."""
        content = [STATUS_LINE[response.status]]
        for name, value in (*self.server_state.default_headers, *response.headers):
            content += (name, b": ", value, b"\r\n")
        if not keep_alive and CLOSE not in response.headers:
            content.append(b"connection: close\r\n")
        return b"".join((*content, b"\r\n", response.body))

    def _all_answered(self) -> bool:
        return bool(getattr(self.cycle, "response_complete", True))  # there is no cycle before the first request


def too_large() -> Refusal:
    """The 431 response."""
    return Refusal("head-too-large", f"a header may have {LARGEST_HEAD:,} bytes.")
