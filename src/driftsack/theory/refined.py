r"""The refined version of the paper's last appendix: radii that shrink with the mean, a shrunken rate, and its bound.

The appendix states its results up to constants. Here each O(·) and each Θ(·) has the constant 1 unless another is
given; :math:`\gamma = \log(m d T^2)`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftsack.core.checks import above_zero, at_least_zero
from driftsack.theory.bounds import drift_rate


class RefinedBound(NamedTuple):
    """The last theorem, term by term, times the chosen constant."""

    learning: float  # (sqrt(m / B) OPT + sqrt(m OPT) + m sqrt(gamma)) sqrt(gamma)
    reward_drift: float  # m^(1/3) V1^(1/3) T^(2/3) log^(1/3)(m T^2)
    cost_drift: float  # q_bar d m^(1/3) V2^(1/3) T^(2/3) gamma^(1/3)
    budget_timing: float  # W1 + q_bar W2

    @property
    def total(self) -> float:
        """Their sum."""
        return sum(self)


def gamma(horizon: int, arms: int, resources: int = 1) -> float:
    r""":math:`\log(m d T^2)`."""
    return math.log(arms * resources) + 2 * math.log(horizon)


def refined_radius(mean: float, pulls: float, gamma: float) -> float:
    r""":math:`\mathrm{rad}(a, n) = \sqrt{\gamma a / n} + \gamma / n`.

    The confidence bounds are :math:`\hat\mu + 2\,\mathrm{rad}(\hat\mu, n + 1)` and the same with a minus for costs.

    >>> refined_radius(mean=0.25, pulls=100.0, gamma=4.0)
    0.14
    """
    return math.sqrt(gamma * mean / pulls) + gamma / pulls


def epsilon(horizon: int, arms: int, resources: int, budget: float, v2: float, constant: float = 1.0) -> float:
    r"""How much the rate is shrunk so that the budget lasts; at most 1.

    .. math:: \epsilon = \frac{\alpha_2 + \beta_2}{B}, \qquad \alpha_2 = \sqrt{\gamma m B} + m \gamma, \qquad
              \beta_2 = \sqrt{\gamma B} + m^{1/3} V_2^{1/3} T^{2/3} \gamma^{1/3} .

    :math:`\alpha_2` is for a stationary world (Lemma B.5 of Agrawal and Devanur), :math:`\beta_2` for one that moves.
    """
    amount = above_zero(budget, "budget")
    g = gamma(horizon, arms, resources)
    still = math.sqrt(g * arms * amount) + arms * g
    moving = math.sqrt(g * amount) + drift_rate(horizon, arms, v2) * g ** (1 / 3)
    return float(min(constant * (still + moving) / amount, 1.0))


def refined_regret_bound(
    horizon: int,
    arms: int,
    resources: int,
    budget: float,
    optimum: float,
    variation: tuple[float, float],
    global_variation: tuple[float, float],
    q_bar: float,
    constant: float = 1.0,
) -> RefinedBound:
    r"""The last theorem: with probability at least 1 - 1/T the regret is at most this, up to a constant.

    .. math:: \Bigl(\sqrt{m/B}\,\mathrm{OPT} + \sqrt{m\,\mathrm{OPT}} + m\sqrt\gamma\Bigr)\sqrt\gamma
              + m^{1/3} V_1^{1/3} T^{2/3} \log^{1/3}(mT^2)
              + \bar q\, d\, m^{1/3} V_2^{1/3} T^{2/3} \gamma^{1/3} + W_1 + \bar q W_2 ,

    if B is at least of the order of :math:`m^{1/3} V_2^{1/3} T^{2/3} \gamma^{1/3}` and of :math:`m \gamma`.
    ``constant`` is 1 by choice.
    """
    amount, value = above_zero(budget, "budget"), at_least_zero(optimum, "optimum")
    g = gamma(horizon, arms, resources)
    learning = (math.sqrt(arms / amount) * value + math.sqrt(arms * value) + arms * math.sqrt(g)) * math.sqrt(g)
    return RefinedBound(
        constant * learning,
        constant * drift_rate(horizon, arms, variation[0]) * gamma(horizon, arms) ** (1 / 3),
        constant * q_bar * resources * drift_rate(horizon, arms, variation[1]) * g ** (1 / 3),
        constant * (global_variation[0] + at_least_zero(q_bar, "q_bar") * global_variation[1]),
    )
