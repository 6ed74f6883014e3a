"""Settle the outcome of a round in one step: what is learnt and what is charged are never out of step.

A signal handler runs between two instructions of Python, and an exception that it raises ends what it interrupted. A
kernel is a single instruction, so the round is settled either wholly or not at all, and ``settled`` says which.
"""

from __future__ import annotations

from typing import Any

from driftsack.core.arrays import Floats, Ints
from driftsack.core.decision import SKIP
from driftsack.game.ledger import Ledger, charge
from driftsack.game.protocol import find_kernel, learn
from driftsack.game.records import Outcome
from driftsack.game.state_tree import is_packaged
from driftsack.numerics.compiled import kernel, uncached


@kernel
def settle(state: Any, ledger: Ledger, outcome: Outcome, costs: Floats, settled: Ints) -> None:
    """Let the policy learn from an outcome and charge its costs; a skipped round costs nothing.

    Args:
        state: The policy's state.
        ledger: The ledger.
        outcome: What the policy learns from.
        costs: (d,) what is charged.
        settled: (1,) written: the round, from 0.
    """
    learn(state, outcome)
    if outcome.arm != SKIP:
        charge(ledger, costs)
    settled[0] = outcome.t


@kernel
def settle_unlearnt(ledger: Ledger, t: int, costs: Floats, settled: Ints) -> None:
    """Charge the costs of round ``t``, from 0, whose outcome is unknown.

    Args:
        ledger: The ledger.
        t: The round, from 0.
        costs: (d,) what is charged.
        settled: (1,) written: the round.
    """
    charge(ledger, costs)
    settled[0] = t


_settle_uncached = uncached(settle)  # for states defined outside the package


def settle_kernel(state: Any) -> Any:
    """The kernel for a state; not cached on disk if the state is defined outside the package."""
    find_kernel(type(state), "learn")  # raises if there is none
    return settle if is_packaged(state) else _settle_uncached
