r"""PrimalDualBwK (Badanidiyuru, Kleinberg and Slivkins 2013): the most reward for its cost, at learnt prices.

Every arm is played once. Then, with :math:`u_a` an upper bound on the reward and :math:`L_a` a lower bound on the costs
of arm a, both kept in [0, 1], and prices v over the resources and time, play

.. math:: a_t \in \arg\max_a \frac{u_a}{v^\top L_a}, \qquad v_i \leftarrow v_i (1 + \epsilon)^{L_{a_t, i}}, \qquad
          \epsilon = \sqrt{\ln(d+1) / B} .

Bounds are :math:`\hat\nu \pm \mathrm{rad}(\hat\nu, n)` with
:math:`\mathrm{rad}(\nu, n) = \sqrt{C\nu/n} + C/n` and :math:`C = \log(d m T)` times ``scale``. Costs are scaled so
that all budgets equal the least, B; time costs B/T in every round, so that the denominator is never zero. Prices are
kept as logarithms.

*Guarantee* (stationary world): regret :math:`\tilde O(\sqrt{m\,\mathrm{OPT}} + \mathrm{OPT}\sqrt{m/B})`, optimal up to
logarithms. It never forgets. Cost: O(md) a round, no LP. Late feedback counts when it comes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import at_least_zero
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger
from driftsack.numerics.compiled import kernel
from driftsack.numerics.exp3p import soften
from driftsack.numerics.window import Window, admit, open_window
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """All that changes as the learner plays."""

    rewards: Window  # (m, 1) sums, nothing ever leaves
    costs: Window  # (m, d) sums
    logs: Floats  # (d + 1,) log prices, time last
    prices: Floats  # (d + 1,) the same, as shares of 1
    scale: Floats  # (d,) B / B_j
    log_step: float  # log(1 + epsilon)
    radius: float  # C
    time_cost: float  # B / T
    reward: Floats  # (1,) scratch


@kernel
def choose(state: State, ledger: Ledger, t: int, rng: Generator, mix: Floats, prices: Floats) -> int:  # noqa: ARG001
    """The arm with the largest optimistic reward for its optimistic price; arms not yet told come first."""
    soften(state.logs, state.prices)
    chosen = 0
    best = -1.0
    for a in range(mix.size):
        mix[a] = 0.0
        worth = ratio(state, a) if state.rewards.pulls[a] > 0 else np.inf
        if worth > best:
            chosen, best = a, worth
    mix[chosen] = 1.0
    for j in range(prices.size):
        prices[j] = state.prices[j] * state.scale[j]
    for j in range(prices.size):
        state.logs[j] += state.log_step * lower_cost(state, chosen, j)
    state.logs[prices.size] += state.log_step * state.time_cost
    return chosen


@kernel
def learn(state: State, t: int, arm: int, chance: float, reward: float, costs: Floats) -> None:  # noqa: ARG001
    """Enter an outcome."""
    if arm != SKIP:
        state.reward[0] = reward
        admit(state.rewards, t, t, arm, state.reward)
        admit(state.costs, t, t, arm, costs)


@kernel
def ratio(state: State, a: int) -> float:
    """Upper bound of the reward over the price of the lower bounds of the costs."""
    n = state.rewards.pulls[a]
    mean = state.rewards.sums[a, 0] / (state.rewards.grid[0] * n)
    upper = min(mean + rad(state.radius, mean, n), 1.0)
    price = state.prices[state.scale.size] * state.time_cost
    for j in range(state.scale.size):
        price += state.prices[j] * lower_cost(state, a, j)
    return float(upper / price)


@kernel
def lower_cost(state: State, a: int, j: int) -> float:
    """Lower bound of a scaled cost, in [0, 1]; 0 for an arm that is not known."""
    n = state.costs.pulls[a]
    if n == 0:
        return 0.0
    mean = state.costs.sums[a, j] / (state.costs.grid[0] * n)
    return float(max(mean - rad(state.radius, mean, n), 0.0) * state.scale[j])


@kernel
def rad(constant: float, mean: float, n: int) -> float:
    """The radius sqrt(C mean / n) + C / n."""
    return math.sqrt(constant * mean / n) + constant / n


@dataclass(frozen=True)
class PrimalDualBwK(Policy):
    """Recipe: ``scale`` multiplies the constant C of the radius (1 as in the theory).

    >>> PrimalDualBwK(scale=0.1).to_spec()
    {'policy': 'PrimalDualBwK', 'scale': 0.1}
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", at_least_zero(self.scale, "scale"))

    def new_state(self, problem: Problem) -> State:
        """Nothing known, equal prices."""
        horizon, arms, resources = problem.horizon, problem.arms, problem.resources
        budget = max(float(problem.unit_budget.min()), 1e-9)
        return State(
            rewards=open_window(horizon, horizon, arms, outcomes=1),
            costs=open_window(horizon, horizon, arms, outcomes=resources),
            logs=np.zeros(resources + 1),
            prices=np.full(resources + 1, 1 / (resources + 1)),
            scale=budget / np.maximum(problem.unit_budget, budget),
            log_step=math.log1p(math.sqrt(math.log(resources + 1) / max(budget, 1.0))),
            radius=self.scale * math.log(max(resources * arms * horizon, 2)),
            time_cost=min(budget / horizon, 1.0),
            reward=np.zeros(1),
        )
