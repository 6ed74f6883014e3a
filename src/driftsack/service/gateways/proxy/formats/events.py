"""Server-sent events as bytes: they are split at line feeds only, and relayed as they came."""

from __future__ import annotations

import json
from typing import Any, Final

LARGEST_EVENT: Final = 16 * 1024 * 1024
DONE: Final = b"[DONE]"


class EventTooLargeError(Exception):
    """An event of a stream does not end."""


class EventSplitter:
    """Splits a stream into events, each with the blank line that ends it."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._line = 0  # where the line begins that is not complete yet

    def feed(self, chunk: bytes) -> list[bytes]:
        r"""Return the events that a chunk completes.

        >>> splitter = EventSplitter()
        >>> splitter.feed(b"data: 1\n"), splitter.feed(b"\ndata: 2\r\n\r\ndata: 3")
        ([], [b'data: 1\n\n', b'data: 2\r\n\r\n'])
        >>> splitter.rest()
        b'data: 3'
        """
        found = []
        self._buffer += chunk
        while (end := self._buffer.find(b"\n", self._line)) >= 0:
            blank = bytes(self._buffer[self._line : end]).strip(b"\r") == b""
            self._line = end + 1
            if blank:
                found.append(bytes(self._buffer[: self._line]))
                del self._buffer[: self._line]
                self._line = 0
        if len(self._buffer) > LARGEST_EVENT:
            raise EventTooLargeError
        return found

    def rest(self) -> bytes:
        """Return what has come of an event that is not complete."""
        return bytes(self._buffer)


def content_of(event: bytes) -> Any:
    r"""Return the JSON content of an event; None if it has none.

    >>> content_of(b'event: x\ndata: {"a": 1}\n\n'), content_of(b": ping\n\n"), content_of(b"data: [DONE]\n\n")
    ({'a': 1}, None, None)
    """
    lines = [line.rstrip(b"\r")[5:] for line in event.split(b"\n") if line.startswith(b"data:")]
    data = b"\n".join(lines).strip()
    if not data or data == DONE:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def event_of(content: Any, name: str = "") -> bytes:
    r"""Return an event.

    >>> event_of({"a": 1}, "x")
    b'event: x\ndata: {"a":1}\n\n'
    """
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(content, separators=(',', ':'))}\n\n".encode()
