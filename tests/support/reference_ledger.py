"""A minimal ledger of one budget, without a learner, a journal or a database."""

from __future__ import annotations

from decimal import Decimal


class ReferenceLedger:
    """The expected state of a budget after all acknowledged operations."""

    def __init__(self, granted: str) -> None:
        self.granted = Decimal(granted)
        self.reserved, self.spent, self.overrun = Decimal(0), Decimal(0), Decimal(0)
        self.decisions: dict[int, tuple[str, Decimal]] = {}

    def fits(self, amount: Decimal) -> bool:
        return self.spent + self.reserved + amount <= self.granted

    def ask(self, number: int, amount: Decimal) -> None:
        assert number not in self.decisions, "a decision was made twice"
        assert self.fits(amount), "more was reserved than there was"
        self.reserved += amount
        self.decisions[number] = ("pending", amount)

    def settle(self, number: int, kind: str, cost: Decimal) -> None:
        state, kept = self.decisions[number]
        assert state in ("pending", "expired"), "a decision was settled twice"
        if state == "pending":
            self.reserved -= kept
        else:
            self.spent -= kept
        self.spent += cost
        self.overrun += max(cost - kept, Decimal(0))
        self.decisions[number] = (kind, kept)

    def expire(self, number: int) -> None:
        state, kept = self.decisions[number]
        assert state == "pending", "only pending decisions expire"
        self.reserved -= kept
        self.spent += kept
        self.decisions[number] = ("expired", kept)

    def in_state(self, *states: str) -> list[int]:
        return [number for number, (state, _) in self.decisions.items() if state in states]
