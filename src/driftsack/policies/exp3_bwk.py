r"""EXP3.BwK (Rangi, Franceschetti and Tran-Thanh 2019): EXP3 on reward minus cost, for one resource.

For one resource with budget B and m arms (the algorithm never skips),

.. math:: p_i = (1 - \gamma) \frac{w_i}{\sum_k w_k} + \frac{\gamma}{m}, \qquad
          w_i \leftarrow w_i \exp\Bigl(\frac{\gamma}{m} (\hat r_i - \hat c_i)\Bigr), \qquad
          \gamma = \min\bigl(1, \sqrt{m \ln m / B}\bigr),

where :math:`\hat r_i = r / p_i`, :math:`\hat c_i = c / p_i` for the pulled arm and 0 for the others. It plays until
the budget is exhausted. Weights are kept as logarithms. The constants have not been checked against the paper.

*Guarantee* (theirs, against an adversary, one resource): regret :math:`\tilde O(\sqrt{m B})` against the best fixed
arm, counted until that arm has exhausted the budget. The LP benchmarks of this library pace a mix of arms over the
horizon instead, so the two kinds of regret must not be compared directly (docs/errata.md).
O(m) per round, no LP. Late feedback: importance weights use the probability that the arm had when it was chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import above_zero
from driftsack.core.decision import SKIP
from driftsack.core.errors import SettingError
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.numerics.exp3p import mean_log_weight, mix_uniform, softmax
from driftsack.numerics.sampling import draw
from driftsack.policies.parts.open_arms import last_possible, restrict_to_open
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """The weights of the arms."""

    log_weights: Floats  # (m,)
    explore: float  # gamma

    def grow_from(self, old: State) -> None:
        """Give new arms the mean weight of the existing ones."""
        self.log_weights[:] = mean_log_weight(old.log_weights)
        self.log_weights[: old.log_weights.size] = old.log_weights


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw an arm from the weights, mixed with uniform exploration."""
    softmax(state.log_weights, mix)
    mix_uniform(mix, state.explore)
    restrict_to_open(round, mix)
    prices[:] = 1.0  # a unit of cost has the same weight as a unit of reward
    arm = draw(mix, rng.random())
    return last_possible(mix) if arm == SKIP else arm  # the probabilities may sum to slightly less than 1


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Add the importance-weighted reward minus cost; rounds skipped by ``safe`` are ignored."""
    if outcome.arm != SKIP:
        gain = outcome.reward - outcome.costs[0]
        state.log_weights[outcome.arm] += state.explore / state.log_weights.size * gain / outcome.probability


@dataclass(frozen=True)
class Exp3BwK(Policy):
    """EXP3.BwK for a single resource.

    Attributes:
        explore: The exploration rate γ in (0, 1]; None for the value above.

    >>> Exp3BwK().start(Problem(horizon=100, arms=2, budget=[9, 9]))
    Traceback (most recent call last):
    ...
    driftsack.core.errors.SettingError: Exp3BwK is for one resource, got 2; choose LagrangeBwK or DualDescent.
    """

    explore: float | None = None

    def __post_init__(self) -> None:
        if self.explore is not None:
            object.__setattr__(self, "explore", above_zero(self.explore, "explore"))
            if self.explore > 1.0:
                raise SettingError(f"explore must lie in (0, 1], got {self.explore:g}.")

    def new_state(self, problem: Problem) -> State:
        """Return the state with equal weights."""
        if problem.resources != 1:
            raise SettingError(
                f"Exp3BwK is for one resource, got {problem.resources}; choose LagrangeBwK or DualDescent."
            )
        arms, budget = problem.arms, max(float(problem.unit_budget[0]), 1.0)
        theory = min(1.0, math.sqrt(arms * math.log(max(arms, 2)) / budget))
        return State(np.zeros(arms), self.explore or theory)
