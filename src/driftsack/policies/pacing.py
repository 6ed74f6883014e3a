"""Pacers: how much a round may spend of each budget, on average."""

from __future__ import annotations

from driftsack.game.ledger import Ledger
from driftsack.lp.step import LOOSE
from driftsack.numerics.compiled import kernel
from driftsack.numerics.simplex import Simplex


@kernel
def pace(lp: Simplex, ledger: Ledger, kept: float, rounds: int) -> None:
    """Right-hand side: ``kept`` of the ledger's rate, or of what is left over so many rounds if these are not 0."""
    for j in range(ledger.budget.size):
        rate = ledger.rate[j]
        if rounds > 0:
            rate = max(ledger.budget[j] - ledger.spent[j], 0.0) / rounds
        lp.rhs[j] = min(kept * rate, LOOSE)
