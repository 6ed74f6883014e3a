"""``Proxy``: the endpoint for language models as an ASGI application."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from typing import TYPE_CHECKING, Any, Final

import msgspec

from driftsack.client import RemoteDecision, ServiceError, ServiceUnavailableError
from driftsack.core.errors import MissingExtraError
from driftsack.service.domain.config import Labels
from driftsack.service.domain.refusals import Refusal
from driftsack.service.gateways.decision_id import DecisionId
from driftsack.service.gateways.proxy.clients import away, of_service
from driftsack.service.gateways.proxy.contexts import ContextReader
from driftsack.service.gateways.proxy.formats.registry import BY_PATH, FORMATS
from driftsack.service.gateways.proxy.formats.wire_format import WireFormat
from driftsack.service.gateways.proxy.gateway import Gateway
from driftsack.service.gateways.proxy.observed import Journey
from driftsack.service.gateways.proxy.offers import CallerRequest, offers
from driftsack.service.gateways.proxy.rejections import Rejected, json_object
from driftsack.service.gateways.proxy.reply import Reply
from driftsack.service.gateways.proxy.routing import PREFIX, Routing, described, listed
from driftsack.service.gateways.proxy.settings import LARGEST_REWARD, ProxySettings
from driftsack.service.web.asgi import AsgiApplication, Receive, Send, caller_gone, whole_body

if TYPE_CHECKING:
    from driftsack.service.gateways.proxy.tracing import ProxyTracer

LARGEST: Final = 16 * 1024 * 1024
SMALL: Final = 64 * 1024
REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,100}")
MODELS: Final = "/v1/models"
FEEDBACK: Final = "/v1/feedback"
OTHERS: Final = FORMATS["chat"]  # the format of errors on paths that have none
log = logging.getLogger("driftsack.proxy")


class Proxy(AsgiApplication):
    """The endpoint.

    Args:
        settings: The settings of the proxy.
        tracer: Makes spans; None for those of the settings.
    """

    def __init__(self, settings: ProxySettings, tracer: ProxyTracer | None = None) -> None:
        self._tracer = tracer or tracer_of(settings)
        self._settings, self._routing, self._contexts = settings, Routing(settings), ContextReader(settings)
        self._gateway: Gateway | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def live(self, receive: Receive, send: Send) -> None:
        """Start, and when the server stops, let the calls of upstreams end first."""
        await receive()
        self._gateway = Gateway(self._settings, self._tracer)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        while self._running:
            await asyncio.wait(self._running)
        await self._gateway.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def respond(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        headers, wire = dict(scope["headers"]), BY_PATH.get(scope["path"], OTHERS)
        reply, journey = Reply(), Journey(request_id(headers), wire.name, key_of(headers)[:PREFIX])
        reply.headers = [(b"x-request-id", journey.request_id.encode())]
        try:
            if self._gateway is None:
                raise Rejected.unavailable("the proxy has not started yet.")
            if scope["path"] in BY_PATH:
                self._gateway.observer.began(journey, scope["method"], scope["path"], headers)
            await self._answer(self._gateway, scope, headers, receive, reply, journey)
        except Rejected as rejected:
            self._reject(reply, wire, rejected, journey)
        except Refusal as refusal:  # of a body that is too large or too slow
            self._reject(reply, wire, Rejected(refusal.status, refusal.kind, refusal.detail), journey)
        except Exception:
            log.exception("a request failed")
            self._reject(reply, wire, Rejected(500, "internal", "internal error; see the log of the proxy."), journey)
        # Relay the answer; a caller that leaves does not stop the call.
        gone = asyncio.ensure_future(caller_gone(receive))
        gone.add_done_callback(lambda _: reply.drop())
        try:
            await reply.send(send)
        finally:
            gone.cancel()

    def _reject(self, reply: Reply, wire: WireFormat, rejected: Rejected, journey: Journey) -> None:
        """Answer with an error."""
        reply.whole(rejected.status, wire.problem(rejected), rejected.headers())
        if self._gateway is not None:
            self._gateway.observer.answered(journey, rejected.status)

    async def _answer(
        self,
        gateway: Gateway,
        scope: dict[str, Any],
        headers: dict[bytes, bytes],
        receive: Receive,
        reply: Reply,
        journey: Journey,
    ) -> None:
        """Answer a request by its route; every route but the one for probes needs a key of the service."""
        method, path = scope["method"], scope["path"]
        if (method, path) == ("GET", "/healthz"):
            reply.whole(200, b'{"ok":true}')
            return
        key = key_of(headers)
        own = self._routing.campaign_of(key)
        await gateway.clients.check(key, own.name)
        if (method, path) == ("GET", "/metrics"):
            arms = [upstream.arm for upstream in self._settings.upstream]
            text = gateway.observer.text(gateway.settlement.unsettled(), arms, gateway.breaker.resting())
            reply.start(200, b"text/plain; version=0.0.4; charset=utf-8", length=len(text))
            reply.write(text)
            reply.end()
        elif method == "GET" and (path == MODELS or path.startswith(f"{MODELS}/")):
            reply.whole(200, json.dumps(self._models(key, path)).encode())
        elif (method, path) == ("POST", FEEDBACK):
            body = json_object(await whole_body(receive, SMALL), "the body")
            await feed_back(gateway, key, body)
            reply.whole(200, b'{"ok":true}')
        elif method == "POST" and path in BY_PATH:
            body = json_object(await whole_body(receive, LARGEST), "the body")
            await self._begin(gateway, key, BY_PATH[path], body, headers, reply, journey)
        else:
            raise Rejected(404, "not_found", f"there is nothing at {method} {path[:200]}.")

    def _models(self, key: str, path: str) -> dict[str, Any]:
        """Return the models that a key may use, or one of them."""
        names, wanted = self._routing.models(key), path[len(MODELS) + 1 :]
        if wanted and wanted not in names:
            raise Rejected(404, "model_not_found", f"model must be one of {names[:20]}, got {wanted!r:.60}.")
        return described(wanted) if wanted else listed(names)

    async def _begin(
        self,
        gateway: Gateway,
        key: str,
        wire: WireFormat,
        body: dict[str, Any],
        headers: dict[bytes, bytes],
        reply: Reply,
        journey: Journey,
    ) -> None:
        """Start the task that answers a request, which goes on if the caller leaves."""
        campaign, upstreams = self._routing.find(key, body.get("model"))
        journey.campaign = campaign
        asked = CallerRequest(key, campaign, wire, body, upstreams, labels_of(headers))
        offered = offers(asked)
        asked = asked._replace(context=self._contexts.read(campaign, body, headers))
        task = asyncio.ensure_future(gateway.answer(asked, offered, reply, journey))
        self._running.add(task)
        task.add_done_callback(self._running.discard)


def tracer_of(settings: ProxySettings) -> ProxyTracer | None:
    """Return the tracer to the collector in the settings; None without one.

    Raises:
        MissingExtraError: The extra ``otel`` is not installed.
    """
    if not settings.traces:
        return None
    try:
        from driftsack.service.gateways.proxy.tracing import tracer_to
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{error.name} is not installed: pip install 'driftsack[otel]'") from error
    return tracer_to(settings.traces)


async def feed_back(gateway: Gateway, key: str, body: dict[str, Any]) -> None:
    """Tell the reward of an answer that was given before, by the id in its header ``x-driftsack-decision``."""
    known, score = DecisionId.read(body.get("id")), body.get("score")
    if known is None:
        got = body.get("id")
        raise Rejected.invalid(f"id must be the header x-driftsack-decision of an answer, got {got!r:.60}.")
    if not isinstance(score, (int, float)) or not abs(score) <= LARGEST_REWARD:  # NaN is not
        raise Rejected.invalid(f"score must be a number, or true or false, got {score!r:.60}.")
    await gateway.clients.check(key, known.campaign)
    decision = RemoteDecision(known.number, "", skipped=False, token=known.token)
    try:
        await gateway.clients.client(key, known.campaign).tell(decision, float(score))
    except ServiceUnavailableError as error:
        raise away() from error
    except ServiceError as error:
        raise of_service(error) from error


def key_of(headers: dict[bytes, bytes]) -> str:
    """Return the API key of a request, as the clients of OpenAI or of Anthropic send it."""
    given = headers.get(b"authorization", b"").decode("latin-1")
    scheme, _, key = given.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else headers.get(b"x-api-key", b"").decode("latin-1")


def labels_of(headers: dict[bytes, bytes]) -> dict[str, str] | None:
    """Return the labels of a request, which are written as ``user=ann, run=r1``; None without the header."""
    given = headers.get(b"x-driftsack-labels")
    if given is None:
        return None
    pairs = (pair.strip().partition("=") for pair in given.decode("latin-1").split(","))
    try:
        return msgspec.convert({name: label for name, _, label in pairs}, Labels)
    except msgspec.ValidationError as error:
        raise Rejected.invalid(f"x-driftsack-labels must look like user=ann, run=r1: {error}.") from error


def request_id(headers: dict[bytes, bytes]) -> str:
    """Return the id of a request: its own, or a new one."""
    given = headers.get(b"x-request-id", b"")
    return given.decode() if REQUEST_ID.fullmatch(given) else secrets.token_hex(12)
