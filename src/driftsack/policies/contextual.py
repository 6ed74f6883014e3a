"""``ContextualPolicy``: what policies that use the features of requests have in common."""

from __future__ import annotations

from typing import Any

from driftsack.core.arrays import Floats
from driftsack.core.errors import SettingError
from driftsack.core.problem import Problem
from driftsack.policies.parts.linear_bank import LinearBank, gammas_of, scale_costs
from driftsack.policies.parts.replayed_price import ReplayedPrice, announce_costs
from driftsack.policies.policy import Policy


class ContextualPolicy(Policy):
    """A policy with a bank of linear models in its state: ``state.choice.bank``.

    Attributes:
        forgetting: The setting of each such policy, as in :class:`~driftsack.policies.LinearBwK`.
    """

    forgetting: float | None  # a field of the policies themselves, in their own order

    @property
    def forgets(self) -> bool:
        """The weights move to models that forget after a change."""
        return self.forgetting != 1.0

    def rounds_kept(self, problem: Problem) -> int:
        """The numbers of all covariances."""
        return problem.slots * len(gammas_of(self.forgetting)) * (problem.features + 1) ** 2

    @property
    def needs_context(self) -> bool:
        """True: it decides by the features of each request."""
        return True

    @property
    def bounded(self) -> bool:
        """False: what it learns does not depend on the maxima."""
        return False

    def check_features(self, problem: Problem) -> None:
        """Raise unless requests have features.

        Args:
            problem: The problem.
        """
        if not problem.features:
            raise SettingError(
                f"{type(self).__name__} decides by the features of requests, but the problem has none; declare them "
                "with Problem(features=...), or use Adaptive."
            )

    def announce(self, state: Any, arm: int, cost_factors: Floats) -> None:
        """Multiply what is believed about the costs of an arm, and let prices be solved again.

        Args:
            state: The state; changed in place.
            arm: The arm.
            cost_factors: (d,) the factor of each resource.
        """
        bank: LinearBank = state.choice.bank
        price: ReplayedPrice = state.choice.price
        scale_costs(bank, arm, cost_factors)
        announce_costs(price, arm, cost_factors)
