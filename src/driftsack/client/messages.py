"""Decisions, errors and amounts as Python objects."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from driftsack.core.errors import DriftsackError, SettingError

Amount = str | int | float | Decimal
Context = Mapping[str, Any]
"""The features of a request, by name: numbers, strings, lists of numbers, or None for a missing value."""
ListedAmounts = Mapping[str, Amount | Mapping[str, Amount]]


class ServiceError(DriftsackError):
    """The service refused a request.

    Args:
        status: HTTP status of the response.
        kind: Type of the problem document.
        detail: What was expected, what was received and what to do.
    """

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(f"{detail} ({status}, {kind})")
        self.status, self.kind = status, kind


class ServiceUnavailableError(ServiceError):
    """The service could not be reached in time."""


class OutcomeRefusedWarning(UserWarning):
    """The service refused an outcome that was kept while it could not be reached."""


@dataclass(frozen=True)
class RemoteDecision:
    """A decision of the service.

    Attributes:
        number: Number of the decision; None if it was made without the service.
        name: Name of the arm; empty if the request should be skipped.
        skipped: Whether the request should be skipped; no ``tell`` is needed then.
        reason: Reason for skipping: ``policy``, ``budget``, ``limit``, ``horizon``, ``paused`` or ``watching``.
        probability: Probability of the arm when it was drawn.
        reserved: Reserved amounts, by resource.
        until: End of the lease, on this process's monotonic clock.
        token: The secret of the decision, which is sent with its outcome.
        limit: If the reason is ``limit``: ``by`` and ``label`` of the limit, its period ``every``, when it ``resets``
            (milliseconds since 1970, or None), and whether it is ``exhausted`` or only reserved for pending decisions.
    """

    number: int | None
    name: str
    skipped: bool
    reason: str | None = None
    probability: float = 0.0
    reserved: Mapping[str, str] = field(default_factory=dict)
    until: float = float("inf")
    token: str = field(default="", repr=False)
    limit: Mapping[str, Any] | None = None

    @property
    def id(self) -> str:
        """Number and token as one string, with which another process or a webhook can tell the outcome."""
        return f"{'' if self.number is None else self.number}-{self.token}"


def settled_by(decision: RemoteDecision | str) -> RemoteDecision:
    """Return a decision, or one that stands for an ``id``.

    Raises:
        SettingError: The string is no id.

    >>> found = settled_by("17-5f0c")
    >>> found.number, found.token
    (17, '5f0c')
    """
    if not isinstance(decision, str):
        return decision
    number, dash, token = decision.partition("-")
    if not (dash and (not number or (number.isascii() and number.isdigit()))):
        raise SettingError(f"expected a decision or its id, such as '17-5f0c…', got {decision!r:.80}.")
    return RemoteDecision(int(number) if number else None, "", skipped=not number, token=token)


class RemoteOutcome(NamedTuple):
    """An outcome, for :meth:`Client.exchange`.

    Attributes:
        decision: The decision, or its id.
        reward: The reward; None if it is not known yet.
        costs: The cost in each resource; None if they are not known yet.
    """

    decision: RemoteDecision | str
    reward: float | None = None
    costs: Mapping[str, Amount] | None = None


class ExchangeAnswer(NamedTuple):
    """The result of :meth:`Client.exchange`.

    Attributes:
        decisions: The new decisions.
        refused: The outcomes that were refused, each with the reason.
    """

    decisions: list[RemoteDecision]
    refused: list[tuple[RemoteOutcome, ServiceError]]


def outcome_json(told: RemoteOutcome) -> dict[str, Any]:
    """Return an outcome as the API takes it."""
    decision = settled_by(told.decision)
    body: dict[str, Any] = {"token": decision.token}
    body |= {} if told.reward is None else {"reward": float(told.reward)}
    return body | ({} if told.costs is None else {"costs": amounts_text(told.costs, "costs")})


def refusal_of(problem: Mapping[str, Any]) -> ServiceError:
    """Return the error that a problem document describes."""
    kind = str(problem.get("type", "")).rpartition(":")[2]
    return ServiceError(int(problem.get("status", 0)), kind, str(problem.get("detail", "")))


def decision_of(answer: Mapping[str, Any], now: float) -> RemoteDecision:
    """Return the decision in an answer of the service; ``now`` is the time on the client's monotonic clock."""
    return RemoteDecision(
        number=answer["decision"],
        name=answer["arm"] or "",
        skipped=answer["skipped"],
        reason=answer["reason"],
        probability=answer["probability"],
        reserved=answer["reserved"],
        until=now + answer["lease"],
        token=answer["token"],
        limit=answer["limit"],
    )


def amount_text(amount: Amount) -> str:
    """Return an amount as a decimal string; a float stands for its shortest decimal representation.

    Args:
        amount: A number or a decimal string.

    Returns:
        The decimal digits, without an exponent.

    >>> amount_text(0.02), amount_text(1e-7), amount_text(3)
    ('0.02', '0.0000001', '3')
    """
    return f"{Decimal(str(amount)):f}"


def listed_text(given: Any) -> dict[str, Any]:
    """Return a price list, amounts by resource for all arms or by arm, as decimal strings.

    Raises:
        SettingError: It is not a mapping, or one of the amounts is not a number.

    >>> listed_text({"usd": {"small": 0.0004, "large": 0.006}, "seconds": 2})
    {'usd': {'small': '0.0004', 'large': '0.006'}, 'seconds': '2'}
    """
    if not isinstance(given, Mapping):
        return amounts_text(given, "costs")  # raises
    return {
        name: amounts_text(row, f"costs of {name}")
        if isinstance(row, Mapping)
        else amounts_text({name: row}, "costs")[name]
        for name, row in given.items()
    }


def amounts_text(given: Any, name: str) -> dict[str, str]:
    """Return amounts by resource as decimal strings; ``name`` is the argument's name for errors.

    Raises:
        SettingError: The amounts are not a mapping, or one of them is not a number.

    >>> amounts_text({"usd": 0.02}, "costs")
    {'usd': '0.02'}
    """
    if not isinstance(given, Mapping):
        raise SettingError(f"{name} must be a mapping by resource, such as {{'usd': '0.02'}}, got {given!r:.60}.")
    try:
        return {resource: amount_text(amount) for resource, amount in given.items()}
    except InvalidOperation as error:
        raise SettingError(f"{name} must be numbers or decimal strings by resource, got {given!r:.60}.") from error


def labels_json(given: Any) -> dict[str, str]:
    """Return the labels of a request as JSON has them.

    Raises:
        SettingError: They are not a mapping of names to strings.

    >>> labels_json({"user": "ann"})
    {'user': 'ann'}
    """
    if not isinstance(given, Mapping) or not all(isinstance(label, str) for label in given.values()):
        raise SettingError(
            f"labels must be a mapping of names to strings, such as {{'user': 'ann'}}, got {given!r:.60}."
        )
    return dict(given)


def context_json(given: Any) -> dict[str, Any]:
    """Return the features of a request as JSON has them; arrays become lists.

    Raises:
        SettingError: They are not a mapping by name, or a number is not finite.

    >>> context_json({"kind": "code", "tokens": 812, "age": None})
    {'kind': 'code', 'tokens': 812, 'age': None}
    """
    if not isinstance(given, Mapping):
        raise SettingError(f"context must be a mapping by feature, such as {{'kind': 'code'}}, got {given!r:.60}.")
    found = {str(name): value.tolist() if hasattr(value, "tolist") else value for name, value in given.items()}
    for name, value in found.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(one, float) and not math.isfinite(one):
                raise SettingError(
                    f"context: {name!r:.60} must be finite, got {one}; pass None for a missing value of an optional "
                    "feature."
                )
    return found
