r"""Projected online gradient descent that ignores the constraints (Zinkevich 2003): a baseline.

.. math:: x_{t+1} = \Pi_X(x_t - \eta_t \nabla f_t(x_t)), \qquad \eta_t = s / \sqrt t.

*Guarantee*: regret :math:`O(\sqrt T)` against every fixed point of X, feasible or not. The violation may be linear
in T.
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
from driftsack.oco.state import ONLINE_GRADIENT, State, new_state

STEP: Final = 0  # position in ``State.settings``


@kernel
def gradient_step(state: State, gradients: Floats) -> None:
    """Write a step down the gradient of the loss; ``gradients`` (1 + d, n), that of the loss first."""
    step = state.settings[STEP] / math.sqrt(state.completed[0] + 1.0)
    for j in range(state.point.size):
        state.target[j] = state.point[j] - step * gradients[0, j]


@dataclass(frozen=True)
class OnlineGradient(Algorithm):
    """Projected online gradient descent, which ignores the constraints.

    Attributes:
        step: The scale s of the step sizes s/√t, above 0. A good value is the diameter of the domain over the largest
            norm of a gradient.

    >>> OnlineGradient(step=0.5)
    OnlineGradient(step=0.5)
    """

    step: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", above_zero(self.step, "step"))

    def new_state(self, domain: Domain, horizon: int, constraints: int) -> State:
        """Create the state before the first round; its prices stay 0."""
        return new_state(ONLINE_GRADIENT, (self.step,), domain, constraints)
