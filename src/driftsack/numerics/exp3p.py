r"""EXP3.P: a bandit against an adversary, with high probability (Auer, Cesa-Bianchi, Freund, Schapire 2002, section 6).

For K actions and T rounds, payoffs :math:`x \in [0, 1]`, with
:math:`\gamma = \min(3/5,\, 2\sqrt{3K \ln K / (5T)})` and :math:`\alpha = 2\sqrt{\ln(KT/\delta)}`,

.. math:: p_a = (1 - \gamma) \frac{w_a}{\sum_b w_b} + \frac{\gamma}{K}, \qquad
          w_a \leftarrow w_a \exp\Bigl(\frac{\gamma}{3K} \Bigl(\hat x_a + \frac{\alpha}{p_a \sqrt{KT}}\Bigr)\Bigr),

:math:`\hat x_a = x / p_a` for the action taken and 0 for the others. All start from equal weights (the paper's common
factor :math:`\exp((\alpha\gamma/3)\sqrt{T/K})` cancels). Weights are kept as logarithms. O(K) a round.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.numerics.compiled import kernel


class Exp3P(NamedTuple):
    """Log weights and the probabilities that they gave last."""

    logs: Floats  # (K,)
    chances: Floats  # (K,)
    explore: float  # gamma
    bonus: float  # alpha / sqrt(K T)


def new_exp3p(actions: int, rounds: int, delta: float) -> Exp3P:
    """Equal weights."""
    explore = min(0.6, 2 * math.sqrt(0.6 * actions * math.log(actions) / rounds))
    bonus = 2 * math.sqrt(math.log(actions * rounds / delta) / (actions * rounds))
    return Exp3P(np.zeros(actions), np.full(actions, 1 / actions), explore, bonus)


@kernel
def soften(logs: Floats, shares: Floats) -> None:
    """Shares = exp(logs) / sum, without overflow."""
    most = logs[0]
    for a in range(1, logs.size):
        most = max(most, logs[a])
    total = 0.0
    for a in range(logs.size):
        shares[a] = math.exp(logs[a] - most)
        total += shares[a]
    for a in range(logs.size):
        shares[a] /= total


@kernel
def blend(shares: Floats, explore: float) -> None:
    """Give ``explore`` of the probability to all alike."""
    for a in range(shares.size):
        shares[a] = (1 - explore) * shares[a] + explore / shares.size


@kernel
def refresh(bandit: Exp3P) -> None:
    """The probabilities of the present weights."""
    soften(bandit.logs, bandit.chances)
    blend(bandit.chances, bandit.explore)


@kernel
def pay(bandit: Exp3P, action: int, chance: float, payoff: float) -> None:
    """Take in a payoff in [0, 1] of an action that was taken with probability ``chance``, however long ago."""
    step = bandit.explore / (3.0 * bandit.logs.size)
    for a in range(bandit.logs.size):
        bandit.logs[a] += step * bandit.bonus / bandit.chances[a]
    bandit.logs[action] += step * payoff / chance
