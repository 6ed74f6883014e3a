r"""Propensities over the draws of a policy, estimated by asking it again.

A policy that draws means, such as Thompson sampling, reports the mix of its draw :math:`x_0`, in which an arm may have
probability 0 although other draws would choose it. Its propensity is the mean over draws, which is estimated by

.. math:: \hat p_i = \frac{1}{n} \sum_{k=0}^{n-1} x_{k,i} .

The first draw is the one that the decision is made with. Then the weight of the chosen arm a needs no correction: since
all draws are exchangeable, for any function f of the arm

.. math:: E\Bigl[\frac{f(a)}{\hat p_a}\Bigr] = \sum_i f(i)\, P\Bigl(\max_{k < n} x_{k,i} > 0\Bigr),

so importance weighting is unbiased but for arms that hardly any of n draws would choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.policies.learner.bookmark import Bookmark

if TYPE_CHECKING:
    from driftsack.policies.learner.learner import Learner


class Propensities(NamedTuple):
    """The probabilities with which a request would be given to each arm, estimated from draws of the policy.

    Attributes:
        probability: (m,) the estimates; what is left of 1 is the probability of a skip.
        error: (m,) their standard errors; 0 where all draws agree.
    """

    probability: Floats
    error: Floats


def redraw(learner: Learner, draws: int, request: Mapping[str, Any]) -> Propensities:
    """Ask a learner several times for the same request, and undo it; the first draw is that of the next ``ask``.

    The learner must not be shared meanwhile.
    """
    start = Bookmark(learner)
    mixes = np.zeros((draws, learner.problem.arms))
    try:
        for k in range(draws):
            mixes[k] = learner.ask(**request).mix
            start.go_back(redraw=True)
    finally:
        start.go_back()
    spread = mixes.std(axis=0, ddof=1) if draws > 1 else np.full(mixes.shape[1], np.nan)
    return Propensities(mixes.mean(axis=0), spread / np.sqrt(draws))
