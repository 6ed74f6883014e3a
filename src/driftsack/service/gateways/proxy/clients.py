"""``ClientPool``: one client of the decision service for each key and campaign, and the check of keys."""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from driftsack.client import AsyncClient, RemoteDecision, ServiceError, ServiceUnavailableError
from driftsack.service.gateways.proxy.breaker import CircuitBreaker
from driftsack.service.gateways.proxy.rejections import Rejected
from driftsack.service.gateways.proxy.settings import ProxySettings
from driftsack.service.web.api.keyring import MARK, PREFIX_BYTES, SECRET_BYTES

MOST_CLIENTS: Final = 1024
THREADS: Final = 64
CHECKS: Final = 4  # keys that are checked at the same time, so that wrong ones take no thread from others
MOST_CHECKED: Final = 10_000
VALID: Final = 30.0  # seconds: the service itself checks the key of each decision
WRONG: Final = 5.0
SERVICE: Final = "the decision service"
AWAY: Final = 0.5  # seconds for which the service is not called after it could not be reached
KEY: Final = re.compile(rf"{MARK}_[0-9a-f]{{{2 * PREFIX_BYTES}}}_[0-9a-f]{{{2 * SECRET_BYTES}}}")
NOT_VALID: Final = 422  # the status of a request whose context is not what the campaign declares
PASSED_ON: Final = (401, 403, 404, 409, 429)  # statuses of the service that concern the caller
Pair = tuple[str, str]  # a key and a campaign


class ServiceAsk(NamedTuple):
    """A request for a decision.

    Attributes:
        arms: The arms that may be used.
        caps: The maximum cost of the request, by resource.
        lease: Seconds within which its outcome is told.
        listed: The price list of the day; None without one.
        labels: The labels of the request; the service adds those of the key.
        context: The features of the request; None without features.
        from_caller: Whether the caller sent the features.
    """

    arms: list[str]
    caps: dict[str, Any]
    lease: int
    listed: dict[str, Any] | None = None
    labels: dict[str, str] | None = None
    context: dict[str, Any] | None = None
    from_caller: bool = False


class ClientPool:
    """The clients of the decision service.

    Args:
        settings: The settings of the proxy.
    """

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(THREADS, "service")
        self._checkers = ThreadPoolExecutor(CHECKS, "keys")
        self._clients: OrderedDict[Pair, AsyncClient] = OrderedDict()
        self._checked: OrderedDict[Pair, tuple[float, Rejected | None]] = OrderedDict()
        self._checking: dict[Pair, asyncio.Task[None]] = {}
        self._service = CircuitBreaker(AWAY, probe=settings.patience + 1)

    def client(self, key: str, campaign: str) -> AsyncClient:
        """Return the client of a key that was checked; the least recently used client is dropped."""
        pair = key, campaign
        client = self._clients.pop(pair, None) or self._new(pair, self._threads)
        self._clients[pair] = client
        if len(self._clients) > MOST_CLIENTS:
            self._clients.popitem(last=False)[1].drop_connections()
        return client

    def _new(self, pair: Pair, threads: ThreadPoolExecutor) -> AsyncClient:
        patience = self._settings.patience
        return AsyncClient(self._settings.service, *pair, threads=threads, patience=patience, timeout=patience)

    async def check(self, key: str, campaign: str) -> None:
        """Reject a request whose key the service does not accept for a campaign; the answer is kept for a while."""
        if not KEY.fullmatch(key):
            raise wrong_key()
        pair = key, campaign
        until, rejected = self._checked.get(pair, (0.0, None))
        if until < time.monotonic():
            task = self._checking.get(pair)
            if task is None:
                task = self._checking[pair] = asyncio.ensure_future(self._check(pair))
                task.add_done_callback(lambda _: self._checking.pop(pair, None))
            await asyncio.shield(task)
            _, rejected = self._checked.get(pair, (0.0, None))
        if rejected is not None:
            raise rejected.with_traceback(None)  # it is kept, and would collect the frames of every request

    async def _check(self, pair: Pair) -> None:
        """Ask the service about a key, once, and note its answer."""
        if not self._service.allows(SERVICE):
            raise away()
        client, rejected = self._new(pair, self._checkers), None
        try:
            await client.check()
        except ServiceUnavailableError as error:
            if error.status != 429:
                raise away() from error  # wrong keys must not keep others from asking
            raise Rejected(429, error.kind, "too many requests without a valid key.", 1.0) from error
        except ServiceError as error:
            rejected = of_service(error)
        finally:
            client.drop_connections()
        lasts = VALID if rejected is None else WRONG
        self._checked[pair] = time.monotonic() + lasts, rejected
        if len(self._checked) > MOST_CHECKED:
            self._checked.popitem(last=False)

    async def ask(self, key: str, campaign: str, terms: ServiceAsk) -> RemoteDecision:
        """Ask which of the arms to use, and reserve the caps; ``Rejected`` if the service does not decide."""
        if not self._service.allows(SERVICE):
            raise away()
        self._service.begin(SERVICE)
        try:
            decision = await self.client(key, campaign).ask(
                terms.arms, terms.caps, terms.lease, costs=terms.listed, context=terms.context, labels=terms.labels
            )
        except ServiceUnavailableError as error:
            if error.status == 429:
                self._service.leave(SERVICE)
                raise Rejected(429, error.kind, str(error), 1.0) from error
            self._service.failed(SERVICE, fatal=True)
            raise away() from error
        except ServiceError as error:
            self._service.succeeded(SERVICE)
            self._checked.pop((key, campaign), None)
            if terms.from_caller and error.status == NOT_VALID:
                raise Rejected.invalid(str(error)) from error
            raise of_service(error) from error
        except BaseException:
            self._service.leave(SERVICE)
            raise
        self._service.succeeded(SERVICE)
        return decision

    def is_away(self) -> bool:
        """Return whether the service could not be reached a moment ago."""
        return not self._service.allows(SERVICE)

    async def close(self) -> None:
        """Cancel the decisions whose answers were lost, as far as the service can be reached, and disconnect."""
        clients = list(self._clients.values())
        if not self.is_away():
            await asyncio.gather(*(client.cancel_lost() for client in clients), return_exceptions=True)
        for client in clients:
            client.drop_connections()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._checkers.shutdown(wait=False, cancel_futures=True)


def wrong_key() -> Rejected:
    """The answer to a request without a key of the service."""
    return Rejected(401, "unauthenticated", "send a driftsack key with the scope 'decide' as the API key.")


def away() -> Rejected:
    """The answer while the service cannot be reached."""
    return Rejected.unavailable(f"{SERVICE} cannot be reached; nothing was sent to an upstream.")


def of_service(error: ServiceError) -> Rejected:
    """The answer to a request that the service refuses."""
    if error.status in PASSED_ON:
        return Rejected(error.status, error.kind, str(error))
    return Rejected(500, "misconfigured", f"{SERVICE} refused the request of the proxy: {error}")
