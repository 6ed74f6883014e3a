"""``Proxy``: the OpenAI-compatible endpoint as an ASGI application."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, Final

import httpx

from driftsack.client import ServiceError, ServiceUnavailableError
from driftsack.service.domain.refusals import Refusal
from driftsack.service.gateways.proxy.call import Call, problem
from driftsack.service.gateways.proxy.clients import ClientPool
from driftsack.service.gateways.proxy.table import ProxySettings
from driftsack.service.web.asgi import AsgiApplication, Receive, Send, caller_gone, whole_body

LARGEST: Final = 16 * 1024 * 1024
JSON: Final = b"application/json"
CONNECT: Final = 10.0  # seconds until an upstream must accept a connection
ANY: Final = "driftsack"
SKIPPED: Final = {
    "budget": (429, "the budgets of the campaign do not cover this request."),
    "policy": (429, "the campaign saves its budget and skips this request."),
    "horizon": (429, "the campaign has made all its decisions."),
    "paused": (503, "the campaign is paused."),
    "watching": (503, "the campaign only watches; switch it on first."),
}
log = logging.getLogger("driftsack.proxy")


class Rejected(Exception):  # noqa: N818  (it is an answer)
    """A request that is not sent to any upstream, with the status and body of its response."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.status, self.body = status, body


class Proxy(AsgiApplication):
    """The OpenAI-compatible endpoint."""

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self._clients = ClientPool(settings)
        self._http: httpx.AsyncClient | None = None
        self._draining: set[asyncio.Task[None]] = set()

    async def respond(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            await self._answer(scope, receive, send)
        except Rejected as rejected:
            await answer(send, rejected.status, rejected.body)
        except Refusal as refusal:
            await answer(send, refusal.status, problem(refusal.detail, refusal.kind))

    async def live(self, receive: Receive, send: Send) -> None:
        """Open the connections, and drain them when the server stops."""
        await receive()
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=200)
        timeout = httpx.Timeout(self._settings.most_seconds, connect=CONNECT)
        self._http = httpx.AsyncClient(limits=limits, timeout=timeout, follow_redirects=False)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        while self._draining:
            await asyncio.wait(self._draining)
        await self._clients.close()
        await self._http.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request by its route."""
        where = scope["method"], scope["path"]
        if where == ("GET", "/healthz"):
            await answer(send, 200, b'{"ok":true}')
        elif where == ("GET", "/v1/models"):
            names = [ANY, *(upstream.arm for upstream in self._settings.upstream)]
            models = [{"id": name, "object": "model", "created": 0, "owned_by": ANY} for name in names]
            await answer(send, 200, json.dumps({"object": "list", "data": models}).encode())
        elif where == ("POST", "/v1/chat/completions"):
            await self._complete(dict(scope["headers"]), receive, send)
        else:
            raise Rejected(404, problem(f"there is nothing at {scope['path'][:200]}.", "not_found"))

    async def _complete(self, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        """Choose an upstream, call it, and settle the decision."""
        # Ask the service, which reserves the request's maximum cost.
        key = headers.get(b"authorization", b"")[7:].decode("latin-1")
        raw = await whole_body(receive, LARGEST)
        request = understood(raw)
        call = await self._decide(key, request, len(raw))
        arm = (b"x-driftsack-arm", call.upstream.arm.encode())
        # Answer as a whole; the call continues if the caller disconnects.
        if not request.get("stream"):
            task = asyncio.ensure_future(call.whole())
            status, body = await asyncio.shield(self._kept(task))
            await answer(send, status, body, [arm])
            return
        # Or relay the stream.
        opened = await call.open()
        if isinstance(opened, tuple):
            await answer(send, *opened, [arm])
            return
        kind = (b"content-type", b"text/event-stream")
        await send(
            {"type": "http.response.start", "status": 200, "headers": [kind, arm, (b"cache-control", b"no-store")]}
        )
        await self._kept(asyncio.ensure_future(self._relay(call, opened, receive, send)))

    def _kept(self, task: asyncio.Task[Any]) -> asyncio.Task[Any]:
        """Keep a task until it is done, so that the server waits for it when it stops."""
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)
        return task

    async def _relay(self, call: Call, opened: httpx.Response, receive: Receive, send: Send) -> None:
        """Relay a stream; if the caller disconnects, read it to the end, which contains the usage."""
        gone = asyncio.ensure_future(caller_gone(receive))
        try:
            async for line in call.lines(opened):
                if not gone.done():
                    await send({"type": "http.response.body", "body": line, "more_body": True})
            if not gone.done():
                await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()

    async def _decide(self, key: str, request: dict[str, Any], size: int) -> Call:
        """Ask the service which upstream to use, and reserve the request's maximum cost."""
        settings, wanted = self._settings, request.get("model")
        offered = [u for u in settings.upstream if wanted in (ANY, settings.campaign, u.arm)]
        if not offered:
            names = [ANY, *(upstream.arm for upstream in settings.upstream)]
            raise Rejected(404, problem(f"model must be one of {names}, got {wanted!r:.60}.", "model_not_found"))
        most = {upstream.arm: upstream.most(request, size) for upstream in offered}
        try:
            decision = await self._clients.ask(key, list(most), max(most.values()))
        except ServiceUnavailableError as error:
            raise Rejected(503, problem("the decision service cannot be reached.", "unavailable")) from error
        except ServiceError as error:
            status = error.status if error.status in (401, 403, 404, 409, 429) else 500
            raise Rejected(status, problem(str(error), error.kind)) from error
        if decision.skipped or decision.name is None:
            status, says = SKIPPED[decision.reason or "policy"]
            raise Rejected(status, problem(says, decision.reason or "policy"))
        if self._http is None:
            raise Rejected(503, problem("the proxy has not started yet.", "unavailable"))
        return Call(self._http, self._clients, settings, key, decision, request, most[decision.name])


def understood(raw: bytes) -> dict[str, Any]:
    """Decode the body of a request."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Rejected(400, problem(f"the body must be JSON: {error}.", "malformed")) from error
    if not isinstance(found, dict) or not isinstance(found.get("messages"), list):
        raise Rejected(422, problem("the body must be an object with a list of messages.", "invalid"))
    return found


async def answer(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    """Send a complete response."""
    own = [(b"content-type", JSON), (b"content-length", b"%d" % len(body)), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": own + (headers or [])})
    await send({"type": "http.response.body", "body": body})
