"""``Call``: one request to an upstream, whose decision is settled whatever happens."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any, Final

import httpx

from driftsack.client import RemoteDecision
from driftsack.service.gateways.proxy.clients import ClientPool
from driftsack.service.gateways.proxy.table import ProxySettings, Upstream, clean_reward

DATA: Final = b"data:"
DONE: Final = b"[DONE]"
CLIENT_ERROR: Final = range(400, 500)
FAILED: Final = 400
log = logging.getLogger("driftsack.proxy")


class Call:
    """One request to an upstream; ``most`` is its maximum cost there, in dollars."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        clients: ClientPool,
        settings: ProxySettings,
        key: str,
        decision: RemoteDecision,
        request: dict[str, Any],
        most: Decimal,
    ) -> None:
        self._http, self._clients, self._settings, self._key, self._decision = http, clients, settings, key, decision
        self._request, self._most = request, most
        self._upstream = next(u for u in settings.upstream if u.arm == decision.name)
        self._reward = settings.reward_function()
        self._start = time.monotonic()

    @property
    def upstream(self) -> Upstream:
        """The upstream that was chosen."""
        return self._upstream

    def _sent(self, stream: bool) -> httpx.Request:
        """Build the request to the upstream."""
        upstream = self._upstream
        body = {**self._request, "model": upstream.model}
        limit = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
        body[limit] = upstream.limit(self._request)
        if stream:
            options = body.get("stream_options")
            body["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
        headers = {"authorization": f"Bearer {upstream.key()}"} if upstream.key() else {}
        return self._http.build_request(
            "POST", f"{upstream.url.rstrip('/')}/chat/completions", json=body, headers=headers
        )

    async def whole(self) -> tuple[int, bytes]:
        """Wait for the complete answer, and return its status and content."""
        try:
            response = await self._http.send(self._sent(stream=False))
        except httpx.HTTPError as error:
            return self._broken(error)
        if response.status_code >= FAILED:
            self._refused(response.status_code)
            return response.status_code, response.content
        try:
            answer = json.loads(response.content)
        except ValueError:
            answer = {}
        self._settle(answer if isinstance(answer, dict) else {})
        return response.status_code, response.content

    async def open(self) -> httpx.Response | tuple[int, bytes]:
        """Open a stream; if the upstream refuses, return the status and content of its error."""
        try:
            response = await self._http.send(self._sent(stream=True), stream=True)
        except httpx.HTTPError as error:
            return self._broken(error)
        if response.status_code < FAILED:
            return response
        content = await response.aread()
        self._refused(response.status_code)
        return response.status_code, content

    async def lines(self, response: httpx.Response) -> AsyncIterator[bytes]:
        """Yield the events of a stream, which the caller must read to the end; then the decision is settled."""
        hide = not (isinstance(self._request.get("stream_options"), dict) and self._asked_for_usage())
        last: dict[str, Any] = {}
        text: list[str] = []
        whole = False
        # Relay the lines, and note the text and the usage.
        try:
            async for line in response.aiter_lines():
                raw = line.encode()
                event = parsed(raw)
                if raw.startswith(DATA) and raw[len(DATA) :].strip() == DONE:
                    whole = True
                if event is not None:
                    text += pieces(event)
                    last = event if event.get("usage") else last
                    if hide and event.get("usage") and not event.get("choices"):
                        continue
                yield raw + b"\n"
        except httpx.HTTPError as error:
            log.warning("the stream of %s broke: %s", self._upstream.arm, error)
        finally:
            await response.aclose()
            # Settle: a stream that broke earns nothing, and without a usage the maximum is charged.
            answer = {"usage": last.get("usage"), "choices": [{"message": {"content": "".join(text)}}]}
            if whole or last:
                self._settle(answer)
            else:
                self._tell(0.0, self._upstream.charged(last.get("usage"), self._most))

    def _asked_for_usage(self) -> bool:
        return bool(self._request["stream_options"].get("include_usage"))

    def _settle(self, answer: dict[str, Any]) -> None:
        """Tell reward and cost of an answer."""
        seconds = time.monotonic() - self._start
        try:
            reward = clean_reward(self._reward(self._request, answer, seconds))
        except Exception:
            log.exception("the reward function failed; the reward is 0")
            reward = 0.0
        self._tell(reward, self._upstream.charged(answer.get("usage"), self._most))

    def _tell(self, reward: float, dollars: Decimal) -> None:
        seconds = min(time.monotonic() - self._start, self._settings.most_seconds)
        self._clients.tell(self._key, self._decision, reward, dollars, seconds)

    def _refused(self, status: int) -> None:
        """Settle an error response, which is not billed; only a failure of the upstream is learnt from."""
        if status in CLIENT_ERROR and status not in (408, 429):
            self._clients.cancel(self._key, self._decision)
        else:
            self._tell(0.0, Decimal(0))

    def _broken(self, error: httpx.HTTPError) -> tuple[int, bytes]:
        """Settle a failed call; if the upstream was reached, it may have billed the maximum cost."""
        reached = not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
        self._tell(0.0, self._most if reached else Decimal(0))
        return 502, problem(f"the upstream {self._upstream.arm} did not answer: {type(error).__name__}.", "upstream")


def parsed(raw: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a line of a stream; None if there is none."""
    if not raw.startswith(DATA):
        return None
    try:
        found = json.loads(raw[len(DATA) :])
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def pieces(event: dict[str, Any]) -> list[str]:
    """Return the pieces of text in an event of a stream."""
    found = []
    for choice in event.get("choices") or []:
        delta = choice.get("delta") if isinstance(choice, dict) else None
        if isinstance(delta, dict) and isinstance(delta.get("content"), str):
            found.append(delta["content"])
    return found


def problem(message: str, code: str) -> bytes:
    """Return an error in OpenAI's format."""
    return json.dumps({"error": {"message": message, "type": "driftsack", "code": code, "param": None}}).encode()
