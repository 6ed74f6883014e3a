r"""OPT_LP-Static: the best single mix, played in every round, that meets the budgets in expectation.

.. math:: \max_{x \in \Delta_m} \; T \bar\mu^\top x \quad \text{s.t. } T \bar C x \le B

with the means over the horizon: a single step LP at the rate b = B/T. With floors it minimises the cost of a mix that
answers every round and reaches them (:mod:`driftsack.benchmarks.with_floors`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from driftsack.benchmarks.benchmark import Benchmark, check_instance, relative_gap
from driftsack.benchmarks.with_floors import GivenRows, solve_with_floors
from driftsack.core.arrays import Floats
from driftsack.core.instance import Instance
from driftsack.game.units import prices_in_units, units_of
from driftsack.lp.step import certificate, step_lp

TOLERANCE: Final = 1e-9
MOST_PASSES: Final = 1000


def mean_rows(instance: Instance) -> tuple[Floats, Floats]:
    """Return the normalised mean rewards (m,) and mean costs (d, m) over the horizon."""
    share = instance.rounds / instance.horizon
    return share @ instance.unit_rewards, np.tensordot(share, instance.unit_costs, axes=1)


def lp_static(instance: Instance) -> Benchmark:
    """Compute LP-Static, the value of the best single mix.

    Args:
        instance: The instance, without contexts.

    Returns:
        The benchmark. Its plan has the same mix in every row.

    >>> import driftsack as ds
    >>> round(lp_static(ds.instances.example_1()).value, 6)
    3333.333333
    """
    check_instance(instance, "lp_static", floors=True)
    problem = instance.problem
    rewards, costs = mean_rows(instance)
    if problem.floor:
        row = GivenRows(problem, rewards[None], costs[None], np.array([problem.horizon]))
        found = solve_with_floors(row, "LP-Static", TOLERANCE, MOST_PASSES)
        return replace(found, plan=np.tile(np.asarray(found.plan)[0], (len(instance.rewards), 1)))
    best = step_lp(rewards, costs, problem.rate)
    proof = certificate(rewards, costs, problem.rate, best.mix, best.prices)
    return Benchmark(
        "LP-Static",
        best.value * problem.horizon * problem.reward_max,
        relative_gap(best.value + proof.gap, best.value, 1.0),
        prices_in_units(units_of(problem), best.prices),
        np.tile(best.mix, (len(instance.rewards), 1)),
        passes=1,
    )
