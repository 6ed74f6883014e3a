r"""Tools for judging claims: readings with standard errors, verdicts, and lookups in the table of evidence.

A claim about a number x with standard error s and a bound c *holds* if :math:`x - 2s > c`, *fails* if
:math:`x + 2s < c`, and is *undecided* in between.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from driftsack.core.text import number
from driftsack.paper.experiments import BEST


class Verdict(StrEnum):
    """The verdict on a claim or a statement, as used in ``reproduce``, ``verify`` and the documentation."""

    HOLDS = "holds"  # no violation was found
    # A counterexample violates the printed form; the corrected form, if there is one, holds.
    FALSE_AS_PRINTED = "false as printed"
    # A step of the printed proof is false, but the conclusion holds by another proof.
    PROOF_VOID = "proof void, conclusion true"
    # Nothing violates it, but only a fault by more than a factor of ten would have been noticed.
    WEAK = "weak"
    CONSISTENT = "consistent"  # measurements agree with it; no finite experiment can decide an asymptotic statement
    UNDECIDED = "undecided"  # the errors of the measurement are too large to decide
    # A trivial competitor passes the same check, so the check decides nothing at this horizon.
    VACUOUS = "vacuous at this horizon"
    FAILS = "fails"  # the measurement contradicts the claim, or the check found a violation that is not documented


class Reading(NamedTuple):
    """A number and its standard error."""

    mean: float  # the number
    se: float = 0.0  # its standard error, 0 for an exact number

    def minus(self, other: Reading) -> Reading:
        """The difference of two independent readings."""
        return Reading(self.mean - other.mean, math.hypot(self.se, other.se))

    def times(self, factor: float) -> Reading:
        """The reading multiplied by a factor."""
        return Reading(self.mean * factor, self.se * abs(factor))

    def __str__(self) -> str:
        return number(self.mean) + (f" ± {number(self.se, digits=2)}" if self.se else "")


class JudgedClaim(NamedTuple):
    """A claim of the paper with its verdict."""

    name: str  # a short identifier
    sentence: str  # the claim as a sentence
    verdict: Verdict  # whether it holds
    # The numbers behind the verdict by name; measured ones are readings, exact ones plain numbers.
    numbers: Mapping[str, Reading | float]
    setting: str | None = None  # the setting in which it was judged, or None for a claim that does not depend on it

    def numbers_text(self) -> str:
        """The numbers in one line.

        >>> JudgedClaim("x", "x > 3.", Verdict.HOLDS, {"x": Reading(1234.5, 0.5), "bound": 3.0}).numbers_text()
        'x 1,234 ± 0.5, bound 3'
        """
        parts = {name: Reading(value) if isinstance(value, float) else value for name, value in self.numbers.items()}
        return ", ".join(f"{name} {reading}" for name, reading in parts.items())

    def to_dict(self) -> dict[str, Any]:
        """The claim as plain data; the standard error of ``"x"`` is ``"x ±"``, and no setting is ``"both"``."""
        numbers: dict[str, float] = {}
        for name, value in self.numbers.items():
            numbers |= {name: value.mean, f"{name} ±": value.se} if isinstance(value, Reading) else {name: value}
        return {
            "name": self.name,
            "sentence": self.sentence,
            "verdict": str(self.verdict),
            "numbers": numbers,
            "setting": self.setting or "both",
        }


class Evidence:
    """Lookups in the table of evidence that :func:`driftsack.paper.experiments.evidence` returns."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame

    def series(self, example: int, policy: str, quantity: str) -> tuple[list[float], list[Reading]]:
        """The readings of a quantity along x, in ascending order."""
        wanted = (pl.col("example") == example) & (pl.col("policy") == policy) & (pl.col("quantity") == quantity)
        rows = self.frame.filter(wanted).sort("x", "parameter")
        return rows["x"].to_list(), [Reading(mean, se) for mean, se in rows.select("mean", "se").iter_rows()]

    def only(self, example: int, policy: str, quantity: str) -> Reading:
        """The reading of a quantity with a single value in an example."""
        return self.series(example, policy, quantity)[1][0]

    def optima(self, example: int) -> dict[float, float]:
        """The values of LP-Dynamic by the parameter of the example."""
        return self.by_parameter(example, "optimum")

    def by_parameter(self, example: int, quantity: str) -> dict[float, float]:
        """A quantity that needs no trials, by the parameter of the example."""
        wanted = (pl.col("example") == example) & (pl.col("policy") == BEST) & (pl.col("quantity") == quantity)
        return dict(self.frame.filter(wanted).sort("parameter").select("parameter", "mean").iter_rows())

    @property
    def horizon(self) -> float:
        """The horizon T, which is the largest k of the step change."""
        return max(self.series(0, BEST, "W1")[0])


def above(reading: Reading, bound: float = 0.0) -> Verdict:
    """Whether a reading is above a bound, at two standard errors."""
    if reading.mean - 2 * reading.se > bound:
        return Verdict.HOLDS
    return Verdict.FAILS if reading.mean + 2 * reading.se < bound else Verdict.UNDECIDED


def between(reading: Reading, low: float, high: float) -> Verdict:
    """Whether a reading lies between two bounds, at two standard errors."""
    return all_hold(above(reading, low), above(reading.times(-1.0), -high))


def all_hold(*verdicts: Verdict) -> Verdict:
    """The verdict on a claim of several parts; it fails if any part fails."""
    if Verdict.FAILS in verdicts:
        return Verdict.FAILS
    return Verdict.UNDECIDED if Verdict.UNDECIDED in verdicts else Verdict.HOLDS


def exactly(right: bool) -> Verdict:
    """The verdict on a claim without measurement error."""
    return Verdict.HOLDS if right else Verdict.FAILS


def trend(x: Sequence[float], readings: Sequence[Reading]) -> Reading:
    """The rise of the least-squares line over the range of x, with its standard error."""
    positions = np.asarray(x, dtype=float)
    centred = positions - positions.mean()
    weights = centred / (centred @ centred) * (positions.max() - positions.min())
    means, errors = np.array([reading.mean for reading in readings]), np.array([reading.se for reading in readings])
    return Reading(float(weights @ means), float(np.sqrt((weights**2) @ (errors**2))))


def average(readings: Sequence[Reading]) -> Reading:
    """The mean of independent readings."""
    count = len(readings)
    return Reading(sum(r.mean for r in readings) / count, math.sqrt(sum(r.se**2 for r in readings)) / count)
