r"""``Shadow``: what a campaign that watches would have earned and cost, estimated from what its user's rule did.

Observation :math:`t` has the arm :math:`a_t`, which the rule chose with probability :math:`p_t`, and the mix
:math:`x_t` of the campaign, which was known before. With :math:`w_t = x_{t, a_t} / p_t` and
:math:`S_t = \sum_i x_{t, i}`, the campaign would have earned, per request,

.. math:: \hat r = \bar S \, \frac{\sum_t w_t r_t}{\sum_t w_t},

with the standard error of a ratio; likewise for costs (self-normalised importance weights, as in
:mod:`driftsack.logs.importance_weights`). If every arm that the campaign would choose had the probability that the rule
says, :math:`\sum_t (w_t - S_t)` is a martingale with the variance :math:`\sum_t w_t (w_t - S_t)`, in expectation. If it
is further from 0 than five standard errors and 1% of the observations, the rule does not try what the campaign would
choose, or the probabilities are wrong, and nothing is estimated. The memory does not grow with the observations.
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
    """One quantity, under the user's own rule and under the campaign's policy, in the same requests.

    Attributes:
        own: What was observed.
        would: What it would have been; None if that cannot be said.
        gain: The difference, with its own error: both were measured on the same outcomes.
    """

    own: Mean
    would: Mean | None
    gain: Mean | None


class Shadow:
    r"""What was observed, in sums.

    Args:
        arms: The number of arms.
        resources: The number of resources.

    Attributes:
        observations: The number of observations.
        counted: Those that can be weighed: their probability is known, and what the campaign would choose was.
        own: (m,) how often the rule chose each arm.
        would: (m,) the sum of the campaign's mixes.
        studied: The number of observations in ``would``.
        moments: (1 + d, 3, 3) the sums of :math:`w^a r^b`, rewards first.
    """

    def __init__(self, arms: int, resources: int) -> None:
        self.observations = self.counted = self.studied = 0
        self.own, self.would = [0] * arms, [0.0] * arms
        self.moments: Floats = np.zeros((1 + resources, 3, 3))
        self._mix: list[float] | None = None
        self._active = self._drift = self._variance = 0.0  # the sums of S, w - S and w (w - S)

    def add_arm(self) -> None:
        """Make room for an arm; it is in no mix until the next batch."""
        self.own.append(0)
        self.would.append(0.0)

    def study(self, mix: list[float]) -> None:
        """Note what the campaign would choose from now on."""
        self._mix = mix

    def observe(self, arm: int, probability: float | None, outcomes: list[float]) -> None:
        """Take in an observation.

        Args:
            arm: The arm that the rule chose.
            probability: With which probability; None if that is not known.
            outcomes: (1 + d,) its reward and costs.
        """
        self.observations += 1
        self.own[arm] += 1
        if self._mix is None:
            return
        self.studied += 1
        for k, share in enumerate(self._mix):
            self.would[k] += share
        if probability is None:
            return
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
        """Why nothing can be estimated; None if something can."""
        if self.studied == 0:
            return "The first observations are only learnt from; estimates begin after them."
        if self.counted == 0:
            return (
                "The probabilities with which your rule chose are not known, so it can be said what the campaign would "
                "have chosen, but not what that would have earned; send probability with each observation."
            )
        if abs(self._drift) > Z * math.sqrt(max(self._variance, 0.0)) + SLACK * self.counted:
            return (
                f"Weighted by 1/probability, the observations stand for {self._active + self._drift:,.0f} of the "
                f"{self._active:,.0f} choices of the campaign: your rule never tries some arm that the campaign would "
                "choose, or chooses with other probabilities than it says; let it try every arm now and then, and "
                "send the true probability."
            )
        if self.effective < MIN_SAMPLE_SIZE:
            return (
                f"The {self.counted:,} observations say as much about the campaign's choices as {self.effective:.0f} "
                f"of its own would, and {MIN_SAMPLE_SIZE} are needed; wait for more."
            )
        return None

    def compared(self) -> list[Comparison]:
        """(1 + d,) reward and costs under both; nothing if no observation could be weighed."""
        if self.counted == 0:
            return []
        says = self.refusal is None
        return [self._comparison(sums, says) for sums in self.moments]

    def _comparison(self, sums: Floats, says: bool) -> Comparison:
        count, active = self.counted, self._active / self.counted
        mean = sums[0, 1] / count
        spread = beyond_rounding(sums[0, 2] - count * mean**2, sums[0, 2])
        own = Mean(float(mean), math.sqrt(spread) / count)
        if not says:
            return Comparison(own, None, None)
        ratio, scale = sums[1, 1] / sums[1, 0], active / sums[1, 0]
        squares = sums[2, 2] - 2.0 * ratio * sums[2, 1] + ratio**2 * sums[2, 0]
        weighed = scale**2 * beyond_rounding(squares, sums[2, 2])
        both = scale / count * (sums[1, 2] - (ratio + mean) * sums[1, 1] + ratio * mean * sums[1, 0])
        would = Mean(float(active * ratio), math.sqrt(weighed))
        total = weighed + spread / count**2
        error = math.sqrt(beyond_rounding(total - 2.0 * both, total))
        return Comparison(own, would, Mean(would.value - own.value, error))


def beyond_rounding(variance: float, size: float) -> float:
    """A variance, or 0 if it is a rounding error of the sums that it is the difference of.

    >>> beyond_rounding(0.5, 2.0), beyond_rounding(1e-15, 2.0), beyond_rounding(-1e-15, 2.0)
    (0.5, 0.0, 0.0)
    """
    return variance if variance > ROUNDING * size else 0.0
