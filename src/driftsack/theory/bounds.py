r"""The paper's bounds as numbers, term by term.

All take a horizon T, m arms, d resources, a rate b (the least of the resources' b = B/T) and measures of variation,
with rewards and costs in [0, 1]. The logarithms are :math:`L_1 = \log(12 m T^3)` and :math:`L_2 = \log(12 m d T^3)`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftsack.core.checks import above_zero, at_least_zero
from driftsack.theory.windows import log_term


class RegretBound(NamedTuple):
    """Theorem 1, term by term."""

    stopping_noise: float  # 4 sqrt(T) L2 / b
    stopping_learning: float  # 8 sqrt(2 m T L2) / b
    stopping_round: float  # 1 / b
    cost_drift: float  # (14 + 2 d) m^(1/3) V2^(1/3) T^(2/3) L2^(1/3) / b
    reward_noise: float  # 4 sqrt(T) L1
    reward_learning: float  # 8 sqrt(2 m T L1): in the proof, left out of the printed theorem
    reward_drift: float  # 16 m^(1/3) V1^(1/3) T^(2/3) L1^(1/3)
    budget_timing: float  # 2 (W1 + q_bar W2)

    @property
    def total(self) -> float:
        """The bound as its proof has it."""
        return sum(self)

    @property
    def printed_total(self) -> float:
        """The bound as printed, without ``reward_learning``."""
        return sum(self) - self.reward_learning


class Pair(NamedTuple):
    """A bound for the rewards and one for the costs."""

    rewards: float
    costs: float


class LowerBounds(NamedTuple):
    """Theorem 2's three rates, without their constants."""

    reward_drift: float  # m^(1/3) V1^(1/3) T^(2/3)
    cost_drift: float  # m^(1/3) V2^(1/3) T^(2/3) / b
    budget_timing: float  # W1 + q_bar W2


def drift_rate(horizon: int, arms: int, variation: float) -> float:
    r""":math:`m^{1/3} V^{1/3} T^{2/3}`, the price of learning what moves."""
    rate: float = (arms * at_least_zero(variation, "variation") * horizon**2) ** (1 / 3)
    return rate


def regret_bound(
    horizon: int,
    arms: int,
    resources: int,
    rate: float,
    variation: tuple[float, float],
    global_variation: tuple[float, float],
    q_bar: float,
) -> RegretBound:
    r"""Theorem 1: the regret of Algorithm 1 against LP-Dynamic, for the paper's windows and linear growth B = bT.

    .. math:: \tfrac1b \bigl(4\sqrt T L_2 + (14 + 2d)\, m^{1/3} V_2^{1/3} T^{2/3} L_2^{1/3} + 8\sqrt{2mT L_2} + 1\bigr)
              + 4\sqrt T L_1 + 16\, m^{1/3} V_1^{1/3} T^{2/3} L_1^{1/3} + 2 (W_1 + \bar q W_2)

    The proof has one term more, :math:`8 \sqrt{2mT L_1}`, which the printed theorem leaves out. For :math:`\bar q` to
    suffice it must include the prices of the LP on mean rows (``Variation.q_bar_full``).

    >>> bound = regret_bound(10_000, 2, 2, 0.5, (0.5, 1.0), (2_500.0, 5_000.0), 1.0)
    >>> round(bound.budget_timing), bound.total > bound.printed_total
    (15000, True)
    """
    b = above_zero(rate, "rate")
    first, second = log_term(horizon, arms), log_term(horizon, arms, resources)
    root = math.sqrt(horizon)
    return RegretBound(
        stopping_noise=4 * root * second / b,
        stopping_learning=8 * math.sqrt(2 * arms * horizon * second) / b,
        stopping_round=1 / b,
        cost_drift=(14 + 2 * resources) * drift_rate(horizon, arms, variation[1]) * second ** (1 / 3) / b,
        reward_noise=4 * root * first,
        reward_learning=8 * math.sqrt(2 * arms * horizon * first),
        reward_drift=16 * drift_rate(horizon, arms, variation[0]) * first ** (1 / 3),
        budget_timing=2 * (global_variation[0] + at_least_zero(q_bar, "q_bar") * global_variation[1]),
    )


def stopping_time_bound(horizon: int, arms: int, resources: int, rate: float, v2: float) -> float:
    r"""Corollary 1: how early Algorithm 1 may stop. With probability at least 1 - 1/(2T), T - τ is at most this.

    .. math:: \tfrac1b \bigl(14\, m^{1/3} V_2^{1/3} T^{2/3} L_2^{1/3} + 8 \sqrt{2mT} \sqrt{L_2} + 4 \sqrt T L_2\bigr)

    for Algorithm 1 with the paper's :math:`w_2`.
    """
    b = above_zero(rate, "rate")
    log = log_term(horizon, arms, resources)
    drift = 14 * drift_rate(horizon, arms, v2) * log ** (1 / 3)
    return float(drift + 8 * math.sqrt(2 * arms * horizon * log) + 4 * math.sqrt(horizon) * log) / b


def concentration_bounds(
    horizon: int, arms: int, resources: int, windows: tuple[int, int], variation: tuple[float, float]
) -> Pair:
    r"""Lemma 3: how far realised sums may be from the LPs', for every t up to τ, with probability at least 1 - 1/T.

    .. math:: 4 \sqrt T L + 8 \sqrt{2 L m}\, T / \sqrt w + w V

    with :math:`L_1, w_1, V_1` for rewards and :math:`L_2, w_2, V_2` for each resource's costs.
    """
    found = []
    for log, window, drift in zip(
        (log_term(horizon, arms), log_term(horizon, arms, resources)), windows, variation, strict=True
    ):
        learning = 8 * math.sqrt(2 * log * arms) * horizon / math.sqrt(above_zero(window, "each window"))
        found.append(4 * math.sqrt(horizon) * log + learning + window * at_least_zero(drift, "each variation"))
    return Pair(*found)


def regret_lower_bounds(
    horizon: int,
    arms: int,
    rate: float,
    variation: tuple[float, float],
    global_variation: tuple[float, float],
    q_bar: float,
) -> LowerBounds:
    r"""Theorem 2's rates, each up to a universal constant, for the worst instance with these measures.

    :math:`\Omega(m^{1/3} V_1^{1/3} T^{2/3})`, :math:`\Omega(m^{1/3} V_2^{1/3} T^{2/3} / b)` and
    :math:`\Omega(W_1 + \bar q W_2)`: three constructions (``instances.reward_switching`` and its neighbours).
    """
    return LowerBounds(
        drift_rate(horizon, arms, variation[0]),
        drift_rate(horizon, arms, variation[1]) / above_zero(rate, "rate"),
        global_variation[0] + at_least_zero(q_bar, "q_bar") * global_variation[1],
    )
