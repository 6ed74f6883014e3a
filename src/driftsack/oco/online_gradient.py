r"""Projected online gradient descent that ignores the constraints (Zinkevich 2003): what they cost, and what they buy.

.. math:: x_{t+1} = \Pi_X(x_t - \eta_t \nabla f_t(x_t)), \qquad \eta_t = s / \sqrt t.

*Guarantee*: regret :math:`O(\sqrt T)` against every fixed point of X, feasible or not; violation may be linear in T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from driftsack.core.arrays import Floats
from driftsack.core.checks import above_zero
from driftsack.numerics.compiled import kernel
from driftsack.oco.algorithm import Algorithm
from driftsack.oco.domains import Domain
from driftsack.oco.state import GRADIENT, State, new_state


@kernel
def aim(state: State, gradients: Floats) -> None:
    """A step down the loss."""
    step = state.settings[0] / math.sqrt(state.clock[0] + 1.0)
    for j in range(state.point.size):
        state.target[j] = state.point[j] - step * gradients[0, j]


@dataclass(frozen=True)
class OnlineGradient(Algorithm):
    """Recipe: ``step`` s; about the domain's diameter over the largest gradient is best.

    >>> OnlineGradient(step=0.5)
    OnlineGradient(step=0.5)
    """

    step: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", above_zero(self.step, "step"))

    def new_state(self, domain: Domain, horizon: int, constraints: int) -> State:  # noqa: ARG002  (needs no horizon)
        """Prices stay 0."""
        return new_state(GRADIENT, (self.step,), domain, constraints)
