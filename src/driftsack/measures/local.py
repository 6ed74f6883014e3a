r"""Local non-stationarity (paper, section 2.2): how much the means move from one round to the next.

.. math:: V_1 = \sum_{t=1}^{T-1} \|\mu_t - \mu_{t+1}\|_\infty, \qquad
          V_2 = \max_j \sum_{t=1}^{T-1} \|C_{t,j} - C_{t+1,j}\|_\infty .
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftsack.core.instance import Instance


@dataclass(frozen=True)
class Variation:
    """Measures of how an instance moves, on means in [0, 1]."""

    v1: float  # rewards
    v2: float  # costs: the resource that moves most


def variation(instance: Instance) -> Variation:
    """Measure an instance.

    >>> from driftsack.core import Instance
    >>> world = Instance.from_arrays(
    ...     rewards=[[0.5], [0.5], [1.0]], costs=[[[0.25]], [[1.0]], [[1.0]]], budget=1.0
    ... )
    >>> variation(world)
    Variation(v1=0.5, v2=0.75)
    """
    phase = instance.phase
    moves = np.flatnonzero(phase[1:] != phase[:-1])
    before, after = phase[moves], phase[moves + 1]
    rewards, costs = instance.unit_rewards, instance.unit_costs
    first = np.abs(rewards[after] - rewards[before]).max(axis=1).sum()
    second = np.abs(costs[after] - costs[before]).max(axis=2).sum(axis=0).max()
    return Variation(float(first), float(second))
