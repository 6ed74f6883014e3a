r"""Drift plus penalty for stochastic constraints (Yu, Neely and Wei 2017).

At the end of round t, after its functions are known, minimise a bound on the growth of
:math:`\tfrac12 \|Q\|^2` (the drift) plus V times the linearised loss (the penalty),

.. math:: x_{t+1} = \arg\min_{x \in X} V \nabla f_t(x_t)^\top (x - x_t)
          + \sum_i Q_i(t) \nabla g_{t,i}(x_t)^\top (x - x_t) + \alpha \|x - x_t\|_2^2,

and let the queues grow by the linearised constraints at :math:`x_{t+1}`, with :math:`V = \sqrt T` and
:math:`\alpha = T`.

Up to the numbering of rounds these are the steps of :mod:`~driftsack.oco.virtual_queue`: the terms in :math:`x_t` do
not change the argmin. The two differ in their guarantees. *Guarantee* (their theorems, for i.i.d. constraints under
Slater's condition in the mean): expected regret and expected violation :math:`O(\sqrt T)`, and
:math:`O(\sqrt T \log T)` with high probability. The paper's last appendix extends it to independent constraints with a
non-stationary distribution, for an additional :math:`\bar q W`. The kernels are shared. There is one parameter here,
since the two parts of the bound balance when α grows as V².
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from driftsack.core.checks import above_zero
from driftsack.oco.algorithm import Algorithm
from driftsack.oco.domains import Domain
from driftsack.oco.state import VIRTUAL_QUEUE, State, new_state


@dataclass(frozen=True)
class DriftPlusPenalty(Algorithm):
    """Drift plus penalty.

    Attributes:
        scale: The scale v of V = v√T and α = v²T, above 0. The authors use 1.

    >>> DriftPlusPenalty().scale
    1.0
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", above_zero(self.scale, "scale"))

    def new_state(self, domain: Domain, horizon: int, constraints: int) -> State:
        """Create the state before the first round, with empty queues."""
        settings = (self.scale * math.sqrt(horizon), self.scale**2 * horizon)
        return new_state(VIRTUAL_QUEUE, settings, domain, constraints)
