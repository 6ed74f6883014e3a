"""``UCBPolicy``: the base class of policies that solve Algorithm 1's LP on confidence bounds of the printed shape."""

from __future__ import annotations

import abc
from dataclasses import replace
from typing import Any, Self

from driftsack.core.problem import Problem
from driftsack.policies.parts.first_pulls import check_first_pulls
from driftsack.policies.parts.pacing import FIXED, BudgetRule, check_budget_rule
from driftsack.policies.parts.radius import RadiusKind, check_radius_choice, radius_of, warn_if_loose
from driftsack.policies.policy import Policy


class UCBPolicy(Policy):
    """A policy with the settings of radii, pacing and first pulls; each subclass defines the fields in its own order.

    Attributes:
        scale: See :class:`~driftsack.policies.SlidingWindowUCB`, like the other fields.
        clip: Whether to clip confidence bounds to [0, 1].
        budget_rule: ``"fixed"`` or ``"remaining"``.
        radius: ``"printed"``, ``"refined"`` or ``"bernstein"``.
        cost_scale: Factor on the radii of costs; None for ``scale``.
        first_pulls: The number of pulls of each arm before the LP decides.
    """

    scale: float
    clip: bool
    budget_rule: BudgetRule
    radius: RadiusKind
    cost_scale: float | None
    first_pulls: int

    def __post_init__(self) -> None:
        check_radius_choice(self)
        check_budget_rule(self)
        check_first_pulls(self)

    @property
    def known_costs(self) -> bool:
        """True: it plans with its estimates times the factors of the list."""
        return True

    def follow_rate(self) -> Self:
        """Return a copy that plans with the rate of each round."""
        settings: dict[str, Any] = {"budget_rule": FIXED}  # a field of the subclasses, which mypy does not see here
        return replace(self, **settings)

    @abc.abstractmethod
    def cost_memory(self, problem: Problem) -> float:
        """Return the number of rounds whose costs are remembered.

        Args:
            problem: The problem to play.
        """

    def warn_about(self, problem: Problem) -> None:
        """Warn if ``cost_max`` is so loose that the radii of costs carry no information."""
        warn_if_loose(problem, radius_of(self, problem), memory=self.cost_memory(problem))
