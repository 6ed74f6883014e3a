"""``Attempt``: one call of an upstream, whose outcome is known at every moment.

``outcome`` is always what would have to be told if the call ended now: cancelled before anything is sent, the worst
case from then on, nothing for an answer that is not billed, and at last the charge by the usage.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

import httpx

from driftsack.service.gateways.proxy.formats.events import DONE, EventSplitter, EventTooLargeError, content_of
from driftsack.service.gateways.proxy.formats.translation import UNREADABLE, Translation
from driftsack.service.gateways.proxy.outcomes import CANCELLED, CallOutcome
from driftsack.service.gateways.proxy.prices import Prices, Usage
from driftsack.service.gateways.proxy.rejections import Rejected
from driftsack.service.gateways.proxy.reply import STREAM, Headers, Reply
from driftsack.service.gateways.proxy.settings import Reward, Upstream, clean_reward

LARGEST_ANSWER: Final = 64 * 1024 * 1024
NOT_REACHED: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
CALLERS_FAULT: Final = (400, 413, 414, 415, 422)
BUSY: Final = (408, 409, 425, 429)
REFUSES_US: Final = (401, 402, 404, 405)
LONGEST_MESSAGE: Final = 2000
log = logging.getLogger("driftsack.proxy")


class UpstreamFailedError(Exception):
    """An upstream gave no valid answer.

    Args:
        why: The reason, which quotes nothing of its answer.
        fatal: Whether a repetition will fail, too.
        retry_after: Seconds after which it wants to be asked again.
    """

    def __init__(self, why: str, fatal: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(why)
        self.why, self.fatal, self.retry_after = why, fatal, retry_after


class AttemptTerms(NamedTuple):
    """What an attempt is about.

    Attributes:
        upstream: The upstream.
        prices: Its prices.
        translation: Between the formats of the caller and of the upstream.
        request: The request of the caller.
        limit: The limit of an answer, in tokens.
        reserved: Dollars that are reserved, which the request cannot exceed.
    """

    upstream: Upstream
    prices: Prices
    translation: Translation
    request: dict[str, Any]
    limit: int
    reserved: Decimal


class Attempt:
    """One call of an upstream.

    Args:
        http: Sends requests.
        terms: What it is about.
        reward: Computes the reward of an answer.

    Attributes:
        outcome: What would have to be told if the call ended now.
        alarm: What is wrong with the usage; empty if nothing is.
        answer: The answer as far as it has come, in the upstream's format.
        usage: The usage that it reports; None if there is none that can be believed.
        failed: Why there is no answer, as a short identifier; empty if there is one.
    """

    def __init__(self, http: httpx.AsyncClient, terms: AttemptTerms, reward: Reward) -> None:
        self._http, self._terms, self._reward = http, terms, reward
        self._start = time.monotonic()
        self.outcome: CallOutcome = CANCELLED
        self.alarm = self.failed = ""
        self.answer: dict[str, Any] = {}
        self.usage: Usage | None = None

    def seconds(self) -> float:
        """Return the seconds since the beginning."""
        return time.monotonic() - self._start

    async def run(self, reply: Reply, headers: Headers) -> None:
        """Call the upstream and answer the caller.

        Raises:
            UpstreamFailedError: The upstream gave no valid answer; the reply may have begun.
            Rejected: The upstream refused the request itself.
        """
        request = self._sent()
        self.outcome, self.failed = CallOutcome("failed", self._terms.reserved), "timeout"  # if it is ended
        try:
            response = await self._http.send(request, stream=True)
            try:
                await self._answered(response, reply, headers)
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            self.failed = type(error).__name__
            if isinstance(error, NOT_REACHED):
                self.outcome = CallOutcome("failed")
            raise UpstreamFailedError(f"it did not answer, or not completely ({type(error).__name__})") from error
        except EventTooLargeError as error:
            raise UpstreamFailedError("its answer is too large") from error

    def _sent(self) -> httpx.Request:
        """Build the request to the upstream."""
        terms, upstream = self._terms, self._terms.upstream
        body = {**terms.translation.request(terms.request), "model": upstream.model}
        wire = terms.translation.upstream
        body = wire.limited(body, terms.limit, upstream.limit)
        body = wire.streamed(body) if body.get("stream") else body
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        key = upstream.key()
        if upstream.protocol == "anthropic":
            headers |= {"anthropic-version": "2023-06-01"} | ({"x-api-key": key} if key else {})
        elif key:
            headers |= {"authorization": f"Bearer {key}"}
        url = upstream.url.rstrip("/") + wire.path
        return self._http.build_request("POST", url, content=encoded(body), headers=headers)

    async def _answered(self, response: httpx.Response, reply: Reply, headers: Headers) -> None:
        """Handle an answer by its status."""
        status = response.status_code
        if status >= 300 or status < 200:
            self.outcome = CallOutcome("failed")  # an error is not billed
            await self._refused(response)
        elif self._terms.request.get("stream"):
            await self._streamed(response, reply, headers)
        else:
            reply.whole(200, self._read(await read_all(response)), headers)

    def _read(self, content: bytes) -> bytes:
        """Judge a complete answer, and return it for the caller."""
        translation, answer = self._terms.translation, decoded(content)
        verdict = translation.upstream.verdict(answer)
        try:
            shown = translation.answer(content, answer) if verdict.finished else None
        except UNREADABLE:  # a value of another type
            shown = None
        self._judge(shown is not None, verdict.usage, answer)
        if shown is None:
            raise UpstreamFailedError("its answer is not a complete one")
        return shown

    async def _refused(self, response: httpx.Response) -> None:
        """Raise what follows from an error of the upstream."""
        status = response.status_code
        self.failed = str(status)
        if status in CALLERS_FAULT:
            self.outcome = CANCELLED
            message = self._scrubbed(message_of(decoded(await read_all(response))))
            raise Rejected(status, "refused_by_upstream", message)
        why = f"it answered with status {status}"
        if status in BUSY or status >= 500:
            raise UpstreamFailedError(why, retry_after=seconds_of(response.headers.get("retry-after", "")))
        raise UpstreamFailedError(why, fatal=status in REFUSES_US or status < 400)

    def _scrubbed(self, message: str) -> str:
        """Return a message of the upstream without our key."""
        key = self._terms.upstream.key()
        return (message.replace(key, "...") if key else message)[:LONGEST_MESSAGE]

    async def _streamed(self, response: httpx.Response, reply: Reply, headers: Headers) -> None:
        """Relay a stream, byte by byte unless it is translated, and judge what it said, however it ends."""
        terms = self._terms
        reader, relay = terms.translation.upstream.reader(), terms.translation.relay(terms.request)
        held: list[bytes] = []  # what must not be seen before it is known what follows
        ended = False  # only then the usage is the last one
        try:
            async for event in events_of(response):
                content = content_of(event)
                shown = reader.read(content)
                if reader.failed:
                    break
                held += relay.events(event, content, shown)
                ended = ended or (content is None and DONE in event)
                if content is None and (not reply.status or ended):
                    continue
                if held and not reply.status:
                    reply.start(200, STREAM, headers)
                for part in held:
                    reply.write(part)
                held = []
            else:
                ended = True
        except UNREADABLE as error:  # a value of another type
            reader.failed = True
            raise UpstreamFailedError("its stream is not valid") from error
        finally:
            answer = {**reader.names, **reader.answer()}
            verdict = terms.translation.upstream.verdict(answer)
            finished = verdict.finished and not reader.failed
            self._judge(finished, verdict.usage if ended else None, answer)
        if not finished:
            raise UpstreamFailedError("its stream broke" if not reader.failed else "its stream reported an error")
        for part in (*held, *relay.last()):
            reply.write(part)
        reply.end()

    def _judge(self, finished: bool, usage: Usage | None, answer: dict[str, Any]) -> None:
        """Note the outcome of an answer: its charge, which is never above the reservation, and its reward."""
        self.answer, self.usage = answer, usage
        dollars = self._terms.reserved if usage is None else self._terms.prices.cost(usage)
        if dollars > self._terms.reserved:
            self.alarm = f"its usage costs {dollars} dollars, above the worst case of {self._terms.reserved}"
            dollars = self._terms.reserved
        self.failed = "" if finished else "invalid_answer"
        if not finished:
            self.outcome = CallOutcome("failed", dollars)
            return
        self.outcome = CallOutcome("answered", dollars)  # should the reward function end the process
        try:
            reward = clean_reward(self._reward(self._terms.request, answer, self.seconds()))
        except Exception:
            log.exception("the reward function failed; the reward is 0")
            reward = 0.0
        self.outcome = CallOutcome("answered", dollars, reward)


def encoded(body: dict[str, Any]) -> bytes:
    """Return a request as bytes.

    Raises:
        Rejected: It has half a surrogate pair, or a number that JSON does not have.
    """
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, RecursionError) as error:
        raise Rejected.invalid(f"the body must be JSON in UTF-8: {error}.") from error


def decoded(content: bytes) -> dict[str, Any]:
    """Return a JSON object; an empty one if it is something else."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def message_of(answer: dict[str, Any]) -> str:
    """Return the message of an error of OpenAI's or Anthropic's format."""
    error = answer.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else "the upstream refused the request."


def seconds_of(retry_after: str) -> float:
    """Return the seconds of a ``Retry-After``; 0 if it has none.

    >>> seconds_of("7"), seconds_of("Wed, 21 Oct 2026 07:28:00 GMT"), seconds_of("-1")
    (7.0, 0.0, 0.0)
    """
    try:
        found = Decimal(retry_after)
    except InvalidOperation:
        return 0.0
    return float(found) if found.is_finite() and 0 <= found <= 86400 else 0.0


async def read_all(response: httpx.Response) -> bytes:
    """Return the complete content of an answer."""
    parts, size = [], 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > LARGEST_ANSWER:
            raise EventTooLargeError
        parts.append(part)
    return b"".join(parts)


async def events_of(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield the events of a stream; the last one need not be complete."""
    splitter, size = EventSplitter(), 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > LARGEST_ANSWER:
            raise EventTooLargeError
        for event in splitter.feed(chunk):
            yield event
    if rest := splitter.rest():
        yield rest
