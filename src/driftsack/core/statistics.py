"""The standard error of a mean."""

from __future__ import annotations

import numpy as np

from driftsack.core.arrays import Floats, Ints


def standard_error(values: Floats | Ints) -> float:
    """Estimate the standard error of the mean of independent values; 0 for a single value.

    >>> standard_error(np.array([1.0, 3.0]))
    1.0
    """
    return float(standard_errors(values))


def standard_errors(values: Floats | Ints) -> Floats:
    """Estimate the standard errors of the means over the first axis; 0 for a single value.

    >>> standard_errors(np.array([[1.0, 2.0], [3.0, 2.0]]))
    array([1., 0.])
    """
    if len(values) == 1:
        return np.zeros(values.shape[1:])
    errors: Floats = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return errors
