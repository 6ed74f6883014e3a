r"""EXP3.P (Auer, Cesa-Bianchi, Freund and Schapire 2002, section 6): a bandit algorithm for adversarial payoffs.

For K actions and T rounds, payoffs :math:`x \in [0, 1]`, with
:math:`\gamma = \min(3/5,\, 2\sqrt{3K \ln K / (5T)})` and :math:`\alpha = 2\sqrt{\ln(KT/\delta)}`,

.. math:: p_a = (1 - \gamma) \frac{w_a}{\sum_b w_b} + \frac{\gamma}{K}, \qquad
          w_a \leftarrow w_a \exp\Bigl(\frac{\gamma}{3K} \Bigl(\hat x_a + \frac{\alpha}{p_a \sqrt{KT}}\Bigr)\Bigr),

where :math:`\hat x_a = x / p_a` for the action taken and 0 for the others. Weights start equal (the paper's common
factor :math:`\exp((\alpha\gamma/3)\sqrt{T/K})` cancels). Weights are kept as logarithms. O(K) per round.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.bounds import within
from driftsack.core.checks import ROUNDING
from driftsack.numerics.compiled import kernel

SMALLEST: Final = 1e-300  # the smallest valid probability; payoffs are divided by it


class Exp3P(NamedTuple):
    """Log weights and the latest probabilities."""

    log_weights: Floats  # (K,)
    probabilities: Annotated[Floats, within(SMALLEST, 1.0 + ROUNDING)]  # (K,)
    explore: float  # gamma
    bonus: float  # alpha / sqrt(K T)

    def grow_from(self, old: Exp3P) -> None:
        """Copy the state ``old`` of fewer actions; new actions get the mean weight and precede the last one, skip."""
        known = old.log_weights.size - 1
        self.log_weights[:] = mean_log_weight(old.log_weights)
        self.log_weights[:known] = old.log_weights[:known]
        self.log_weights[-1] = old.log_weights[-1]
        self.probabilities[:known] = old.probabilities[:known]
        self.probabilities[-1] = old.probabilities[-1]


def mean_log_weight(log_weights: Floats) -> float:
    """Return the logarithm of the mean weight, given the logarithms (K,) of the weights."""
    largest = float(log_weights.max())
    return largest + math.log(float(np.exp(log_weights - largest).mean()))


def new_exp3p(actions: int, rounds: int, delta: float) -> Exp3P:
    """Create the state of EXP3.P with equal weights."""
    explore = min(0.6, 2 * math.sqrt(0.6 * actions * math.log(actions) / rounds))
    bonus = 2 * math.sqrt(math.log(actions * rounds / delta) / (actions * rounds))
    return Exp3P(np.zeros(actions), np.full(actions, 1 / actions), explore, bonus)


@kernel
def softmax(logs: Floats, shares: Floats) -> None:
    """Write exp(logs) / sum(exp(logs)) into ``shares``, without overflow."""
    largest = logs[0]
    for a in range(1, logs.size):
        largest = max(largest, logs[a])
    total = 0.0
    for a in range(logs.size):
        shares[a] = math.exp(logs[a] - largest)
        total += shares[a]
    for a in range(logs.size):
        shares[a] /= total


@kernel
def mix_uniform(shares: Floats, explore: float) -> None:
    """Mix ``shares`` with the uniform distribution, which gets the weight ``explore``."""
    for a in range(shares.size):
        shares[a] = (1 - explore) * shares[a] + explore / shares.size


@kernel
def update_probabilities(bandit: Exp3P) -> None:
    """Compute the probabilities from the current weights."""
    softmax(bandit.log_weights, bandit.probabilities)
    mix_uniform(bandit.probabilities, bandit.explore)


@kernel
def update_weights(bandit: Exp3P, action: int, probability: float, payoff: float) -> None:
    """Update the weights with the payoff in [0, 1] of an action taken with the given probability."""
    step = bandit.explore / (3.0 * bandit.log_weights.size)
    for a in range(bandit.log_weights.size):
        bandit.log_weights[a] += step * bandit.bonus / bandit.probabilities[a]
    bandit.log_weights[action] += step * payoff / probability
