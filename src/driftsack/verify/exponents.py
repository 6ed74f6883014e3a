"""Fit exponents of regret, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.verify.statement import Rate

RESAMPLES: Final = 1_000


def fit_exponent(
    varied: str, expected: float, places: Sequence[float], samples: Sequence[Floats], rng: np.random.Generator
) -> Rate:
    """Fit log mean regret against the log of the varied quantity, with a bootstrap over the sample at each value."""
    x = np.log(np.asarray(places, dtype=np.float64))

    def slope(means: Floats) -> float:
        return float(np.polyfit(x, np.log(np.maximum(means, 1e-9)), 1)[0])

    means = np.array([sample.mean() for sample in samples])
    resampled = [rng.choice(sample, (RESAMPLES, sample.size)).mean(axis=1) for sample in samples]
    fits = [slope(row) for row in np.column_stack(resampled)]
    low, high = np.quantile(fits, [0.025, 0.975]).tolist()
    return Rate(varied, tuple(places), tuple(means.tolist()), slope(means), low, high, expected)


def exact_exponent(varied: str, expected: float, places: Sequence[float], values: Sequence[float]) -> Rate:
    """Fit the exponent of values without error.

    >>> exact_exponent("T", 0.5, [1.0, 100.0], [3.0, 30.0]).value
    0.5
    """
    slope = round(float(np.polyfit(np.log(places), np.log(values), 1)[0]), 9)
    return Rate(varied, tuple(places), tuple(values), slope, slope, slope, expected)
