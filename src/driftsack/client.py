"""``Client``: the ``ask`` and ``tell`` of a learner, against a service that several processes share.

Needs nothing but the standard library. Each call is repeated with the same idempotency key until it is answered or the
patience ends, so a lost answer is never a second decision. What to do when the service cannot be reached is the
caller's choice:

- ``offline="closed"``: raise :class:`ServiceUnavailableError`. Nothing is spent.
- ``offline="open"``: use the default arm without a decision. Nothing is reserved, so a budget may be overspent.
- ``offline="stock"``: use one of a few decisions that were asked for in advance, whose worst case is reserved. The
  budgets hold; outcomes are kept and told when the service is back.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import secrets
import threading
import time
import urllib.parse
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import TracebackType
from typing import Any, Final, Literal

from driftsack.core.errors import DriftsackError, SettingError

Amount = str | int | float | Decimal
Offline = Literal["closed", "open", "stock"]
FIRST_WAIT: Final = 0.05  # seconds before the second attempt
LONGEST_WAIT: Final = 2.0
TRY_AGAIN: Final = (429, 502, 503, 504)
MOST_KEPT: Final = 10_000  # outcomes that wait for the service


class ServiceError(DriftsackError):
    """The service refused a request.

    Args:
        status: The status of the answer.
        kind: The type of the problem.
        detail: What was expected, what came and what to do.
    """

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(f"{detail} ({status}, {kind})")
        self.status, self.kind = status, kind


class ServiceUnavailableError(ServiceError):
    """The service could not be reached in time."""


@dataclass(frozen=True)
class RemoteDecision:
    """A decision of the service.

    Attributes:
        number: Its number; None for one that was made without the service.
        name: The name of the arm; None if the request is to be skipped.
        skipped: Whether the request is to be skipped, which needs no ``tell``.
        reason: Why it is skipped: ``policy``, ``budget``, ``horizon``, ``paused`` or ``watching``.
        probability: The probability of the arm when it was drawn.
        reserved: What is reserved for it, by resource.
        until: When its lease ends, on this process's monotonic clock.
    """

    number: int | None
    name: str | None
    skipped: bool
    reason: str | None = None
    probability: float = 0.0
    reserved: Mapping[str, str] = field(default_factory=dict)
    until: float = float("inf")


def amount_text(amount: Amount) -> str:
    """Return an amount as decimal text; a float stands for the decimal number that it is written as.

    Args:
        amount: The amount.

    Returns:
        Its decimal digits.

    >>> amount_text(0.02), amount_text(1e-7), amount_text(3)
    ('0.02', '0.0000001', '3')
    """
    return f"{Decimal(str(amount)):f}"


class Client:
    """A campaign of a service. It may be shared by threads.

    As a context manager it forfeits, in the end, every decision that was asked for and not told.

    Args:
        url: Where the service is, such as ``http://localhost:8787``.
        key: An API key with the scope ``decide``.
        campaign: The campaign.
        offline: What to do when the service cannot be reached.
        default: The arm to use with ``offline="open"``.
        stock: Decisions to hold in advance with ``offline="stock"``.
        patience: Seconds for which a call is repeated.
        timeout: Seconds in which one attempt must be answered.
    """

    def __init__(
        self,
        url: str,
        key: str,
        campaign: str,
        offline: Offline = "closed",
        default: str | None = None,
        stock: int = 5,
        patience: float = 10.0,
        timeout: float = 5.0,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingError(f"url must be such as 'http://localhost:8787', got {url!r:.80}.")
        if offline not in ("closed", "open", "stock"):
            raise SettingError(f"offline must be 'closed', 'open' or 'stock', got {offline!r:.40}.")
        if (offline == "open") != (default is not None):
            raise SettingError("give a default arm with offline='open', and only then.")
        self._parts, self._key, self._offline, self._default = parts, key, offline, default
        self._base = f"{parts.path.rstrip('/')}/v1/campaigns/{urllib.parse.quote(campaign, safe='')}"
        self._size, self._patience, self._timeout = stock, patience, timeout
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._stock: deque[RemoteDecision] = deque()
        self._kept: deque[tuple[int, dict[str, Any]]] = deque(maxlen=MOST_KEPT)
        self._open: set[int] = set()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def ask(
        self,
        open: Sequence[str] | None = None,  # noqa: A002
        caps: Mapping[str, Amount] | None = None,
        lease: int | None = None,
    ) -> RemoteDecision:
        """Ask which arm to use.

        Args:
            open: The arms that this request may use; None for all.
            caps: The most that this request may cost, by resource.
            lease: Seconds within which the outcome will be told.

        Returns:
            The decision.

        Raises:
            ServiceUnavailableError: The service cannot be reached, and there is no other way to decide.
            ServiceError: The service refused the request.
        """
        terms: dict[str, Any] = {} if open is None else {"open": list(open)}
        terms |= {} if caps is None else {"caps": {name: amount_text(amount) for name, amount in caps.items()}}
        terms |= {} if lease is None else {"lease": lease}
        try:
            found = self._decision(self._post("/decisions", terms, 0.0 if self._stock else self._patience))
        except ServiceUnavailableError:
            return self._decide_offline(terms)
        if self._offline == "stock":
            self._fill(terms)
        return found

    def _decision(self, answer: Mapping[str, Any]) -> RemoteDecision:
        """A decision from the answer of the service."""
        number = answer["decision"]
        if number is not None and not answer["skipped"]:
            with self._lock:
                self._open.add(number)
        until = time.monotonic() + answer["lease"]
        reason, probability, reserved = answer["reason"], answer["probability"], answer["reserved"]
        return RemoteDecision(number, answer["arm"], answer["skipped"], reason, probability, reserved, until)

    def _decide_offline(self, terms: Mapping[str, Any]) -> RemoteDecision:
        """A decision without the service."""
        if self._offline == "open":
            return RemoteDecision(None, self._default, skipped=False)
        with self._lock:
            while self._offline == "stock" and self._stock and not terms:
                held = self._stock.popleft()
                if held.until > time.monotonic():
                    return held
        raise ServiceUnavailableError(503, "unavailable", "the service cannot be reached, and no decision is in stock.")

    def _fill(self, terms: Mapping[str, Any]) -> None:
        """Ask for decisions in advance, for requests without terms of their own."""
        missing = self._size - len(self._stock)
        if missing <= 0 or terms:
            return
        try:
            answer = self._post("/exchange", {"ask": missing}, 0.0)
        except ServiceError:
            return  # the next request tries again
        held = [self._decision(each) for each in answer["decisions"] if not each["skipped"]]
        with self._lock:
            self._stock.extend(held)

    def tell(self, decision: RemoteDecision, reward: float, costs: Mapping[str, Amount]) -> None:
        """Tell the outcome of a decision. The same call again changes nothing.

        Args:
            decision: What ``ask`` returned.
            reward: What it earned.
            costs: What it used of each resource.

        Raises:
            ServiceUnavailableError: The service cannot be reached; with ``offline="stock"`` the outcome is kept
                instead, and told later.
            ServiceError: The service refused the outcome.
        """
        if decision.skipped or decision.number is None:
            return
        body = {"reward": float(reward), "costs": {name: amount_text(amount) for name, amount in costs.items()}}
        try:
            self._flush()
            self._post(f"/decisions/{decision.number}/tell", body)
        except ServiceUnavailableError:
            if self._offline != "stock":
                raise
            with self._lock:
                self._kept.append((decision.number, body))
            return
        with self._lock:
            self._open.discard(decision.number)

    def _flush(self) -> None:
        """Tell the outcomes that were kept while the service could not be reached."""
        while self._kept:
            number, body = self._kept[0]
            self._post(f"/decisions/{number}/tell", body)
            with self._lock:
                self._kept.popleft()
                self._open.discard(number)

    def observe(self, arm: str, reward: float, costs: Mapping[str, Amount], probability: float | None = None) -> None:
        """Say what the caller's own rule did, to a campaign that watches.

        Args:
            arm: The arm that the rule chose.
            reward: What it earned.
            costs: What it used of each resource.
            probability: The probability with which the rule chose the arm, 1 if it could not have chosen another one;
                None if it is not known.

        Raises:
            ServiceUnavailableError: The service cannot be reached.
            ServiceError: The service refused the observation, for instance since the campaign was switched on.
        """
        used = {name: amount_text(amount) for name, amount in costs.items()}
        self._post("/observations", {"arm": arm, "reward": float(reward), "costs": used, "probability": probability})

    def cancel(self, decision: RemoteDecision, costs: Mapping[str, Amount] | None = None) -> None:
        """Give up a decision whose costs are known.

        Args:
            decision: What ``ask`` returned.
            costs: What it used of each resource; nothing if omitted.
        """
        body = {} if costs is None else {"costs": {name: amount_text(amount) for name, amount in costs.items()}}
        self._settle(decision, "cancel", body)

    def forfeit(self, decision: RemoteDecision) -> None:
        """Give up a decision whose costs are not known: the worst case is charged.

        Args:
            decision: What ``ask`` returned.
        """
        self._settle(decision, "forfeit", {})

    def extend(self, decision: RemoteDecision, lease: int) -> None:
        """Let a decision wait longer.

        Args:
            decision: What ``ask`` returned.
            lease: Seconds from now within which the outcome will be told.
        """
        if decision.number is not None:
            self._post(f"/decisions/{decision.number}/extend", {"lease": lease})

    def _settle(self, decision: RemoteDecision, how: str, body: dict[str, Any]) -> None:
        if decision.number is not None and not decision.skipped:
            self._post(f"/decisions/{decision.number}/{how}", body)
            with self._lock:
                self._open.discard(decision.number)

    def close(self) -> None:
        """Tell what was kept, cancel what is in stock, forfeit what was not told, and close the connection."""
        try:
            self._flush()
            unused = {held.number for held in self._stock}
            for number in sorted(self._open):
                self._post(f"/decisions/{number}/{'cancel' if number in unused else 'forfeit'}", {})
        except ServiceError:
            pass  # the leases end by themselves, at the worst case
        with self._lock:
            self._open.clear()
            self._stock.clear()
        self.disconnect()

    def _post(self, path: str, body: Mapping[str, Any], patience: float | None = None) -> Any:
        """Send a request until it is answered, or the patience ends."""
        once, wait = secrets.token_hex(16), FIRST_WAIT
        data = json.dumps(body).encode()
        end = time.monotonic() + (self._patience if patience is None else patience)
        while True:
            try:
                status, answer = self._send(path, data, once)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.disconnect()
                status, answer = 503, {"type": "urn:driftsack:unavailable", "detail": f"no answer: {error}"}
            if status < 300:  # noqa: PLR2004
                return answer
            kind, detail = str(answer.get("type", "")).rpartition(":")[2], str(answer.get("detail", ""))
            if status not in TRY_AGAIN:
                raise ServiceError(status, kind, detail)
            if time.monotonic() + wait > end:
                raise ServiceUnavailableError(status, kind, detail)
            time.sleep(wait * (0.5 + random.random()))  # noqa: S311  (clients should not come back all at once)
            wait = min(2 * wait, LONGEST_WAIT)

    def _send(self, path: str, data: bytes, once: str) -> tuple[int, Any]:
        """One attempt, on a connection that no other thread uses meanwhile."""
        connection = self._connection()
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": "application/json",
            "Idempotency-Key": once,
        }
        try:
            connection.request("POST", self._base + path, data, headers)
            response = connection.getresponse()
            found = response.status, json.loads(response.read())
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)
        return found

    def _connection(self) -> http.client.HTTPConnection:
        """An idle connection, or a new one."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        return kind(self._parts.hostname or "", self._parts.port, timeout=self._timeout)

    def disconnect(self) -> None:
        """Close the connections; decisions stay as they are, and the next call connects again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


class AsyncClient:
    """The same for ``asyncio``: each call waits in a thread, so the loop goes on.

    Args:
        url: Where the service is.
        key: An API key with the scope ``decide``.
        campaign: The campaign.
        **settings: As for :class:`Client`.
    """

    def __init__(self, url: str, key: str, campaign: str, **settings: Any) -> None:
        self._client = Client(url, key, campaign, **settings)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def ask(
        self,
        open: Sequence[str] | None = None,  # noqa: A002
        caps: Mapping[str, Amount] | None = None,
        lease: int | None = None,
    ) -> RemoteDecision:
        """Ask which arm to use; see :meth:`Client.ask`.

        Args:
            open: The arms that this request may use; None for all.
            caps: The most that this request may cost, by resource.
            lease: Seconds within which the outcome will be told.

        Returns:
            The decision.
        """
        return await asyncio.to_thread(self._client.ask, open, caps, lease)

    async def tell(self, decision: RemoteDecision, reward: float, costs: Mapping[str, Amount]) -> None:
        """Tell the outcome of a decision; see :meth:`Client.tell`.

        Args:
            decision: What ``ask`` returned.
            reward: What it earned.
            costs: What it used of each resource.
        """
        await asyncio.to_thread(self._client.tell, decision, reward, costs)

    async def observe(
        self, arm: str, reward: float, costs: Mapping[str, Amount], probability: float | None = None
    ) -> None:
        """Say what the caller's own rule did; see :meth:`Client.observe`.

        Args:
            arm: The arm that the rule chose.
            reward: What it earned.
            costs: What it used of each resource.
            probability: The probability with which the rule chose the arm; None if it is not known.
        """
        await asyncio.to_thread(self._client.observe, arm, reward, costs, probability)

    async def forfeit(self, decision: RemoteDecision) -> None:
        """Give up a decision whose costs are not known; see :meth:`Client.forfeit`.

        Args:
            decision: What ``ask`` returned.
        """
        await asyncio.to_thread(self._client.forfeit, decision)

    async def cancel(self, decision: RemoteDecision, costs: Mapping[str, Amount] | None = None) -> None:
        """Give up a decision whose costs are known; see :meth:`Client.cancel`.

        Args:
            decision: What ``ask`` returned.
            costs: What it used of each resource; nothing if omitted.
        """
        await asyncio.to_thread(self._client.cancel, decision, costs)

    async def close(self) -> None:
        """Forfeit what was not told; see :meth:`Client.close`."""
        await asyncio.to_thread(self._client.close)

    async def disconnect(self) -> None:
        """Close the connections; see :meth:`Client.disconnect`."""
        await asyncio.to_thread(self._client.disconnect)
