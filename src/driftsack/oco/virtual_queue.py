r"""Virtual queues (Neely and Yu 2017; the paper's Algorithm 2 and Theorem 3).

Each constraint has a virtual queue that accumulates its violation and serves as its price: with :math:`Q_i(1) = 0`,

.. math:: x_{t+1} = \arg\min_{x \in X} \Big[V \nabla f_t(x_t) + \sum_i Q_i(t) \nabla g_{t,i}(x_t)\Big]^\top x
                    + \alpha \|x - x_t\|_2^2,

.. math:: Q_i(t+1) = \max\{0, Q_i(t) + g_{t,i}(x_t) + \nabla g_{t,i}(x_t)^\top (x_{t+1} - x_t)\}.

The first step is the projection of :math:`x_t - [\cdot] / 2\alpha`. A round costs O(nd) plus the projection.

*Guarantee* (Theorem 3, under Slater's condition, for :math:`V = \sqrt T`, :math:`\alpha = T`):
:math:`\mathrm{Reg}_1 = O(\sqrt T) + \bar q W`, :math:`\mathrm{Reg}_2 = O(d \sqrt T)`. The paper prints
:math:`\beta = 1/\sqrt T` for V and :math:`\alpha = 1/T`, the inverse of both. With these, x jumps between the extreme
points of the domain, and the regret is linear (errata).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from driftsack.core.arrays import Floats
from driftsack.core.checks import above_zero, one_of
from driftsack.numerics.compiled import kernel
from driftsack.oco.algorithm import Algorithm
from driftsack.oco.domains import Domain
from driftsack.oco.state import VIRTUAL_QUEUE, State, new_state

PARAMETERS: Final = ("given", "printed")
RULES: Final = {"√T": math.sqrt, "sqrt(T)": math.sqrt, "T": float}

# Positions in ``State.settings``
TRADEOFF: Final = 0
PROXIMITY: Final = 1


@kernel
def gradient_step(state: State, gradients: Floats) -> None:
    """Write the point to be projected; ``gradients`` (1 + d, n), that of the loss first."""
    tradeoff, proximity = state.settings[TRADEOFF], state.settings[PROXIMITY]
    for j in range(state.point.size):
        slope = tradeoff * gradients[0, j]
        for i in range(state.prices.size):
            slope += state.prices[i] * gradients[1 + i, j]
        state.target[j] = state.point[j] - slope / (2.0 * proximity)


@kernel
def update_prices(state: State, values: Floats, gradients: Floats) -> None:
    """Update the queues for the projected target; ``values`` (1 + d,) and ``gradients`` (1 + d, n), the loss first."""
    for i in range(state.prices.size):
        queue = state.prices[i] + values[1 + i]
        for j in range(state.point.size):
            queue += gradients[1 + i, j] * (state.target[j] - state.point[j])
        state.prices[i] = max(0.0, queue)


@dataclass(frozen=True)
class VirtualQueue(Algorithm):
    """Algorithm 2 of the paper: virtual queues.

    Attributes:
        tradeoff: The weight V of the loss against the constraints: a number above 0, ``"√T"`` (as Neely and Yu use;
            also spelled ``"sqrt(T)"``) or ``"T"``.
        proximity: The weight α of the distance from the last decision: a number above 0, ``"T"`` (as Neely and Yu use)
            or ``"√T"``.
        parameters: ``"given"`` to use ``tradeoff`` and ``proximity``, ``"printed"`` to use the paper's printed 1/√T and
            1/T instead.

    >>> import driftsack as ds
    >>> problem = ds.oco.instances.proposition_2(horizon=1_000)
    >>> play = VirtualQueue().play(problem)
    >>> play.loss.shape, play.totals.shape
    ((1,), (1, 1))
    """

    tradeoff: float | str = "√T"
    proximity: float | str = "T"
    parameters: str = "given"

    def __post_init__(self) -> None:
        one_of(self.parameters, "parameters", PARAMETERS)
        for name in ("tradeoff", "proximity"):
            setting = getattr(self, name)
            if isinstance(setting, str):
                one_of(setting, name, tuple(RULES))
            else:
                object.__setattr__(self, name, above_zero(setting, name))

    def numbers(self, horizon: int) -> tuple[float, float]:
        """Compute V and α for a horizon.

        Args:
            horizon: The number T of rounds.

        >>> VirtualQueue().numbers(10_000), VirtualQueue(parameters="printed").numbers(10_000)
        ((100.0, 10000.0), (0.01, 0.0001))
        """
        if self.parameters == "printed":
            return 1.0 / math.sqrt(horizon), 1.0 / horizon
        v, alpha = (
            RULES[setting](horizon) if isinstance(setting, str) else setting
            for setting in (self.tradeoff, self.proximity)
        )
        return v, alpha

    def new_state(self, domain: Domain, horizon: int, constraints: int) -> State:
        """Create the state before the first round, with empty queues."""
        return new_state(VIRTUAL_QUEUE, self.numbers(horizon), domain, constraints)
