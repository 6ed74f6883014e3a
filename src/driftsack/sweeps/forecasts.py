"""Forecasts of an instance by its mean in each of ten periods, for policies that take a forecast."""

from __future__ import annotations

from typing import Final

import numpy as np

from driftsack.benchmarks import lp_dynamic
from driftsack.benchmarks.benchmark import plan_spending
from driftsack.core.instance import Instance
from driftsack.policies.spending_plan import Curve, curve_by_period

PERIODS: Final = 10


def forecast(world: Instance) -> Instance:
    """Replace the means of each of ``PERIODS`` equal periods by their average over the period.

    >>> from driftsack.instances import example_2
    >>> forecast(example_2(horizon=100)).rewards.tolist() == example_2(horizon=100).rewards[[0] * 5 + [1] * 5].tolist()
    True
    """
    count = min(PERIODS, world.horizon)
    period = np.arange(world.horizon, dtype=np.int64) * count // world.horizon
    shares = np.zeros((count, len(world.rewards)))
    np.add.at(shares, (period, world.phase), 1.0)
    shares /= shares.sum(axis=1, keepdims=True)
    costs = np.einsum("pk,kji->pji", shares, world.costs)
    return Instance(world.problem, shares @ world.rewards, costs, period.astype(np.int32), world.noise)


def spending(predicted: Instance) -> Curve:
    """Compute the share of each budget that the optimal plan of a forecast has spent after each period.

    Budgets that the plan does not use are spent evenly.
    """
    plan = np.asarray(lp_dynamic(predicted).plan)
    amounts = predicted.rounds[:, None] * plan_spending(predicted.costs, plan)
    return curve_by_period(np.where(amounts.sum(axis=0) > 0, amounts, 1.0))
