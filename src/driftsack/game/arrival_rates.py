r"""The rate of arrivals in each hour of the week, estimated from counts and a first guess.

Arrivals are modelled as a Poisson process whose rate depends on the hour h of the day and the day w of the week,

.. math:: \lambda_{w,h} = \ell \, f_h \, g_w,

and the rounds left at time t of a period of length P are :math:`\sum_{w,h} \lambda_{w,h}\, e_{w,h}(t, P)`, where
:math:`e_{w,h}(s, t)` is the time between s and t that belongs to hour h of day w. Let :math:`n_{w,h}` be the arrivals
seen and :math:`e_{w,h}` the time watched, and let dots stand for sums. Each factor shrinks a finer profile towards the
coarser one: with a Gamma prior of mean 1 and the weight of k arrivals, the posterior mean of a factor is
:math:`(k + \text{arrivals seen}) / (k + \text{arrivals expected})`.

*Level.* An hour of the day says little about the other hours, so its arrivals and its time are discounted, and the
first guess of G arrivals counts as one arrival:

.. math:: \ell = \frac{1 + \sum_h \rho_h\, n_{\cdot h}}{P/G + \sum_h \rho_h\, e_{\cdot h}}, \qquad
          \rho_h = \frac{k_h}{k_h + \ell\, e_{\cdot h}},

solved by a few fixed-point steps. Once every hour of the day was seen as often, this is arrivals over time, whatever
the guess was. A guess that is too high is forgotten after a few arrivals, one that is too low by a factor c after a few
times c. Without a guess, a very high one is used.

*Hours and days.* Hours that were not seen have :math:`f_h = 1`, and likewise days of the week:

.. math:: f_h = \frac{k_h + n_{\cdot h}}{k_h + \ell\, e_{\cdot h}}, \qquad
          g_w = \frac{k_w + n_{w \cdot}}{k_w + \ell \sum_h f_h\, e_{w,h}}.

*Weights.* A weight is the inverse of the variance of the factors, estimated by the method of moments: if the arrivals
:math:`n_i` of the parts of a day or week, n in total, differ from the expected ones :math:`E_i`, scaled to the same
total, no more than Poisson counts do, there is no shape to learn, and otherwise

.. math:: k = \Big(\sum_i E_i^2\Big) \Big/ \Big(\sum_i (n_i - E_i)^2 - n + \sum_i E_i^2 / n\Big), \qquad k \ge 4.

A fifth of the arrivals of one hour or one day is added, because no two days are the same. So both shapes are introduced
gradually, and a stream without a shape is extrapolated as if there were none. Neither a profile of all 168 hours of the
week nor jointly fitted factors were better on simulated streams.

Trends are not modelled: if the rate keeps growing, the rounds left are underestimated until the end of the period.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import frozen

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY
SHAPE: Final = (7, 24)  # days of the week, hours of the day
STARTS: Final = frozen(HOUR * np.arange(168.0))  # when each hour of the week begins

LEAST_WEIGHT: Final = 4.0  # of a prior, in arrivals: factors that differ by 50%
MOST_WEIGHT: Final = 1e9  # of a prior, in arrivals: factors that do not differ
SPREAD: Final = 0.2  # further weight of a prior, in hours or days of the mean rate
LEVEL_STEPS: Final = 3  # fixed-point steps for the level


def estimate_rates(counts: Floats, watched: Floats, guess: float) -> Floats:
    """Estimate the rate of each hour of the week.

    Args:
        counts: (7, 24) arrivals in each hour of the week.
        watched: (7, 24) seconds of each hour of the week in which they were counted.
        guess: The first guess of the rate, in arrivals per second, which counts as one arrival.

    Returns:
        (7, 24) arrivals per second.
    """
    seen, time = counts.sum(axis=0), watched.sum(axis=0)
    level = (1.0 + seen.sum()) / (1.0 / guess + time.sum())
    least = prior_weight(seen, time)
    for _ in range(LEVEL_STEPS):
        weight = least + SPREAD * HOUR * level
        trust = weight / (weight + level * time)
        level = (1.0 + (trust * seen).sum()) / (1.0 / guess + (trust * time).sum())
    weight = least + SPREAD * HOUR * level
    by_hour = level * (weight + seen) / (weight + level * time)
    seen, expected = counts.sum(axis=1), (watched * by_hour).sum(axis=1)
    weight = prior_weight(seen, expected) + SPREAD * DAY * level
    return np.outer((weight + seen) / (weight + expected), by_hour)


def prior_weight(seen: Floats, expected: Floats) -> float:
    """Estimate the weight of the prior of factors.

    Args:
        seen: (n,) arrivals.
        expected: (n,) expected arrivals without the factors, in any unit.

    Returns:
        The weight, in arrivals.
    """
    total, whole = float(seen.sum()), float(expected.sum())
    if total == 0.0 or whole == 0.0:
        return LEAST_WEIGHT
    scaled = expected * (total / whole)
    square = float((scaled**2).sum())
    excess = float(((seen - scaled) ** 2).sum()) - total + square / total
    return min(max(square / max(excess, square / MOST_WEIGHT), LEAST_WEIGHT), MOST_WEIGHT)


def hours_between(begin: float, end: float) -> Floats:
    """Count the seconds of each hour of the week between two times.

    Args:
        begin: Seconds since the beginning of some week.
        end: The same, not before ``begin``.

    Returns:
        (7, 24) seconds.
    """
    weeks = HOUR * (end // WEEK - begin // WEEK)
    seconds = weeks + np.clip(end % WEEK - STARTS, 0.0, HOUR) - np.clip(begin % WEEK - STARTS, 0.0, HOUR)
    return seconds.reshape(SHAPE)
