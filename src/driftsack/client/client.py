"""``Client``: a campaign of a service, for threads and processes."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Literal

from driftsack.client.messages import Amount, RemoteDecision, ServiceError, ServiceUnavailableError, amount_text
from driftsack.client.transport import Transport
from driftsack.core.errors import SettingError

Offline = Literal["closed", "open", "stock"]
MOST_KEPT: Final = 10_000  # outcomes that wait for the service


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
        self._transport = Transport(url, key, campaign, patience, timeout)
        if offline not in ("closed", "open", "stock"):
            raise SettingError(f"offline must be 'closed', 'open' or 'stock', got {offline!r:.40}.")
        if (offline == "open") != (default is not None):
            raise SettingError("give a default arm with offline='open', and only then.")
        self._offline, self._default, self._size = offline, default, stock
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
            found = self._decision(self._transport.post("/decisions", terms, 0.0 if self._stock else None))
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
            answer = self._transport.post("/exchange", {"ask": missing}, 0.0)
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
            self._transport.post(f"/decisions/{decision.number}/tell", body)
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
            self._transport.post(f"/decisions/{number}/tell", body)
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
        self._transport.post(
            "/observations", {"arm": arm, "reward": float(reward), "costs": used, "probability": probability}
        )

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
            self._transport.post(f"/decisions/{decision.number}/extend", {"lease": lease})

    def _settle(self, decision: RemoteDecision, how: str, body: dict[str, Any]) -> None:
        if decision.number is not None and not decision.skipped:
            self._transport.post(f"/decisions/{decision.number}/{how}", body)
            with self._lock:
                self._open.discard(decision.number)

    def close(self) -> None:
        """Tell what was kept, cancel what is in stock, forfeit what was not told, and close the connection."""
        try:
            self._flush()
            unused = {held.number for held in self._stock}
            for number in sorted(self._open):
                self._transport.post(f"/decisions/{number}/{'cancel' if number in unused else 'forfeit'}", {})
        except ServiceError:
            pass  # the leases end by themselves, at the worst case
        with self._lock:
            self._open.clear()
            self._stock.clear()
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connections; decisions stay as they are, and the next call connects again."""
        self._transport.disconnect()
