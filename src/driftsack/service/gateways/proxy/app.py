"""``Proxy``: the endpoint for language models as an ASGI application."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from typing import Any, Final

from driftsack.client import RemoteDecision, ServiceError, ServiceUnavailableError
from driftsack.service.domain.refusals import Refusal
from driftsack.service.gateways.proxy.clients import away, of_service
from driftsack.service.gateways.proxy.formats.registry import BY_PATH, FORMATS
from driftsack.service.gateways.proxy.formats.wire_format import WireFormat
from driftsack.service.gateways.proxy.gateway import Gateway
from driftsack.service.gateways.proxy.observed import Journey
from driftsack.service.gateways.proxy.offers import CallerRequest, offers
from driftsack.service.gateways.proxy.rejections import Rejected
from driftsack.service.gateways.proxy.reply import Reply
from driftsack.service.gateways.proxy.routing import PREFIX, Routing, described, listed
from driftsack.service.gateways.proxy.settings import LARGEST_REWARD, ProxySettings
from driftsack.service.web.asgi import AsgiApplication, Receive, Send, caller_gone, whole_body

LARGEST: Final = 16 * 1024 * 1024
SMALL: Final = 64 * 1024
REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,100}")
DECISION_ID: Final = re.compile(r"([A-Za-z0-9._:@-]+)/([1-9][0-9]{0,14})/([A-Za-z0-9]+)")  # campaign, number, token
MODELS: Final = "/v1/models"
FEEDBACK: Final = "/v1/feedback"
OTHERS: Final = FORMATS["chat"]  # the format of errors on paths that have none
log = logging.getLogger("driftsack.proxy")


class Proxy(AsgiApplication):
    """The endpoint.

    Args:
        settings: The settings of the proxy.
    """

    def __init__(self, settings: ProxySettings) -> None:
        self._settings, self._routing = settings, Routing(settings)
        self._gateway: Gateway | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def live(self, receive: Receive, send: Send) -> None:
        """Start, and when the server stops, let the calls of upstreams end first."""
        await receive()
        self._gateway = Gateway(self._settings)
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
            self._gateway.metrics.answered(journey, rejected.status)

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
            text = gateway.metrics.text(gateway.settlement.unsettled(), arms, gateway.breaker.resting())
            reply.start(200, b"text/plain; version=0.0.4; charset=utf-8", length=len(text))
            reply.write(text)
            reply.end()
        elif method == "GET" and (path == MODELS or path.startswith(f"{MODELS}/")):
            reply.whole(200, json.dumps(self._models(key, path)).encode())
        elif (method, path) == ("POST", FEEDBACK):
            body = understood(await whole_body(receive, SMALL))
            await feed_back(gateway, key, body)
            reply.whole(200, b'{"ok":true}')
        elif method == "POST" and path in BY_PATH:
            body = understood(await whole_body(receive, LARGEST))
            await self._begin(gateway, key, BY_PATH[path], body, reply, journey)
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
        reply: Reply,
        journey: Journey,
    ) -> None:
        """Start the task that answers a request, which goes on if the caller leaves."""
        campaign, upstreams = self._routing.find(key, body.get("model"))
        journey.campaign = campaign
        asked = CallerRequest(key, campaign, wire, body, upstreams)
        task = asyncio.ensure_future(gateway.answer(asked, offers(asked), reply, journey))
        self._running.add(task)
        task.add_done_callback(self._running.discard)


async def feed_back(gateway: Gateway, key: str, body: dict[str, Any]) -> None:
    """Tell the reward of an answer that was given before, by the id in its header ``x-driftsack-decision``."""
    name, score = body.get("id"), body.get("score")
    parts = DECISION_ID.fullmatch(name) if isinstance(name, str) else None
    if parts is None:
        raise Rejected.invalid(f"id must be the header x-driftsack-decision of an answer, got {name!r:.60}.")
    if not isinstance(score, (int, float)) or not abs(score) <= LARGEST_REWARD:  # NaN is not
        raise Rejected.invalid(f"score must be a number, or true or false, got {score!r:.60}.")
    campaign, number, token = parts.groups()
    await gateway.clients.check(key, campaign)
    decision = RemoteDecision(int(number), "", skipped=False, token=token)
    try:
        await gateway.clients.client(key, campaign).tell(decision, float(score))
    except ServiceUnavailableError as error:
        raise away() from error
    except ServiceError as error:
        raise of_service(error) from error


def understood(raw: bytes) -> dict[str, Any]:
    """Return the body of a request, which must be an object of JSON without NaN."""
    try:
        found = json.loads(raw, parse_constant=unknown_number)
    except (ValueError, RecursionError) as error:
        raise Rejected.invalid(f"the body must be JSON: {error}.") from error
    if not isinstance(found, dict):
        raise Rejected.invalid("the body must be an object.")
    return found


def unknown_number(name: str) -> float:
    """Refuse NaN and the infinities, which JSON does not have."""
    raise ValueError(f"{name} is no number")


def key_of(headers: dict[bytes, bytes]) -> str:
    """Return the API key of a request, as the clients of OpenAI or of Anthropic send it."""
    given = headers.get(b"authorization", b"").decode("latin-1")
    scheme, _, key = given.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else headers.get(b"x-api-key", b"").decode("latin-1")


def request_id(headers: dict[bytes, bytes]) -> str:
    """Return the id of a request: its own, or a new one."""
    given = headers.get(b"x-request-id", b"")
    return given.decode() if REQUEST_ID.fullmatch(given) else secrets.token_hex(12)
