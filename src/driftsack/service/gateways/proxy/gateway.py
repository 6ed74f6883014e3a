"""``Gateway``: what happens to a request between its body and its answer.

Decide, call, settle; and if the upstream fails, do it again with the arms that are left, within the request's deadline.
Each attempt has its own decision, whose reservation is at least its worst case, and settles it in one ``finally``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import httpx

from driftsack.client import RemoteDecision
from driftsack.service.gateways.decision_id import DecisionId
from driftsack.service.gateways.proxy.attempt import Attempt, AttemptTerms, UpstreamFailedError
from driftsack.service.gateways.proxy.breaker import CircuitBreaker
from driftsack.service.gateways.proxy.clients import ClientPool, ServiceAsk
from driftsack.service.gateways.proxy.formats.wire_format import WireFormat
from driftsack.service.gateways.proxy.observed import Journey, ProxyObserver
from driftsack.service.gateways.proxy.offers import CallerRequest, Offer
from driftsack.service.gateways.proxy.outcomes import CANCELLED, OutcomeTeller
from driftsack.service.gateways.proxy.prices import Usage
from driftsack.service.gateways.proxy.rejections import Rejected
from driftsack.service.gateways.proxy.reply import Headers, Reply
from driftsack.service.gateways.proxy.settings import ProxySettings, Upstream

if TYPE_CHECKING:
    from driftsack.service.gateways.proxy.tracing import ProxyTracer

CONNECT: Final = 10.0  # seconds until an upstream must accept a connection
TYPICAL: Final = Usage(1000, 500)  # the request whose cost is listed if prices change by date
LEASE_SLACK: Final = 30  # seconds of a lease beyond the deadline of the request
log = logging.getLogger("driftsack.proxy")


class Failed(NamedTuple):
    """An arm that gave no answer.

    Attributes:
        arm: The arm.
        problem: The answer to the caller, if no other arm answers.
        unsent: Whether nothing was sent to its upstream.
    """

    arm: str
    problem: Rejected
    unsent: bool = False


class Gateway:
    """Answers requests.

    Args:
        settings: The settings of the proxy.
        tracer: Makes spans; None for none.

    Attributes:
        clients: The clients of the service.
        settlement: Tells outcomes.
        breaker: Of the arms.
        observer: Counts, logs and traces.
    """

    def __init__(self, settings: ProxySettings, tracer: ProxyTracer | None = None) -> None:
        self._settings = settings
        self._reward = settings.reward_function()
        self.clients = ClientPool(settings)
        self.settlement = OutcomeTeller(settings)
        self.breaker = CircuitBreaker(settings.rest, probe=settings.most_seconds)
        self.observer = ProxyObserver(tracer)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=200)
        timeout = httpx.Timeout(settings.most_seconds, connect=min(CONNECT, settings.most_seconds))
        self._http = httpx.AsyncClient(limits=limits, timeout=timeout, follow_redirects=False)

    async def close(self) -> None:
        """Tell what can still be told, and disconnect."""
        await self.settlement.close()
        await self.clients.close()
        await self._http.aclose()
        self.observer.close()

    async def answer(self, asked: CallerRequest, offers: list[Offer], reply: Reply, journey: Journey) -> None:
        """Answer a request, with another arm if one fails; this never raises."""
        try:
            await self._answer(asked, offers, reply, journey)
        except Rejected as rejected:
            self._reject(asked.wire, rejected, reply)
        except Exception:
            log.exception("a request failed")
            self._reject(asked.wire, Rejected(500, "internal", "internal error; see the log of the proxy."), reply)
        finally:
            reply.end()
            self.observer.answered(journey, reply.status)

    def _reject(self, wire: WireFormat, rejected: Rejected, reply: Reply) -> None:
        """Answer with an error, or end a stream with one."""
        if reply.status:
            reply.write(wire.error_event(rejected))
        else:
            reply.whole(rejected.status, wire.problem(rejected), rejected.headers())

    async def _answer(self, asked: CallerRequest, offers: list[Offer], reply: Reply, journey: Journey) -> None:
        """Try one arm after the other until one answers."""
        settings, left = self._settings, {offer.upstream.arm: offer for offer in offers}
        deadline = time.monotonic() + settings.most_seconds
        tries = settings.attempts if settings.fallback else 1
        problem: Rejected | None = None
        while left and tries and time.monotonic() < deadline:
            try:
                failed = await self._try(asked, left, deadline, reply, journey)
            except Rejected as rejected:
                raise problem or rejected from rejected
            if failed is None:
                return
            tries -= not failed.unsent
            problem = failed.problem if problem is None or not failed.unsent else problem
            left.pop(failed.arm)
            if reply.status:  # a stream that has begun cannot begin again
                break
        raise problem or Rejected.unavailable("no upstream could be tried.")

    async def _try(
        self, asked: CallerRequest, left: dict[str, Offer], deadline: float, reply: Reply, journey: Journey
    ) -> Failed | None:
        """Ask which arm to use, call its upstream, and settle the decision; return what failed, if anything did."""
        decision = await self._ask(asked, left, deadline)
        client = self.clients.client(asked.key, asked.campaign)
        arm, attempt, span = decision.name, None, None
        try:
            if arm not in left:
                raise Rejected.skipped(decision.reason or "policy")
            self._check_resources(decision)
            if self._seconds(decision, deadline) <= 0:
                return Failed(arm, Rejected(504, "upstream_timeout", "no time was left for an upstream."), unsent=True)
            reserved = self._reserved(decision)
            offer, limit = left[arm], left[arm].fitting(reserved)
            if limit is None:
                return Failed(arm, too_large(offer, reserved), unsent=True)
            terms = AttemptTerms(
                offer.upstream, offer.upstream.prices(), offer.translation, asked.body, limit, reserved
            )
            attempt, span = Attempt(self._http, terms, self._reward), self.observer.calls(journey, terms)
            self.breaker.begin(arm)
            async with asyncio.timeout(self._seconds(decision, deadline)):
                await attempt.run(reply, self._headers(asked, offer, decision, limit))
        except UpstreamFailedError as error:
            log.warning("the upstream of %s failed: %s", arm, error.why)
            self.breaker.failed(arm, error.fatal, error.retry_after)
            return Failed(arm, failure_of(arm, error))
        except TimeoutError:
            self.breaker.failed(arm)
            return Failed(arm, Rejected(504, "upstream_timeout", f"the upstream of {arm} did not answer in time."))
        except BaseException:
            self.breaker.leave(arm)
            raise
        finally:
            outcome = CANCELLED if attempt is None else attempt.outcome
            if not decision.skipped:
                self.settlement.settle(client, decision, outcome, 0.0 if attempt is None else attempt.seconds())
                self._count(journey, arm, attempt)
                self.observer.called(span, attempt, decision.number)
        self.breaker.succeeded(arm)
        return None

    async def _ask(self, asked: CallerRequest, left: dict[str, Offer], deadline: float) -> RemoteDecision:
        """Ask about the arms whose upstreams work, with the largest of their worst cases as the cap."""
        settings, arms = self._settings, self.breaker.allowed(left)
        if not arms:
            seconds = self.breaker.waits(left)
            raise Rejected.unavailable("the upstreams of all arms fail; they are tried again soon.", seconds)
        seconds = max(deadline - time.monotonic(), 0.001)
        caps: dict[str, Any] = {settings.time: f"{seconds:.6f}"} if settings.time else {}
        if all(left[arm].demand.bounded for arm in arms):
            caps[settings.money] = max(left[arm].most() for arm in arms)
        lease, listed = int(seconds) + LEASE_SLACK, self._listed([left[arm].upstream for arm in arms])
        terms = ServiceAsk(arms, caps, lease, listed, asked.labels, *asked.context)
        return await self.clients.ask(asked.key, asked.campaign, terms)

    def _listed(self, upstreams: list[Upstream]) -> dict[str, Any] | None:
        """Return the price list of the day: what a typical request costs with each arm; None if no price changes."""
        if not self._settings.announce_prices or not any(u.has_dated_prices() for u in self._settings.upstream):
            return None
        return {self._settings.money: {u.arm: u.prices().cost(TYPICAL) for u in upstreams}}

    def _check_resources(self, decision: RemoteDecision) -> None:
        """Reject a decision that also reserves what the proxy does not measure: its outcome would be refused."""
        others = sorted(set(decision.reserved) - {self._settings.money, self._settings.time})
        if others:
            known = f"the campaign also charges {others}, which the proxy does not measure; use one without them."
            raise Rejected(500, "misconfigured", known)

    def _reserved(self, decision: RemoteDecision) -> Decimal:
        """Return the dollars that are reserved for a decision."""
        return Decimal(decision.reserved.get(self._settings.money, "0"))

    def _seconds(self, decision: RemoteDecision, deadline: float) -> float:
        """Return the seconds that an attempt may take."""
        settings, left = self._settings, deadline - time.monotonic()
        left = min(left, settings.attempt_seconds or left)
        return min(left, float(decision.reserved.get(settings.time, left))) if settings.time else left

    def _headers(self, asked: CallerRequest, offer: Offer, decision: RemoteDecision, limit: int) -> Headers:
        """Return the headers of an answer: its arm, the id for feedback, and the limit if it was lowered."""
        name = str(DecisionId(asked.campaign, decision.number or 0, decision.token))
        headers = [(b"x-driftsack-arm", offer.upstream.arm.encode()), (b"x-driftsack-decision", name.encode())]
        wanted = offer.demand.limit
        if offer.demand.answers and limit < (offer.upstream.max_tokens if wanted is None else wanted):
            headers.append((b"x-driftsack-max-tokens", b"%d" % limit))
        return headers

    def _count(self, journey: Journey, arm: str, attempt: Attempt | None) -> None:
        """Count and log an attempt."""
        if attempt is None:
            self.observer.tried(journey, arm, "unsent", Decimal(0), alarm=False)
            return
        if attempt.alarm:
            log.error("the upstream of %s: %s; the worst case is charged", arm, attempt.alarm)
        outcome = attempt.outcome
        self.observer.tried(journey, arm, outcome.kind, outcome.dollars, alarm=bool(attempt.alarm))


def too_large(offer: Offer, reserved: Decimal) -> Rejected:
    """The answer to a request that costs more than its arm may."""
    return Rejected(
        400,
        "request_too_large",
        f"the request may cost {offer.most():f} dollars with {offer.upstream.arm}, for which the campaign reserves "
        f"{reserved:f} at most; shorten it, or let the operator raise cost_max.",
    )


def failure_of(arm: str, error: UpstreamFailedError) -> Rejected:
    """The answer if no upstream has answered; the content of its error stays here, since it may quote our key."""
    message = f"the upstream of {arm} failed: {error.why}."
    if error.retry_after:
        return Rejected.unavailable(message, error.retry_after)
    return Rejected(502, "upstream_failed", message)
