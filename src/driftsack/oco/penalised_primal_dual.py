r"""Primal-dual descent with a penalty on the prices (Mahdavi, Jin and Yang 2012; Jenatton, Huang and Archambeau 2016).

Descend in x and ascend in λ on :math:`L_t(x, \lambda) = f_t(x) + \sum_i \lambda_i g_{t,i}(x) - \tfrac{\theta_t}{2}
\|\lambda\|^2`:

.. math:: x_{t+1} = \Pi_X(x_t - \eta_t \nabla_x L_t(x_t, \lambda_t)), \qquad
          \lambda_{t+1} = \max\{0, \lambda_t + \eta_t (g_t(x_t) - \theta_t \lambda_t)\},

with :math:`\eta_t = s\, t^{-\beta}` and :math:`\theta_t = \delta\, \eta_t`. Mahdavi et al. use :math:`\beta = 1/2`
with the horizon in place of t. Jenatton et al. use t itself, and β to trade regret for violation.

*Guarantee* (their theorems, for constraints that do not change and δ large enough for the gradients): regret
:math:`O(T^{\max(\beta, 1-\beta)})` and violation :math:`O(T^{1 - \beta/2})`, which is :math:`T^{3/4}` at β = 1/2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from driftsack.core.arrays import Floats
from driftsack.core.checks import above_zero, at_least_zero, share
from driftsack.numerics.compiled import kernel
from driftsack.oco.algorithm import Algorithm
from driftsack.oco.domains import Domain
from driftsack.oco.state import PENALISED_PRIMAL_DUAL, State, new_state

# Positions in ``State.settings``
STEP: Final = 0
BETA: Final = 1
PENALTY: Final = 2


@kernel
def step_size(state: State) -> float:
    """The step size of the current round."""
    size: float = state.settings[STEP] * (state.completed[0] + 1.0) ** (-state.settings[BETA])
    return size


@kernel
def gradient_step(state: State, gradients: Floats) -> None:
    """Write a step down the gradient of the Lagrangian; ``gradients`` (1 + d, n), that of the loss first."""
    step = step_size(state)
    for j in range(state.point.size):
        slope = gradients[0, j]
        for i in range(state.prices.size):
            slope += state.prices[i] * gradients[1 + i, j]
        state.target[j] = state.point[j] - step * slope


@kernel
def update_prices(state: State, values: Floats) -> None:
    """Take a step up in the penalised prices; ``values`` (1 + d,), that of the loss first."""
    step = step_size(state)
    for i in range(state.prices.size):
        penalty = step * state.settings[PENALTY] * state.prices[i]
        state.prices[i] = max(0.0, state.prices[i] + step * (values[1 + i] - penalty))


@dataclass(frozen=True)
class PenalisedPrimalDual(Algorithm):
    """Primal-dual descent with a penalty on the prices.

    Attributes:
        step: The scale s of the step sizes, above 0.
        beta: The exponent β of the step sizes, in [0, 1]. A larger β lowers the violation.
        penalty: The weight δ of the penalty, 0 or more.

    >>> PenalisedPrimalDual(beta=0.5).penalty
    1.0
    """

    step: float = 1.0
    beta: float = 0.5
    penalty: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", above_zero(self.step, "step"))
        object.__setattr__(self, "beta", share(self.beta, "beta"))
        object.__setattr__(self, "penalty", at_least_zero(self.penalty, "penalty"))

    def new_state(self, domain: Domain, horizon: int, constraints: int) -> State:
        """Create the state before the first round, with all prices 0."""
        return new_state(PENALISED_PRIMAL_DUAL, (self.step, self.beta, self.penalty), domain, constraints)
