r"""``Shadow``: off-policy estimates of reward and costs of a campaign that watches its user's own rule.

In observation :math:`t` the rule chose arm :math:`a_t` with probability :math:`p_t`, and :math:`x_t` is the mix of the
campaign, which was computed before. With :math:`w_t = x_{t, a_t} / p_t` and :math:`S_t = \sum_i x_{t, i}`, the campaign
would have earned, per request,

.. math:: \hat r = \bar S \, \frac{\sum_t w_t r_t}{\sum_t w_t},

with the standard error of a ratio; likewise for costs (self-normalised importance weights, as in
:mod:`driftsack.logs.importance_weights`). If the reported probabilities are correct and positive for every arm that the
campaign would choose, :math:`\sum_t (w_t - S_t)` is a martingale whose variance is :math:`\sum_t w_t (w_t - S_t)` in
expectation. If it is further from 0 than five standard errors and 1% of the observations, one of these assumptions
fails, and nothing is estimated. The memory does not grow with the number of observations.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.logs.evaluation import MIN_SAMPLE_SIZE
from driftsack.logs.propensities import SLACK, Z

ROUNDING: Final = 1e-12


class Mean(NamedTuple):
    """An estimated mean per request.

    Attributes:
        value: The mean.
        error: Its standard error.
    """

    value: float
    error: float


class Comparison(NamedTuple):
    """One quantity under the user's own rule and under the campaign's policy, for the same requests.

    Attributes:
        own: The observed mean.
        would: The estimate for the campaign; None if it cannot be estimated.
        gain: The difference, with an error of its own since both are measured on the same outcomes.
    """

    own: Mean
    would: Mean | None
    gain: Mean | None


class Shadow:
    r"""Sums over the observations.

    Attributes:
        counted: Number of observations with a known probability, made when the campaign already had a mix.
        own: (m,) how often the rule chose each arm.
        would: (m,) the sum of the campaign's mixes.
        studied: Number of observations in ``would``.
        moments: (1 + d, 3, 3) the sums of :math:`w^a r^b`, rewards first.
    """

    def __init__(self, arms: int, resources: int) -> None:
        self.observations = self.counted = self.studied = 0
        self.own, self.would = [0] * arms, [0.0] * arms
        self.moments: Floats = np.zeros((1 + resources, 3, 3))
        self._mix: list[float] | None = None
        self._active = self._drift = self._variance = 0.0  # the sums of S, w - S and w (w - S)

    def add_arm(self) -> None:
        """Add an arm; it is in no mix until the next batch."""
        self.own.append(0)
        self.would.append(0.0)

    def study(self, mix: list[float] | None) -> None:
        """Set the campaign's mix for the next observations; None if it is not known."""
        self._mix = mix

    def observe(self, arm: int, probability: float | None, outcomes: list[float]) -> None:
        """Add an observation.

        Args:
            arm: The arm that the rule chose.
            probability: The probability of that choice; None if it is not known.
            outcomes: (1 + d,) reward and costs.
        """
        # Count the choices of both.
        self.observations += 1
        self.own[arm] += 1
        if self._mix is None:
            return
        self.studied += 1
        for k, share in enumerate(self._mix):
            self.would[k] += share
        if probability is None:
            return
        # Weigh the outcomes.
        self.counted += 1
        weight = self._mix[arm] / probability if arm < len(self._mix) else 0.0
        active = sum(self._mix)
        self._active += active
        self._drift += weight - active
        self._variance += weight * (weight - active)
        powers = np.array([1.0, weight, weight * weight])
        values = np.array([[1.0, value, value * value] for value in outcomes])
        self.moments += powers[:, None] * values[:, None, :]

    @property
    def effective(self) -> float:
        """The effective sample size of the weights."""
        sums = self.moments[0, :, 0]
        return float(sums[1] ** 2 / sums[2]) if sums[2] > 0 else 0.0

    @property
    def refusal(self) -> str | None:
        """The reason why nothing can be estimated; None if it can."""
        if self.studied == 0:
            return "The first observations are only learnt from; estimates start after them."
        if self.counted == 0:
            return (
                "The probabilities of your rule's choices are not known, so the campaign's choices can be shown, but "
                "not their reward; send the probability with each observation."
            )
        if abs(self._drift) > Z * math.sqrt(max(self._variance, 0.0)) + SLACK * self.counted:
            return (
                f"Weighted by 1/probability, the observations represent {self._active + self._drift:,.0f} of the "
                f"{self._active:,.0f} choices of the campaign: your rule never tries an arm that the campaign would "
                "choose, or the probabilities that you send are wrong; let the rule try every arm now and then, and "
                "send the true probability."
            )
        if self.effective < MIN_SAMPLE_SIZE:
            return (
                f"Effective sample size {self.effective:.0f}; at least {MIN_SAMPLE_SIZE} are needed. "
                "Wait for more observations."
            )
        return None

    def compared(self) -> list[Comparison]:
        """Return (1 + d,) comparisons, reward first; nothing if no observation has a weight."""
        if self.counted == 0:
            return []
        can_estimate = self.refusal is None
        return [self._comparison(sums, can_estimate) for sums in self.moments]

    def _comparison(self, sums: Floats, can_estimate: bool) -> Comparison:
        # The rule's own mean.
        count, active = self.counted, self._active / self.counted
        mean = sums[0, 1] / count
        spread = beyond_rounding(sums[0, 2] - count * mean**2, sums[0, 2])
        own = Mean(float(mean), math.sqrt(spread) / count)
        if not can_estimate:
            return Comparison(own, None, None)
        # The self-normalised estimate, its variance, and its covariance with the rule's mean.
        ratio, scale = sums[1, 1] / sums[1, 0], active / sums[1, 0]
        squares = sums[2, 2] - 2.0 * ratio * sums[2, 1] + ratio**2 * sums[2, 0]
        weighed = scale**2 * beyond_rounding(squares, sums[2, 2])
        both = scale / count * (sums[1, 2] - (ratio + mean) * sums[1, 1] + ratio * mean * sums[1, 0])
        would = Mean(float(active * ratio), math.sqrt(weighed))
        total = weighed + spread / count**2
        error = math.sqrt(beyond_rounding(total - 2.0 * both, total))
        return Comparison(own, would, Mean(would.value - own.value, error))


def beyond_rounding(variance: float, size: float) -> float:
    """Return a variance; 0 if it is only a rounding error of sums of the given size.

    >>> beyond_rounding(0.5, 2.0), beyond_rounding(1e-15, 2.0), beyond_rounding(-1e-15, 2.0)
    (0.5, 0.0, 0.0)
    """
    return variance if variance > ROUNDING * size else 0.0
