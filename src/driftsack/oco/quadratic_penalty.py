r"""Gradient descent on a quadratic penalty (Sinha and Vaze 2024), for strongly convex losses: logarithmic regret.

With :math:`g_t^+ = \sum_i (g_{t,i})^+`, losses that are :math:`\sigma`-strongly convex, the gradient bound G and
:math:`V = 8 G^2 (1 + \ln T) / \sigma`,

.. math:: Q(t) = Q(t-1) + g_t^+(x_t), \qquad
          x_{t+1} = \Pi_X\Bigl(x_t - \frac{V \nabla f_t(x_t) + 2 Q(t) \nabla g_t^+(x_t)}{V \sigma t}\Bigr).

*Guarantee* (theorem N6 of docs/theory-paper.md, with proof), for constraints chosen by any adversary and every x that
satisfies those of *every* round: regret at most :math:`G^2 (1 + \ln T) / \sigma` and hard violation at most
:math:`\sqrt{2V (G^2 (1 + \ln T) / \sigma + GDT)} = O(\sqrt{T \ln T})`. O(nd) per round plus the projection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from driftsack.core.arrays import Floats
from driftsack.core.checks import above_zero
from driftsack.numerics.compiled import kernel
from driftsack.oco.algorithm import Algorithm
from driftsack.oco.domains import Domain
from driftsack.oco.state import QUADRATIC_PENALTY, State, new_state

# Positions in ``State.settings``
TRADEOFF: Final = 0  # V
STRENGTH: Final = 1  # sigma


@kernel
def gradient_step(state: State, values: Floats, gradients: Floats) -> None:
    """Count the violations and write a step; ``values`` (1 + d,) and ``gradients`` (1 + d, n), the loss first."""
    tradeoff, total = state.settings[TRADEOFF], 0.0
    for i in range(state.prices.size):
        state.prices[i] += max(values[1 + i], 0.0)
        total += state.prices[i]
    step = 1.0 / (tradeoff * state.settings[STRENGTH] * (state.completed[0] + 1.0))
    for j in range(state.point.size):
        slope = tradeoff * gradients[0, j]
        for i in range(state.prices.size):
            if values[1 + i] > 0.0:
                slope += 2.0 * total * gradients[1 + i, j]
        state.target[j] = state.point[j] - step * slope


@dataclass(frozen=True)
class QuadraticPenalty(Algorithm):
    """Gradient descent on a quadratic penalty of the violations so far, for strongly convex losses.

    Attributes:
        strength: The modulus σ of strong convexity of the losses, above 0.
        gradient: The bound G on the norms of the gradients of the losses and of the sum of the violated constraints.

    >>> QuadraticPenalty(strength=2.0).gradient
    1.0
    """

    strength: float = 1.0
    gradient: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "strength", above_zero(self.strength, "strength"))
        object.__setattr__(self, "gradient", above_zero(self.gradient, "gradient"))

    def new_state(self, domain: Domain, horizon: int, constraints: int) -> State:
        """Create the state before the first round, with no violation counted."""
        tradeoff = 8.0 * self.gradient**2 * (1.0 + math.log(horizon)) / self.strength
        return new_state(QUADRATIC_PENALTY, (tradeoff, self.strength), domain, constraints)
