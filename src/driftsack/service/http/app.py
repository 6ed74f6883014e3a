"""``Application``: the service as an ASGI application, without a framework on the way of a request.

A request is authenticated before its body is read. Bodies are limited in size and time. Whatever goes wrong is answered
by a problem document (RFC 9457).
"""

from __future__ import annotations

import asyncio
import http.client
import logging
import urllib.parse
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from driftsack.service import messages as ms
from driftsack.service.asgi import Entry, Receive, Send, whole_body
from driftsack.service.http.answers import JSON, TEXT, Answer, answered, refused
from driftsack.service.http.context import Context, Service
from driftsack.service.http.keyring import Principal
from driftsack.service.http.openapi import document
from driftsack.service.http.routes import TABLE, Route, shape_of
from driftsack.service.owner import Keeper
from driftsack.service.refusals import Refusal

FORWARD_LIMIT: Final = 3.0  # seconds in which the owner of a campaign must answer
FORWARDED: Final = b"x-driftsack-forwarded"
LONGEST_KEY: Final = 200
KEYS_AGAIN: Final = 5.0  # seconds after which keys that another replica made are known
log = logging.getLogger("driftsack.service.http")

_encode = msgspec.json.Encoder().encode
_decoders: Final[dict[Any, Any]] = {}


class Place(NamedTuple):
    """What a request is about.

    Attributes:
        route: The route.
        campaign: The campaign that the path names.
        item: What the path names within it.
    """

    route: Route
    campaign: str
    item: str


class Pages(Protocol):
    """Pages for people, beside the API."""

    def has(self, path: str) -> bool:
        """Whether a path belongs to the pages."""

    def close(self) -> None:
        """Close all open event streams."""

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
            answer = await self._answer(scope, receive)
        except Exception as error:
            answer = refused(error)
        await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
        await send({"type": "http.response.body", "body": answer.body})

    def direct_place(self, scope: dict[str, Any]) -> Place | None:
        """What a request is about if :meth:`answer_directly` may answer it; None if it may not."""
        shape, campaign, item = shape_of(scope["path"])
        route = TABLE.get((scope["method"], shape))
        if route is None or not route.direct or campaign in self.service.keeper.foreign:
            return None
        return Place(route, campaign, item)

    def answer_directly(self, place: Place, scope: dict[str, Any], raw: bytes, reply: Callable[[Answer], None]) -> None:
        """Answer a request without a task of its own, as soon as what it changed is durable.

        Args:
            place: What :meth:`direct_place` returned.
            scope: The request.
            raw: Its whole body.
            reply: Called once, now or later.
        """
        try:
            headers = dict(scope["headers"])
            principal = self._principal(place, headers)
            check_body(place.route, headers, len(raw))
            context = self._context(place, principal, scope, headers, raw)
            owned, answer = place.route.handler(context)
        except Exception as error:
            if isinstance(error, Refusal) and error.kind == "forgotten":  # by the handler
                self.service.keeper.spawn(self._settle_again(context, error, reply))
            else:
                reply(refused(error))
            return

        def finish(refusal: Refusal | None) -> None:
            reply(answered(place.route.status, JSON, _encode(answer)) if refusal is None else refused(refusal))

        owned.when_durable(finish)

    async def _settle_again(self, context: Context, refusal: Refusal, reply: Callable[[Answer], None]) -> None:
        """Reply to a request about a decision that is no longer in memory."""
        try:
            reply(answered(200, JSON, _encode(await settled_again(context, refusal))))
        except Exception as error:
            reply(refused(error))

    async def _answer(self, scope: dict[str, Any], receive: Receive) -> Answer:
        """The answer to a request of the API."""
        method, path = scope["method"], scope["path"]
        shape, campaign, item = shape_of(path)
        route = TABLE.get((method, shape))
        if route is None:
            return answered(*self._open(method, path, shape))
        place, headers = Place(route, campaign, item), dict(scope["headers"])
        principal = self._principal(place, headers)
        raw = await read_body(route, headers, receive)
        if FORWARDED not in headers and campaign in self.service.keeper.foreign:
            forwarded = await forward(self.service.keeper, campaign, scope, headers, raw)
            if forwarded is not None:
                return forwarded
        context = self._context(place, principal, scope, headers, raw)
        if route.direct:
            try:
                owned, answer = route.handler(context)
            except Refusal as refusal:
                answer = await settled_again(context, refusal)
            else:
                await self.service.keeper.settled(owned)
        else:
            answer = await route.handler(context)
        if route.answer is str:
            return answered(route.status, TEXT, answer.encode())
        return answered(route.status, JSON, _encode(answer))

    def _principal(self, place: Place, headers: dict[bytes, bytes]) -> Principal:
        """Who sent a request, if they may send it."""
        principal = self.service.keyring.principal(headers)
        principal.check(place.route.scope, place.campaign or None, place.route.limited_ok)
        return principal

    def _context(
        self, place: Place, principal: Principal, scope: dict[str, Any], headers: dict[bytes, bytes], raw: bytes
    ) -> Context:
        """A request that was understood."""
        route = place.route
        key = headers.get(b"idempotency-key", b"").decode("latin-1")
        if len(key) > LONGEST_KEY or not key.isprintable():
            raise Refusal.invalid(f"Idempotency-Key must be a text of at most {LONGEST_KEY} characters.")
        body = decode(route, raw)
        query = dict(urllib.parse.parse_qsl(scope["query_string"].decode("latin-1"))) if route.query else {}
        unknown = [name for name in query if name not in route.query]
        if unknown:
            raise Refusal.invalid(f"the query may have {', '.join(route.query)}, got {unknown[0]!r:.40}.")
        action = f"{scope['method']} {scope['path']}"
        return Context(self.service, principal, place.campaign, place.item, body, raw, action, key, query)

    def _open(self, method: str, path: str, shape: tuple[str, ...]) -> tuple[int, bytes, bytes]:
        """What needs no key: whether the service is there, and the description of the API."""
        if method == "GET" and path == "/healthz":
            return 200, JSON, b'{"ok":true}'
        if method == "GET" and path == "/readyz":
            ready = self.service.keeper.is_ready
            return (200 if ready else 503), JSON, _encode({"ready": ready})
        if method == "GET" and path == "/openapi.json":
            return 200, JSON, _encode(document())
        allowed = ["GET"] if path in ("/healthz", "/readyz", "/openapi.json") else []
        allowed += [other for other, known in TABLE if known == shape]
        if allowed:
            raise Refusal("method-not-allowed", f"{method} is not allowed on {path[:200]}.", allow=tuple(allowed))
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


async def settled_again(context: Context, refusal: Refusal) -> ms.Settled:
    """The answer to a request that was refused because its decision is no longer in memory, from the journal."""
    if refusal.kind != "forgotten":
        raise refusal
    return await context.keeper.settle_again(context.campaign, context.body, context.number())


async def read_body(route: Route, headers: dict[bytes, bytes], receive: Receive) -> bytes:
    """The body of a request, if it is not too large and does not take too long."""
    if route.body is None:
        return b""
    length = headers.get(b"content-length", b"0")
    check_body(route, headers, int(length) if length.isdigit() else 0)
    return await whole_body(receive, route.limit)


def check_body(route: Route, headers: dict[bytes, bytes], size: int) -> None:
    """Refuse a body that is too large or of another type."""
    if size > route.limit:
        raise Refusal("too-large", f"a body may have {route.limit:,} bytes, got {size:,}.")
    kind = headers.get(b"content-type", JSON)
    if kind != JSON and (kind := kind.partition(b";")[0].strip().lower()) != JSON:
        raise Refusal("unsupported-media-type", f"send application/json, got {kind.decode('latin-1')!r:.60}.")


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
) -> Answer | None:
    """Let the owner of a campaign answer, once; None if it cannot be reached."""
    url = urllib.parse.urlsplit(keeper.foreign[campaign])
    if not url.hostname:
        return None

    def send() -> Answer:
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=FORWARD_LIMIT)
        kept = {name.decode(): value.decode("latin-1") for name, value in headers.items() if name in PASSED}
        path = scope["path"] + ("?" + scope["query_string"].decode() if scope["query_string"] else "")
        try:
            connection.request(scope["method"], path, raw, {**kept, FORWARDED.decode(): "1"})
            response = connection.getresponse()
            answer = answered(response.status, (response.headers["content-type"] or "").encode(), response.read())
            kept_too = [(name, response.headers[name.decode()]) for name in PASSED_BACK]
            answer.headers.extend((name, value.encode("latin-1")) for name, value in kept_too if value is not None)
            return answer
        finally:
            connection.close()

    try:
        return await keeper.forwarded(send)
    except (OSError, http.client.HTTPException) as error:
        log.warning("the owner of %s cannot be reached: %s", campaign, error)
        return None


PASSED: Final = (b"authorization", b"idempotency-key", b"content-type")
PASSED_BACK: Final = (b"retry-after", b"www-authenticate", b"allow")
