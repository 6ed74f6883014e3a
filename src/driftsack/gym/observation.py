"""Observations and actions, shared by ``BudgetEnv`` and ``AgentPolicy``."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.core.errors import OutOfRangeError
from driftsack.game.ledger import Ledger

Observation = npt.NDArray[np.float32]


NO_CONTEXT: Final = np.zeros(0)


def observe(
    ledger: Ledger, time_left: float, reward: float, costs: Floats, context: Floats = NO_CONTEXT
) -> Observation:
    """Return (2 + 2d + n,) numbers: remaining shares of the budgets and the time, last reward and costs, the context.

    All but the context (n,) of the next round lie in [0, 1]. The remaining share of a budget of 0 is 0.

    >>> from driftsack.core import Problem
    >>> from driftsack.game.ledger import charge, open_ledger
    >>> ledger = open_ledger(Problem(horizon=8, arms=2, budget=4))
    >>> charge(ledger, np.array([1.0]))
    >>> observe(ledger, 7 / 8, reward=0.5, costs=np.array([1.0]))
    array([0.75 , 0.875, 0.5  , 1.   ], dtype=float32)
    """
    left = ledger.budget - ledger.spent
    shares = np.divide(left, ledger.budget, out=np.zeros(left.size), where=ledger.budget > 0)
    return np.concatenate([shares, [time_left, reward], costs, context]).astype(np.float32)


def arm_of(action: Any, arms: int) -> int:
    """Return the arm of an action: the action itself, or ``SKIP`` for the last action, ``arms``.

    >>> arm_of(1, arms=2), arm_of(2, arms=2)
    (1, -1)
    """
    number = np.asarray(action)
    if number.shape != () or number.dtype.kind not in "iu" or not 0 <= number <= arms:
        hint = f"; SKIP is action {arms} here" if number.shape == () and number == SKIP else ""
        raise OutOfRangeError(
            f"an action must be an integer in [0, {arms}], where {arms} skips, got {action!r:.80}{hint}."
        )
    return SKIP if number == arms else int(number)
