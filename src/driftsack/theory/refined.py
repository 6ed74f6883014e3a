r"""The refined algorithm of the paper's last appendix: radii that depend on the mean, a reduced rate, and its bound.

The appendix states its results up to constants. Here every constant in an O(·) or Θ(·) is 1 unless ``constant`` sets
another. Throughout, :math:`\gamma = \log(m d T^2)`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftsack.core.checks import above_zero, at_least_zero
from driftsack.theory.bounds import drift_rate


class RefinedBound(NamedTuple):
    r"""The bound of the paper's last theorem, term by term, each times the chosen constant.

    Attributes:
        learning: :math:`(\sqrt{m / B}\, \mathrm{OPT} + \sqrt{m\, \mathrm{OPT}} + m \sqrt\gamma) \sqrt\gamma`.
        reward_drift: :math:`m^{1/3} V_1^{1/3} T^{2/3} \log^{1/3}(m T^2)`.
        cost_drift: :math:`\bar q\, d\, m^{1/3} V_2^{1/3} T^{2/3} \gamma^{1/3}`.
        budget_timing: :math:`W_1 + \bar q W_2`.
    """

    learning: float
    reward_drift: float
    cost_drift: float
    budget_timing: float

    @property
    def total(self) -> float:
        """The sum of all terms."""
        return sum(self)


def gamma(horizon: int, arms: int, resources: int = 1) -> float:
    r"""Compute :math:`\gamma = \log(m d T^2)`."""
    return math.log(arms * resources) + 2 * math.log(horizon)


def refined_radius(mean: float, pulls: float, gamma: float) -> float:
    r"""Compute the confidence radius :math:`\mathrm{rad}(a, n) = \sqrt{\gamma a / n} + \gamma / n`.

    The upper confidence bound of a reward is :math:`\hat\mu + 2\,\mathrm{rad}(\hat\mu, n + 1)`; the lower confidence
    bound of a cost subtracts the same term.

    Args:
        mean: The empirical mean a, in [0, 1].
        pulls: The number n of pulls.
        gamma: The logarithm :math:`\gamma`.

    >>> refined_radius(mean=0.25, pulls=100.0, gamma=4.0)
    0.14
    """
    return math.sqrt(gamma * mean / pulls) + gamma / pulls


def epsilon(horizon: int, arms: int, resources: int, budget: float, v2: float, constant: float = 1.0) -> float:
    r"""Compute the share :math:`\epsilon` by which the rate is reduced so that the budget lasts.

    .. math:: \epsilon = \frac{\alpha_2 + \beta_2}{B}, \qquad \alpha_2 = \sqrt{\gamma m B} + m \gamma, \qquad
              \beta_2 = \sqrt{\gamma B} + m^{1/3} V_2^{1/3} T^{2/3} \gamma^{1/3} .

    :math:`\alpha_2` is needed even in a stationary environment (Lemma B.5 of Agrawal and Devanur), :math:`\beta_2`
    only in a non-stationary one.

    Args:
        horizon: The number T of rounds.
        arms: The number m of arms.
        resources: The number d of resources.
        budget: The smallest budget B, normalised to costs in [0, 1].
        v2: The local variation :math:`V_2` of the costs.
        constant: The factor in front of the fraction, which the paper does not specify.

    Returns:
        The share, at most 1.
    """
    amount = above_zero(budget, "budget")
    g = gamma(horizon, arms, resources)
    alpha = math.sqrt(g * arms * amount) + arms * g
    beta = math.sqrt(g * amount) + drift_rate(horizon, arms, v2) * g ** (1 / 3)
    return float(min(constant * (alpha + beta) / amount, 1.0))


def refined_regret_bound(
    horizon: int,
    arms: int,
    resources: int,
    budget: float,
    optimum: float,
    variation: tuple[float, float],
    global_variation: tuple[float, float],
    q_bar: float,
) -> RefinedBound:
    r"""Bound the regret of the refined algorithm (the paper's last theorem), up to a constant factor.

    With probability at least :math:`1 - 1/T` the regret is of the order of

    .. math:: \Bigl(\sqrt{m/B}\,\mathrm{OPT} + \sqrt{m\,\mathrm{OPT}} + m\sqrt\gamma\Bigr)\sqrt\gamma
              + m^{1/3} V_1^{1/3} T^{2/3} \log^{1/3}(mT^2)
              + \bar q\, d\, m^{1/3} V_2^{1/3} T^{2/3} \gamma^{1/3} + W_1 + \bar q W_2 ,

    if B is at least of the order of :math:`m^{1/3} V_2^{1/3} T^{2/3} \gamma^{1/3}` and of :math:`m \gamma`.

    Args:
        horizon: The number T of rounds.
        arms: The number m of arms.
        resources: The number d of resources.
        budget: The smallest budget B, normalised to costs in [0, 1].
        optimum: The value OPT of LP-Dynamic, normalised to rewards in [0, 1].
        variation: The local variation :math:`(V_1, V_2)` of rewards and costs.
        global_variation: The global variation :math:`(W_1, W_2)` of rewards and costs.
        q_bar: The largest price :math:`\bar q`.

    Returns:
        The terms of the bound, with a factor of 1 in front of each; the paper leaves it open.
    """
    amount, value = above_zero(budget, "budget"), at_least_zero(optimum, "optimum")
    g = gamma(horizon, arms, resources)
    learning = (math.sqrt(arms / amount) * value + math.sqrt(arms * value) + arms * math.sqrt(g)) * math.sqrt(g)
    return RefinedBound(
        learning,
        drift_rate(horizon, arms, variation[0]) * gamma(horizon, arms) ** (1 / 3),
        q_bar * resources * drift_rate(horizon, arms, variation[1]) * g ** (1 / 3),
        global_variation[0] + at_least_zero(q_bar, "q_bar") * global_variation[1],
    )


def repaired_refined_bound(
    horizon: int,
    arms: int,
    resources: int,
    budget: float,
    optimum: float,
    variation: tuple[float, float, float],
    pairwise_variation: tuple[float, float],
    q_bar: float,
) -> RefinedBound:
    r"""Bound the regret of the refined algorithm as corrected, up to a constant factor (docs/theory-paper.md).

    Holding back a share ε of the budget costs ε OPT, which the printed :math:`\bar q\, d` does not cover. In the
    corrected bound the drift of the costs contributes

    .. math:: \Bigl(\frac{\mathrm{OPT}}{B} + \frac{V_2^\Sigma}{b V_2}\Bigr) m^{1/3} V_2^{1/3} T^{2/3} \gamma^{1/3},

    and the W terms are pairwise.

    Args:
        horizon: The number T of rounds.
        arms: The number m of arms.
        resources: The number d of resources.
        budget: The smallest budget B, normalised to costs in [0, 1].
        optimum: The value OPT of LP-Dynamic, normalised to rewards in [0, 1].
        variation: The local variation :math:`(V_1, V_2, V_2^\Sigma)` (``v1``, ``v2`` and ``v2_sum`` of ``Variation``).
        pairwise_variation: The pairwise variation :math:`(W_1^{\mathrm{pair}}, W_2^{\mathrm{pair}})`.
        q_bar: The largest price of a single round, for any optimal prices.

    Returns:
        The terms of the bound, with a factor of 1 in front of each; the factor is not known.
    """
    v1, v2, v2_sum = variation
    printed = refined_regret_bound(horizon, arms, resources, budget, optimum, (v1, v2), pairwise_variation, q_bar)
    ratio = at_least_zero(v2_sum, "v2_sum") / v2 if v2 > 0 else 0.0
    price = (optimum + ratio * horizon) / above_zero(budget, "budget")
    drift = drift_rate(horizon, arms, v2) * gamma(horizon, arms, resources) ** (1 / 3)
    return printed._replace(cost_drift=price * drift)
