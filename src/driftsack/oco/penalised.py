r"""Primal-dual descent with a penalty on the prices (Mahdavi, Jin and Yang 2012; Jenatton, Huang and Archambeau 2016).

Descend in x and ascend in λ on :math:`L_t(x, \lambda) = f_t(x) + \sum_i \lambda_i g_{t,i}(x) - \tfrac{\theta_t}{2}
\|\lambda\|^2`:

.. math:: x_{t+1} = \Pi_X(x_t - \eta_t \nabla_x L_t(x_t, \lambda_t)), \qquad
          \lambda_{t+1} = \max\{0, \lambda_t + \eta_t (g_t(x_t) - \theta_t \lambda_t)\},

with :math:`\eta_t = s\, t^{-\beta}` and :math:`\theta_t = \delta\, \eta_t`. Mahdavi et al. have :math:`\beta = 1/2`
with the horizon in place of t; Jenatton et al. let t grow and β trade regret for violation.

*Guarantee* (their theorems, constraints that do not move, δ large enough for the gradients): regret
:math:`O(T^{\max(\beta, 1-\beta)})`, violation :math:`O(T^{1 - \beta/2})`, that is :math:`T^{3/4}` at β = 1/2.
"""

from __future__ import annotations

from dataclasses import dataclass

from driftsack.core.arrays import Floats
from driftsack.core.checks import above_zero, at_least_zero, share
from driftsack.numerics.compiled import kernel
from driftsack.oco.algorithm import Algorithm
from driftsack.oco.domains import Domain
from driftsack.oco.state import PENALISED, State, new_state


@kernel
def rate(state: State) -> float:
    """The step size of the present round."""
    size: float = state.settings[0] * (state.clock[0] + 1.0) ** (-state.settings[1])
    return size


@kernel
def aim(state: State, gradients: Floats) -> None:
    """A step down the Lagrangian."""
    step = rate(state)
    for j in range(state.point.size):
        slope = gradients[0, j]
        for i in range(state.prices.size):
            slope += state.prices[i] * gradients[1 + i, j]
        state.target[j] = state.point[j] - step * slope


@kernel
def settle(state: State, values: Floats) -> None:
    """A step up in the prices, drawn back by the penalty."""
    step = rate(state)
    for i in range(state.prices.size):
        pull = step * state.settings[2] * state.prices[i]
        state.prices[i] = max(0.0, state.prices[i] + step * (values[1 + i] - pull))


@dataclass(frozen=True)
class PenalisedPrimalDual(Algorithm):
    """Recipe: ``step`` s, ``beta`` β in [0, 1], ``penalty`` δ.

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

    def new_state(self, domain: Domain, horizon: int, constraints: int) -> State:  # noqa: ARG002  (needs no horizon)
        """Prices begin at 0."""
        return new_state(PENALISED, (self.step, self.beta, self.penalty), domain, constraints)
