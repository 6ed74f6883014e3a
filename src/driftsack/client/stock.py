"""``Stock``: decisions made in advance, for use while the service cannot be reached."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from driftsack.client.messages import RemoteDecision, ServiceError, ServiceUnavailableError, decision_of
from driftsack.client.transport import Transport, new_once

NEEDS_FEATURES: Final = 422  # the status of a request for decisions without features, if the campaign needs some


class Held(NamedTuple):
    """A decision in stock.

    Attributes:
        decision: The decision.
        lease: Duration of its lease in seconds, from the decision or its extension.
    """

    decision: RemoteDecision
    lease: int


class SentRequest(NamedTuple):
    """A request for decisions that has not been answered.

    Attributes:
        once: Its idempotency key.
        missing: The number of decisions.
        at: The time of its first attempt, from which leases are counted.
    """

    once: str
    missing: int
    at: float


class Stock:
    """Decisions in stock, oldest first. Threads may share it.

    A decision is extended when half of its lease has passed, and cancelled when its lease has ended: then nothing is
    charged, or the worst case is refunded within the campaign's ``late`` seconds.

    Args:
        size: Number of decisions to hold.
        transport: Sends the requests.
        clock: Monotonic clock in seconds.
    """

    def __init__(self, size: int, transport: Transport, clock: Callable[[], float] = time.monotonic) -> None:
        self._size, self._transport = size, transport
        self._held: deque[Held] = deque()
        self._ended: deque[RemoteDecision] = deque()  # to be cancelled
        self._lock, self._tending = threading.Lock(), threading.Lock()
        self._clock = clock
        self._unanswered: SentRequest | None = None

    def is_empty(self) -> bool:
        """Return whether no decision can be used."""
        with self._lock:
            self._set_aside()
            return not self._held

    def take(self) -> RemoteDecision | None:
        """Remove and return the oldest usable decision; None if there is none."""
        with self._lock:
            self._set_aside()
            return self._held.popleft().decision if self._held else None

    def tend(self, fill: bool) -> None:
        """Extend and cancel decisions as needed; ask for missing ones if ``fill``. The next call retries failures.

        Raises:
            ServiceError: The campaign cannot decide without features.
        """
        if not self._tending.acquire(blocking=False):
            return  # another thread is doing it
        try:
            for held in self._ageing():
                self._extend(held)
            self._cancel_ended()
            if fill:
                self._fill()
        except ServiceError as error:
            if error.status == NEEDS_FEATURES:
                raise
        finally:
            self._tending.release()

    def close(self) -> None:
        """Cancel all decisions.

        Raises:
            ServiceUnavailableError: The service cannot be reached.
        """
        with self._tending:
            if self._unanswered is not None:
                self._repeat(None)
            with self._lock:
                self._ended.extend(held.decision for held in self._held)
                self._held.clear()
            self._cancel_ended(None)

    def _set_aside(self) -> None:
        """Mark the decisions whose lease has ended for cancellation."""
        now = self._clock()
        self._ended.extend(held.decision for held in self._held if held.decision.until <= now)
        self._held = deque(held for held in self._held if held.decision.until > now)

    def _ageing(self) -> list[Held]:
        """Return the decisions with less than half of their lease left."""
        with self._lock:
            self._set_aside()
            now = self._clock()
            return [held for held in self._held if held.decision.until - now < held.lease / 2]

    def _extend(self, held: Held) -> None:
        """Extend a decision; if the service refuses, mark it for cancellation. Another thread may use it meanwhile."""
        until, body = self._clock() + held.lease, {"lease": held.lease, "token": held.decision.token}
        longer: Held | None = Held(replace(held.decision, until=until), held.lease)
        try:
            self._transport.post(f"/decisions/{held.decision.number}/extend", body, 0.0)
        except ServiceUnavailableError:
            return
        except ServiceError:
            longer = None
        with self._lock:
            if held in self._held:
                self._held.remove(held)
                self._held.append(longer) if longer else self._ended.append(held.decision)

    def _cancel_ended(self, patience: float | None = 0.0) -> None:
        """Cancel the marked decisions, except those that the service has settled already."""
        while self._ended:
            decision = self._ended[0]
            try:
                self._transport.post(f"/decisions/{decision.number}/cancel", {"token": decision.token}, patience)
            except ServiceUnavailableError:
                raise
            except ServiceError:
                pass
            self._ended.popleft()  # only the thread that tends the stock removes entries

    def _fill(self) -> None:
        """Ask for the missing decisions; a request whose answer was lost is repeated first, with the same key."""
        if self._unanswered is None:
            missing = self._size - len(self._held)
            if missing <= 0:
                return
            self._unanswered = SentRequest(new_once(), missing, self._clock())
        self._repeat(0.0)

    def _repeat(self, patience: float | None) -> None:
        """Send the request for decisions, for the first time or again."""
        if self._unanswered is None:
            return
        once, missing, at = self._unanswered
        try:
            answer = self._transport.post("/exchange", {"ask": missing}, patience, once)
        except ServiceUnavailableError:
            raise
        except ServiceError:
            self._unanswered = None
            raise
        self._unanswered = None
        held = [Held(decision_of(each, at), each["lease"]) for each in answer["decisions"] if not each["skipped"]]
        with self._lock:
            self._held.extend(held)
