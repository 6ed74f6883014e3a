"""Euclidean projections onto convex sets: kernels that replace a point by the nearest point of a set, in place."""

from __future__ import annotations

import math
from typing import Final

from driftsack.core.arrays import Floats
from driftsack.numerics.compiled import kernel

MAX_PASSES: Final = 200  # far more safeguarded Newton steps than a capped simplex needs


@kernel
def onto_capped_orthant(point: Floats, cap: float) -> None:
    r"""Project onto :math:`\{q \ge 0, \sum_i q_i \le \mathrm{cap}\}`.

    .. math:: \arg\min_{q \ge 0,\, \|q\|_1 \le \mathrm{cap}} \|q - \mathrm{point}\|_2

    Clip at zero. While the sum is still too large, subtract the same amount from every positive entry and clip again
    (Michelot 1986). This takes at most n passes of O(n).

    Args:
        point: (n,) the point to project, overwritten.
        cap: The maximum sum of the entries.

    >>> import numpy as np
    >>> q = np.array([0.9, -0.2, 0.4])
    >>> onto_capped_orthant(q, 1.0)
    >>> q.round(12).tolist()
    [0.75, 0.0, 0.25]
    """
    # Clip at zero.
    total = 0.0
    for i in range(point.size):
        point[i] = max(point[i], 0.0)
        total += point[i]
    # Spread the excess evenly over the positive entries until the sum fits.
    while total > cap:
        active = 0
        for i in range(point.size):
            active += point[i] > 0.0
        excess, total_before = (total - cap) / active, total
        total = 0.0
        for i in range(point.size):
            point[i] = max(point[i] - excess, 0.0) if point[i] > 0.0 else 0.0
            total += point[i]
        if total >= total_before:
            break  # subtracting the excess changes no entry in floating point


@kernel
def onto_box(point: Floats, low: Floats, high: Floats) -> None:
    r"""Project onto :math:`\{x : l \le x \le u\}`.

    .. math:: \arg\min_{l \le x \le u} \|x - \mathrm{point}\|_2 = \min(\max(\mathrm{point}, l), u)

    Args:
        point: (n,) the point to project, overwritten.
        low: (n,) lower bounds l.
        high: (n,) upper bounds u.

    >>> import numpy as np
    >>> x = np.array([-1.0, 0.5, 9.0])
    >>> onto_box(x, np.zeros(3), np.ones(3))
    >>> x.tolist()
    [0.0, 0.5, 1.0]
    """
    for i in range(point.size):
        point[i] = min(max(point[i], low[i]), high[i])


@kernel
def onto_ball(point: Floats, centre: Floats, radius: float) -> None:
    r"""Project onto the Euclidean ball :math:`\{x : \|x - c\|_2 \le r\}`.

    .. math:: \arg\min_{\|x - c\|_2 \le r} \|x - p\|_2 = c + (p - c) \min(1, r / \|p - c\|_2)

    Args:
        point: (n,) the point p to project, overwritten.
        centre: (n,) the centre c.
        radius: The radius r.

    >>> import numpy as np
    >>> x = np.array([3.0, 4.0])
    >>> onto_ball(x, np.zeros(2), 1.0)
    >>> x.round(12).tolist()
    [0.6, 0.8]
    """
    largest = 0.0  # the largest deviation is factored out before squaring to avoid overflow and underflow
    for i in range(point.size):
        largest = max(largest, abs(point[i] - centre[i]))
    if largest == 0.0:
        return
    square = 0.0
    for i in range(point.size):
        step = (point[i] - centre[i]) / largest
        square += step * step
    distance = math.sqrt(square)  # relative to ``largest``
    if distance > radius / largest:
        for i in range(point.size):
            point[i] = centre[i] + (point[i] - centre[i]) / largest / distance * radius


@kernel
def onto_simplex(point: Floats, total: float) -> None:
    r"""Project onto :math:`\{x \ge 0, \sum_i x_i = \mathrm{total}\}`.

    .. math:: \arg\min_{x \ge 0,\, 1^\top x = s} \|x - p\|_2 = \max(p - \tau, 0), \quad
              \textstyle\sum_i \max(p_i - \tau, 0) = s

    Compute :math:`\tau` from all entries, drop the entries at or below it, and repeat until none is dropped
    (Michelot 1986).

    Args:
        point: (n,) the point p to project, overwritten.
        total: The sum s of the entries.

    >>> import numpy as np
    >>> x = np.array([0.9, -0.2, 0.5])
    >>> onto_simplex(x, 1.0)
    >>> x.round(12).tolist()
    [0.7, 0.0, 0.3]
    """
    highest = point[0]  # entries are measured relative to the largest one, which avoids cancellation
    for i in range(point.size):
        highest = max(highest, point[i])
    # Active-set iteration for tau: the mean excess of the entries above the previous tau.
    tau, active_before = -math.inf, point.size + 1
    while True:
        above, active = 0.0, 0
        for i in range(point.size):
            if point[i] - highest > tau:
                above += point[i] - highest
                active += 1
        if active == 0 or active >= active_before:
            break
        tau, active_before = (above - total) / active, active
    for i in range(point.size):
        point[i] = max(point[i] - highest - tau, 0.0)


@kernel
def onto_capped_simplex(point: Floats, caps: Floats, total: float) -> None:
    r"""Project onto :math:`\{0 \le x \le c, \sum_i x_i = \mathrm{total}\}`; the caps must sum to at least the total.

    .. math:: \arg\min_{0 \le x \le c,\, 1^\top x = s} \|x - p\|_2 = \min(\max(p - \tau, 0), c)

    The sum is a decreasing, piecewise linear function of :math:`\tau`. A Newton step is exact on each piece; where it
    would leave the bracket, the bracket is bisected instead. A pass is O(n).

    Args:
        point: (n,) the point p to project, overwritten.
        caps: (n,) upper bounds c of the entries.
        total: The sum s of the entries.

    >>> import numpy as np
    >>> x = np.array([2.0, 0.5, 0.0])
    >>> onto_capped_simplex(x, np.array([0.5, 1.0, 1.0]), 1.0)
    >>> x.round(12).tolist()
    [0.5, 0.5, 0.0]
    """
    # Bracket tau: all entries are capped at the lower end, and all are zero at the upper end.
    low, high = math.inf, -math.inf
    for i in range(point.size):
        low, high = min(low, point[i] - caps[i]), max(high, point[i])
    shift = high  # entries are measured relative to the largest one, which avoids cancellation
    low, high = low - shift, 0.0
    tau = low
    for _ in range(MAX_PASSES):
        # Excess of the sum at tau, and the slope: the number of entries strictly between their bounds.
        excess, free = -total, 0
        for i in range(point.size):
            entry = point[i] - shift - tau
            excess += min(max(entry, 0.0), caps[i])
            free += 0.0 < entry < caps[i]
        if excess >= 0.0:
            low = tau
        if excess <= 0.0:
            high = tau
        if excess == 0.0:
            break
        # A Newton step, or a bisection if it leaves the bracket.
        newton = tau + excess / free if free > 0 else low - 1.0
        candidate = newton if low < newton < high else 0.5 * (low + high)
        if candidate == tau or candidate <= low or candidate >= high:
            break
        tau = candidate
    for i in range(point.size):
        point[i] = min(max(point[i] - shift - tau, 0.0), caps[i])
