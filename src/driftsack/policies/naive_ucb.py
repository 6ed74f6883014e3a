r"""Naive UCB: Algorithm 1 without forgetting, the paper's baseline for a stationary environment.

It uses the bounds and the LP of :mod:`driftsack.policies.sliding_window_ucb`, with both windows as long as the
horizon. In a stationary environment its regret is :math:`\tilde O(\sqrt{mT}/b)` (Theorem 1 with V = W = 0); under
drift, old outcomes bias its estimates until the end. Memory is O(md).
"""

from __future__ import annotations

from dataclasses import dataclass

from driftsack.core.problem import Problem
from driftsack.policies.parts.estimates import Estimates
from driftsack.policies.parts.pacing import BudgetRule
from driftsack.policies.parts.radius import RadiusKind, radius_of
from driftsack.policies.sliding_window_ucb import State, estimates_of, ucb_state
from driftsack.policies.ucb_policy import UCBPolicy


@dataclass(frozen=True)
class NaiveUCB(UCBPolicy):
    """UCB without forgetting: Algorithm 1 with infinite windows.

    Attributes:
        scale: Factor on both radii; see ``SlidingWindowUCB``.
        clip: Whether to clip confidence bounds to [0, 1].
        budget_rule: ``"fixed"`` paces by b = B/T, ``"remaining"`` by the remaining budget per remaining round.
        radius: ``"printed"``, ``"refined"`` or ``"bernstein"``; see ``SlidingWindowUCB``.
        cost_scale: Factor on the radii of costs; None for ``scale``.
        first_pulls: The number of pulls of each arm before the LP decides.

    >>> NaiveUCB(scale=0.1, radius="bernstein", first_pulls=3)
    NaiveUCB(scale=0.1, clip=False, budget_rule='fixed', radius='bernstein', cost_scale=None, first_pulls=3)
    """

    scale: float = 1.0
    clip: bool = False
    budget_rule: BudgetRule = "fixed"
    radius: RadiusKind = "printed"
    cost_scale: float | None = None
    first_pulls: int = 0

    def cost_memory(self, problem: Problem) -> float:
        """Return the horizon: every round."""
        return problem.horizon

    def new_state(self, problem: Problem) -> State:
        """Return the state without observations, in which every arm has its most optimistic bounds."""
        unlimited = (problem.horizon, problem.horizon)
        return ucb_state(problem, unlimited, radius_of(self, problem), self.budget_rule, first_pulls=self.first_pulls)

    def estimates(self, state: State) -> Estimates:
        """Means over all rounds and their confidence bounds."""
        return estimates_of(state)
