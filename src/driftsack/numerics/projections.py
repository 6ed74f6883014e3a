"""Euclidean projections, in place, without allocation."""

from __future__ import annotations

from driftsack.core.checks import Floats
from driftsack.numerics.compiled import kernel


@kernel
def onto_capped_orthant(point: Floats, cap: float) -> None:
    r"""Project onto :math:`\{q \ge 0, \sum_i q_i \le \mathrm{cap}\}`.

    .. math:: \arg\min_{q \ge 0,\, \|q\|_1 \le \mathrm{cap}} \|q - \mathrm{point}\|_2

    Clip at zero; if the sum is still too large, take the same amount from every positive entry until it is not
    (Michelot 1986): at most n rounds of O(n).

    >>> import numpy as np
    >>> q = np.array([0.9, -0.2, 0.4])
    >>> onto_capped_orthant(q, 1.0)
    >>> q.round(12).tolist()
    [0.75, 0.0, 0.25]
    """
    total = 0.0
    for i in range(point.size):
        point[i] = max(point[i], 0.0)
        total += point[i]
    while total > cap:
        active = 0
        for i in range(point.size):
            active += point[i] > 0.0
        excess = (total - cap) / active
        if excess <= 1e-16 * cap:
            break
        total = 0.0
        for i in range(point.size):
            point[i] = max(point[i] - excess, 0.0) if point[i] > 0.0 else 0.0
            total += point[i]
