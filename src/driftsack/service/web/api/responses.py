"""Responses of the API; refused requests get a problem document (RFC 9457)."""

from __future__ import annotations

import logging
import urllib.parse
from typing import Final, NamedTuple

import msgspec

from driftsack.service.domain.refusals import Refusal
from driftsack.service.domain.views import problem

JSON: Final = b"application/json"
TEXT: Final = b"text/plain; charset=utf-8"
PROBLEM: Final = b"application/problem+json"
SAFE: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
CLOSE: Final = (b"connection", b"close")
UNAUTHENTICATED: Final = 401
LONGEST_PATH: Final = 300
LAST: Final = ("too-slow", "too-large", "head-too-large")
"""Kinds of refusal after which the connection is closed."""
log = logging.getLogger("driftsack.service.web.api")

encode: Final = msgspec.json.Encoder().encode


class Response(NamedTuple):
    """A complete HTTP response."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def respond(status: int, kind: bytes, body: bytes) -> Response:
    """Return a response whose body has the media type ``kind``."""
    return Response(status, [*SAFE, (b"content-type", kind), (b"content-length", b"%d" % len(body))], body)


def refuse(error: Exception, path: str | None = None) -> Response:
    """Return the problem document for an error; anything but a refusal is logged and hidden from the caller.

    Args:
        path: The path of the request, if it is known.
    """
    if not isinstance(error, Refusal):
        log.error("a request failed", exc_info=error)
        return refuse(Refusal("internal", "internal error; see the log of the service."), path)
    said = problem(error)
    said.instance = None if path is None else urllib.parse.quote(path[:LONGEST_PATH], safe="/:@")
    response = respond(error.status, PROBLEM, encode(said))
    if error.retry_after is not None:
        response.headers.append((b"retry-after", b"%d" % error.retry_after))
    if error.allow:
        response.headers.append((b"allow", ", ".join(error.allow).encode()))
    if error.status == UNAUTHENTICATED:
        response.headers.append((b"www-authenticate", b"Bearer"))
    if error.kind in LAST:
        response.headers.append(CLOSE)
    return response
