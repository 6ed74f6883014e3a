r"""Ten million updates of the ridge regression, after which its covariance must be accurate and positive definite.

The contexts are ill-conditioned on purpose: two features are almost equal, and one is nonzero in one round of a
thousand. Without forgetting, the covariance is compared with the inverse of the summed precision, computed in one step.
With forgetting there is no such reference; at every check the covariance must be positive definite and no larger than
the prior. The competitor is the usual recursion, which forgets in all directions,
:math:`P \leftarrow (P - v v^\top / (\gamma + a)) / \gamma`; its variance winds up in the direction that is rarely seen.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.seeding import generator
from driftsack.numerics.compiled import kernel
from driftsack.policies.parts.linear_bank import GAMMAS
from driftsack.policies.parts.ridge import multiply, observe_direction
from lab.speed.timing import Progress

SIZE: Final = 9
LOOKS: Final = 20
NEARLY: Final = 1e-3  # difference of two features
SELDOM: Final = 1e-3  # share of rounds in which the last feature is nonzero
WOUND_UP: Final = 1.5  # largest allowed eigenvalue; that of the prior is 1


class RidgeRow(NamedTuple):
    """A figure that must be at most its bar; that of a competitor must be above it."""

    figure: str
    seen: float
    bar: float
    competitor: bool


@kernel
def observe_rounds(
    covariance: Floats, precision: Floats, gamma: float, plain: bool, rounds: int, rng: Generator, scratch: Floats
) -> None:
    """Observe some rounds; ``precision`` sums x x', ``scratch`` is (2, p), ``plain`` forgets in all directions."""
    x, product, size = scratch[0], scratch[1], covariance.shape[0]
    for _ in range(rounds):
        for f in range(size - 1):
            x[f] = rng.standard_normal() / 3.0
        x[1] = x[0] + NEARLY * x[1]
        if rng.random() >= SELDOM:
            x[size - 2] = 0.0
        x[size - 1] = 1.0
        variance = multiply(covariance, x, product)
        if not plain:
            observe_direction(covariance, product, variance, gamma)
        for f in range(size):
            for e in range(size):
                precision[f, e] += x[f] * x[e]
                if plain:
                    covariance[f, e] = (covariance[f, e] - product[f] * product[e] / (gamma + variance)) / gamma


def ridge_rows(quick: bool, progress: Progress) -> list[RidgeRow]:
    """Measure the accuracy of the covariance after ten million rounds, or a hundredth of them if ``quick``."""
    rounds, forgetting = 100_000 if quick else 10_000_000, GAMMAS[-1]
    rows = []
    for gamma, plain in ((1.0, False), (forgetting, False), (forgetting, True)):
        progress(f"{rounds:,} rounds of ridge regression, forgetting {gamma:g}")
        error, bad = after_rounds(gamma, plain, rounds)
        title = f"ridge, {rounds:.0e} rounds, forgetting {gamma:g}"
        if gamma == 1.0:
            rows.append(RidgeRow(f"{title}: relative error of variances", error, 1e-6, False))
        how = " in all directions" if plain else ""
        rows.append(RidgeRow(f"{title}{how}: checks at which the covariance is invalid", bad, 0.0, plain))
    return rows


def after_rounds(gamma: float, plain: bool, rounds: int) -> tuple[float, float]:
    """The error of variances after all rounds, and the share of checks at which the covariance is invalid."""
    covariance, precision, rng = np.eye(SIZE), np.eye(SIZE), generator(0)
    bad = 0
    for _ in range(LOOKS):
        observe_rounds(covariance, precision, gamma, plain, rounds // LOOKS, rng, np.zeros((2, SIZE)))
        if not np.isfinite(covariance).all() or not np.array_equal(covariance, covariance.T):
            return np.inf, 1.0
        values = np.linalg.eigvalsh(covariance)
        bad += bool(values[0] <= 0.0 or values[-1] > WOUND_UP)
    contexts = generator(1).standard_normal((100, SIZE))
    exact = np.einsum("rf,rf->r", contexts, np.linalg.solve(precision, contexts.T).T)
    ours = np.einsum("rf,fe,re->r", contexts, covariance, contexts)
    return float(np.abs(ours / exact - 1.0).max()), bad / LOOKS
