"""What somebody who knows the season, but not the day, could say of a world beforehand: for policies that are told."""

from __future__ import annotations

from typing import Final

import numpy as np

from driftsack.benchmarks import lp_dynamic
from driftsack.core.instance import Instance
from driftsack.policies import NaiveUCB, SpendingPlan
from driftsack.policies.spending_plan import Curve

PERIODS: Final = 10


def forecast(world: Instance) -> Instance:
    """The same world with the means of ``PERIODS`` equal periods.

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


def spending(told: Instance) -> Curve:
    """Which share of each budget the best plan has spent after each period; what it leaves alone is paced evenly."""
    plan = np.asarray(lp_dynamic(told).plan)
    amounts = told.rounds[:, None] * np.einsum("kji,ki->kj", told.costs, plan)
    return SpendingPlan.by_period(NaiveUCB(), np.where(amounts.sum(axis=0) > 0, amounts, 1.0)).curve
