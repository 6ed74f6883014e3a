r"""The paper's regret and concentration bounds, computed term by term.

All bounds are for rewards and costs in [0, 1]. The logarithms are :math:`L_1 = \log(12 m T^3)` and
:math:`L_2 = \log(12 m d T^3)`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftsack.core.checks import above_zero, at_least_zero
from driftsack.theory.windows import log_term


class RegretBound(NamedTuple):
    r"""The upper bound of Theorem 1, term by term.

    Attributes:
        stopping_noise: :math:`4 \sqrt T L_2 / b`, for random costs that end the game early.
        stopping_learning: :math:`8 \sqrt{2 m T L_2} / b`, for learning the costs.
        stopping_round: :math:`1 / b`, for the round that breaks a budget.
        cost_drift: :math:`(14 + 2 d)\, m^{1/3} V_2^{1/3} T^{2/3} L_2^{1/3} / b`, for tracking the costs.
        reward_noise: :math:`4 \sqrt T L_1`, for random rewards.
        reward_learning: :math:`8 \sqrt{2 m T L_1}`, for learning the rewards. It is part of the proof but missing
            from the printed theorem.
        reward_drift: :math:`16\, m^{1/3} V_1^{1/3} T^{2/3} L_1^{1/3}`, for tracking the rewards.
        budget_timing: :math:`2 (W_1 + \bar q W_2)`, for not knowing when to spend.
        failure: 1, for the event of probability 1/T in which a confidence bound fails. The printed theorem, which is
            about expectations, omits it.
    """

    stopping_noise: float
    stopping_learning: float
    stopping_round: float
    cost_drift: float
    reward_noise: float
    reward_learning: float
    reward_drift: float
    budget_timing: float
    failure: float = 1.0

    @property
    def total(self) -> float:
        """The sum of all terms: the bound that the proof gives."""
        return sum(self)

    @property
    def printed_total(self) -> float:
        """The bound as printed, which omits ``reward_learning`` and ``failure``."""
        return sum(self) - self.reward_learning - self.failure


class ConcentrationBounds(NamedTuple):
    """The bounds of Lemma 3.

    Attributes:
        rewards: The bound for the rewards.
        costs: The bound for the costs of each resource.
    """

    rewards: float
    costs: float


class LowerBounds(NamedTuple):
    r"""The three rates of Theorem 2: orders of magnitude, because their universal constants are unknown.

    Each is capped at T, the maximum regret.

    Attributes:
        reward_drift: :math:`m^{1/3} V_1^{1/3} T^{2/3}`.
        cost_drift: :math:`m^{1/3} b^{-2/3} V_2^{1/3} T^{2/3}`. The paper has 1/b, which is false
            (docs/theory-paper.md). The construction needs a gap of at most b between the costs; the cap applies where
            the gap would exceed b.
        budget_timing: :math:`W_1 + \bar q W_2`.
    """

    reward_drift: float
    cost_drift: float
    budget_timing: float


def drift_rate(horizon: int, arms: int, variation: float) -> float:
    r"""Compute :math:`m^{1/3} V^{1/3} T^{2/3}`, the order of the regret of tracking means with variation V."""
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
    r"""Bound the regret of Algorithm 1 against LP-Dynamic (Theorem 1).

    .. math:: \tfrac1b \bigl(4\sqrt T L_2 + (14 + 2d)\, m^{1/3} V_2^{1/3} T^{2/3} L_2^{1/3} + 8\sqrt{2mT L_2} + 1\bigr)
              + 4\sqrt T L_1 + 16\, m^{1/3} V_1^{1/3} T^{2/3} L_1^{1/3} + 2 (W_1 + \bar q W_2)

    for the paper's windows and budgets that grow linearly, B = bT. The proof has one more term,
    :math:`8 \sqrt{2mT L_1}`, and the expectation adds 1; the printed theorem omits both. Against OPT_DP, which may
    exceed LP-Dynamic, add :math:`\|q^*\|_1 \le 1/b`. :func:`repaired_regret_bound` is never larger in its last terms.

    Args:
        horizon: The number T of rounds.
        arms: The number m of arms.
        resources: The number d of resources.
        rate: The budget per round b = B/T of the scarcest resource.
        variation: The local variation :math:`(V_1, V_2)` of rewards and costs.
        global_variation: The global variation :math:`(W_1, W_2)` of rewards and costs.
        q_bar: The largest price :math:`\bar q`. The proof needs it to cover the prices of the LP on mean rows too
            (``Variation.q_bar_full``).

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


def repaired_regret_bound(
    horizon: int,
    arms: int,
    resources: int,
    rate: float,
    variation: tuple[float, float],
    v2_sum: float,
    pairwise_variation: tuple[float, float],
    q_bar: float,
) -> RegretBound:
    r"""Bound the regret of Algorithm 1 against LP-Dynamic by the repaired proof (docs/theory-paper.md).

    It differs from :func:`regret_bound` in three terms: :math:`d V_2` becomes :math:`V_2^\Sigma`, so that the factor
    14 + 2d of the drift of the costs becomes :math:`14 + 2 V_2^\Sigma / V_2`; :math:`2 (W_1 + \bar q W_2)` becomes
    :math:`W_1^{\mathrm{pair}} + \bar q W_2^{\mathrm{pair}}`; and the round that breaks a budget costs 1 instead of 1/b.

    Args:
        horizon: The number T of rounds.
        arms: The number m of arms.
        resources: The number d of resources.
        rate: The budget per round b = B/T of the scarcest resource.
        variation: The local variation :math:`(V_1, V_2)` of rewards and costs, from which the windows are computed.
        v2_sum: The local variation :math:`V_2^\Sigma` of the costs (``Variation.v2_sum``).
        pairwise_variation: The pairwise variation :math:`(W_1^{\mathrm{pair}}, W_2^{\mathrm{pair}})`.
        q_bar: The largest price of a single round. Any optimal prices will do, so the smallest value suffices
            (``Variation.q_bar_interval``).

    >>> bound = repaired_regret_bound(10_000, 2, 2, 0.5, (0.5, 1.0), 1.0, (2_500.0, 5_000.0), 1.0)
    >>> round(bound.budget_timing), bound.stopping_round
    (7500, 1.0)
    """
    whole_sum = at_least_zero(v2_sum, "v2_sum")
    wide = (at_least_zero(pairwise_variation[0], "W1"), at_least_zero(pairwise_variation[1], "W2"))
    printed = regret_bound(horizon, arms, resources, rate, variation, wide, q_bar)
    ratio = whole_sum / variation[1] if variation[1] > 0 else 0.0
    return printed._replace(
        stopping_round=1.0,
        cost_drift=printed.cost_drift * (14 + 2 * ratio) / (14 + 2 * resources),
        budget_timing=printed.budget_timing / 2,
    )


def stopping_time_bound(horizon: int, arms: int, resources: int, rate: float, v2: float) -> float:
    r"""Bound how many rounds before the horizon Algorithm 1 may stop (Corollary 1).

    With probability at least :math:`1 - 1/(2T)`, for Algorithm 1 with the paper's :math:`w_2`,

    .. math:: T - \tau \le
        \tfrac1b \bigl(14\, m^{1/3} V_2^{1/3} T^{2/3} L_2^{1/3} + 8 \sqrt{2mT} \sqrt{L_2} + 4 \sqrt T L_2\bigr) .

    Args:
        horizon: The number T of rounds.
        arms: The number m of arms.
        resources: The number d of resources.
        rate: The budget per round b = B/T of the scarcest resource.
        v2: The local variation :math:`V_2` of the costs.

    Returns:
        The bound in rounds.
    """
    b = above_zero(rate, "rate")
    log = log_term(horizon, arms, resources)
    drift = 14 * drift_rate(horizon, arms, v2) * log ** (1 / 3)
    return float(drift + 8 * math.sqrt(2 * arms * horizon * log) + 4 * math.sqrt(horizon) * log) / b


def concentration_bounds(
    horizon: int, arms: int, resources: int, windows: tuple[int, int], variation: tuple[float, float]
) -> ConcentrationBounds:
    r"""Bound how far the realised sums may be from those of the step LPs (Lemma 3).

    With probability at least :math:`1 - 1/T`, for every t up to τ, the difference is at most

    .. math:: 4 \sqrt T L + 8 \sqrt{2 L m}\, T / \sqrt w + w V

    with :math:`L_1, w_1, V_1` for the rewards and :math:`L_2, w_2, V_2` for the costs of each resource.

    Args:
        horizon: The number T of rounds.
        arms: The number m of arms.
        resources: The number d of resources.
        windows: The windows :math:`(w_1, w_2)` of rewards and costs, in rounds.
        variation: The local variation :math:`(V_1, V_2)` of rewards and costs.

    Returns:
        The bounds for rewards and costs.
    """
    bounds = []
    for log, window, drift in zip(
        (log_term(horizon, arms), log_term(horizon, arms, resources)), windows, variation, strict=True
    ):
        learning = 8 * math.sqrt(2 * log * arms) * horizon / math.sqrt(above_zero(window, "each window"))
        bounds.append(4 * math.sqrt(horizon) * log + learning + window * at_least_zero(drift, "each variation"))
    return ConcentrationBounds(*bounds)


def regret_lower_bounds(
    horizon: int,
    arms: int,
    rate: float,
    variation: tuple[float, float],
    global_variation: tuple[float, float],
    q_bar: float,
) -> LowerBounds:
    r"""Compute the rates of Theorem 2: lower bounds on the worst regret, each up to an unknown universal constant.

    For some instance with the given measures, not for every one, every policy has regret
    :math:`\Omega(m^{1/3} V_1^{1/3} T^{2/3})`, :math:`\Omega(m^{1/3} b^{-2/3} V_2^{1/3} T^{2/3})` and
    :math:`\Omega(W_1 + \bar q W_2)`, the last where prices do not grow with the drift. The constructions
    are ``instances.reward_switching``, ``instances.cost_switching`` and ``instances.budget_trap``.

    Args:
        horizon: The number T of rounds.
        arms: The number m of arms.
        rate: The budget per round b = B/T of the scarcest resource.
        variation: The local variation :math:`(V_1, V_2)` of rewards and costs.
        global_variation: The global variation :math:`(W_1, W_2)` of rewards and costs.
        q_bar: The largest price :math:`\bar q`.

    Returns:
        The three rates, at most T each.

    >>> regret_lower_bounds(10_000, 2, 0.01, (0.0, 500.0), (0.0, 0.0), 1.0).cost_drift    # the gap would exceed b
    10000.0
    """
    rates = (
        drift_rate(horizon, arms, variation[0]),
        drift_rate(horizon, arms, variation[1]) * above_zero(rate, "rate") ** (-2 / 3),
        global_variation[0] + at_least_zero(q_bar, "q_bar") * global_variation[1],
    )
    return LowerBounds(*(min(value, float(horizon)) for value in rates))
