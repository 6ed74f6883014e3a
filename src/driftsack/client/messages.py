"""What a service answers, as objects of Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from driftsack.core.errors import DriftsackError

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
