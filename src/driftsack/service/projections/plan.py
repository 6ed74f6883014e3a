"""The best plan for the estimated means: shadow prices of the budgets, and regret.

The means are those of the latest outcomes of each arm. In each bucket the step LP with these means gives the value of
the best mix and the shadow price of each budget.

The dual price of the LP is a step function: if the budget per request is close to the mean cost of an arm, as it is for
a campaign that spends as planned, it flips between zero and its next value with the noise of that mean. Prices are
therefore averaged over a few buckets.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from driftsack.lp import StepSolution, step_lp
from driftsack.service.projections.progress import SMOOTH, WIDE, Axis, axis_of, season_buckets
from driftsack.service.projections.track import DecisionBucket, Track

ENOUGH: Final = 10
"""Minimum number of outcomes of an arm in the plan."""


class Planned(NamedTuple):
    """The best plan over the buckets of a season.

    Attributes:
        places: (B,) the ends of the buckets on the axis.
        prices: (d, B) the shadow price of each budget, averaged over a few buckets.
        regret: (B,) the cumulative regret against the best plan.
        error: (B,) half the width of its 95% interval.
    """

    places: list[float]
    prices: list[list[float]]
    regret: list[float]
    error: list[float]


def rounds_expected(track: Track, axis: Axis) -> float | None:
    """Return the expected number of requests of the current season, past and future; None if it is not known."""
    past = track.number - track.season_number
    if not axis.by_time:
        return None if axis.end is None else axis.end - axis.start
    return None if not axis.elapsed else past / axis.elapsed


def planned(track: Track) -> Planned:
    """Return the best plan for each bucket of the current season."""
    axis = axis_of(track)
    total = rounds_expected(track, axis)
    found = Planned([], [[] for _ in track.resources], [], [])
    regret = error = 0.0
    units = [10.0**-k for k in track.exponents]
    for bucket in season_buckets(track):
        past = bucket.number - track.season_number
        if total is None or total <= 0:
            continue
        # Solve the step LP at an even pace for the regret, and with what is left for the prices.
        granted = [amount * unit for amount, unit in zip(bucket.granted, units, strict=True)]
        left = [(g - s) * unit for g, s, unit in zip(bucket.granted, bucket.spent, units, strict=True)]
        best = best_mix(track, bucket, [amount / total for amount in granted])
        now = best_mix(track, bucket, [max(amount, 0.0) / max(total - past, 1.0) for amount in left])
        if best is None or now is None:
            continue
        # Accumulate regret and its uncertainty.
        regret += bucket.rounds * best.value - bucket.reward
        error += bucket.rounds * uncertainty(bucket, best)
        found.places.append(axis.of(bucket))
        for j, price in enumerate(now.prices.tolist()):
            found.prices[j].append(price)
        found.regret.append(regret)
        found.error.append(WIDE * error)
    return found._replace(prices=[averages(column) for column in found.prices])


def averages(values: list[float]) -> list[float]:
    """Return moving averages over ``SMOOTH`` values.

    >>> averages([5.0, 0.0, 5.0, 0.0, 5.0, 0.0])
    [5.0, 2.5, 3.3333333333333335, 2.5, 3.0, 2.0]
    """
    windows = [values[max(0, k - SMOOTH + 1) : k + 1] for k in range(len(values))]
    return [sum(window) / len(window) for window in windows]


def best_mix(track: Track, bucket: DecisionBucket, rate: list[float]) -> StepSolution | None:
    """The step LP on the estimates at the end of a bucket, in the problem's units; None while outcomes are few."""
    known = [k for k, e in enumerate(bucket.estimates) if e.reward.size >= ENOUGH and k not in track.retired]
    if not known:
        return None
    rewards = np.array([max(bucket.estimates[k].reward.mean, 0.0) for k in known])
    costs = np.array([[bucket.estimates[k].costs[j].mean for k in known] for j in range(len(rate))])
    # Normalise rewards and costs to [0, 1], and convert the solution back.
    most = np.maximum(costs.max(axis=1), 1e-300)
    top = max(float(rewards.max()), 1e-300)
    found = step_lp(rewards / top, costs / most[:, None], np.asarray(rate) / most)
    mix = np.zeros(len(bucket.estimates))
    mix[known] = found.mix
    return StepSolution(found.value * top, mix, found.prices * top / most, found.status)


def uncertainty(bucket: DecisionBucket, best: StepSolution) -> float:
    r"""The standard error of the value of the best mix x at prices q, from those of the means (envelope theorem).

    .. math:: \Bigl(\sum_i x_i^2 \bigl(\mathrm{se}(r_i)^2 + \sum_j q_j^2\, \mathrm{se}(c_{ij})^2\bigr)\Bigr)^{1/2}
    """
    total = 0.0
    for share, estimate in zip(best.mix.tolist(), bucket.estimates, strict=True):
        pairs = zip(best.prices.tolist(), estimate.costs, strict=True)
        total += share**2 * (estimate.reward.error**2 + sum((price * cost.error) ** 2 for price, cost in pairs))
    return math.sqrt(total)
