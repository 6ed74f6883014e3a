r"""Gradient descent on an exponential penalty (Sinha and Vaze 2024): small *hard* violation, for any constraints.

With :math:`g_t^+ = \sum_i (g_{t,i})^+`, the gradient bound G, the diameter D and :math:`a = 1 / (2GD)`, count the
violations so far and take an adaptive step against the loss plus the priced violation of the round:

.. math:: Q(t) = Q(t-1) + a\, g_t^+(x_t), \qquad
          h_t = a \nabla f_t(x_t) + \lambda e^{\lambda Q(t)}\, a \nabla g_t^+(x_t),

.. math:: x_{t+1} = \Pi_X\Bigl(x_t - \frac{D}{\sqrt2} \Bigl(\sum_{s \le t} \|h_s\|^2\Bigr)^{-1/2} h_t\Bigr), \qquad
          \lambda = \frac{1}{2 \sqrt T} .

The hard violation :math:`\sum_t g_t^+(x_t)` lets no slack of one round pay for the violation of another.

*Guarantee* (theorem N5 of docs/theory-paper.md, with proof), for convex losses and constraints chosen by any adversary,
and for every x that satisfies the constraints of *every* round; no Slater condition is needed. The regret is at most
:math:`2GD(\sqrt T + \tfrac12)` and the hard violation at most :math:`4GD \sqrt T \ln(T + 2\sqrt T + 2)`. With
``anytime=True`` the horizon is not used: the counts and the steps start again in rounds 1, 2, 4, 8, ..., with that
number in place of T, and after every round both bounds hold with 3.42 √T in place of √T and with
:math:`1 + \log_2 T` times the ½ (Sarkar and Sinha 2025 need no restarts; their constants are *unverified*). O(nd) per
round plus the projection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import above_zero, flag
from driftsack.numerics.compiled import kernel
from driftsack.oco.algorithm import Algorithm
from driftsack.oco.domains import Domain
from driftsack.oco.state import EXPONENTIAL_PENALTY, State, new_state

LARGEST_EXPONENT: Final = 300.0  # reached only if a gradient exceeds the bound; keeps the price finite

# Positions in ``State.settings``
SCALE: Final = 0  # a
DIAMETER: Final = 1
RATE: Final = 2  # lambda; 0 for the anytime form


@kernel
def power_of_two(t: int) -> int:
    """The largest power of two that is at most t."""
    power = 1
    while 2 * power <= t:
        power *= 2
    return power


@kernel
def gradient_step(state: State, values: Floats, gradients: Floats) -> None:
    """Count the violations and write a step; ``values`` (1 + d,) and ``gradients`` (1 + d, n), the loss first."""
    rate, scale = state.settings[RATE], state.settings[SCALE]
    # The anytime form starts again in rounds 1, 2, 4, ...
    if rate == 0.0:
        first = power_of_two(state.completed[0] + 1)
        rate = 1.0 / (2.0 * math.sqrt(first))
        if first == state.completed[0] + 1:
            state.prices[:] = 0.0
            state.squares[0] = 0.0
    # Violations so far, and the price that they set.
    total = 0.0
    for i in range(state.prices.size):
        state.prices[i] += scale * max(values[1 + i], 0.0)
        total += state.prices[i]
    price = rate * math.exp(min(rate * total, LARGEST_EXPONENT))
    # The gradient of the loss and of the violated constraints.
    norm = 0.0
    for j in range(state.point.size):
        slope = gradients[0, j]
        for i in range(state.prices.size):
            if values[1 + i] > 0.0:
                slope += price * gradients[1 + i, j]
        state.target[j] = scale * slope
        norm += state.target[j] ** 2
    state.squares[0] += norm
    step = state.settings[DIAMETER] / math.sqrt(2.0 * state.squares[0]) if state.squares[0] > 0.0 else 0.0
    for j in range(state.point.size):
        state.target[j] = state.point[j] - step * state.target[j]


@dataclass(frozen=True)
class ExponentialPenalty(Algorithm):
    """Gradient descent on an exponential penalty of the violations so far.

    Attributes:
        gradient: The bound G on the norms of the gradients of the losses and of the sum of the violated constraints.
        diameter: The diameter D of the domain; None for the diagonal of its bounding box, which is not smaller.
        anytime: Whether to hold the guarantee after every round, without using the horizon.

    >>> import driftsack as ds
    >>> problem = ds.oco.instances.tight_and_loose(horizon=1_000_000)
    >>> plays = ExponentialPenalty().play(problem), ds.oco.VirtualQueue().play(problem)
    >>> bool(plays[0].hard_violation[0] < 0.5 * plays[1].hard_violation[0])
    True
    """

    gradient: float = 1.0
    diameter: float | None = None
    anytime: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "gradient", above_zero(self.gradient, "gradient"))
        if self.diameter is not None:
            object.__setattr__(self, "diameter", above_zero(self.diameter, "diameter"))
        flag(self.anytime, "anytime")

    def new_state(self, domain: Domain, horizon: int, constraints: int) -> State:
        """Create the state before the first round, with no violation counted."""
        size = self.diameter or bounding_diagonal(domain)
        rate = 0.0 if self.anytime else 1.0 / (2.0 * math.sqrt(horizon))
        settings = (1.0 / (2.0 * self.gradient * size), size, rate)
        return new_state(EXPONENTIAL_PENALTY, settings, domain, constraints)


def bounding_diagonal(domain: Domain) -> float:
    """The diagonal of the smallest box around a domain; 1 for a domain of a single point.

    >>> from driftsack.oco.domains import Box
    >>> bounding_diagonal(Box([0.0, 0.0], [3.0, 4.0]))
    5.0
    """
    units = np.eye(domain.dimension)
    return float(np.linalg.norm(domain.most(units) - domain.least(units))) or 1.0
