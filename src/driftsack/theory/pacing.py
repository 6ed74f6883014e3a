r"""A bound for pacing by the remaining budget, which is not in the paper (theorem N3 of docs/theory-new.md)."""

from __future__ import annotations

import math
from typing import NamedTuple

from driftsack.core.checks import above_zero, at_least_zero
from driftsack.theory.windows import log_term


class RemainingPaceBound(NamedTuple):
    r"""The bound of theorem N3, term by term.

    Attributes:
        reward_learning: :math:`4 \sqrt{2 m L_1 w_1} \lceil T / w_1 \rceil`, for learning the rewards.
        reward_drift: :math:`2 w_1 V_1`, for tracking the rewards.
        cost_learning: :math:`4 \sqrt{2 m L_2 w_2} \lceil T / w_2 \rceil / b`, for learning the costs.
        cost_drift: :math:`2 w_2 V_2^\Sigma / b`, for tracking the costs.
        pacing: :math:`\sqrt{dT} / b`, for the noise of spending.
        budget_timing: :math:`W_1^{\mathrm{pair}} + \bar q W_2^{\mathrm{pair}}`, for not knowing when to spend.
        ends: 2, for the round that breaks a budget and the event in which a confidence bound fails.
    """

    reward_learning: float
    reward_drift: float
    cost_learning: float
    cost_drift: float
    pacing: float
    budget_timing: float
    ends: float = 2.0

    @property
    def total(self) -> float:
        """The sum of all terms."""
        return sum(self)


def remaining_pace_bound(
    horizon: int,
    arms: int,
    resources: int,
    rate: float,
    windows: tuple[int, int],
    variation: tuple[float, float],
    pairwise_variation: tuple[float, float],
    q_bar: float,
) -> RemainingPaceBound:
    r"""Bound the expected regret of ``SlidingWindowUCB(budget_rule="remaining")`` for prompt feedback (theorem N3).

    Args:
        horizon: The number T of rounds.
        arms: The number m of arms.
        resources: The number d of resources.
        rate: The budget per round b = B/T of the scarcest resource.
        windows: The windows :math:`(w_1, w_2)` of rewards and costs, in rounds.
        variation: The local variation :math:`V_1` of the rewards and :math:`V_2^\Sigma` of the costs
            (``Variation.v2_sum``).
        pairwise_variation: The pairwise variation :math:`(W_1^{\mathrm{pair}}, W_2^{\mathrm{pair}})`.
        q_bar: The largest price of a single round, for any optimal prices.

    >>> bound = remaining_pace_bound(1_000_000, 3, 2, 0.5, (10**6, 10**6), (0.0, 0.0), (0.0, 0.0), 1.0)
    >>> round(bound.total / 1_000_000, 2)
    0.2
    """
    b, (w1, w2) = above_zero(rate, "rate"), (above_zero(window, "each window") for window in windows)
    v1, v2_sum = (at_least_zero(drift, "each variation") for drift in variation)
    w1_pair, w2_pair = (at_least_zero(drift, "each pairwise variation") for drift in pairwise_variation)
    return RemainingPaceBound(
        reward_learning=4 * math.sqrt(2 * arms * log_term(horizon, arms) * w1) * math.ceil(horizon / w1),
        reward_drift=2 * w1 * v1,
        cost_learning=4 * math.sqrt(2 * arms * log_term(horizon, arms, resources) * w2) * math.ceil(horizon / w2) / b,
        cost_drift=2 * w2 * v2_sum / b,
        pacing=math.sqrt(resources * horizon) / b,
        budget_timing=w1_pair + at_least_zero(q_bar, "q_bar") * w2_pair,
    )
