"""Powers with the same bits in both forms of a kernel.

For ``x ** 2`` and other integer exponents Numba multiplies, and Python calls the C library, whose result differs in the
last bit now and then (for one square in a thousand). Kernels use these functions instead of ``**``.
"""

from __future__ import annotations

import math
from typing import Final

from driftsack.numerics.compiled import kernel

MOST_MULTIPLIED: Final = 0x10000  # larger exponents are left to the C library


@kernel
def squared(number: float) -> float:
    """Return a number multiplied by itself."""
    return number * number


@kernel
def power(base: float, exponent: int) -> float:
    """Return a power with an exponent of 0 or more, by repeated squaring.

    >>> power(0.5, 3)
    0.125
    """
    if exponent > MOST_MULTIPLIED:
        return math.pow(base, float(exponent))
    result, left, factor = 1.0, exponent, base
    while left > 0:
        if left & 1:
            result *= factor
        left >>= 1
        factor *= factor
    return result
