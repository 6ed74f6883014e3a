"""``Client``: a campaign of a service, for threads and processes."""

from __future__ import annotations

import threading
import time
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Literal

from driftsack.client.messages import (
    Amount,
    OutcomeRefusedWarning,
    RemoteDecision,
    ServiceError,
    ServiceUnavailableError,
    amounts_text,
    decision_of,
)
from driftsack.client.stock import Stock
from driftsack.client.transport import Transport
from driftsack.core.errors import SettingError

Offline = Literal["closed", "open", "stock"]
MOST_KEPT: Final = 10_000  # outcomes that wait for the service
WRONG_KEY: Final = (401, 403)  # statuses that refuse the key, whatever the request says


class Client:
    """A campaign of a service. It may be shared by threads.

    As a context manager it forfeits, in the end, every decision that was asked for and not told.

    Args:
        url: Where the service is, such as ``http://localhost:8787``.
        key: An API key with the scope ``decide``.
        campaign: The campaign.
        offline: What to do when the service cannot be reached.
        default: The arm to use with ``offline="open"``.
        stock: Decisions to hold in advance with ``offline="stock"``. Calls of ``ask`` extend them when half of their
            lease has passed, and cancel those whose lease has ended.
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
        self._offline, self._default = offline, default
        self._stock = Stock(stock, self._transport)
        self._lock = threading.Lock()
        self._kept: deque[tuple[int, dict[str, Any]]] = deque(maxlen=MOST_KEPT)
        self._refused: deque[str] = deque()  # of the outcomes that were kept; to be reported once
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
        terms |= {} if caps is None else {"caps": amounts_text(caps, "caps")}
        terms |= {} if lease is None else {"lease": lease}
        patience = None if terms or self._stock.is_empty() else 0.0
        try:
            found = decision_of(self._transport.post("/decisions", terms, patience), time.monotonic())
        except ServiceUnavailableError:
            return self._noted(self._decide_offline(terms))
        self._noted(found)
        if self._offline == "stock":
            self._stock.tend(fill=not terms)
        return found

    def _noted(self, decision: RemoteDecision) -> RemoteDecision:
        """A decision, which is forfeited in the end if it is not told."""
        if decision.number is not None and not decision.skipped:
            with self._lock:
                self._open.add(decision.number)
        return decision

    def _decide_offline(self, terms: Mapping[str, Any]) -> RemoteDecision:
        """A decision without the service."""
        if self._offline == "open":
            return RemoteDecision(None, self._default, skipped=False)
        held = None if terms else self._stock.take()  # terms of one's own are not those of the stock
        if held is None:
            what = "the service cannot be reached, and no decision is in stock."
            raise ServiceUnavailableError(503, "unavailable", what)
        return held

    def tell(self, decision: RemoteDecision, reward: float, costs: Mapping[str, Amount]) -> None:
        """Tell the outcome of a decision. The same call again changes nothing.

        Args:
            decision: What ``ask`` returned.
            reward: What it earned.
            costs: What it used of each resource.

        Raises:
            ServiceUnavailableError: The service cannot be reached; with ``offline="stock"`` the outcome is kept
                instead, and told later. If it is refused then, it is dropped with an
                :class:`OutcomeRefusedWarning`.
            ServiceError: The service refused the outcome.
            SettingError: The costs are not a mapping by resource.
        """
        if decision.skipped or decision.number is None:
            return
        body = {"reward": float(reward), "costs": amounts_text(costs, "costs")}
        try:
            self._flush()
            self._transport.post(f"/decisions/{decision.number}/tell", body)
            self._settled(decision.number)
        except ServiceUnavailableError:
            if self._offline != "stock":
                raise
            with self._lock:
                self._kept.append((decision.number, body))
        finally:
            self._report()

    def _flush(self) -> None:
        """Tell the outcomes that were kept while the service could not be reached; drop those that it refuses."""
        while self._kept:
            number, body = kept = self._kept[0]
            refusal = self._refusal(f"/decisions/{number}/tell", body)
            with self._lock:
                if not self._kept or self._kept[0] is not kept:
                    continue  # another thread has told it too
                self._kept.popleft()
            if refusal is None:
                self._settled(number)
            else:
                self._refused.append(f"the outcome of decision {number}, which had been kept, was refused: {refusal}")

    def _refusal(self, path: str, body: Mapping[str, Any]) -> ServiceError | None:
        """Send a request; return why it was refused, unless the service is away or refuses the key."""
        try:
            self._transport.post(path, body)
        except ServiceUnavailableError:
            raise
        except ServiceError as error:
            if error.status in WRONG_KEY:
                raise
            return error
        return None

    def _report(self) -> None:
        """Warn once of each outcome that was kept and then refused."""
        while self._refused:
            warnings.warn(self._refused.popleft(), OutcomeRefusedWarning, stacklevel=3)

    def _settled(self, number: int) -> None:
        with self._lock:
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
        used = amounts_text(costs, "costs")
        self._transport.post(
            "/observations", {"arm": arm, "reward": float(reward), "costs": used, "probability": probability}
        )

    def cancel(self, decision: RemoteDecision, costs: Mapping[str, Amount] | None = None) -> None:
        """Give up a decision whose costs are known.

        Args:
            decision: What ``ask`` returned.
            costs: What it used of each resource; nothing if omitted.
        """
        body = {} if costs is None else {"costs": amounts_text(costs, "costs")}
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
            self._settled(decision.number)

    def close(self) -> None:
        """Tell what was kept, cancel what is in stock, forfeit what was not told, and close the connection.

        A decision that the service refuses to settle does not keep the others from being settled.
        """
        try:
            self._flush()
            self._stock.close()
            for number in sorted(self._open):
                self._refusal(f"/decisions/{number}/forfeit", {})
        except ServiceError:
            pass  # the leases end by themselves, at the worst case
        with self._lock:
            self._open.clear()
        self.disconnect()
        self._report()

    def disconnect(self) -> None:
        """Close the connections; decisions stay as they are, and the next call connects again."""
        self._transport.disconnect()
