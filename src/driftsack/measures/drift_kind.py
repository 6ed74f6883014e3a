r"""Classify drift by three optima: it changes which arm is best (V-type) or when to spend (W-type).

LP-Dynamic (``best``) may spend at any time and change its mix in every round. Even allocation (``even``) may change its
mix but spends the same in every round. The best fixed mix (``fixed``) never changes until a budget is exhausted.
Then :math:`(\text{best} - \text{even}) / \text{best}` can be gained only by planning when to spend, and
:math:`(\text{even} - \text{fixed}) / \text{best}` only by tracking which arms are best.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from driftsack.core.text import percent

NEGLIGIBLE: Final = 0.02  # share of the optimum below which neither planning nor tracking matters


class DriftKind(StrEnum):
    """The kinds of drift, by their effect on a policy with a budget."""

    STATIONARY = "stationary"  # there is no drift, or none was detected
    HARMLESS = "harmless"  # there is drift, but one fixed mix earns nearly as much as any policy
    WHICH = "which"  # drift mainly changes which arm is best (V-type)
    WHEN = "when"  # drift mainly changes when to spend (W-type)


class Optima(NamedTuple):
    """The three optima of one instance that distinguish the kinds of drift."""

    best: float  # LP-Dynamic, which may spend at any time and change its mix in every round
    even: float  # even allocation, which may change its mix but spends the same in every round
    fixed: float  # the best fixed mix, played until a budget is exhausted

    @property
    def timing(self) -> float:
        """The share of the optimum that can be gained only by planning when to spend."""
        return (self.best - self.even) / self.best if self.best > 0 else 0.0

    @property
    def tracking(self) -> float:
        """The share of the optimum that can be gained only by tracking the changes."""
        return (self.even - self.fixed) / self.best if self.best > 0 else 0.0


def drift_kind(optima: Optima, drifts: bool) -> DriftKind:
    """Classify the drift of an instance by its optima; ``drifts`` says whether it is non-stationary.

    >>> drift_kind(Optima(best=100.0, even=70.0, fixed=68.0), drifts=True)
    <DriftKind.WHEN: 'when'>
    """
    if not drifts:
        return DriftKind.STATIONARY
    if max(optima.timing, optima.tracking) < NEGLIGIBLE:
        return DriftKind.HARMLESS
    return DriftKind.WHEN if optima.timing >= optima.tracking else DriftKind.WHICH


def explain(kind: DriftKind, optima: Optima) -> str:
    """Explain in one sentence what drift changes and how much of the optimum is at stake.

    >>> explain(DriftKind.WHEN, Optima(best=100.0, even=70.0, fixed=68.0))
    'Drift mainly changes when to spend: spending evenly loses 30% of the optimum, which forgetting old observations
    cannot recover; tracking which arm is best is worth 2%.'
    """
    if optima.best <= 0:
        return "Nothing can be earned with this budget."
    if kind == DriftKind.STATIONARY:
        return "Under stationary rewards and costs old observations remain valid, so there is no reason to forget them."
    if kind == DriftKind.HARMLESS:
        return (
            "The drift hardly matters for this budget: the best fixed mix of arms earns "
            f"{percent(optima.fixed / optima.best)} of the optimum."
        )
    if kind == DriftKind.WHEN:
        return (
            f"Drift mainly changes when to spend: spending evenly loses {percent(optima.timing)} of the optimum, which "
            "forgetting old observations cannot recover; tracking which arm is best is worth "
            f"{percent(max(optima.tracking, 0.0))}."
        )
    return (
        f"Drift mainly changes which arm is best: tracking the changes is worth {percent(optima.tracking)} of the "
        f"optimum, planning when to spend {percent(max(optima.timing, 0.0))}."
    )
