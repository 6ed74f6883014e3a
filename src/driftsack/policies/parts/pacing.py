r"""Pacers set the right-hand side of the step LP, the average spending allowed per round.

- ``"fixed"``: the round's rate, b = B/T unless a wrapper changes it.
- ``"remaining"``: the remaining budget per remaining round, which corrects earlier over- and underspending.

Both are multiplied by ``kept`` = 1 - ε, the share of the rate that is used.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from driftsack.core.checks import one_of
from driftsack.game.records import Round
from driftsack.lp.step import LOOSE
from driftsack.numerics.compiled import kernel
from driftsack.numerics.simplex import Simplex

FIXED: Final = "fixed"
REMAINING: Final = "remaining"
TWO_SPEED: Final = "two-speed"  # for policies that use ``two_speed.py`` instead of this module
BUDGET_RULES: Final = (FIXED, REMAINING)
BudgetRule = Literal["fixed", "remaining"]


class Pacer(NamedTuple):
    """The settings of a pacer.

    Attributes:
        remaining: Whether to pace by the remaining budget instead of the round's rate.
        kept: The factor 1 - ε on the rate.
    """

    remaining: bool
    kept: float


def new_pacer(budget_rule: str, kept: float = 1.0) -> Pacer:
    """Create the pacer of a budget rule.

    Args:
        budget_rule: ``"fixed"`` or ``"remaining"``.
        kept: The factor 1 - ε on the rate.

    Returns:
        The pacer.
    """
    return Pacer(budget_rule == REMAINING, kept)


def check_budget_rule(recipe: Any, rules: tuple[str, ...] = BUDGET_RULES) -> None:
    """Check the setting ``budget_rule`` of a policy."""
    one_of(recipe.budget_rule, "budget_rule", rules)


@kernel
def pace(pacer: Pacer, lp: Simplex, round: Round) -> None:
    """Write the right-hand side of the step LP.

    Args:
        pacer: The settings of the pacer.
        lp: The step LP; its right-hand side is written.
        round: The current round.
    """
    ledger = round.ledger
    for j in range(ledger.budget.size):
        rate = round.rate[j]
        if pacer.remaining:
            rate = max(ledger.budget[j] - ledger.spent[j], 0.0) / round.rounds_left
        lp.rhs[j] = min(pacer.kept * rate, LOOSE)
