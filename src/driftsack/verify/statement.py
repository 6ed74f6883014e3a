"""A statement of the paper as a check that runs: what it says, what was measured, and the verdict.

A check is a function of an :class:`Effort`. It also takes ``planted``: if true, it tests a false variant of the
statement, which it must reject. A check that cannot tell its planted variant from the statement would prove nothing,
and neither would a check that is passed by doing nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import numpy as np

HOLDS: Final = "holds"
CORRECTED: Final = "refuted as printed, holds as corrected"
CONSISTENT: Final = "consistent"
FAILS: Final = "fails"
ROUNDING: Final = 1e-7  # tolerance for solver errors in the LP values of a few rounds
SLACK: Final = 0.08  # tolerance of a fitted exponent for terms of lower order
QUANTILES: Final = (0.0, 0.01, 0.25, 0.5)


class Effort(NamedTuple):
    """How many instances and trials to use, and the seed.

    Attributes:
        quick: Whether to use few of them: seconds instead of minutes.
        seed: Seed of all randomness.
    """

    quick: bool = False
    seed: int = 0

    def pick(self, quick: int, full: int) -> int:
        """Choose between the number of a quick run and that of a full run.

        Args:
            quick: The number in a quick run.
            full: The number in a full run.

        Returns:
            One of the two.
        """
        return quick if self.quick else full

    def rng(self, salt: int) -> np.random.Generator:
        """Make a random generator for one check.

        Args:
            salt: A number that no other check uses.

        Returns:
            A generator that depends on the seed and the salt.
        """
        return np.random.default_rng([self.seed, salt])


class Rate(NamedTuple):
    """A fitted exponent of regret.

    Attributes:
        varied: What was varied.
        places: The values of it.
        means: The mean regret at each value.
        value: The fitted exponent.
        low: Lower end of its 95% interval.
        high: Upper end of its 95% interval.
        expected: The exponent of the statement.
    """

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
    """The result of a check.

    Attributes:
        verdict: ``HOLDS``, ``CORRECTED``, ``CONSISTENT`` or ``FAILS``.
        tried: How many instances, trials or points were tried.
        margin: The worst margin: how far the statement was from being violated, in the unit that ``note`` names.
        note: What the margin measures, and details.
        margins: The ``QUANTILES`` of the margins of everything that was tried.
        rates: Fitted exponents.
    """

    verdict: str
    tried: int
    margin: float
    note: str
    margins: tuple[float, ...] = ()
    rates: tuple[Rate, ...] = ()


class Statement(NamedTuple):
    """A statement of the paper with its check: one row of ``driftsack verify``.

    Attributes:
        name: Its name on the command line.
        source: Where it is in the paper.
        says: What it says, in short.
        expected: The verdict that docs/theory.md states.
        check: The check, a function of the effort and of whether to test the planted variant.
    """

    name: str
    source: str
    says: str
    expected: str
    check: Callable[[Effort, bool], Finding]


def judge_margins(margins: Iterable[float], note: str, verdict: str = HOLDS, tolerance: float = ROUNDING) -> Finding:
    """Return ``verdict`` if no margin is below ``-tolerance``, else ``FAILS``."""
    values = np.fromiter(margins, dtype=np.float64)
    worst = float(values.min())
    quantiles = tuple(np.quantile(values, QUANTILES).tolist())
    return Finding(verdict if worst >= -tolerance else FAILS, values.size, worst, note, quantiles)


def judge_correction(printed_margin: float, repaired: Finding, note: str) -> Finding:
    """Return ``CORRECTED`` if a counterexample violates the printed statement and the repaired one holds."""
    refuted_and_repaired = printed_margin < -ROUNDING and repaired.verdict == HOLDS
    verdict = CORRECTED if refuted_and_repaired else FAILS
    return repaired._replace(verdict=verdict, note=f"{note}; as corrected: {repaired.note}")
