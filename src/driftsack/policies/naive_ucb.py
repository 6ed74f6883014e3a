r"""Naive UCB: Algorithm 1 without forgetting, the paper's baseline for a world that does not move.

The same bounds and the same LP as :mod:`driftsack.policies.sliding_window_ucb`, with both windows as long as the
horizon. In a stationary world its regret is :math:`\tilde O(\sqrt{mT}/b)` (Theorem 1 with V = W = 0); where the
means move, old outcomes mislead it for ever. Memory is O(md).
"""

from __future__ import annotations

from dataclasses import dataclass

from driftsack.core.problem import Problem
from driftsack.policies.policy import Policy
from driftsack.policies.sliding_window_ucb import Optimism, State, check_optimism, new_state


@dataclass(frozen=True)
class NaiveUCB(Policy):
    """Recipe: the settings of ``SlidingWindowUCB`` but the windows.

    >>> NaiveUCB(scale=0.1).to_spec()
    {'policy': 'NaiveUCB', 'scale': 0.1, 'clip': False, 'budget_rule': 'fixed'}
    """

    scale: float = 1.0
    clip: bool = False
    budget_rule: str = "fixed"

    def __post_init__(self) -> None:
        check_optimism(self)

    def new_state(self, problem: Problem) -> State:
        """Nothing known, every arm at its most optimistic."""
        forever = (problem.horizon, problem.horizon)
        return new_state(problem, forever, Optimism(self.scale, self.clip, self.budget_rule))
