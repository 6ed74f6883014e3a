"""``Client``: a campaign of a service, with synchronous calls."""

from __future__ import annotations

import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, get_args

from driftsack.client.messages import (
    Amount,
    Context,
    ExchangeAnswer,
    ListedAmounts,
    OutcomeRefusedWarning,
    RemoteDecision,
    RemoteOutcome,
    ServiceError,
    ServiceUnavailableError,
    amounts_text,
    context_json,
    decision_of,
    labels_json,
    listed_text,
    outcome_json,
    refusal_of,
    settled_by,
)
from driftsack.client.operations import Operations
from driftsack.client.stock import Stock
from driftsack.client.transport import Transport, new_once
from driftsack.core.errors import SettingError

Offline = Literal["closed", "open", "stock"]
Pending = Literal["forfeit", "keep"]
MOST_KEPT: Final = 10_000  # outcomes kept while the service is away
WRONG_KEY: Final = (401, 403)  # statuses that refuse the key, not the request
FAILED: Final = 500  # from this status on, it is not known whether a request was carried out


class Lost(NamedTuple):
    """A request for a decision that no caller waits for any more.

    Attributes:
        once: Its idempotency key.
        terms: Its terms.
        path: Its path.
    """

    once: str
    terms: dict[str, Any]
    path: str = "/decisions"


class Client(Operations):
    """A campaign of a service. Threads may share a client.

    As a context manager it finally forfeits all decisions that were not told; call ``close(pending="keep")`` at the end
    of the block if their outcomes will be told later, for example by a webhook.

    Args:
        url: The address of the service, such as ``http://localhost:8787``.
        key: An API key with the scope ``decide``.
        campaign: The campaign.
        offline: Behaviour while the service cannot be reached.
        default: The arm to use with ``offline="open"``.
        stock: Number of decisions to hold in advance with ``offline="stock"``. Calls of ``ask`` extend them when half
            of their lease has passed, and cancel those whose lease has ended. They are made without features, so a
            campaign needs features that are all optional.
        patience: Seconds for which a call is retried.
        timeout: Timeout of one attempt, in seconds.
        clock: Monotonic clock in seconds, by which the leases of held decisions end.
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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(Transport(url, key, campaign, patience, timeout), campaign)
        if offline not in ("closed", "open", "stock"):
            raise SettingError(f"offline must be 'closed', 'open' or 'stock', got {offline!r:.40}.")
        if (offline == "open") != (default is not None):
            raise SettingError("give a default arm with offline='open', and only then.")
        self._offline, self._default = offline, default
        self._stock, self._clock = Stock(stock, self._transport, clock), clock
        self._lock = threading.Lock()
        self._kept: deque[tuple[int, dict[str, Any]]] = deque(maxlen=MOST_KEPT)
        self._refused: deque[str] = deque()  # messages about kept outcomes, to be reported once
        self._open: dict[int, str] = {}  # tokens of the decisions that were not told, by number
        self._lost: deque[Lost] = deque()
        self._abandoned: deque[RemoteDecision] = deque()  # to be cancelled

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def ask(
        self,
        open: Sequence[str] | None = None,  # noqa: A002
        caps: Mapping[str, Amount] | None = None,
        lease: int | None = None,
        must: bool = False,
        costs: ListedAmounts | None = None,
        context: Context | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> RemoteDecision:
        """Ask which arm to use.

        Args:
            open: The arms that this request may use; None for all.
            caps: The request's maximum cost, by resource.
            lease: Seconds within which the outcome will be told.
            must: Whether the request must be served, even if that overspends a budget.
            costs: The price list of this request: costs by resource, for all arms or by arm; some may be left out.
            context: The features of this request, by name, if the campaign declares some.
            labels: The labels of this request, such as ``{"user": "ann"}``, by which the campaign may limit it.

        Returns:
            The decision.

        Raises:
            ServiceUnavailableError: The service cannot be reached, and ``offline`` offers no other decision.
            ServiceError: The service refused the request, or a stock without features.
            SettingError: The context or the labels are not a mapping, or a number of the context is not finite.
        """
        terms = _terms(open, caps, lease, must, costs, context, labels)
        try:
            found = self._asked(terms)
        except ServiceUnavailableError:
            return self._noted(self._decide_offline(terms))
        try:
            self._noted(found)
            self.cancel_lost()
            if self._offline == "stock":
                self._stock.tend(fill=not _limits(terms))
        except BaseException:  # such as KeyboardInterrupt: the caller does not get the decision
            self.abandon(found)
            raise
        return found

    def _asked(self, terms: dict[str, Any]) -> RemoteDecision:
        """Ask the service; if it is not known whether it has decided, keep the key of the request."""
        patience, lost = None if _limits(terms) or self._stock.is_empty() else 0.0, Lost(new_once(), terms)
        try:
            return decision_of(self._transport.post("/decisions", terms, patience, lost.once), self._clock())
        except BaseException as error:
            if not isinstance(error, ServiceError) or error.status >= FAILED:
                self._lost.append(lost)
            raise

    def abandon(self, decision: RemoteDecision) -> None:
        """Give up a decision that was never used: it is cancelled, by the next ``ask`` or ``close`` at the latest.

        Unlike :meth:`cancel` this never raises and sends nothing.

        Args:
            decision: The result of ``ask``.
        """
        if decision.number is not None and not decision.skipped:
            self._abandoned.append(decision)
            self._settled(decision.number)

    def cancel_lost(self, patience: float | None = 0.0) -> None:
        """Cancel abandoned decisions and those whose answers were lost, as far as the service can be reached.

        The same request with the same key returns a lost decision again. An entry is removed once it is settled, so
        that none is forgotten if this is interrupted; two threads may send the same request, which changes nothing.
        ``ask`` and ``close`` call this.

        Args:
            patience: Seconds for which each request is retried; None for the setting of the client.
        """
        try:
            while lost := next(iter(self._lost.copy()), None):
                answer = self._once(lost.path, lost.terms, patience, lost.once)
                for each in [] if answer is None else answer.get("decisions", [answer]):
                    self.abandon(decision_of(each, self._clock()))
                _remove(self._lost, lost)
            while found := next(iter(self._abandoned.copy()), None):
                self._once(f"/decisions/{found.number}/cancel", {"token": found.token}, patience)
                _remove(self._abandoned, found)
        except ServiceError:
            pass  # the service is away or refuses the key; the next call tries again

    def _once(self, path: str, body: dict[str, Any], patience: float | None, once: str = "") -> Any:
        """Send a request, and return its answer; None if it is refused. Raise if the service is away."""
        try:
            return self._transport.post(path, body, patience, once)
        except ServiceUnavailableError:
            raise
        except ServiceError as error:
            if error.status in WRONG_KEY or error.status >= FAILED:
                raise
            return None  # the campaign was closed, or the decision is settled

    def _noted(self, decision: RemoteDecision) -> RemoteDecision:
        """Register a decision to be forfeited on closing unless it is told."""
        if decision.number is not None and not decision.skipped:
            with self._lock:
                self._open[decision.number] = decision.token
        return decision

    def _decide_offline(self, terms: Mapping[str, Any]) -> RemoteDecision:
        """Return a decision without the service."""
        if self._offline == "open":
            return RemoteDecision(None, self._default or "", skipped=False)
        held = None if _limits(terms) - {"must"} else self._stock.take()  # decisions in stock were made without terms
        if held is None:
            what = "the service cannot be reached, and no decision is in stock."
            raise ServiceUnavailableError(503, "unavailable", what)
        return held

    def exchange(
        self,
        ask: int = 0,
        tells: Iterable[RemoteOutcome] = (),
        terms: Mapping[str, Any] | None = None,
        contexts: Sequence[Context] | None = None,
    ) -> ExchangeAnswer:
        """Tell many outcomes and ask for many decisions in one request.

        Args:
            ask: The number of decisions.
            tells: The outcomes; those of skipped requests are left out.
            terms: The terms of each of these decisions, as arguments of :meth:`ask`.
            contexts: The features of each of these requests.

        Returns:
            The decisions, and the outcomes that were refused; the others were told.

        Raises:
            ServiceUnavailableError: The service cannot be reached; decisions that it may have made are cancelled later.
            ServiceError: The service refused the request.
        """
        outcomes = [RemoteOutcome(*each) for each in tells]
        numbers = [settled_by(each.decision).number for each in outcomes]
        told = [(each, number) for each, number in zip(outcomes, numbers, strict=True) if number is not None]
        body: dict[str, Any] = {"tells": [{"decision": number, **outcome_json(each)} for each, number in told]}
        body |= {"ask": ask} | ({} if terms is None else {"terms": _terms(**terms)})
        body |= {} if contexts is None else {"contexts": [context_json(each) for each in contexts]}
        lost = Lost(new_once(), body, "/exchange")
        try:
            answer = self._transport.post("/exchange", body, once=lost.once)
            found = [self._noted(decision_of(each, self._clock())) for each in answer["decisions"]]
        except BaseException as error:
            if ask and (not isinstance(error, ServiceError) or error.status >= FAILED):
                self._lost.append(lost)
            raise
        refused = []
        for (each, number), result in zip(told, answer["told"], strict=True):
            if result["problem"] is not None:
                refused.append((each, refusal_of(result["problem"])))
            elif result["settled"]["state"] != "pending":
                self._settled(number)
        return ExchangeAnswer(found, refused)

    def tell(
        self, decision: RemoteDecision | str, reward: float | None = None, costs: Mapping[str, Amount] | None = None
    ) -> None:
        """Tell the outcome of a decision. Repeating the call changes nothing.

        The costs may be told before the reward, or after it; they are charged at once.

        Args:
            decision: The result of ``ask``, or its ``id``, also in another process.
            reward: The reward; None if it is not known yet.
            costs: The cost in each resource; None if they are not known yet.

        Raises:
            ServiceUnavailableError: The service cannot be reached. With ``offline="stock"`` the outcome is kept and
                told later; if it is refused then, it is dropped with an :class:`OutcomeRefusedWarning`.
            ServiceError: The service refused the outcome.
            SettingError: The costs are not a mapping by resource.
        """
        number, body = settled_by(decision).number, outcome_json(RemoteOutcome(decision, reward, costs))
        if number is None or settled_by(decision).skipped:
            return
        try:
            self._flush()
            answer = self._transport.post(f"/decisions/{number}/tell", body)
            if answer["state"] != "pending":  # a part of the outcome leaves the decision open
                self._settled(number)
        except ServiceUnavailableError:
            if self._offline != "stock":
                raise
            with self._lock:
                self._kept.append((number, body))
        finally:
            self._report()

    def _flush(self) -> None:
        """Tell the outcomes that were kept while the service could not be reached; drop those that it refuses."""
        while self._kept:
            number, body = kept = self._kept[0]
            refusal = self._refusal(f"/decisions/{number}/tell", body)
            with self._lock:
                if not self._kept or self._kept[0] is not kept:
                    continue  # another thread has told it
                self._kept.popleft()
            if refusal is None:
                self._settled(number)
            else:
                self._refused.append(f"the outcome of decision {number}, which had been kept, was refused: {refusal}")

    def _refusal(self, path: str, body: Mapping[str, Any]) -> ServiceError | None:
        """Send a request, and return its refusal; raise if the service is away or refuses the key."""
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
        """Warn once about each kept outcome that was refused."""
        while self._refused:
            warnings.warn(self._refused.popleft(), OutcomeRefusedWarning, stacklevel=3)

    def _settled(self, number: int) -> None:
        with self._lock:
            self._open.pop(number, None)

    def observe(
        self,
        arm: str,
        reward: float,
        costs: Mapping[str, Amount],
        probability: float | None = None,
        context: Context | None = None,
    ) -> None:
        """Record what the caller's own rule did, for a campaign that watches.

        Args:
            arm: The arm that the rule chose.
            reward: The reward.
            costs: The cost in each resource.
            probability: The probability with which the rule chose the arm, 1 for a deterministic rule; None if it is
                not known.
            context: The features of the request, as in :meth:`ask`.

        Raises:
            ServiceUnavailableError: The service cannot be reached.
            ServiceError: The service refused the observation, for instance because the campaign was switched on.
        """
        body: dict[str, Any] = {"arm": arm, "reward": float(reward), "costs": amounts_text(costs, "costs")}
        body |= {"probability": probability} | ({} if context is None else {"context": context_json(context)})
        self._transport.post("/observations", body)

    def cancel(self, decision: RemoteDecision | str, costs: Mapping[str, Amount] | None = None) -> None:
        """Give up a decision whose costs are known.

        Args:
            decision: The result of ``ask``, or its ``id``.
            costs: The cost in each resource; zero if omitted.
        """
        body = {} if costs is None else {"costs": amounts_text(costs, "costs")}
        self._settle(decision, "cancel", body)

    def forfeit(self, decision: RemoteDecision | str) -> None:
        """Give up a decision whose costs are not known: the worst case is charged.

        Args:
            decision: The result of ``ask``, or its ``id``.
        """
        self._settle(decision, "forfeit", {})

    def extend(self, decision: RemoteDecision | str, lease: int) -> None:
        """Extend the lease of a decision.

        Args:
            decision: The result of ``ask``, or its ``id``.
            lease: Seconds from now within which the outcome will be told.
        """
        found = settled_by(decision)
        if found.number is not None:
            self._transport.post(f"/decisions/{found.number}/extend", {"lease": lease, "token": found.token})

    def _settle(self, decision: RemoteDecision | str, how: str, body: dict[str, Any]) -> None:
        found = settled_by(decision)
        if found.number is not None and not found.skipped:
            self._transport.post(f"/decisions/{found.number}/{how}", {**body, "token": found.token})
            self._settled(found.number)

    def check(self) -> None:
        """Check, with one request that is not retried, that the service accepts the key for the campaign.

        Raises:
            ServiceUnavailableError: The service cannot be reached, or has no time for this.
            ServiceError: The service refused the key.
        """
        self._transport.post("/exchange", {}, 0.0)

    def close(self, pending: Pending = "forfeit") -> None:
        """Tell kept outcomes, cancel decisions in stock, forfeit all others that were not told, and disconnect.

        Args:
            pending: ``"keep"`` leaves the decisions that were not told as they are, because their outcomes, or a bill,
                will be told later by their ``id``; if they are not, their leases end.

        If the service refuses to settle a decision, the remaining ones are still settled. If it cannot be reached
        within ``patience``, closing again settles the rest; otherwise their leases end, and the worst case is charged.
        """
        if pending not in get_args(Pending):
            raise SettingError(f"pending must be 'forfeit' or 'keep', got {pending!r:.40}.")
        try:
            self._flush()
            self.cancel_lost(None)
            self._stock.close()
            if pending == "keep":
                self._open.clear()
            for number, token in sorted(self._open.items()):
                self._refusal(f"/decisions/{number}/forfeit", {"token": token})
                self._settled(number)
        except ServiceError:
            pass  # unless the client is used again, the leases end, and the worst case is charged
        self.disconnect()
        self._report()

    def disconnect(self) -> None:
        """Close the connections; decisions are not changed, and the next call reconnects."""
        self._transport.disconnect()


def _terms(
    open: Sequence[str] | None = None,  # noqa: A002
    caps: Mapping[str, Amount] | None = None,
    lease: int | None = None,
    must: bool = False,
    costs: ListedAmounts | None = None,
    context: Context | None = None,
    labels: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the terms of a request as the API takes them."""
    terms: dict[str, Any] = {} if open is None else {"open": list(open)}
    terms |= {} if caps is None else {"caps": amounts_text(caps, "caps")}
    terms |= {} if lease is None else {"lease": lease}
    terms |= {"must": True} if must else {}
    terms |= {} if costs is None else {"costs": listed_text(costs)}
    terms |= {} if context is None else {"context": context_json(context)}
    return terms | ({} if labels is None else {"labels": labels_json(labels)})


def _limits(terms: Mapping[str, Any]) -> set[str]:
    """Return the terms other than the features, which a decision in stock does without."""
    return set(terms) - {"context"}


def _remove(queue: deque[Any], entry: Any) -> None:
    """Remove an entry from a queue unless another thread has removed it."""
    with suppress(ValueError):
        queue.remove(entry)
