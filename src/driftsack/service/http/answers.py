"""Answers of the API as status, headers and bytes, and refusals as problem documents (RFC 9457)."""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

import msgspec

from driftsack.service.refusals import Refusal
from driftsack.service.views import problem

JSON: Final = b"application/json"
TEXT: Final = b"text/plain; charset=utf-8"
PROBLEM: Final = b"application/problem+json"
SAFE: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
CLOSE: Final = (b"connection", b"close")
UNAUTHENTICATED: Final = 401
LAST: Final = ("too-slow", "too-large", "head-too-large")
"""Problems after which the connection is closed."""
log = logging.getLogger("driftsack.service.http")

_encode = msgspec.json.Encoder().encode


class Answer(NamedTuple):
    """An answer.

    Attributes:
        status: Its status.
        headers: Its headers.
        body: Its body.
    """

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def answered(status: int, kind: bytes, body: bytes) -> Answer:
    """An answer with a body of a type."""
    return Answer(status, [*SAFE, (b"content-type", kind), (b"content-length", b"%d" % len(body))], body)


def refused(error: Exception) -> Answer:
    """The problem document of a request that was not carried out, or that failed."""
    if not isinstance(error, Refusal):
        log.error("a request failed", exc_info=error)
        return refused(Refusal("internal", "internal error; see the log of the service."))
    answer = answered(error.status, PROBLEM, _encode(problem(error)))
    if error.retry_after is not None:
        answer.headers.append((b"retry-after", b"%d" % error.retry_after))
    if error.allow:
        answer.headers.append((b"allow", ", ".join(error.allow).encode()))
    if error.status == UNAUTHENTICATED:
        answer.headers.append((b"www-authenticate", b"Bearer"))
    if error.kind in LAST:
        answer.headers.append(CLOSE)
    return answer
