"""Euclidean projections, in place, without allocation: after the call the point is the nearest one of the set."""

from __future__ import annotations

import math
from typing import Final

from driftsack.core.arrays import Floats
from driftsack.numerics.compiled import kernel

PASSES: Final = 200  # far more than the safeguarded Newton steps of a capped simplex ever take


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
        excess, before = (total - cap) / active, total
        total = 0.0
        for i in range(point.size):
            point[i] = max(point[i] - excess, 0.0) if point[i] > 0.0 else 0.0
            total += point[i]
        if total >= before:
            break  # the excess is below the entries' last digit


@kernel
def onto_box(point: Floats, low: Floats, high: Floats) -> None:
    r"""Project onto :math:`\{x : l \le x \le u\}`.

    .. math:: \arg\min_{l \le x \le u} \|x - \mathrm{point}\|_2 = \min(\max(\mathrm{point}, l), u)

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

    >>> import numpy as np
    >>> x = np.array([3.0, 4.0])
    >>> onto_ball(x, np.zeros(2), 1.0)
    >>> x.round(12).tolist()
    [0.6, 0.8]
    """
    largest = 0.0  # taken out before squaring, so that nothing over- or underflows
    for i in range(point.size):
        largest = max(largest, abs(point[i] - centre[i]))
    if largest == 0.0:
        return
    square = 0.0
    for i in range(point.size):
        square += ((point[i] - centre[i]) / largest) ** 2
    distance = math.sqrt(square)  # in units of ``largest``
    if distance > radius / largest:
        for i in range(point.size):
            point[i] = centre[i] + (point[i] - centre[i]) / largest / distance * radius


@kernel
def onto_simplex(point: Floats, total: float) -> None:
    r"""Project onto :math:`\{x \ge 0, \sum_i x_i = \mathrm{total}\}`.

    .. math:: \arg\min_{x \ge 0,\, 1^\top x = s} \|x - p\|_2 = \max(p - \tau, 0), \quad
              \textstyle\sum_i \max(p_i - \tau, 0) = s

    Take :math:`\tau` for all entries, drop those at or below it, repeat until none is dropped (Michelot 1986).

    >>> import numpy as np
    >>> x = np.array([0.9, -0.2, 0.5])
    >>> onto_simplex(x, 1.0)
    >>> x.round(12).tolist()
    [0.7, 0.0, 0.3]
    """
    highest = point[0]  # entries are counted from the highest, so that large ones lose no digits
    for i in range(point.size):
        highest = max(highest, point[i])
    tau, before = -math.inf, point.size + 1
    while True:
        above, active = 0.0, 0
        for i in range(point.size):
            if point[i] - highest > tau:
                above += point[i] - highest
                active += 1
        if active == 0 or active >= before:
            break
        tau, before = (above - total) / active, active
    for i in range(point.size):
        point[i] = max(point[i] - highest - tau, 0.0)


@kernel
def onto_capped_simplex(point: Floats, caps: Floats, total: float) -> None:
    r"""Project onto :math:`\{0 \le x \le c, \sum_i x_i = \mathrm{total}\}`; the caps must add up to at least the total.

    .. math:: \arg\min_{0 \le x \le c,\, 1^\top x = s} \|x - p\|_2 = \min(\max(p - \tau, 0), c)

    The sum falls with :math:`\tau`, in straight pieces. Newton's step is exact on a piece; where it would leave the
    bracket, the bracket is halved. A pass is O(n).

    >>> import numpy as np
    >>> x = np.array([2.0, 0.5, 0.0])
    >>> onto_capped_simplex(x, np.array([0.5, 1.0, 1.0]), 1.0)
    >>> x.round(12).tolist()
    [0.5, 0.5, 0.0]
    """
    low, high = math.inf, -math.inf
    for i in range(point.size):
        low, high = min(low, point[i] - caps[i]), max(high, point[i])
    shift = high  # counted from the highest entry, so that large ones lose no digits
    low, high = low - shift, 0.0
    tau = low
    for _ in range(PASSES):
        excess, free = -total, 0
        for i in range(point.size):
            part = point[i] - shift - tau
            excess += min(max(part, 0.0), caps[i])
            free += 0.0 < part < caps[i]
        if excess >= 0.0:
            low = tau
        if excess <= 0.0:
            high = tau
        if excess == 0.0:
            break
        step = tau + excess / free if free > 0 else low - 1.0
        after = step if low < step < high else 0.5 * (low + high)
        if after == tau or after <= low or after >= high:
            break
        tau = after
    for i in range(point.size):
        point[i] = min(max(point[i] - shift - tau, 0.0), caps[i])
