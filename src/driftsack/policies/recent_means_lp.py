r"""The step LP on the mean of the last n pulls of each arm: a simple baseline.

With :math:`\hat\mu_i` and :math:`\hat c_{j,i}` the means of the last n outcomes of arm i, and :math:`\rho_j` the
remaining budget over the remaining rounds, the mix solves

.. math:: \max_x \; \hat\mu^\top x \quad \text{s.t. } \hat c\, x \le \rho,\; x \in \Delta_m,

and with probability ε any arm is pulled. There is no optimism: an arm that looks bad is revisited only by chance.

The window counts pulls, not rounds, so no arm is ever without an estimate. The program is scaled to its largest reward
and costs, so the scale of ``cost_max`` does not matter. No guarantee. O(nd) to learn and an LP to choose. Late feedback
counts when it arrives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.bounds import Counts, within
from driftsack.core.checks import LARGEST_FLOAT, share, whole
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.protocol import STUCK
from driftsack.game.records import Outcome, Round
from driftsack.lp.step import LOOSE, new_step_lp
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.numerics.simplex import OPTIMAL, STALE, Simplex, solve
from driftsack.policies.parts.exploration import try_untried
from driftsack.policies.parts.open_arms import explore_open, served, set_rewards
from driftsack.policies.policy import Policy

TINY: Final = 1e-12


class State(NamedTuple):
    """The last outcomes of each arm and the LP of their means."""

    recent: Floats  # (m, n, 1 + d) outcomes, rewards first
    pulls: Counts  # (m,)
    mean: Floats  # (m, 1 + d) means of the recent outcomes
    largest: Annotated[
        Floats, within(TINY, LARGEST_FLOAT)
    ]  # (1 + d,) largest mean reward and costs, the units of the LP
    lp: Simplex
    epsilon: float


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Solve the LP on the recent means and draw the arm."""
    prices[:] = 0.0
    if not try_untried(round, state.pulls, mix):
        set_program(state, round)
        if solve(state.lp) != OPTIMAL:
            return STUCK
        for i in range(mix.size):
            mix[i] = state.lp.solution[i]
        served(state.lp, round, mix, SKIP)
        explore_open(round, mix, state.epsilon)
        for j in range(prices.size):
            prices[j] = state.lp.duals[j] * state.largest[0] / state.largest[1 + j]
    return draw(mix, rng.random())


@kernel
def set_program(state: State, round: Round) -> None:
    """Write the means and the remaining rates into the LP, in units of the largest means."""
    ledger, lp, largest = round.ledger, state.lp, state.largest
    # Scale each row by its largest mean.
    for k in range(largest.size):
        unit = TINY
        for i in range(state.pulls.size):
            unit = max(unit, state.mean[i, k])
        largest[k] = unit
        for i in range(state.pulls.size):
            if k == 0:
                lp.objective[i] = state.mean[i, k] / unit
            else:
                lp.columns[k - 1, i] = state.mean[i, k] / unit
    # Closed arms, and the remaining rates as right-hand sides.
    set_rewards(lp, round)
    for j in range(ledger.budget.size):
        left = max(ledger.budget[j] - ledger.spent[j], 0.0)
        lp.rhs[j] = min(left / (round.rounds_left * largest[1 + j]), LOOSE)
    lp.counts[STALE] = 1


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Replace the oldest outcome of the arm, and average the recent ones."""
    arm = outcome.arm
    if arm == SKIP:
        return
    length = state.recent.shape[1]
    slot = state.pulls[arm] % length
    state.recent[arm, slot, 0] = outcome.reward
    for j in range(outcome.costs.size):
        state.recent[arm, slot, 1 + j] = outcome.costs[j]
    state.pulls[arm] += 1
    count = min(state.pulls[arm], length)
    for k in range(state.mean.shape[1]):
        total = 0.0
        for s in range(count):
            total += state.recent[arm, s, k]
        state.mean[arm, k] = total / count


@dataclass(frozen=True)
class RecentMeansLP(Policy):
    """Solves the step LP on the mean of the last pulls of each arm.

    Attributes:
        pulls: The number of last pulls of each arm that are averaged.
        epsilon: The probability of a uniformly random arm.

    >>> RecentMeansLP().to_spec()
    {'policy': 'RecentMeansLP', 'pulls': 50, 'epsilon': 0.02}
    """

    pulls: int = 50
    epsilon: float = 0.02

    def __post_init__(self) -> None:
        object.__setattr__(self, "pulls", whole(self.pulls, "pulls", at_least=1))
        object.__setattr__(self, "epsilon", share(self.epsilon, "epsilon"))

    @property
    def forgets(self) -> bool:
        """True: an outcome is dropped after ``pulls`` further outcomes of its arm."""
        return True

    def rounds_kept(self, problem: Problem) -> int:
        """Return the number of stored outcomes of all arms."""
        return problem.arms * self.pulls

    @property
    def bounded(self) -> bool:
        """False: only ratios of rewards and of costs matter."""
        return False

    def new_state(self, problem: Problem) -> State:
        """Return the state without observations."""
        arms, kinds = problem.arms, 1 + problem.resources
        return State(
            recent=np.zeros((arms, self.pulls, kinds)),
            pulls=np.zeros(arms, dtype=np.int64),
            mean=np.zeros((arms, kinds)),
            largest=np.ones(kinds),
            lp=new_step_lp(arms, problem.rate),
            epsilon=self.epsilon,
        )
