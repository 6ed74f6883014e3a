r"""Listed costs: what each arm costs by the price list of the present request, which is known before the choice.

An outcome may still differ from the list: a job that is pre-empted pays for the time it ran. So a policy learns costs
relative to the list. With :math:`\ell_{ij}` the listed cost of arm i in resource j and :math:`\ell^0_{ij}` its
*reference*, the *factor* of the request is :math:`f_{ij} = \ell_{ij} / \ell^0_{ij}`; a policy is told
:math:`c_{ij} / f_{ij}` and plans with its estimate times the present factor. A decision keeps its factors until its
outcome is known, so that late outcomes count at the prices at which they were bought. Where the list is exact,
:math:`c/f` is constant and there is nothing to learn.

*Reference.* If costs are listed from the first round, all arms share the reference of a resource, so that the expected
cost of an untried arm is its listed cost. Otherwise the reference is the first listed cost of each arm, so that earlier
estimates keep their meaning. For a policy that learns outcomes in [0, 1] the reference is half of the largest cost: it
can learn up to twice the listed cost.

*Requests without a list* have the mean factor of the latest lists of an arm, or 1 if there was none. An announced
change (``Learner.announce``) multiplies that factor.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Bools, Floats, Ints
from driftsack.core.problem import Problem
from driftsack.numerics.compiled import kernel

LISTS: Final = 100.0
"""Effective number of lists in the mean factor of an arm."""

LARGEST_FACTOR: Final = 1e12
SMALLEST_FACTOR: Final = 1e-12
"""Below it an outcome says nothing about the ratio of a cost to the list."""

UNLISTED: Final = -1.0


class ListedCosts(NamedTuple):
    """The list of the present request, and averages over earlier ones; without lists all factors are 1.

    Attributes:
        active: (1,) whether there was a list or an announcement before.
        given: (1,) whether the present request has a list.
        listed: (d, m) listed costs of the present request in units of ``cost_max``; ``UNLISTED`` where there are none.
        factors: (d, m) the factors of the latest request.
        usual: (d, m) the factors of a request without a list.
        lists: (d, m) the lists behind ``usual``, at most ``LISTS``.
        reference: (d, m) the listed cost whose factor is 1, in units of ``cost_max``; 0 before the first list.
        common: (d,) the reference that all arms share; 0 if each has its own.
        swing: (1,) moving average of the absolute change of log f from one request to the next.
        round: (1,) the latest round with factors; -1 before the first.
    """

    active: Bools
    given: Bools
    listed: Floats
    factors: Floats
    usual: Floats
    lists: Floats
    reference: Floats
    common: Floats
    swing: Floats
    round: Ints


KEPT: Final = ("active", "factors", "usual", "lists", "reference", "common", "swing", "round")
"""The fields that a file keeps."""


def new_listed_costs(problem: Problem) -> ListedCosts:
    """A record without lists."""
    shape = problem.resources, problem.arms
    return ListedCosts(
        active=np.zeros(1, dtype=np.bool_),
        given=np.zeros(1, dtype=np.bool_),
        listed=np.full(shape, UNLISTED),
        factors=np.ones(shape),
        usual=np.ones(shape),
        lists=np.zeros(shape),
        reference=np.zeros(shape),
        common=np.zeros(problem.resources),
        swing=np.zeros(1),
        round=np.full(1, -1, dtype=np.int64),
    )


@kernel
def set_factors(prices: ListedCosts, t: int, bounded: bool) -> None:
    """Write the factors of the request of round ``t``, once per round.

    Args:
        prices: The list; written.
        t: The round, from 0.
        bounded: Whether the policy learns outcomes in [0, 1].
    """
    if not (prices.given[0] or prices.active[0]) or prices.round[0] == t:
        return
    # The first list decides whether the arms share a reference.
    if not prices.active[0]:
        prices.active[0] = True
        if t == 0:
            set_common(prices, bounded)
    prices.round[0] = t
    # Update the factors, and their means over the latest lists.
    moved, count = 0.0, 0
    for j in range(prices.listed.shape[0]):
        for i in range(prices.listed.shape[1]):
            listed = prices.listed[j, i]
            if listed < 0.0:
                prices.factors[j, i] = prices.usual[j, i]
                continue
            factor = factor_of(prices, j, i)
            if min(factor, prices.factors[j, i]) > 0.0 and prices.lists[j, i] > 0.0:
                moved += abs(math.log(factor / prices.factors[j, i]))
                count += 1
            prices.factors[j, i] = factor
            prices.lists[j, i] = min(prices.lists[j, i] + 1.0, LISTS)
            prices.usual[j, i] += (factor - prices.usual[j, i]) / prices.lists[j, i]
    # Average how much the factors move from one request to the next.
    if count > 0:
        prices.swing[0] += (moved / count - prices.swing[0]) / LISTS


@kernel
def set_common(prices: ListedCosts, bounded: bool) -> None:
    """Choose the reference of each resource that is listed from the start: half of the largest cost, or the mean."""
    for j in range(prices.common.size):
        total, count = 0.0, 0
        for i in range(prices.listed.shape[1]):
            if prices.listed[j, i] > 0.0:
                total += prices.listed[j, i]
                count += 1
        if count > 0:
            prices.common[j] = 0.5 if bounded else total / count


@kernel
def factor_of(prices: ListedCosts, j: int, i: int) -> float:
    """The factor of a listed cost; the first one of an arm decides its reference."""
    if prices.reference[j, i] == 0.0 and max(prices.common[j], prices.listed[j, i]) > 0.0:
        prices.reference[j, i] = prices.common[j] if prices.common[j] > 0.0 else prices.listed[j, i]
    if prices.reference[j, i] == 0.0:
        return 0.0
    return float(min(prices.listed[j, i] / prices.reference[j, i], LARGEST_FACTOR))


@kernel
def relative_cost(prices: ListedCosts, j: int, arm: int, cost: float, factor: float) -> float:
    """A cost divided by the factor at which it was bought; the reference where the list said that it is free."""
    return cost / factor if factor > SMALLEST_FACTOR else prices.reference[j, arm]
