r"""UCB-BwK (Agrawal and Devanur 2014): radii that shrink with the mean, and a reduced rate.

It uses the LP of :mod:`driftsack.policies.sliding_window_ucb` without windows, with bounds
:math:`\hat\mu + 2\,\mathrm{rad}(\hat\mu, n+1)` and :math:`\hat c - 2\,\mathrm{rad}(\hat c, n+1)`,
:math:`\mathrm{rad}(a, n) = \sqrt{\gamma a/n} + \gamma/n`, :math:`\gamma = \log(m d T^2)`, and right-hand side
:math:`(1 - \epsilon) b` with

.. math:: \epsilon = \sqrt{\gamma m / B} + \log(T)\, \gamma m / B \qquad \text{(at most 1)} .

*Guarantee* (stationary environment): with high probability regret
:math:`\tilde O(\sqrt{m\,\mathrm{OPT}} + \mathrm{OPT}\sqrt{m/B})`. For small budgets the theory's ε is 1, which leaves
nothing to spend; set ``shrink`` to a number in that case. The constants have not been checked against the paper. It
never forgets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from driftsack.core.checks import share
from driftsack.core.problem import Problem
from driftsack.policies.parts.estimates import Estimates
from driftsack.policies.parts.pacing import FIXED, BudgetRule, check_budget_rule
from driftsack.policies.parts.radius import check_radius_settings, new_radius
from driftsack.policies.policy import Policy
from driftsack.policies.sliding_window_ucb import THEORY, State, estimates_of, ucb_state
from driftsack.theory.refined import gamma


@dataclass(frozen=True)
class UCBBwK(Policy):
    """UCB-BwK: UCB with refined radii and a reduced rate.

    Attributes:
        scale: Factor on both radii; see ``SlidingWindowUCB``.
        clip: Whether to clip confidence bounds to [0, 1].
        budget_rule: ``"fixed"`` paces by b = B/T, ``"remaining"`` by the remaining budget per remaining round.
        shrink: The share ε by which the rate is reduced, or ``"theory"``.

    >>> UCBBwK(shrink=0.1).epsilon(Problem(horizon=10_000, arms=2, budget=[5_000]))
    0.1
    """

    scale: float = 1.0
    clip: bool = False
    budget_rule: BudgetRule = "fixed"
    shrink: float | str = THEORY

    def __post_init__(self) -> None:
        if self.shrink != THEORY:
            object.__setattr__(self, "shrink", share(self.shrink, "shrink"))
        check_radius_settings(self)
        check_budget_rule(self)

    def follow_rate(self) -> UCBBwK:
        """Return a copy that plans with the rate of each round."""
        return replace(self, budget_rule=FIXED)

    def epsilon(self, problem: Problem) -> float:
        """Return the share by which the rate is reduced on a problem.

        Args:
            problem: The problem to play.

        Returns:
            The share ε in [0, 1].
        """
        if self.shrink != THEORY:
            return float(self.shrink)
        budget = float(problem.unit_budget.min())
        load = gamma(problem.horizon, problem.arms, problem.resources) * problem.arms / max(budget, 1e-9)
        return min(math.sqrt(load) + math.log(max(problem.horizon, 2)) * load, 1.0)

    def new_state(self, problem: Problem) -> State:
        """Return the state without observations, in which every arm has its most optimistic bounds."""
        unlimited = (problem.horizon, problem.horizon)
        radius = new_radius(problem, self.scale, self.clip, kind="refined")
        return ucb_state(problem, unlimited, radius, self.budget_rule, self.epsilon(problem))

    def estimates(self, state: State) -> Estimates:
        """Means over all rounds and their confidence bounds."""
        return estimates_of(state)
