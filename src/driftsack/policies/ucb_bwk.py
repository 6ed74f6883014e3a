r"""UCB-BwK (Agrawal and Devanur 2014): optimism with radii that shrink with the mean, and some of the rate held back.

The LP of :mod:`driftsack.policies.sliding_window_ucb` without windows, with bounds
:math:`\hat\mu + 2\,\mathrm{rad}(\hat\mu, n+1)` and :math:`\hat c - 2\,\mathrm{rad}(\hat c, n+1)`,
:math:`\mathrm{rad}(a, n) = \sqrt{\gamma a/n} + \gamma/n`, :math:`\gamma = \log(m d T^2)`, and right-hand side
:math:`(1 - \epsilon) b` with

.. math:: \epsilon = \sqrt{\gamma m / B} + \log(T)\, \gamma m / B \qquad \text{(at most 1; constants from memory)} .

*Guarantee* (stationary world): with high probability regret
:math:`\tilde O(\sqrt{m\,\mathrm{OPT}} + \mathrm{OPT}\sqrt{m/B})`. At small budgets the theory's ε is 1, which leaves
nothing to plan with; give ``shrink`` a number then. It never forgets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from driftsack.core.checks import share
from driftsack.core.problem import Problem
from driftsack.policies.policy import Policy
from driftsack.policies.sliding_window_ucb import THEORY, Optimism, State, check_optimism, new_state
from driftsack.theory.refined import gamma


@dataclass(frozen=True)
class UCBBwK(Policy):
    """Recipe: ``shrink`` is ε, or ``"theory"``; the rest as for ``SlidingWindowUCB``.

    >>> UCBBwK(shrink=0.1).epsilon(Problem(horizon=10_000, arms=2, budget=[5_000]))
    0.1
    """

    scale: float = 1.0
    clip: bool = False
    budget_rule: str = "fixed"
    shrink: float | str = THEORY

    def __post_init__(self) -> None:
        if self.shrink != THEORY:
            object.__setattr__(self, "shrink", share(self.shrink, "shrink"))
        check_optimism(self)

    def epsilon(self, problem: Problem) -> float:
        """How much of the rate is held back on this problem."""
        if self.shrink != THEORY:
            return float(self.shrink)
        budget = float(problem.unit_budget.min())
        load = gamma(problem.horizon, problem.arms, problem.resources) * problem.arms / max(budget, 1e-9)
        return min(math.sqrt(load) + math.log(max(problem.horizon, 2)) * load, 1.0)

    def new_state(self, problem: Problem) -> State:
        """Nothing known, every arm at its most optimistic."""
        forever = (problem.horizon, problem.horizon)
        recipe = Optimism(self.scale, self.clip, self.budget_rule, refined=True, shrink=self.epsilon(problem))
        return new_state(problem, forever, recipe)
