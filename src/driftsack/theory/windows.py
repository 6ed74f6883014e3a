r"""Confidence radii and window lengths of the paper's section 3."""

from __future__ import annotations

import math

from driftsack.core.checks import at_least_zero, pair, whole


def log_term(horizon: int, arms: int, resources: int = 1) -> float:
    r""":math:`\log(12 m d T^3)`: with d = 1 the term of the rewards, with d resources that of the costs."""
    m, d = whole(arms, "arms", at_least=1), whole(resources, "resources", at_least=1)
    return math.log(12 * m * d) + 3 * math.log(whole(horizon, "horizon", at_least=1))


def radius_constant(horizon: int, arms: int, resources: int = 1) -> float:
    r"""The constant R of the radius :math:`R / \sqrt{n + 1} = \sqrt{2 \log(12 m d T^3) / (n + 1)}` (Algorithm 1).

    >>> round(radius_constant(horizon=10_000, arms=2), 3)
    7.85
    """
    return math.sqrt(2.0 * log_term(horizon, arms, resources))


def window(horizon: int, arms: int, variation: float, resources: int = 1) -> int:
    r"""The window for a variation budget V (Theorem 1); T when nothing varies.

    .. math:: w = \min\{ \lceil m^{1/3} V^{-2/3} T^{2/3} \log^{1/3}(12 m d T^3) \rceil, T \}

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
    """The windows (w1, w2) for rewards and costs from (V1, V2)."""
    first, second = pair(variation, "variation")
    return window(horizon, arms, first), window(horizon, arms, second, resources)
