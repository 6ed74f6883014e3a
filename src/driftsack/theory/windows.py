r"""Confidence radii and window lengths of the paper's section 3."""

from __future__ import annotations

import math

from driftsack.core.checks import at_least_zero, pair, whole


def log_term(horizon: int, arms: int, resources: int = 1) -> float:
    r"""Compute :math:`\log(12 m d T^3)`, the logarithm in the paper's radii, windows and bounds.

    Args:
        horizon: The number T of rounds.
        arms: The number m of arms.
        resources: The number d of resources for the term of the costs; 1 for the term of the rewards.
    """
    m, d = whole(arms, "arms", at_least=1), whole(resources, "resources", at_least=1)
    return math.log(12 * m * d) + 3 * math.log(whole(horizon, "horizon", at_least=1))


def radius_constant(horizon: int, arms: int, resources: int = 1) -> float:
    r"""Compute the constant R of the confidence radius of Algorithm 1.

    .. math:: \frac{R}{\sqrt{n + 1}} = \sqrt{\frac{2 \log(12 m d T^3)}{n + 1}}

    for an arm that was pulled n times within the window.

    Args:
        horizon: The number T of rounds.
        arms: The number m of arms.
        resources: The number d of resources for the radius of the costs; 1 for the radius of the rewards.

    >>> round(radius_constant(horizon=10_000, arms=2), 3)
    7.85
    """
    return math.sqrt(2.0 * log_term(horizon, arms, resources))


def window(horizon: int, arms: int, variation: float, resources: int = 1) -> int:
    r"""Compute the window length for a variation budget (Theorem 1).

    .. math:: w = \min\{ \lceil m^{1/3} V^{-2/3} T^{2/3} \log^{1/3}(12 m d T^3) \rceil, T \}

    Args:
        horizon: The number T of rounds.
        arms: The number m of arms.
        variation: The variation budget V: :math:`V_1` for the rewards' window, :math:`V_2` for the costs'.
        resources: The number d of resources for the costs' window; 1 for the rewards'.

    Returns:
        The window w in rounds; T if the variation is 0.

    >>> window(horizon=10_000, arms=2, variation=0.5)
    2911
    """
    drift = at_least_zero(variation, "variation")
    whole(horizon, "horizon", at_least=1)
    if drift == 0:
        return horizon
    log = log_term(horizon, arms, resources)
    length = math.exp((math.log(arms * log) + 2 * (math.log(horizon) - math.log(drift))) / 3)
    return min(math.ceil(length - 1e-9), horizon)


def windows(horizon: int, arms: int, resources: int, variation: tuple[float, float]) -> tuple[int, int]:
    """Compute both window lengths of Algorithm 1 from the variation budgets (Theorem 1).

    Args:
        horizon: The number T of rounds.
        arms: The number m of arms.
        resources: The number d of resources.
        variation: The variation budgets (V1, V2) of rewards and costs.

    Returns:
        The windows (w1, w2) of rewards and costs, in rounds.

    >>> windows(horizon=10_000, arms=2, resources=2, variation=(0.5, 0.0))
    (2911, 10000)
    """
    first, second = pair(variation, "variation")
    return window(horizon, arms, first), window(horizon, arms, second, resources)
