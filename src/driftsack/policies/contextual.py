"""``ContextualPolicy``: the base class of policies that use the features of requests."""

from __future__ import annotations

from typing import Any

from driftsack.core.arrays import Floats
from driftsack.core.errors import SettingError
from driftsack.core.problem import Problem
from driftsack.policies.parts.contributions import Contributions, linear_contributions
from driftsack.policies.parts.estimates import Estimates
from driftsack.policies.parts.linear_bank import gammas_of
from driftsack.policies.parts.replayed_price import ReplayedPrice, announce_costs
from driftsack.policies.policy import Policy


class ContextualPolicy(Policy):
    """A policy with a bank of linear models in its state, ``state.choice.bank``, on ``state.features``.

    Attributes:
        forgetting: See :class:`~driftsack.policies.LinearBwK`; each subclass defines the field.
    """

    forgetting: float | None  # a field of the subclasses, in their own order

    @property
    def forgets(self) -> bool:
        """Whether some models forget: after a change the weights move to them."""
        return self.forgetting != 1.0

    def rounds_kept(self, problem: Problem) -> int:
        """Return the number of covariance entries."""
        return problem.slots * len(gammas_of(self.forgetting)) * (problem.features + 1) ** 2

    @property
    def needs_context(self) -> bool:
        """True: decisions depend on the features of each request."""
        return True

    @property
    def bounded(self) -> bool:
        """False: learning does not depend on the maxima."""
        return False

    @property
    def known_costs(self) -> bool:
        """True: it plans with its estimates times the factors of the list."""
        return True

    def check_features(self, problem: Problem) -> None:
        """Raise unless requests have features.

        Args:
            problem: The problem to check.
        """
        if not problem.features:
            raise SettingError(
                f"{type(self).__name__} uses the features of requests, but the problem has none; declare them "
                "with Problem(features=...), or use Adaptive."
            )

    def announce(self, state: Any, arm: int, cost_factors: Floats) -> None:
        """Scale the kept costs of an arm, and recompute the prices in the next round.

        Args:
            state: The state; changed in place.
            arm: The arm whose costs change.
            cost_factors: (d,) the factor of each resource.
        """
        price: ReplayedPrice = state.choice.price
        announce_costs(price, arm, cost_factors)

    def contributions(self, state: Any) -> Contributions | None:
        """Return the parts of the estimates, which are linear in the standardised features."""
        return linear_contributions(state.choice.bank, state.features.x)

    def estimates(self, state: Any) -> Estimates | None:
        """Return the estimates at the latest context."""
        parts = self.contributions(state)
        return None if parts is None else Estimates(parts.means)
