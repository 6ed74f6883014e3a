r"""A linear choice in other units of a feature: the same predictions, before and after the units have changed.

The standardiser follows features that wander (:mod:`driftsack.policies.parts.standardiser`). With
:math:`x_f = \alpha x'_f + \delta` for the vectors x before and x' after, and the constant feature 0,

.. math:: \theta'_f = \alpha \theta_f, \qquad \theta'_0 = \theta_0 + \delta \theta_f, \qquad P' = J P J^\top,

where J is the matrix of that map of coefficients. The vectors of kept rounds are converted too; otherwise a replay of
them would not be one of those rounds. The variance of an effect then exceeds that of its prior if the standard
deviation of the feature has grown, for example because it was constant at first; it is limited to the prior's, and that
of the intercept to ten observations, by scaling their row and column. O(mp) for p coefficients.
"""

from __future__ import annotations

import math
from typing import Final

from driftsack.core.arrays import Floats
from driftsack.numerics.compiled import kernel
from driftsack.policies.parts.kept_rounds import KeptRounds
from driftsack.policies.parts.linear_bank import PRIOR_PRECISION, LinearBank
from driftsack.policies.parts.linear_choice import LinearChoice
from driftsack.policies.parts.standardiser import LARGEST, Standardiser

MOST_VARIANCE: Final = 10.0  # of an intercept, in variances of an outcome


@kernel
def follow_units(choice: LinearChoice, features: Standardiser) -> None:
    """Express a choice in the present units of all features."""
    if features.moved[0] == 0:
        return
    for f in range(features.factor.size):
        factor, offset = features.factor[f], features.offset[f]
        if factor != 1.0 or offset != 0.0:
            convert_bank(choice.bank, f, factor, offset)
            convert_rounds(choice.price.latest, f, factor, offset)
            convert_rounds(choice.price.sample, f, factor, offset)


@kernel
def convert_bank(bank: LinearBank, f: int, factor: float, offset: float) -> None:
    """Express the coefficients and covariances of all regressions in other units of a feature."""
    constant = bank.product.size - 1
    for c in range(bank.coefficients.shape[1]):
        bank.coefficients[constant, c] += offset * bank.coefficients[f, c]
        bank.coefficients[f, c] *= factor
    for i in range(bank.pulls.size):
        for g in range(bank.gammas.size):
            own = bank.covariance[i, g]
            own[constant, constant] += offset * (2.0 * own[constant, f] + offset * own[f, f])
            for e in range(constant):
                own[constant, e] += offset * own[f, e]
                own[e, constant] = own[constant, e]
            own[f, f] *= factor
            for e in range(constant + 1):
                own[f, e] *= factor
                own[e, f] = own[f, e]
            limit_variance(own, f, 1.0 / PRIOR_PRECISION)
            limit_variance(own, constant, MOST_VARIANCE)


@kernel
def limit_variance(covariance: Floats, e: int, most: float) -> None:
    """Scale a row and a column of a covariance so that the variance is at most ``most``."""
    if covariance[e, e] <= most:
        return
    shrink = math.sqrt(most / covariance[e, e])
    covariance[e, e] = most
    for o in range(covariance.shape[0]):
        if o != e:
            covariance[e, o] *= shrink
            covariance[o, e] = covariance[e, o]


@kernel
def convert_rounds(kept: KeptRounds, f: int, factor: float, offset: float) -> None:
    """Express the contexts of kept rounds in other units of a feature; they stay limited."""
    most = LARGEST / math.sqrt(kept.contexts.shape[1] - 1.0)
    for s in range(kept.filled[0]):
        kept.contexts[s, f] = min(max((kept.contexts[s, f] - offset) / factor, -most), most)
