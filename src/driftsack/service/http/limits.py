"""``LimitedProtocol``: uvicorn's protocol with limits on the time and the size of what precedes a body.

uvicorn limits neither with httptools: a client that is silent after it has connected, or that sends its header byte by
byte, keeps its connection indefinitely, and a header may have any size. The body is limited by
:func:`driftsack.service.asgi.whole_body`.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from driftsack.service import asgi
from driftsack.service.http.answers import CLOSE, Answer, refused
from driftsack.service.refusals import Refusal

LARGEST_HEAD: Final = 64 * 1024
LARGEST_MESSAGE: Final = 32 * 1024 * 1024  # with the framing of a body in small chunks, and trailers


class HeadTooLargeError(Exception):
    """A header has too many bytes."""


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed unless each header arrives in time and has a moderate size.

    The time runs from the connection, or from the first byte after an answer, to the end of the header. Between two
    requests uvicorn's own limit for idle connections holds.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._in_head = False
        self._part = 0  # bytes that were read last
        self._first = 0  # bytes of the part in which the present message began
        self._bytes = 0  # of the present message, without that part
        self._too_large = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a first request."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        self._cancel_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read, and limit the time until the next header is complete."""
        self._part = len(data)
        self._bytes += self._part
        super().data_received(data)
        if self._in_head or (self.timeout_keep_alive_task is None and self._all_answered()):
            self._await_head()
        if self._bytes > LARGEST_HEAD and self._in_head:
            self._refuse(too_large())
        elif self._bytes > LARGEST_MESSAGE:
            self.transport.close()

    def on_message_begin(self) -> None:
        """Begin to read a header."""
        self._in_head, self._first, self._bytes = True, self._part, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Go on with the body."""
        self._in_head = False
        self._cancel_deadline()
        if self._first + self._bytes > LARGEST_HEAD and self._head_size() > LARGEST_HEAD:
            self._too_large = True
            raise HeadTooLargeError  # the parser gives up, and uvicorn calls send_400_response
        super().on_headers_complete()
        self.headers = [*self.headers]  # trailers, which follow a body, do not reach the request

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be parsed, or whose header is too large."""
        if self._too_large:
            self._refuse(too_large())
        else:
            super().send_400_response(msg)

    def _await_head(self) -> None:
        """Let the connection end unless a header is complete in time; a deadline that runs already stays."""
        if self._deadline is None:
            self._deadline = self.loop.call_later(asgi.SLOW, self._end)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end(self) -> None:
        """Close the connection of a client that was too slow."""
        self._deadline = None
        if self.flow.read_paused:  # its next request waits for the answers to earlier ones
            self._await_head()
        elif self._in_head:
            self._refuse(Refusal("too-slow", f"a header must arrive within {asgi.SLOW:g} seconds."))
        else:
            self.transport.close()

    def _refuse(self, refusal: Refusal) -> None:
        """Answer a request without a header that could be read, and close the connection."""
        if self.transport.is_closing():
            return
        if self._all_answered():  # otherwise this would be taken for another answer
            self.transport.write(self._written(refused(refusal)))
        self.transport.close()

    def _written(self, answer: Answer, keep_alive: bool = True) -> bytes:
        """An answer as bytes."""
        content = [STATUS_LINE[answer.status]]
        for name, value in (*self.server_state.default_headers, *answer.headers):
            content += (name, b": ", value, b"\r\n")
        if not keep_alive and CLOSE not in answer.headers:
            content.append(b"connection: close\r\n")
        return b"".join((*content, b"\r\n", answer.body))

    def _all_answered(self) -> bool:
        return bool(getattr(self.cycle, "response_complete", True))  # there is no cycle before the first request


def too_large() -> Refusal:
    """What a client is told whose header is too large."""
    return Refusal("head-too-large", f"a header may have {LARGEST_HEAD:,} bytes.")
