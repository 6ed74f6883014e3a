"""Define the checks of ``driftsack verify``: statements, cases, findings and verdicts.

A check is a function of an :class:`Effort`, a :class:`Case` and a factor. It must also reject *trivial* competitors: a
policy that never plays, plays uniformly at random, always plays one arm or does not pace, or an estimator or a solver
that returns 0. If one of them passes, the verdict is *vacuous at this horizon*: the check could not have failed.

The factor makes the statement false in a measured way: it multiplies the bound, the radius, the measure or the exponent
that the statement names (``Statement.scaled``). The **power** of a check is the largest factor below 1 with which the
check rejects: 0.97 means that a bound that is too small by 3% is noticed, 0.02 that only one that is too small by a
factor of 50 is. A check with a power below ``LEAST_POWER`` is *weak*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, NamedTuple, Protocol

import numpy as np

from driftsack.paper.judging import Verdict

HOLDS: Final = Verdict.HOLDS
FALSE_AS_PRINTED: Final = Verdict.FALSE_AS_PRINTED
PROOF_VOID: Final = Verdict.PROOF_VOID
CONSISTENT: Final = Verdict.CONSISTENT
UNDECIDED: Final = Verdict.UNDECIDED
WEAK: Final = Verdict.WEAK
VACUOUS: Final = Verdict.VACUOUS
FAILS: Final = Verdict.FAILS
ROUNDING: Final = 1e-7  # tolerance for solver errors in the LP values of a few rounds
SLACK: Final = 0.08  # tolerance of a fitted exponent for terms of lower order
LEAST_REACHED: Final = 0.1  # share of the large side that the small side must reach on some instance
LEAST_POWER: Final = 0.1  # a check that notices only larger faults is weak
LEAST_SIDE: Final = 1e-4  # smaller sides of an inequality are too near to the solvers' errors for a ratio
QUANTILES: Final = (0.0, 0.01, 0.25, 0.5)


class Case(Enum):
    """The subject of a check.

    Attributes:
        STATEMENT: The statement.
        TRIVIAL: The statement, for the trivial competitors; the check reports the one that comes nearest to passing.
    """

    STATEMENT = "statement"
    TRIVIAL = "trivial"


class Effort(NamedTuple):
    """The number of instances and trials to use, and the seed.

    Attributes:
        quick: Whether to use few of them, for a run of seconds instead of minutes.
        seed: The seed of all random generators.
    """

    quick: bool = False
    seed: int = 0

    def pick(self, quick: int, full: int) -> int:
        """Choose between the number of a quick run and that of a full run.

        Args:
            quick: The number in a quick run.
            full: The number in a full run.
        """
        return quick if self.quick else full

    def for_case(self, case: Case) -> Effort:
        """Reduce the effort of a search for the trivial competitor, which the first few instances decide.

        Args:
            case: The subject of the check.

        Returns:
            The effort, a quick one for the trivial competitor.
        """
        return self._replace(quick=True) if case is Case.TRIVIAL else self

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
        varied: The name of the varied quantity.
        places: Its values.
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
        """Distance of the expected exponent from the ends of the interval widened by ``SLACK``; negative if outside."""
        return min(self.high + SLACK - self.expected, self.expected - self.low + SLACK)

    def __str__(self) -> str:
        return f"{self.varied} {self.value:.2f} [{self.low:.2f}, {self.high:.2f}] (theory {self.expected:.2f})"


class Sides(NamedTuple):
    """The two sides of an inequality ``small <= large`` on one instance."""

    small: float
    large: float

    @property
    def margin(self) -> float:
        """``large - small``; negative if the inequality is violated."""
        return self.large - self.small


class Finding(NamedTuple):
    """The result of a check.

    Attributes:
        verdict: The verdict; ``FAILS`` if the check rejects what it was applied to.
        tried: The number of instances, trials or points.
        margin: The worst margin, that is, the distance from a violation, in the unit that ``note`` names.
        note: The meaning of the margin, and details.
        margins: The ``QUANTILES`` of all margins.
        rates: Fitted exponents.
        power: The largest factor on what the statement scales with which the check rejects.
    """

    verdict: Verdict
    tried: int
    margin: float
    note: str
    margins: tuple[float, ...] = ()
    rates: tuple[Rate, ...] = ()
    power: float = 0.0


class Check(Protocol):
    """A check of a statement."""

    def __call__(self, effort: Effort, case: Case, factor: float = 1.0) -> Finding:
        """Check the statement with ``factor`` on what it scales, or put the trivial competitors through it."""


class Statement(NamedTuple):
    """A statement of the paper with its check: one row of ``driftsack verify``.

    Attributes:
        name: Its name on the command line.
        source: Its place in the paper.
        says: The statement in short.
        expected: The verdict that docs/theory.md states.
        check: The check.
        competitor: The trivial competitors that the check must reject.
        scaled: What the factor of the check multiplies.
    """

    name: str
    source: str
    says: str
    expected: Verdict
    check: Check
    competitor: str
    scaled: str = "the bound"


def judge_margins(
    margins: Iterable[float],
    note: str,
    verdict: Verdict = HOLDS,
    tolerance: float = ROUNDING,
    power: float = 0.0,
) -> Finding:
    """Return ``verdict`` if no margin is below ``-tolerance``, else ``FAILS``."""
    values = np.fromiter(margins, dtype=np.float64)
    worst = float(values.min())
    quantiles = tuple(np.quantile(values, QUANTILES).tolist())
    return Finding(verdict if worst >= -tolerance else FAILS, values.size, worst, note, quantiles, power=power)


def critical_factor(rejects: Callable[[float], bool], steps: int = 14) -> float:
    """Bisect for the largest factor in [0, 1] with which a check rejects; 0 if it never does.

    >>> round(critical_factor(lambda factor: factor < 0.3), 3)
    0.3
    """
    low, high = 0.0, 1.0
    for _ in range(steps):
        middle = (low + high) / 2.0
        low, high = (middle, high) if rejects(middle) else (low, middle)
    return low


def judge_sides(found: Iterable[Sides], note: str, verdict: Verdict = HOLDS, factor: float = 1.0) -> Finding:
    """Return ``verdict`` if every inequality holds with ``factor`` on its large side, and one comes near to equality.

    Without the second condition a solver that returns 0 would pass. The power is the largest ratio of the sides.
    """
    pairs = list(found)
    reached = max((pair.small / pair.large for pair in pairs if pair.large > LEAST_SIDE), default=0.0)
    finding = judge_margins(
        (factor * pair.large - pair.small for pair in pairs), note, verdict, power=min(max(reached, 0.0), 1.0)
    )
    if finding.verdict is FAILS:
        return finding
    return finding._replace(verdict=verdict if reached >= LEAST_REACHED else FAILS)


def judge_closed_form(
    values: Iterable[tuple[float, float]],
    note: str,
    tolerance: float = ROUNDING,
    factor: float = 1.0,
    verdict: Verdict = HOLDS,
) -> Finding:
    """Return ``verdict`` if every value equals ``factor`` times its closed form, of which at least one is not 0.

    Args:
        values: Pairs of a value and its closed form.
        note: What the margin is.
        tolerance: The largest difference that counts as equality.
        factor: The factor on the closed form.
        verdict: The verdict if all are equal.
    """
    pairs = list(values)
    noticed = max(((value - tolerance) / form for value, form in pairs if form > tolerance), default=0.0)
    differences = (-abs(value - factor * form) for value, form in pairs)
    return judge_margins(differences, note, verdict, tolerance, power=min(max(noticed, 0.0), 1.0))


def judge_correction(
    printed_margin: float, repaired: Finding, note: str, verdict: Verdict = FALSE_AS_PRINTED
) -> Finding:
    """Return ``verdict`` if a counterexample violates the printed statement or step and the repaired one holds."""
    as_documented = printed_margin < -ROUNDING and repaired.verdict in (HOLDS, CONSISTENT)
    return repaired._replace(verdict=verdict if as_documented else FAILS, note=f"{note}; as corrected: {repaired.note}")
