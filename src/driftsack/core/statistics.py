"""The standard error of a mean."""

from __future__ import annotations

import numpy as np

from driftsack.core.arrays import Floats, Ints


def standard_error(values: Floats | Ints) -> float:
    """Estimate the standard error of the mean of independent values.

    Args:
        values: (n,) the values.

    Returns:
        The standard error; 0 for a single value, whose spread is unknown.

    >>> standard_error(np.array([1.0, 3.0]))
    1.0
    """
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
