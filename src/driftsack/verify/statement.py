"""A statement of the paper as a check that runs: what it says, what was measured, the verdict.

A check is a function of an :class:`Effort`. It also takes ``planted``: then it must test a false variant of the
statement and find it wanting. A check that cannot tell its planted variant from the truth would be vacuous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import numpy as np

HOLDS: Final = "holds"
CORRECTED: Final = "refuted as printed, holds as corrected"
CONSISTENT: Final = "consistent"
FAILS: Final = "fails"
ROUNDING: Final = 1e-7  # of LP values of a few rounds: what solvers may be off by
SLACK: Final = 0.08  # of an exponent: what terms of lower order may bend
QUANTILES: Final = (0.0, 0.01, 0.25, 0.5)


class Effort(NamedTuple):
    """How hard to try, and from which seed."""

    quick: bool = False
    seed: int = 0

    def of(self, quick: int, whole: int) -> int:
        """How many, in a quick run and in a whole one."""
        return quick if self.quick else whole

    def rng(self, salt: int) -> np.random.Generator:
        """Randomness of a check's own."""
        return np.random.default_rng([self.seed, salt])


class Rate(NamedTuple):
    """Regret against what was varied, the exponent fitted to it with its 95% interval, and the statement's exponent."""

    varied: str
    places: tuple[float, ...]
    means: tuple[float, ...]
    value: float
    low: float
    high: float
    expected: float

    def gap(self) -> float:
        """How far inside the interval, widened by ``SLACK``, the expected exponent lies; negative if outside."""
        return min(self.high + SLACK - self.expected, self.expected - self.low + SLACK)

    def __str__(self) -> str:
        return f"{self.varied} {self.value:.2f} [{self.low:.2f}, {self.high:.2f}] (theory {self.expected:.2f})"


class Finding(NamedTuple):
    """What a check found."""

    verdict: str
    tried: int  # instances, trials or points
    margin: float  # the worst: how far the statement was from being broken, in the unit that ``note`` says
    note: str
    margins: tuple[float, ...] = ()  # of all that were tried: their ``QUANTILES``
    rates: tuple[Rate, ...] = ()


class Statement(NamedTuple):
    """A row of ``driftsack verify``."""

    name: str
    source: str  # where in the paper
    says: str
    expected: str  # the verdict that docs/theory.md states
    check: Callable[[Effort, bool], Finding]


def judged(margins: Iterable[float], note: str, verdict: str = HOLDS, tolerance: float = ROUNDING) -> Finding:
    """``verdict`` if no margin is below zero but for ``tolerance``."""
    found = np.fromiter(margins, dtype=np.float64)
    worst = float(found.min())
    spread = tuple(np.quantile(found, QUANTILES).tolist())
    return Finding(verdict if worst >= -tolerance else FAILS, found.size, worst, note, spread)


def corrected(printed: float, repaired: Finding, note: str) -> Finding:
    """Refuted as printed by a counterexample whose margin is below zero, and the repaired statement holds."""
    right = printed < -ROUNDING and repaired.verdict == HOLDS
    words = f"{note}; as corrected: {repaired.note}"
    return repaired._replace(verdict=CORRECTED if right else FAILS, note=words)
