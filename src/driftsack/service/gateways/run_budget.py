"""``RunBudget``: what one run of an agent may spend, shared by all its calls, also those that run at the same time."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from decimal import Decimal
from typing import Final


class RunBudget:
    """The budget of a run. Threads may share it.

    Args:
        granted: The budget in dollars.

    Attributes:
        granted: The budget.
        spent: What the calls have cost.

    >>> budget = RunBudget(Decimal("0.10"))
    >>> kept = budget.reserve(Decimal("0.08")), budget.reserve(Decimal("0.08"))
    >>> kept
    (Decimal('0.08'), Decimal('0.02'))
    >>> budget.settle(kept[0], Decimal("0.01"))
    >>> budget.left()
    Decimal('0.07')
    """

    def __init__(self, granted: Decimal) -> None:
        self.granted, self.spent = granted, Decimal(0)
        self._reserved = Decimal(0)
        self._lock = threading.Lock()

    def left(self) -> Decimal:
        """Return what is neither spent nor reserved."""
        return self.granted - self.spent - self._reserved

    def reserve(self, most: Decimal) -> Decimal:
        """Reserve an amount, or what is left if that is less, and return it."""
        with self._lock:
            kept = max(min(most, self.left()), Decimal(0))
            self._reserved += kept
        return kept

    def settle(self, kept: Decimal, cost: Decimal) -> None:
        """Replace a reservation by what the call has cost."""
        with self._lock:
            self._reserved -= kept
            self.spent += cost


RUN: Final[ContextVar[RunBudget | None]] = ContextVar("driftsack_run", default=None)
"""The budget of the run whose tool is being called; agents in the tool share it."""
