"""``Application``: the service as a plain ASGI application, without a web framework.

On the ASGI path requests are authenticated before their body is read. Bodies are limited in size and time. Errors are
problem documents (RFC 9457).

A route is *direct* if its handler is an ordinary function that returns the campaign and the answer. Such requests are
carried out by :meth:`Application._carry_out`, which replies through a callback once the changes are durable. The ASGI
path waits for that callback in its task; :mod:`driftsack.service.web.api.direct` calls it without a task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

from driftsack.service.domain.refusals import Refusal
from driftsack.service.store.interface import StoreError
from driftsack.service.web.api.context import Context, Service
from driftsack.service.web.api.forwarding import forward, must_forward
from driftsack.service.web.api.keyring import TokenBucket
from driftsack.service.web.api.openapi import OPEN, document
from driftsack.service.web.api.requests import (
    AuthenticatedRequest,
    Target,
    authenticate,
    check_body,
    find_target,
    read_body,
    understand,
)
from driftsack.service.web.api.responses import JSON, TEXT, Response, encode, refuse, respond
from driftsack.service.web.api.routes import TABLE, Route, shape_of
from driftsack.service.web.asgi import AsgiApplication, Receive, Send

KEYS_AGAIN: Final = 5.0  # seconds after which keys that another replica created or removed are loaded
LOOKUPS: Final = 2.0  # requests per second with an unknown key for which the keys are read again
MOST_NAMED: Final = 20  # damaged campaigns in the answer of /readyz
Reply = Callable[[Response], None]
log = logging.getLogger("driftsack.service.web.api")


class PageApplication(Protocol):
    """The dashboard beside the API."""

    def has(self, path: str) -> bool:
        """Return whether a path belongs to the dashboard."""

    def close(self) -> None:
        """Close all open event streams."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""


class Application(AsgiApplication):
    """The service.

    Args:
        service: Campaigns, keys and projections.
        pages: The dashboard; None for the API alone.
    """

    def __init__(self, service: Service, pages: PageApplication | None = None) -> None:
        self.service, self.pages = service, pages
        self._keys: asyncio.Task[None] | None = None
        self._lookups = TokenBucket(LOOKUPS)

    async def respond(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self.pages is not None and self.pages.has(scope["path"]):
            await self.pages(scope, receive, send)
            return
        try:
            response = await self._answer(scope, receive)
        except Exception as error:
            response = refuse(error, scope["path"])
        await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
        await send({"type": "http.response.body", "body": response.body})

    async def _answer(self, scope: dict[str, Any], receive: Receive) -> Response:
        """Answer a request of the API through ASGI."""
        target = find_target(scope["method"], scope["path"])
        if target is None:
            return self._answer_without_key(scope["method"], scope["path"], scope["query_string"])
        # The key is checked before the body is read.
        request = await self._authenticated(target, scope)
        raw = await read_body(request, receive)
        # Load the campaign if it is not in memory. If another replica owns it, let that answer.
        await self.service.keeper.prepare(target.campaign)
        if must_forward(self.service.keeper, request):
            forwarded = await forward(self.service.keeper, request, raw)
            if forwarded is not None:
                return forwarded
        # Carry out the request, and wait until its changes are durable.
        if target.route.direct:
            response: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
            self._carry_out(request, raw, lambda found: None if response.done() else response.set_result(found))
            return await response
        return encoded(target.route, await target.route.handler(understand(self.service, request, raw)))

    async def _authenticated(self, target: Target, scope: dict[str, Any]) -> AuthenticatedRequest:
        """Check the key of a request; an unknown one may be new in the store, where another replica added it."""
        try:
            return authenticate(self.service.keyring, target, scope)
        except Refusal as refusal:
            if refusal.kind != "unauthenticated" or not self._lookups.take():
                raise
            unknown = refusal
        try:
            await self.service.keeper.ask_store(self.service.keyring.load)
        except StoreError as error:
            raise Refusal.unavailable(str(error)) from error
        if not self.service.keyring.knows(dict(scope["headers"])):
            raise unknown  # and not another one, which would count twice
        return authenticate(self.service.keyring, target, scope)

    def direct_target(self, scope: dict[str, Any]) -> Target | None:
        """Return the target of a request that :meth:`answer_directly` can answer; None for all other requests."""
        target = find_target(scope["method"], scope["path"])
        if target is None or not target.route.direct or target.campaign not in self.service.keeper.owned:
            return None
        return target

    def answer_directly(self, target: Target, scope: dict[str, Any], raw: bytes, reply: Reply) -> None:
        """Answer a request without a task, once its changes are durable.

        Args:
            target: The result of :meth:`direct_target`.
            scope: The ASGI scope of the request.
            raw: The complete body.
            reply: Called once, now or later.
        """
        try:
            request = authenticate(self.service.keyring, target, scope)
            check_body(request, len(raw))
        except Exception as error:
            if isinstance(error, Refusal) and error.kind == "unauthenticated":
                self.service.keeper.spawn(self._answer_again(target, scope, raw, reply))
            else:
                reply(refuse(error, scope["path"]))
        else:
            self._carry_out(request, raw, reply)

    async def _answer_again(self, target: Target, scope: dict[str, Any], raw: bytes, reply: Reply) -> None:
        """Answer a request with an unknown key after a look in the store."""
        try:
            request = await self._authenticated(target, scope)
            check_body(request, len(raw))
        except Exception as error:
            reply(refuse(error, scope["path"]))
        else:
            self._carry_out(request, raw, reply)

    def _carry_out(self, request: AuthenticatedRequest, raw: bytes, reply: Reply) -> None:
        """Decode and carry out a request on a direct route; reply once its changes are durable."""
        route = request.target.route
        try:
            context = understand(self.service, request, raw)
            owned, answer = route.handler(context)
        except Exception as error:
            if isinstance(error, Refusal) and error.kind == "forgotten":  # only the handler raises this kind
                self.service.keeper.spawn(self._settle_again(route, context, reply))
            else:
                reply(refuse(error, request.scope["path"]))
            return

        def finish(refusal: Refusal | None) -> None:
            reply(encoded(route, answer) if refusal is None else refuse(refusal, request.scope["path"]))

        owned.when_durable(finish)

    async def _settle_again(self, route: Route, context: Context, reply: Reply) -> None:
        """Reply to a request about a decision that is no longer in memory, from the journal."""
        try:
            answer = await context.keeper.settle_again(context.campaign, context.body, context.number())
            reply(encoded(route, answer))
        except Exception as error:
            reply(refuse(error, context.path))

    def _answer_without_key(self, method: str, path: str, query: bytes) -> Response:
        """Answer the routes that need no key: health, readiness and the description of the API."""
        if path in OPEN and query:
            raise Refusal.invalid("the query may have no parameters.")
        if method == "GET" and path == "/healthz":
            return respond(200, JSON, b'{"ok":true}')
        if method == "GET" and path == "/readyz":
            keeper = self.service.keeper
            damaged = sorted(keeper.damaged)[:MOST_NAMED]
            return respond(
                200 if keeper.is_ready else 503, JSON, encode({"ready": keeper.is_ready, "damaged": damaged})
            )
        if method == "GET" and path == "/openapi.json":
            return respond(200, JSON, encode(document()))
        allowed = ["GET"] if path in OPEN else []
        allowed += [other for other, known in TABLE if known == shape_of(path)[0]]
        if allowed:
            raise Refusal("method-not-allowed", f"{method} is not allowed on {path[:200]}.", allow=tuple(allowed))
        raise Refusal("not-found", f"there is nothing at {path[:200]}; see /openapi.json.")

    async def live(self, receive: Receive, send: Send) -> None:
        """Start and stop the keeper with the server."""
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
        """Reload the keys periodically, since other replicas create and remove some."""
        while True:
            await asyncio.sleep(KEYS_AGAIN)
            try:
                await self.service.keeper.in_thread(self.service.keyring.load)
            except Exception as error:
                log.warning("keys could not be read: %s", error)


def encoded(route: Route, answer: Any) -> Response:
    """Return the response with the answer of a handler."""
    if route.answer is str:
        return respond(route.status, TEXT, answer.encode())
    return respond(route.status, JSON, encode(answer))
