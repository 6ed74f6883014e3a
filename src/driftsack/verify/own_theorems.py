r"""Check theorems of our own (docs/theory-new.md): the price of a small budget, and pacing by what is left.

*Theorem N2* says that with radii that shrink with the mean the error of the planned spending falls with the rate b as
:math:`\sqrt b`, where the printed radii leave it as it is. *Theorem N3* bounds the regret of Algorithm 1 if it plans
with the remaining budget per remaining round; its constants are smaller than those of Theorem 1. Theorem N1, on bandit
over bandit, has no check: its constants make it vacuous at every horizon that can be played.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from driftsack.core.instance import Instance
from driftsack.measures import variation
from driftsack.policies import SlidingWindowUCB
from driftsack.policies.parts.radius import RadiusKind
from driftsack.theory.pacing import remaining_pace_bound
from driftsack.verify.auditor import audit
from driftsack.verify.competitors import COMPETITORS
from driftsack.verify.exponents import exact_exponent
from driftsack.verify.regret_bounds import biting_worlds, least_competitor, regrets
from driftsack.verify.statement import CONSISTENT, FAILS, WEAK, Case, Effort, Finding, Statement, judge_margins

SLACK_OF_SPENDING: Final = 0.15  # of the exponent in b, for the term mγT/w, which does not fall with b


def spending_error(rate: float, radius: RadiusKind, effort: Effort, returns_zero: bool = False) -> float:
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
    radius: RadiusKind = "printed" if case is Case.TRIVIAL else "refined"
    rate = exact_exponent("b", 0.5, places, [spending_error(place, radius, effort) for place in places])
    margin = SLACK_OF_SPENDING - abs(rate.value - factor * rate.expected)
    errors = ", ".join(f"{value:,.0f}" for value in rate.means)
    note = f"exponent {rate} of |Σ costs - planned costs|, {errors} at b = {', '.join(map(str, places))}"
    verdict = CONSISTENT if margin >= 0.0 else FAILS
    power = min(max((rate.value - SLACK_OF_SPENDING) / rate.expected, 0.0), 1.0)
    return Finding(verdict, len(places), margin, note, rates=(rate,), power=power)


def remaining_pace(effort: Effort, case: Case, factor: float = 1.0) -> Finding:
    """Check that planning with the remaining rate keeps the regret of Algorithm 1 below the bound of theorem N3.

    The instances are those of Theorem 1, on which every competitor loses half of the optimum.
    """
    horizon, margins, notes, shares = effort.pick(1_000_000, 3_000_000), [], [], []
    for world in biting_worlds(horizon):
        moves = variation(world)
        policy = SlidingWindowUCB(variation=(moves.v1, moves.v2), budget_rule="remaining")
        sizes = horizon, world.arms, world.resources, float(world.problem.rate.min())
        local, pairs = (moves.v1, moves.v2_sum), (moves.w1_pair, moves.w2_pair)
        windows, price = policy.window_lengths(world.problem), moves.q_bar_interval.least
        bound = remaining_pace_bound(*sizes, windows, local, pairs, price).total
        trivial = least_competitor(world, effort.seed)
        regret = trivial if case is Case.TRIVIAL else regrets(policy, world, effort.pick(2, 4), effort.seed).mean()
        shares.append(float(regret) / bound)
        margins += [factor - shares[-1], trivial / bound - 1.0]
        notes.append(f"regret {regret:,.0f}, bound {bound:,.0f}, V = {moves.v1:g}")
    note = f"1 - regret / bound, and competitors / bound - 1, T = {horizon:,}; {'; '.join(notes)}"
    return judge_margins(margins, note, power=max(shares))


STATEMENTS = (
    Statement(
        "remaining-pace",
        "Theorem N3, not in the paper",
        "Algorithm 1 on the remaining rate: Õ(√(mT)/b) plus drift",
        WEAK,
        remaining_pace,
        COMPETITORS,
    ),
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
