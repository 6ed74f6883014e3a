"""``Application``: the service as an ASGI application, without a framework on the way of a request.

A request is authenticated before its body is read. Bodies are limited in size and time. Whatever goes wrong is answered
by a problem document (RFC 9457).
"""

from __future__ import annotations

import asyncio
import http.client
import logging
import urllib.parse
from typing import Any, Final, Protocol

import msgspec

from driftsack.service.asgi import Entry, Receive, Send, whole_body
from driftsack.service.http.context import Context, Service
from driftsack.service.http.openapi import document
from driftsack.service.http.routes import SHAPES, TABLE, Route, shape_of
from driftsack.service.owner import Keeper, problem_of
from driftsack.service.refusals import Refusal

FORWARD_LIMIT: Final = 3.0  # seconds in which the owner of a campaign must answer
FORWARDED: Final = b"x-driftsack-forwarded"
LONGEST_KEY: Final = 200
KEYS_AGAIN: Final = 5.0  # seconds after which keys that another replica made are known
log = logging.getLogger("driftsack.service.http")

_encode = msgspec.json.Encoder().encode
_decoders: Final[dict[Any, Any]] = {}
JSON: Final = b"application/json"
TEXT: Final = b"text/plain; charset=utf-8"
PROBLEM: Final = b"application/problem+json"
SAFE: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


class Pages(Protocol):
    """Pages for people, beside the API."""

    def has(self, path: str) -> bool:
        """Whether a path belongs to the pages."""

    def close(self) -> None:
        """End what would go on for ever."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""


class Application(Entry):
    """The service.

    Args:
        service: Campaigns and keys.
        pages: Pages for people; None for the API alone.
    """

    def __init__(self, service: Service, pages: Pages | None = None) -> None:
        self.service, self.pages = service, pages
        self._keys: asyncio.Task[None] | None = None

    async def respond(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self.pages is not None and self.pages.has(scope["path"]):
            await self.pages(scope, receive, send)
            return
        try:
            status, kind, body = await self._answer(scope, receive)
            headers = [*SAFE]
        except Refusal as refusal:
            status, kind, body = refusal.status, PROBLEM, _encode(problem_of(refusal))
            headers = [*SAFE]
            headers += [] if refusal.retry_after is None else [(b"retry-after", b"%d" % refusal.retry_after)]
            headers += [(b"www-authenticate", b"Bearer")] if status == 401 else []  # noqa: PLR2004
            headers += [(b"connection", b"close")] if refusal.kind in ("too-slow", "too-large") else []
        except Exception:
            log.exception("a request failed")
            failed = Refusal("internal", "the service failed; what happened is in its log.")
            status, kind, body, headers = 500, PROBLEM, _encode(problem_of(failed)), [*SAFE]
        headers += [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: dict[str, Any], receive: Receive) -> tuple[int, bytes, bytes]:
        """Status, type and body of the answer."""
        method, path = scope["method"], scope["path"]
        shape, campaign, item = shape_of(path)
        route = TABLE.get((method, shape))
        if route is None:
            return self._open(method, path, shape)
        headers = dict(scope["headers"])
        principal = self.service.keyring.principal(headers)
        principal.check(route.scope, campaign or None, route.limited_ok)
        raw = await read_body(route, headers, receive)
        if FORWARDED not in headers and campaign in self.service.keeper.foreign:
            forwarded = await forward(self.service.keeper, campaign, scope, headers, raw)
            if forwarded is not None:
                return forwarded
        key = headers.get(b"idempotency-key", b"").decode("latin-1")
        if len(key) > LONGEST_KEY or not key.isprintable():
            raise Refusal.invalid(f"Idempotency-Key must be a text of at most {LONGEST_KEY} characters.")
        body = decode(route, raw)
        query = dict(urllib.parse.parse_qsl(scope["query_string"].decode("latin-1"))) if route.query else {}
        context = Context(self.service, principal, campaign, item, body, raw, f"{method} {path}", key, query)
        answer = await route.handler(context)
        if route.answer is str:
            return route.status, TEXT, answer.encode()
        return route.status, JSON, _encode(answer)

    def _open(self, method: str, path: str, shape: tuple[str, ...]) -> tuple[int, bytes, bytes]:
        """What needs no key: whether the service is there, and the description of the API."""
        if method == "GET" and path == "/healthz":
            return 200, JSON, b'{"ok":true}'
        if method == "GET" and path == "/readyz":
            ready = self.service.keeper.is_ready
            return (200 if ready else 503), JSON, _encode({"ready": ready})
        if method == "GET" and path == "/openapi.json":
            return 200, JSON, _encode(document())
        if shape in SHAPES or path in ("/healthz", "/readyz", "/openapi.json"):
            raise Refusal("method-not-allowed", f"{method} is not allowed on {path[:200]}.")
        raise Refusal("not-found", f"there is nothing at {path[:200]}; see /openapi.json.")

    async def live(self, receive: Receive, send: Send) -> None:
        """Start and stop with the server."""
        await receive()
        try:
            await self.service.keeper.start()
            await self.service.keeper.in_thread(self.service.keyring.load)
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        self._keys = asyncio.ensure_future(self._load_keys())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._keys.cancel()
        await self.service.keeper.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _load_keys(self) -> None:
        """Learn about keys that other replicas created or removed."""
        while True:
            await asyncio.sleep(KEYS_AGAIN)
            try:
                await self.service.keeper.in_thread(self.service.keyring.load)
            except Exception as error:
                log.warning("keys could not be read: %s", error)


async def read_body(route: Route, headers: dict[bytes, bytes], receive: Receive) -> bytes:
    """The body of a request, if it is not too large and does not take too long."""
    if route.body is None:
        return b""
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > route.limit:
        raise Refusal("too-large", f"a body may have {route.limit:,} bytes, got {int(length):,}.")
    raw = await whole_body(receive, route.limit)
    kind = headers.get(b"content-type", JSON).partition(b";")[0].strip().lower()
    if kind != JSON:
        raise Refusal("unsupported-media-type", f"send application/json, got {kind.decode('latin-1')!r:.60}.")
    return raw


def decode(route: Route, raw: bytes) -> Any:
    """The body as a message."""
    if route.body is None:
        return None
    decoder = _decoders.get(route.body)
    if decoder is None:
        decoder = _decoders[route.body] = msgspec.json.Decoder(route.body).decode
    try:
        return decoder(raw or b"{}")
    except msgspec.ValidationError as error:
        raise Refusal.invalid(f"{error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal("malformed", f"the body must be JSON: {error}.") from error


async def forward(
    keeper: Keeper, campaign: str, scope: dict[str, Any], headers: dict[bytes, bytes], raw: bytes
) -> tuple[int, bytes, bytes] | None:
    """Let the owner of a campaign answer, once; None if it cannot be reached."""
    url = urllib.parse.urlsplit(keeper.foreign[campaign])
    if not url.hostname:
        return None

    def send() -> tuple[int, bytes, bytes]:
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=FORWARD_LIMIT)
        kept = {name.decode(): value.decode("latin-1") for name, value in headers.items() if name in PASSED}
        path = scope["path"] + ("?" + scope["query_string"].decode() if scope["query_string"] else "")
        try:
            connection.request(scope["method"], path, raw, {**kept, FORWARDED.decode(): "1"})
            response = connection.getresponse()
            return response.status, (response.headers["content-type"] or "").encode(), response.read()
        finally:
            connection.close()

    try:
        return await keeper.forwarded(send)
    except (OSError, http.client.HTTPException) as error:
        log.warning("the owner of %s cannot be reached: %s", campaign, error)
        return None


PASSED: Final = (b"authorization", b"idempotency-key", b"content-type")
