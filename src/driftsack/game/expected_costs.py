r"""The expected costs of pending decisions, on which the reservations of ``safe="statistical"`` are based.

With ``safe=True`` every pending decision reserves its maximum cost, which may be many times its actual cost. In the
statistical mode the :math:`n_i` decisions of each arm without costs reserve together, in each resource,

.. math:: \min\Bigl(\sum_i \min(n_i \hat c_i, W_i) + 4 \sqrt{\sum_i n_i \hat v_i + n_i^2 \hat v_i / k_i},\;
          \sum_i W_i\Bigr),

where :math:`W_i` are their maximum costs, and :math:`\hat c_i`, :math:`\hat v_i` the mean and the variance of the
:math:`k_i` costs of the arm so far; the last term is the variance of the estimated mean. A new request reserves its
maximum cost. So the budgets hold unless the pending costs exceed their mean by more than four standard deviations, or
costs rise before they arrive.

A decision that is forfeited is charged the mean cost of its arm, the larger of the two averages below, instead of its
maximum cost; if its costs arrive after all, the difference is settled.

*Estimates.* There are two averages, over about 50 and over about 1,000 costs, and the larger mean and the larger
variance are used, which follows a rise quickly without forgetting rare expensive outcomes. The long average includes
one imagined cost of four times the largest cost so far, but at most the maximum; without observations it is the
maximum. A cost counts for at most 4, 16 and 64 times the second, third and fourth largest, as for ``Adaptive``, so that
a single absurd bill closes no arm. It is charged in full.

Costs are in units of ``cost_max``, as in the records. The rules of the game keep them for every policy.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger
from driftsack.numerics.compiled import kernel

LEVEL: Final = 4.0  # standard deviations above the mean
RECENT: Final = 50.0  # effective number of costs in the short average
LONG: Final = 1000.0  # effective number of costs in the long average
TOP: Final = 4  # largest costs that decide the scale
ENVELOPE: Final = 4.0  # the largest cost counts for at most this multiple of the second largest, and so on
LARGEST: Final = 1e50  # a cost that counts


class CostRecord(NamedTuple):
    """The costs of each arm so far, and the reservations of its pending decisions."""

    on: Bools  # (1,) whether the mode is statistical; otherwise nothing is kept
    owed: Ints  # (d, m) maximum costs of the decisions without costs, in grid units; in statistical mode
    seen: Floats  # (m,) number of costs
    top: Floats  # (m, d, 4) the largest costs, in descending order
    means: Floats  # (2, m, d) the short and the long average
    squares: Floats  # (2, m, d) the same averages of the squares
    margin: Floats  # (d,) the amount reserved in excess of the expected costs, in units of cost_max
    spared: Ints  # (d,) maximum costs minus reservations, in grid units


def new_cost_record(problem: Problem) -> CostRecord:
    """A record without costs, switched off."""
    arms, resources = problem.arms, problem.resources
    return CostRecord(
        on=np.zeros(1, dtype=np.bool_),
        owed=np.zeros((resources, arms), dtype=np.int64),
        seen=np.zeros(arms),
        top=np.zeros((arms, resources, TOP)),
        means=np.zeros((2, arms, resources)),
        squares=np.zeros((2, arms, resources)),
        margin=np.zeros(resources),
        spared=np.zeros(resources, dtype=np.int64),
    )


@kernel
def note_costs(record: CostRecord, arm: int, costs: Floats, unit: Floats) -> None:
    """Learn the costs of an outcome, in statistical mode.

    Args:
        record: The record, which is changed.
        arm: The arm.
        costs: (d,) the costs, in the problem's units.
        unit: (d,) the cost that is normalised to 1.
    """
    if not record.on[0]:
        return
    for j in range(costs.size):
        top = record.top[arm, j]
        insert(top, min(costs[j] / unit[j], LARGEST))
        most = scale(top)
        cost = min(costs[j] / unit[j], most)
        for k in range(2):
            weight = max(1.0 / (record.seen[arm] + 1.0), 1.0 / (RECENT if k == 0 else LONG))
            mean = record.means[k, arm, j]
            square = record.squares[k, arm, j]
            record.means[k, arm, j] = min(mean + weight * (cost - mean), most)
            record.squares[k, arm, j] = min(square + weight * (cost * cost - square), most * most)
    record.seen[arm] += 1.0


@kernel
def insert(top: Floats, cost: float) -> None:
    """Insert a cost into the largest ones, which are in descending order."""
    for r in range(top.size):
        if cost > top[r]:
            top[r], cost = cost, top[r]


@kernel
def scale(top: Floats) -> float:
    """The largest cost that counts: a multiple of the second, third or fourth largest that are not 0."""
    most, factor = top[0], 1.0
    for r in range(1, top.size):
        factor *= ENVELOPE
        if top[r] > 0.0:
            most = min(most, factor * top[r])
    return float(most)


@kernel
def expected_costs(record: CostRecord, ledger: Ledger, unpaid: Floats, j: int) -> tuple[float, float]:
    """Estimate the total cost of the decisions without costs, and the margin that is reserved in addition.

    Args:
        record: The record.
        ledger: The ledger of the present season.
        unpaid: (m,) the decisions of each arm without costs.
        j: The resource.

    Returns:
        Both in units of ``cost_max``; without the limit by the maximum costs.
    """
    total, variance = 0.0, 0.0
    for i in range(unpaid.size):
        n = unpaid[i]
        if n > 0.0:
            worst = record.owed[j, i] / ledger.per_cost[j]
            mean, long = long_average(record, i, j, worst / n)
            # The larger of both averages.
            recent = max(record.squares[0, i, j] - record.means[0, i, j] * record.means[0, i, j], 0.0)
            total += min(n * max(mean, record.means[0, i, j]), worst)
            known = min(record.seen[i], LONG)
            variance += n * max(long, recent) + n * n * long / (known + 1.0)
    return total, LEVEL * math.sqrt(variance)


@kernel
def long_average(record: CostRecord, arm: int, j: int, worst: float) -> tuple[float, float]:
    """The mean and the variance of an arm's costs in the long average, with one imagined cost of at most ``worst``."""
    known, most = min(record.seen[arm], LONG), scale(record.top[arm, j])
    imagined = min(ENVELOPE * most, worst) if most > 0.0 else worst
    mean = (known * record.means[1, arm, j] + imagined) / (known + 1.0)
    square = (known * record.squares[1, arm, j] + imagined * imagined) / (known + 1.0)
    return mean, max(square - mean * mean, 0.0)


@kernel
def lost_units(record: CostRecord, ledger: Ledger, arm: int, j: int, worst: int) -> int:
    """The charge of a decision whose outcome is lost, in grid units: its maximum cost.

    In statistical mode it is the mean cost of its arm, the larger of the two averages, and at most the maximum.

    Args:
        record: The record.
        ledger: The ledger of the season that the decision belongs to.
        arm: The arm.
        j: The resource.
        worst: Its maximum cost, in grid units.
    """
    if not record.on[0]:
        return worst
    mean, _ = long_average(record, arm, j, worst / ledger.per_cost[j])
    units = max(mean, record.means[0, arm, j]) * ledger.per_cost[j]
    return worst if units >= worst else math.ceil(units)


@kernel
def held_units(record: CostRecord, ledger: Ledger, unpaid: Floats, j: int) -> int:
    """The reservation of all decisions without costs in a budget, in grid units.

    Args:
        record: The record.
        ledger: The ledger of the present season.
        unpaid: (m,) the decisions of each arm without costs.
        j: The resource.

    Returns:
        The sum of their maximum costs; in statistical mode at most that.
    """
    if not record.on[0]:
        return int(ledger.reserved[j])
    total, margin = expected_costs(record, ledger, unpaid, j)
    units = (total + margin) * ledger.per_cost[j]
    if units >= ledger.reserved[j]:
        return int(ledger.reserved[j])
    return int(min(math.ceil(units), ledger.reserved[j]))


@kernel
def set_reserve(record: CostRecord, ledger: Ledger, unpaid: Floats) -> None:
    """Update the margin and the difference between maximum costs and reservations, in statistical mode."""
    if not record.on[0]:
        return
    for j in range(ledger.reserved.size):
        total, margin = expected_costs(record, ledger, unpaid, j)
        most = ledger.reserved[j] / ledger.per_cost[j]
        record.margin[j] = min(margin, max(most - total, 0.0))
        record.spared[j] = ledger.reserved[j] - held_units(record, ledger, unpaid, j)
