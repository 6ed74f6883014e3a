r"""Ridge regression with forgetting, by exact rank-one updates that keep the covariance positive definite.

With :math:`v = P x` and :math:`a = x^\top P x`, an observation y with forgetting :math:`\gamma` changes

.. math:: a' = \frac{a}{\gamma + a}, \qquad P \leftarrow P - \frac{a - a'}{a^2}\, v v^\top, \qquad
          \theta \leftarrow \theta + \frac{v}{\gamma + a}\,(y - \theta^\top x).

With :math:`\gamma = 1` this is recursive least squares. With :math:`\gamma < 1` information is forgotten only in the
observed direction (cf. Kulhavy 1987): the variance :math:`a` at recurring contexts tends to
:math:`1 - \gamma`, and rare directions do not wind up. Since :math:`a' > 0`, P stays positive
definite, and the update is exactly symmetric. Cost: :math:`O(p^2)` for p coefficients.
"""

from __future__ import annotations

import math
from typing import Final

from driftsack.core.arrays import Floats
from driftsack.numerics.compiled import kernel

SMALLEST: Final = 1e-12  # smallest variance


@kernel
def combine_rows(table: Floats, x: Floats, first: int, last: int, total: Floats) -> None:
    """Write the sum of rows of a table, weighted by ``x``, to columns ``first`` to ``last`` - 1 of ``total``.

    Four rows per pass, for instruction-level parallelism.
    """
    for c in range(first, last):
        total[c] = 0.0
    whole = x.size - x.size % 4
    for f in range(0, whole, 4):
        one, two, three, four = x[f], x[f + 1], x[f + 2], x[f + 3]
        for c in range(first, last):
            pair = table[f, c] * one + table[f + 1, c] * two
            total[c] += pair + (table[f + 2, c] * three + table[f + 3, c] * four)
    for f in range(whole, x.size):
        for c in range(first, last):
            total[c] += table[f, c] * x[f]


@kernel
def multiply(covariance: Floats, x: Floats, product: Floats) -> float:
    """Write ``product`` = P x and return x P x."""
    combine_rows(covariance, x, 0, x.size, product)
    total = 0.0
    for e in range(x.size):
        total += x[e] * product[e]
    return max(total, SMALLEST)


@kernel
def observe_direction(covariance: Floats, product: Floats, variance: float, gamma: float) -> None:
    """Update P with an observation, given the ``product`` P x and ``variance`` x P x of :func:`multiply`."""
    after = variance / (gamma + variance)
    size, root = product.size, math.sqrt(abs(variance - after)) / variance
    sign = 1.0 if variance >= after else -1.0
    for f in range(size):
        scaled = sign * (root * product[f])
        for e in range(size):
            covariance[f, e] -= scaled * (root * product[e])  # bit-identical to the update of (e, f)
