"""The best plan on estimated means: what one more unit of a budget is worth, and how much more could have been earned.

The means are those of the latest outcomes of each arm. In each bucket the step LP with these means gives the value of
the best mix and the price of each budget. These are estimates, and the pages say so.

The dual price of the LP is a step function: where the budget per request is close to the mean cost of an arm, it flips
between zero and its next value with the noise of that mean, and a campaign that spends as planned comes close. So a
price is averaged over a few buckets.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from driftsack.lp import StepSolution, step_lp
from driftsack.service.dashboard.progress import SMOOTH, WIDE, Axis, axis_of, season_buckets
from driftsack.service.dashboard.track import Bucket, Track

ENOUGH: Final = 10
"""Outcomes of an arm before the plan considers it."""


class Planned(NamedTuple):
    """The best plan over the buckets of a season.

    Attributes:
        places: (B,) the ends of the buckets on the axis.
        prices: (d, B) what one more unit of each budget would earn, averaged over a few buckets.
        regret: (B,) what the best plan would have earned more until then.
        error: (B,) half the width of its 95% interval.
    """

    places: list[float]
    prices: list[list[float]]
    regret: list[float]
    error: list[float]


def rounds_expected(track: Track, axis: Axis) -> float | None:
    """The number of requests of the present season, past and future."""
    past = track.number - track.season_number
    if not axis.by_time:
        return None if axis.end is None else axis.end - axis.start
    return None if not axis.elapsed else past / axis.elapsed


def planned(track: Track) -> Planned:
    """The best plan for each bucket of the present season.

    Args:
        track: The campaign.

    Returns:
        Prices and regret.
    """
    axis = axis_of(track)
    total = rounds_expected(track, axis)
    found = Planned([], [[] for _ in track.resources], [], [])
    regret = error = 0.0
    units = [10.0**-k for k in track.exponents]
    for bucket in season_buckets(track):
        past = bucket.number - track.season_number
        if total is None or total <= 0:
            continue
        granted = [amount * unit for amount, unit in zip(bucket.granted, units, strict=True)]
        left = [(g - s) * unit for g, s, unit in zip(bucket.granted, bucket.spent, units, strict=True)]
        best = best_mix(track, bucket, [amount / total for amount in granted])
        now = best_mix(track, bucket, [max(amount, 0.0) / max(total - past, 1.0) for amount in left])
        if best is None or now is None:
            continue
        regret += bucket.rounds * best.value - bucket.reward
        error += bucket.rounds * uncertainty(bucket, best)
        found.places.append(axis.of(bucket))
        for j, price in enumerate(now.prices.tolist()):
            found.prices[j].append(price)
        found.regret.append(regret)
        found.error.append(WIDE * error)
    return found._replace(prices=[averages(column) for column in found.prices])


def averages(values: list[float]) -> list[float]:
    """The mean of each value and those just before it.

    >>> averages([5.0, 0.0, 5.0, 0.0, 5.0, 0.0])
    [5.0, 2.5, 3.3333333333333335, 2.5, 3.0, 2.0]
    """
    windows = [values[max(0, k - SMOOTH + 1) : k + 1] for k in range(len(values))]
    return [sum(window) / len(window) for window in windows]


def best_mix(track: Track, bucket: Bucket, rate: list[float]) -> StepSolution | None:
    """The step LP on the estimates at the end of a bucket, in the problem's units; None while outcomes are few."""
    known = [k for k, e in enumerate(bucket.estimates) if e.reward.size >= ENOUGH and k not in track.retired]
    if not known:
        return None
    rewards = np.array([max(bucket.estimates[k].reward.mean, 0.0) for k in known])
    costs = np.array([[bucket.estimates[k].costs[j].mean for k in known] for j in range(len(rate))])
    most = np.maximum(costs.max(axis=1), 1e-300)  # costs of at most 1
    top = max(float(rewards.max()), 1e-300)
    found = step_lp(rewards / top, costs / most[:, None], np.asarray(rate) / most)
    mix = np.zeros(len(bucket.estimates))
    mix[known] = found.mix
    return StepSolution(found.value * top, mix, found.prices * top / most, found.status)


def uncertainty(bucket: Bucket, best: StepSolution) -> float:
    r"""The standard error of the value of the best mix x at prices q, from those of the means (envelope theorem).

    .. math:: \Bigl(\sum_i x_i^2 \bigl(\mathrm{se}(r_i)^2 + \sum_j q_j^2\, \mathrm{se}(c_{ij})^2\bigr)\Bigr)^{1/2}
    """
    total = 0.0
    for share, estimate in zip(best.mix.tolist(), bucket.estimates, strict=True):
        pairs = zip(best.prices.tolist(), estimate.costs, strict=True)
        total += share**2 * (estimate.reward.error**2 + sum((price * cost.error) ** 2 for price, cost in pairs))
    return math.sqrt(total)
