"""The errors of rounds that cannot begin."""

from __future__ import annotations

from typing import NoReturn

from driftsack.core.errors import BudgetExhaustedError, HorizonReachedError, OutOfRangeError
from driftsack.game import steps
from driftsack.policies.learner.engine import LearnerEngine


def refuse_round(engine: LearnerEngine, code: int) -> NoReturn:
    """Raise the error of a round that could not begin."""
    if code == steps.HORIZON:
        raise HorizonReachedError(
            f"the problem has {engine.last} rounds and all have begun; begin a new season with renew, extend this "
            "one with revise, or start a new learner."
        )
    if code == steps.EXHAUSTED:
        remaining = engine.granted_amounts(engine.ledger.granted - engine.ledger.charged)
        raise BudgetExhaustedError(
            f"a budget is exceeded (remaining: {remaining}), so round {engine.begun + 1} cannot begin; "
            "stop here, add to it with grant, or start with safe=True so that no budget is exceeded."
        )
    if code == steps.NO_ARM:
        raise OutOfRangeError(
            f"round {engine.begun + 1} must be served, but the ledger cannot hold another reservation; are the "
            "amounts in other units than the budget?"
        )
    raise OutOfRangeError(
        f"choose of {engine.policy} must return an arm in [0, {engine.offered.size - 1}] or SKIP (-1), and "
        f"STUCK (-2) at most once; in round {engine.begun + 1} it returned {int(engine.desk.slot[0])}."
    )
