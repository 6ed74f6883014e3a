r"""What each feature of a request contributes to the estimates of a linear policy, for explanations.

The estimate of an outcome at the vector :math:`(x, 1)` is :math:`\theta^\top (x, 1)` with the coefficients of the
mixture (:mod:`driftsack.policies.parts.linear_bank`). Since x is centred, the constant is the estimate for a usual
request, and :math:`\theta_f x_f` is what feature f adds to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.policies.parts.linear_bank import LinearBank, mix_coefficients


class Contributions(NamedTuple):
    """The parts of the estimates at one context, normalised as the outcomes that the policy learns from.

    Attributes:
        usual: (m, 1 + d) estimates for a usual request, the reward first; NaN for an arm without observations.
        effects: (n, m, 1 + d) what each encoded feature adds.
    """

    usual: Floats
    effects: Floats

    @property
    def means(self) -> Floats:
        """(m, 1 + d) the estimates at the context."""
        return np.asarray(self.usual + self.effects.sum(axis=0))


def linear_contributions(bank: LinearBank, x: Floats) -> Contributions:
    """Return the parts of the estimates of a bank at a context.

    Args:
        bank: The bank; only its scratch arrays are changed.
        x: (n + 1,) the centred vector of the context, which ends with 1.
    """
    mix_coefficients(bank)
    coefficients = bank.mixed.reshape(x.size, *bank.mean.shape).copy()
    coefficients[:, :, 1:] *= bank.unit  # costs in units of the budget rate
    coefficients[:, bank.pulls == 0.0] = np.nan
    return Contributions(coefficients[-1], coefficients[:-1] * x[:-1, None, None])
