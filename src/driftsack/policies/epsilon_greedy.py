r"""ε-greedy on reward per cost with a spending schedule: a simple baseline.

*Estimates* are moving averages with step :math:`\alpha`: after the n-th outcome x of an arm,
:math:`\hat x \leftarrow \hat x + \max(1/n, \alpha) (x - \hat x)`.

*Reward per cost.* With :math:`\rho_j` the remaining budget over the remaining rounds, an arm that is pulled as often as
the budgets allow, and skipped otherwise, earns per round

.. math:: \hat\mu_i \min\bigl(1, \min_j \rho_j / \hat c_{j,i}\bigr),

its reward per unit of the scarcest resource, counting rounds as a resource. The best arm is chosen, or any arm with
probability ε.

*Schedule.* A round is skipped while the spending of some resource is ahead of :math:`B_j t / T`.

Costs enter only relative to the budget, so the scale of ``cost_max`` does not matter. No guarantee: where the optimum
mixes several arms, this policy cannot reach it. O(md) per round, no LP. Late feedback counts when it arrives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.bounds import Counts
from driftsack.core.checks import share
from driftsack.core.decision import SKIP
from driftsack.core.errors import OutOfRangeError
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.policies.parts.exploration import try_untried
from driftsack.policies.parts.open_arms import explore_open
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """Moving averages of the outcomes."""

    mean: Floats  # (m, 1 + d) rewards first
    pulls: Counts  # (m,)
    epsilon: float
    step: float


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Skip if spending is ahead of the schedule; otherwise choose the arm with the largest reward per cost."""
    mix[:] = 0.0
    prices[:] = 0.0
    if ahead(round) and not round.must:
        return SKIP
    if not try_untried(round, state.pulls, mix):
        best = best_arm(state, round)
        if best != SKIP:
            mix[best] = 1.0
        explore_open(round, mix, state.epsilon)
    return draw(mix, rng.random())


@kernel
def ahead(round: Round) -> bool:
    """Return whether some remaining budget is below the planned spending of the rounds after this one."""
    ledger, after = round.ledger, round.rounds_left - 1.0
    for j in range(ledger.budget.size):
        if ledger.budget[j] - ledger.spent[j] < round.rate[j] * after:
            return True
    return False


@kernel
def best_arm(state: State, round: Round) -> int:
    """Return the open arm with the largest reward per cost, or SKIP if none is open."""
    ledger, rounds = round.ledger, round.rounds_left
    best, arm = -1.0, SKIP
    for i in range(state.pulls.size):
        if not round.open[i]:
            continue
        possible = 1.0  # share of the rounds in which the budgets cover the arm
        for j in range(ledger.budget.size):
            rate = max(ledger.budget[j] - ledger.spent[j], 0.0) / rounds
            if state.mean[i, 1 + j] * possible > rate:
                possible = rate / state.mean[i, 1 + j]
        if state.mean[i, 0] * possible > best:
            best, arm = state.mean[i, 0] * possible, i
    return arm


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Move the averages of the arm towards the outcome."""
    arm = outcome.arm
    if arm == SKIP:
        return
    state.pulls[arm] += 1
    weight = max(1.0 / state.pulls[arm], state.step)
    state.mean[arm, 0] += weight * (outcome.reward - state.mean[arm, 0])
    for j in range(outcome.costs.size):
        state.mean[arm, 1 + j] += weight * (outcome.costs[j] - state.mean[arm, 1 + j])


@dataclass(frozen=True)
class EpsilonGreedy(Policy):
    """ε-greedy on reward per cost with a spending schedule.

    Attributes:
        epsilon: The probability of a uniformly random arm.
        step: The weight of the newest outcome in the moving averages, in (0, 1]; 1/w remembers about w pulls.

    >>> EpsilonGreedy().start(Problem(horizon=10, arms=2, budget=[3]), seed=0).ask().mix
    array([0.5, 0.5])
    """

    epsilon: float = 0.05
    step: float = 0.05

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", share(self.epsilon, "epsilon"))
        object.__setattr__(self, "step", share(self.step, "step"))
        if self.step == 0.0:
            raise OutOfRangeError("step must be above 0, got 0; averages would not change.")

    @property
    def forgets(self) -> bool:
        """True: the weight of an outcome decays with every further pull of its arm."""
        return True

    @property
    def bounded(self) -> bool:
        """False: only ratios of rewards and of costs matter."""
        return False

    def new_state(self, problem: Problem) -> State:
        """Return the state without observations."""
        means, pulls = np.zeros((problem.arms, 1 + problem.resources)), np.zeros(problem.arms, dtype=np.int64)
        return State(means, pulls, self.epsilon, self.step)
