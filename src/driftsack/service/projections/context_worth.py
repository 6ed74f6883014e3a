r"""What the features of requests have earned, from sums over the outcomes of a campaign.

The outcomes of each arm are regressed on the features, :math:`y \approx \theta_i^\top (x - \bar x, 1)`, by ridge
regression. The constant is then the mean outcome that the arm would have had over *all* requests, whichever it served,
with the standard error :math:`\sigma_i (A_i^{-1})_{\text{const}}^{1/2}`. The best mix of arms that does not see the
features, at the spending per request that the campaign had, is the solution of the step LP for these means, and its
standard error is that of the means at the LP's mix and prices (envelope theorem). The campaign's reward per request
minus that of this mix, times the number of requests, is what the features have earned.

It holds as far as outcomes are linear in the features and do not drift.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.lp import step_lp

ENOUGH: Final = 30  # minimum number of outcomes of an arm in the mix
PENALTY: Final = 1.0
TINY: Final = 1e-300


class Worth(NamedTuple):
    """What the features have earned.

    Attributes:
        gain: The campaign's reward minus that of the best mix that does not see the features, over all requests.
        error: Its standard error.
        requests: The number of requests.
    """

    gain: float
    error: float
    requests: int


class ContextWorth:
    """Sums over requests and outcomes.

    Args:
        features: The number of encoded features.
        arms: The number of arms.
        resources: The number of resources.
    """

    def __init__(self, features: int, arms: int, resources: int) -> None:
        size, kinds = features + 1, 1 + resources
        self._requests = self._skipped = 0
        self._sums, self._squares = np.zeros(features), np.zeros(features)
        self._gram = np.zeros((arms, size, size))
        self._moments = np.zeros((arms, size, kinds))
        self._outcomes = np.zeros((arms, kinds))  # sums of squares
        self._total, self._total_squares = np.zeros(kinds), np.zeros(kinds)

    def add_arm(self) -> None:
        """Add an arm without outcomes."""
        for name in ("_gram", "_moments", "_outcomes"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros((1, *array.shape[1:]))]))

    def ask(self, vector: Floats, skipped: bool) -> None:
        """Add a request; a skipped one earns and costs nothing."""
        self._requests += 1
        self._skipped += skipped
        self._sums += vector
        self._squares += vector**2

    def tell(self, arm: int, vector: Floats, outcomes: list[float]) -> None:
        """Add the outcome of an arm: reward and costs."""
        x, y = np.append(vector, 1.0), np.asarray(outcomes)
        self._gram[arm] += np.outer(x, x)
        self._moments[arm] += np.outer(x, y)
        self._outcomes[arm] += y**2
        self._total += y
        self._total_squares += y**2

    def estimate(self) -> Worth | None:
        """Return what the features have earned; None if some outcomes are too few."""
        counts = self._gram[:, -1, -1]
        known = np.flatnonzero(counts >= ENOUGH)
        told = float(counts.sum()) + self._skipped
        if not known.size:
            return None
        means, errors = (np.array(part) for part in zip(*(self._adjusted(arm) for arm in known.tolist()), strict=True))
        # The best mix at the campaign's own spending; rewards and costs are normalised.
        own = self._total / told
        top, most = max(float(means[:, 0].max()), TINY), np.maximum(means[:, 1:].max(axis=0), TINY)
        rewards, costs = np.clip(means[:, 0] / top, 0.0, 1.0), np.clip(means[:, 1:] / most, 0.0, 1.0)
        best = step_lp(rewards, costs.T, own[1:] / most)
        prices = best.prices * top / most
        spread = errors[:, 0] ** 2 + (prices**2 * errors[:, 1:] ** 2).sum(axis=1)
        blind = math.sqrt(float((best.mix**2 * spread).sum()))
        # The campaign's own reward, net of its costs at these prices, to which the mix is compared.
        variance = self._total_squares / told - own**2
        noise = math.sqrt(max(float(variance[0] + (prices**2 * variance[1:]).sum()), 0.0) / told)
        gain = float(own[0]) - best.value * top
        return Worth(gain * self._requests, math.hypot(blind, noise) * self._requests, self._requests)

    def _adjusted(self, arm: int) -> tuple[Floats, Floats]:
        """(1 + d,) the means of an arm over all requests, and their standard errors."""
        mean = self._sums / self._requests
        spread = np.sqrt(np.maximum(self._squares / self._requests - mean**2, 0.0))
        scale = np.where(spread > 0, 1.0 / np.where(spread > 0, spread, 1.0), 0.0)
        change = np.diag(np.append(scale, 1.0))
        change[:-1, -1] = -mean * scale
        gram, moments = change @ self._gram[arm] @ change.T, change @ self._moments[arm]
        penalties = np.diag(np.append(np.full(mean.size, PENALTY), 0.0))
        inverse = np.linalg.inv(gram + penalties)
        theta = inverse @ moments
        squares = self._outcomes[arm] - 2.0 * (theta * moments).sum(axis=0) + (theta * (gram @ theta)).sum(axis=0)
        residual = np.maximum(squares, 0.0) / self._gram[arm, -1, -1]
        return theta[-1], np.sqrt(residual * max(float(inverse[-1, -1]), 0.0))
