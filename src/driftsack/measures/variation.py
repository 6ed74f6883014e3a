r"""Measures of variation: the paper's local and global measures, sharper versions, and the price :math:`\bar q`.

For means in [0, 1], with bars for averages over the horizon and the norms of section 2.2,

.. math::
   V_1 &= \sum_{t<T} \|\mu_t - \mu_{t+1}\|_\infty, & V_2 &= \max_j \sum_{t<T} \|C_{t,j} - C_{t+1,j}\|_\infty, \\
   & & V_2^\Sigma &= \sum_{t<T} \max_j \|C_{t,j} - C_{t+1,j}\|_\infty, \\
   W_1 &= \sum_t \|\mu_t - \bar\mu\|_\infty, & W_2 &= \sum_t \|C_t - \bar C\|_1, \\
   W_1^{\min} &= \min_\mu \sum_t \|\mu_t - \mu\|_\infty, & W_2^{\min} &= \min_C \sum_t \|C_t - C\|_1, \\
   W_1^{\mathrm{pair}} &= \tfrac1T \sum_{s,t} \|\mu_t - \mu_s\|_\infty, &
   W_2^{\mathrm{pair}} &= \tfrac1T \sum_{s,t} \|C_t - C_s\|_1 .

:math:`V_2^\Sigma` lies between :math:`V_2` and :math:`d V_2` and may replace the latter in Theorem 1
(docs/theory-paper.md).

The pairwise measures repair Proposition 1: LP-Dynamic is at most the sum of the single-step LPs plus
:math:`W_1^{\mathrm{pair}} + \bar q W_2^{\mathrm{pair}}` with :math:`\bar q = \max_t \|q_t^*\|_\infty`, and
:math:`W^{\mathrm{pair}} \le 2 W^{\min}` by the triangle inequality.

V and W take one pass over the rows each. :math:`W^{\min}` is convex in the centre and is minimised by cutting planes
(:mod:`driftsack.numerics.bundle`) to a certified relative gap. The pairwise measure computes the distance of every
pair of distinct rows once, without storing them. Each measure is computed when it is first read.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from driftsack.benchmarks import Benchmark, lp_dynamic, lp_static, single_step
from driftsack.core.arrays import Floats
from driftsack.core.checks import of_type
from driftsack.core.errors import TooLargeError
from driftsack.core.instance import Instance
from driftsack.measures.distances import distances_and_subgradients, local_variation, sum_over_pairs, sum_to_centre
from driftsack.measures.price_interval import PriceInterval, price_interval
from driftsack.numerics.bundle import minimise

GROUPS_PER_COORDINATE: Final = 2
MOST_PASSES: Final = 2_000  # of the cutting-plane method
MOST_PAIR_WORK: Final = 10**12  # multiplications; several minutes on one core
SMALL_PAIR_WORK: Final = 10**6  # multiplications; smaller sums are computed without threads
PAIR_PARTS: Final = 64  # parts of the pairwise sum that threads work on


class Centre(NamedTuple):
    r"""The centre with the smallest sum of distances to the means of all rounds.

    Attributes:
        value: The sum of distances, :math:`W_1^{\min}` or :math:`W_2^{\min}`.
        centre: (m,) for rewards, (d, m) for costs.
        gap: The certified relative gap: no centre has a sum smaller by more than this share.
    """

    value: float
    centre: Floats
    gap: float


class Variation:
    """The measures of an instance, for means normalised to [0, 1]; each is computed when it is first read.

    Args:
        instance: The instance to measure.
        tolerance: The relative gap to which ``w1_min`` and ``w2_min`` are solved.

    >>> import driftsack as ds
    >>> moves = Variation(ds.instances.step_change(k=3_000, horizon=10_000))
    >>> moves.v1, moves.w1, moves.w1_min, moves.w1_pair          # 1, 2k(T-k)/T, min(k, T-k), 2k(T-k)/T
    (1.0, 4200.0, 3000.0, 4200.0)
    """

    def __init__(self, instance: Instance, tolerance: float = 1e-6) -> None:
        of_type(instance, Instance, "instance")
        self.instance = instance
        self.tolerance = tolerance
        self._rewards = instance.unit_rewards[:, None, :]  # (K, 1, m): rewards as costs of one resource
        self._costs = instance.unit_costs

    @cached_property
    def _local(self) -> tuple[float, float, float]:
        """V1, V2 and the sum form of V2, computed in one pass."""
        per_resource = np.zeros(self.instance.resources)
        v1, v2_sum = local_variation(self._rewards[:, 0], self._costs, self.instance.phase, per_resource)
        return float(v1), float(per_resource.max()), float(v2_sum)

    @property
    def v1(self) -> float:
        r"""Local variation :math:`V_1` of the rewards: changes from one round to the next, summed."""
        return self._local[0]

    @property
    def v2(self) -> float:
        r"""Local variation :math:`V_2` of the costs: the maximum over the resources."""
        return self._local[1]

    @property
    def v2_sum(self) -> float:
        r"""Local variation :math:`V_2^\Sigma` of the costs: the largest change of each round, summed.

        It lies between :math:`V_2` and :math:`d V_2`, and equals :math:`V_2` if resources drift together. The drift
        term of Theorem 1 holds with it in place of :math:`d V_2`.
        """
        return self._local[2]

    @cached_property
    def w1(self) -> float:
        r"""Global variation :math:`W_1` of the rewards: distances from their mean over the horizon, summed."""
        return self._about_mean(self._rewards)

    @cached_property
    def w2(self) -> float:
        r"""Global variation :math:`W_2` of the costs: distances from their mean over the horizon, summed."""
        return self._about_mean(self._costs)

    @cached_property
    def w1_best(self) -> Centre:
        r"""The best centre of the rewards (m,), with :math:`W_1^{\min}` and its gap."""
        best = self._best_centre(self._rewards)
        return best._replace(centre=best.centre[0])

    @cached_property
    def w2_best(self) -> Centre:
        r"""The best centre of the costs (d, m), with :math:`W_2^{\min}` and its gap."""
        return self._best_centre(self._costs)

    @property
    def w1_min(self) -> float:
        r"""Global variation :math:`W_1^{\min}` of the rewards about their best centre."""
        return self.w1_best.value

    @property
    def w2_min(self) -> float:
        r"""Global variation :math:`W_2^{\min}` of the costs about their best centre."""
        return self.w2_best.value

    @cached_property
    def w1_pair(self) -> float:
        r"""Pairwise variation :math:`W_1^{\mathrm{pair}}` of the rewards: a sum over all pairs of rounds, over T."""
        return self._pairs(self._rewards)

    @cached_property
    def w2_pair(self) -> float:
        r"""Pairwise variation :math:`W_2^{\mathrm{pair}}` of the costs: a sum over all pairs of rounds, over T."""
        return self._pairs(self._costs)

    @cached_property
    def q_bar(self) -> float:
        r"""The paper's :math:`\bar q`: the largest price of LP-Dynamic and of every round's step LP.

        Optimal prices need not be unique. This is the sup norm of the prices that the solvers return, one value in
        ``q_bar_interval``; a tiny change of a budget may move it to the other end.
        """
        row_prices = single_step(self.instance).row_prices
        prices = lp_dynamic(self.instance).prices
        return max(self._largest(row_prices), self._largest(prices))

    @cached_property
    def q_bar_full(self) -> float:
        """The largest of ``q_bar`` and the prices of the LP on mean rows, as the proof of Proposition 1 requires."""
        return max(self.q_bar, self._largest(lp_static(self.instance).prices))

    @cached_property
    def q_bar_interval(self) -> PriceInterval:
        r"""The range of :math:`\bar q`: the smallest and the largest sup norm of optimal prices.

        For Example 1 it is [0, 1]. Statements that hold for every optimal price need only the smallest value.
        """
        return self._row_interval.union(self._interval_of(lp_dynamic(self.instance)))

    @cached_property
    def q_bar_full_interval(self) -> PriceInterval:
        """As ``q_bar_interval``, with the prices of the LP on mean rows, as the proof of Proposition 1 requires."""
        rewards, costs = self._mean(self._rewards), self._mean(self._costs)[None]
        value = np.array([lp_static(self.instance).value / self.instance.problem.reward_max / self.instance.horizon])
        one = np.zeros(1, dtype=np.int64)
        of_mean = price_interval(rewards, costs, np.ones(1), one, self.instance.problem.rate, value)
        return self.q_bar_interval.union(of_mean)

    @cached_property
    def _row_interval(self) -> PriceInterval:
        """The interval of the largest price of the step LPs."""
        values = single_step(self.instance).values
        count = len(self._costs)
        unit_values = np.asarray(values) / self.instance.problem.reward_max
        each, ones = np.arange(count), np.ones(count)
        rate = self.instance.problem.rate
        return price_interval(self._rewards[:, 0], self._costs, ones, each, rate, unit_values)

    def _interval_of(self, benchmark: Benchmark) -> PriceInterval:
        """Return the interval of the sup norm of the prices of LP-Dynamic."""
        count, problem = len(self._costs), self.instance.problem
        value = np.array([benchmark.value / problem.reward_max])
        same = np.zeros(count, dtype=np.int64)
        return price_interval(self._rewards[:, 0], self._costs, self.instance.rounds, same, problem.rate, value)

    def _largest(self, prices: Floats | None) -> float:
        """Return the largest price, normalised to rewards and costs in [0, 1]."""
        problem = self.instance.problem
        unit = np.asarray(problem.cost_max) / problem.reward_max
        return float((np.asarray(prices) * unit).max())

    def _about_mean(self, rows: Floats) -> float:
        """Return the sum of distances to the mean row."""
        return float(sum_to_centre(rows, self.instance.rounds, self._mean(rows)[None]))

    def _mean(self, rows: Floats) -> Floats:
        """Return the mean row (d, m) over the horizon."""
        share = self.instance.rounds / self.instance.horizon
        mean: Floats = (share @ rows.reshape(len(rows), -1)).reshape(rows.shape[1:])
        return mean

    def _best_centre(self, rows: Floats) -> Centre:
        """Find the centre (d, m) that minimises the sum of distances, by cutting planes."""
        count, shape = len(rows), rows.shape[1:]
        size = shape[0] * shape[1]
        groups = min(count, GROUPS_PER_COORDINATE * size)
        unit = self.instance.horizon / groups

        def oracle(point: Floats, values: Floats, slopes: Floats) -> None:
            distances_and_subgradients(rows, self.instance.rounds, point.reshape(1, *shape), values, slopes)
            values /= unit
            slopes /= unit

        start = self._mean(rows).ravel()
        minimum = minimise(oracle, start, np.ones(size), np.zeros(size), groups, self.tolerance, MOST_PASSES)
        gap = (minimum.upper - minimum.lower) / minimum.upper if minimum.upper > 0 else 0.0
        return Centre(minimum.upper * unit, minimum.point.reshape(shape), gap)

    def _pairs(self, rows: Floats) -> float:
        """Return the sum of distances of all pairs of rounds, divided by T."""
        count = len(rows)
        work = count * count * rows.shape[1] * rows.shape[2] // 2
        if work > MOST_PAIR_WORK:
            raise TooLargeError(
                f"the pairwise measure of {count:,} distinct rows needs {work:.1e} multiplications, but at most "
                f"{MOST_PAIR_WORK:.0e} are allowed; average neighbouring rounds first, or use w1_min and w2_min."
            )
        if work < SMALL_PAIR_WORK:
            return 2.0 * float(sum_over_pairs(rows, self.instance.rounds, 0, count)) / self.instance.horizon
        edges = np.linspace(0, count, PAIR_PARTS + 1).astype(np.int64)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            parts = pool.map(
                lambda k: sum_over_pairs(rows, self.instance.rounds, int(edges[k]), int(edges[k + 1])),
                range(PAIR_PARTS),
            )
        return 2.0 * float(sum(parts)) / self.instance.horizon

    def __repr__(self) -> str:
        return f"Variation(v1={self.v1:g}, v2={self.v2:g}, w1={self.w1:g}, w2={self.w2:g}, ...)"


def variation(instance: Instance, tolerance: float = 1e-6) -> Variation:
    """Measure how much the means of an instance vary over time.

    Args:
        instance: The instance to measure.
        tolerance: The relative gap to which ``w1_min`` and ``w2_min`` are solved.

    Returns:
        The measures, each computed when it is first read.

    >>> from driftsack.core import Instance
    >>> world = Instance.from_arrays(rewards=[[0.5], [0.5], [1.0]], costs=[[[0.25]], [[1.0]], [[1.0]]], budget=1.0)
    >>> variation(world)
    Variation(v1=0.5, v2=0.75, w1=0.666667, w2=1, ...)
    """
    return Variation(instance, tolerance)
