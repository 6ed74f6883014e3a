"""The present rule, which made the log: what it earned and spent, and for how much less the advice would earn the same.

The recommended policy is taken to earn the share of the optimum that it earned in simulations, whatever the budget. Its
reward for a part of what the present rule spent is this share of the optimum with that part of its spending, and the
part at which it equals the reward of the present rule is found by bisection. Lost outcomes are taken to be like others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from driftsack.benchmarks import lp_dynamic
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.logs import Survey

STEPS: Final = 10  # of the bisection: to a thousandth
NEGLIGIBLE: Final = 1e-9  # relative spending of a resource below which it counts as unused


class OwnRule(NamedTuple):
    """What the rule that made the log earns and spends over the horizon, in the problem's units."""

    reward: float
    costs: Floats  # (d,)
    covered: float  # the share of its rounds that the budget covers
    # The share of its spending for which the recommended policy earns as much; None if it needs more than that.
    enough: float | None


def own_rule(survey: Survey, instance: Instance, efficiency: float) -> OwnRule | None:
    """Describe the present rule; None if the log does not say which arms were played.

    ``efficiency`` is the reward of the recommended policy over the optimum of the fitted instance.
    """
    if survey.totals is None or survey.rows == survey.lost:
        return None
    totals = survey.totals * instance.horizon / (survey.rows - survey.lost)
    reward, costs = float(totals[0]), totals[1:]
    used = costs > NEGLIGIBLE * np.asarray(survey.cost_max) * instance.horizon
    budget = np.asarray(instance.problem.budget)
    covered = float(min([1.0, *(budget[used] / costs[used])]))
    if not used.any() or reward <= 0:
        return OwnRule(reward, costs, covered, None)

    def earned(share: float) -> float:
        """The reward of the recommended policy for a share of the present spending."""
        amounts = tuple(np.where(used, share * costs, budget).tolist())
        problem = replace(instance.problem, budget=amounts)
        smaller = Instance(problem, instance.rewards, instance.costs, instance.phase, instance.noise)
        return efficiency * lp_dynamic(smaller).value

    low, high = 0.0, 1.0
    if earned(high) < reward:
        return OwnRule(reward, costs, covered, None)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if earned(middle) >= reward else (middle, high)
    return OwnRule(reward, costs, covered, high)
