r"""Drift plus penalty for constraints drawn at random (Yu, Neely and Wei 2017).

At the end of round t, with the functions of round t in hand, minimise a bound on the growth of
:math:`\tfrac12 \|Q\|^2` (the drift) plus V times the linearised loss (the penalty),

.. math:: x_{t+1} = \arg\min_{x \in X} V \nabla f_t(x_t)^\top (x - x_t)
          + \sum_i Q_i(t) \nabla g_{t,i}(x_t)^\top (x - x_t) + \alpha \|x - x_t\|_2^2,

and let the queues grow by the linearised constraints at :math:`x_{t+1}`, with :math:`V = \sqrt T` and
:math:`\alpha = T`.

But for the numbering of rounds these are the steps of :mod:`~driftsack.oco.virtual_queue`: the terms in :math:`x_t`
do not move the argmin. What differs is the promise. *Guarantee* (their Theorems, constraints i.i.d., Slater's
condition in the mean): expected regret and expected violation :math:`O(\sqrt T)`, and :math:`O(\sqrt T \log T)` with
high probability. The paper's last appendix carries it over to independent constraints whose distribution moves, for
:math:`\bar q W` more. So the kernels are shared; there is one parameter here, since the two parts of the bound
balance when α grows as V².
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from driftsack.core.checks import above_zero
from driftsack.oco.algorithm import Algorithm
from driftsack.oco.domains import Domain
from driftsack.oco.state import QUEUE, State, new_state


@dataclass(frozen=True)
class DriftPlusPenalty(Algorithm):
    """Recipe: ``scale`` v gives V = v√T and α = v²T; 1 is theirs, and the two must grow together.

    >>> DriftPlusPenalty().scale
    1.0
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", above_zero(self.scale, "scale"))

    def new_state(self, domain: Domain, horizon: int, constraints: int) -> State:
        """Empty queues."""
        numbers = (self.scale * math.sqrt(horizon), self.scale**2 * horizon)
        return new_state(QUEUE, numbers, domain, constraints)
