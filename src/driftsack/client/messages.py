"""What a service answers, as objects of Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from driftsack.core.errors import DriftsackError, SettingError

Amount = str | int | float | Decimal


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


class OutcomeRefusedWarning(UserWarning):
    """The service refused an outcome that had been kept while it could not be reached."""


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


def decision_of(answer: Mapping[str, Any], now: float) -> RemoteDecision:
    """Return the decision of an answer of the service.

    Args:
        answer: The answer.
        now: The time on this process's monotonic clock.

    Returns:
        The decision.
    """
    return RemoteDecision(
        number=answer["decision"],
        name=answer["arm"],
        skipped=answer["skipped"],
        reason=answer["reason"],
        probability=answer["probability"],
        reserved=answer["reserved"],
        until=now + answer["lease"],
    )


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


def amounts_text(given: Any, name: str) -> dict[str, str]:
    """Return amounts by resource as decimal text.

    Args:
        given: The amounts.
        name: What they are, for errors.

    Returns:
        The decimal digits of each.

    Raises:
        SettingError: They are not a mapping, or one of them is not a number.

    >>> amounts_text({"usd": 0.02}, "costs")
    {'usd': '0.02'}
    """
    if not isinstance(given, Mapping):
        raise SettingError(f"{name} must be a mapping by resource, such as {{'usd': '0.02'}}, got {given!r:.60}.")
    try:
        return {resource: amount_text(amount) for resource, amount in given.items()}
    except InvalidOperation as error:
        raise SettingError(f"{name} must be numbers or decimal text by resource, got {given!r:.60}.") from error
