r"""Check a theorem that is not in the paper (docs/theory.md): the price of a small budget.

*Theorem N2* says that with radii that shrink with the mean the error of the planned spending falls with the rate b as
:math:`\sqrt b`, where the printed radii leave it as it is. Theorem N1, on bandit over bandit, has no check: its
constants make it vacuous at every horizon that can be played.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from driftsack.core.instance import Instance
from driftsack.policies import SlidingWindowUCB
from driftsack.verify.auditor import audit
from driftsack.verify.exponents import exact_exponent
from driftsack.verify.statement import CONSISTENT, FAILS, Case, Effort, Finding, Statement

SLACK_OF_SPENDING: Final = 0.15  # of the exponent in b, for the term mγT/w, which does not fall with b


def spending_error(rate: float, radius: str, effort: Effort, returns_zero: bool = False) -> float:
    """The largest |sum of costs less planned costs| of sliding-window UCB on four arms of similar cost near 2b."""
    horizon = effort.pick(100_000, 1_000_000)
    costs = rate * np.array([[1.6, 1.8, 2.0, 2.2]])
    world = Instance.stationary([0.7, 0.75, 0.8, 0.85], costs, horizon, rate * horizon)
    policy = SlidingWindowUCB(windows=(horizon // 4, horizon // 4), radius=radius, clip=True)
    audits = audit(world, policy, effort.pick(1, 4), effort.seed, returns_zero)
    return float(np.mean([trial.farthest[1] for trial in audits]))


def small_budget(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check that the error of planned spending falls as √b with the refined radii, unlike with the printed ones."""
    places = [0.1, 0.2, 0.4]
    radius = "printed" if case is Case.TRIVIAL else "refined"
    rate = exact_exponent("b", 0.5, places, [spending_error(place, radius, effort) for place in places])
    margin = SLACK_OF_SPENDING - abs(rate.value - factor * rate.expected)
    errors = ", ".join(f"{value:,.0f}" for value in rate.means)
    note = f"exponent {rate} of |Σ costs - planned costs|, {errors} at b = {', '.join(map(str, places))}"
    verdict = CONSISTENT if margin >= 0.0 else FAILS
    power = min(max((rate.value - SLACK_OF_SPENDING) / rate.expected, 0.0), 1.0)
    return Finding(verdict, len(places), margin, note, rates=(rate,), power=power)


STATEMENTS = (
    Statement(
        "small-budget",
        "Theorem N2, not in the paper",
        "refined radii: spending errs by Õ(T√(bm/w))",
        CONSISTENT,
        small_budget,
        "the printed radii",
        "the exponent of b",
    ),
)
