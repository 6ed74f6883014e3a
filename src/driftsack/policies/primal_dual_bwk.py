r"""PrimalDualBwK (Badanidiyuru, Kleinberg and Slivkins 2013): the largest reward per cost at learnt prices.

Every arm is pulled once. Then, with :math:`u_a` an upper bound on the reward and :math:`L_a` a lower bound on the costs
of arm a, both clipped to [0, 1], and prices v of the resources and of time, pull

.. math:: a_t \in \arg\max_a \frac{u_a}{v^\top L_a}, \qquad v_i \leftarrow v_i (1 + \epsilon)^{L_{a_t, i}}, \qquad
          \epsilon = \sqrt{\ln(d+1) / B} .

Bounds are :math:`\hat\nu \pm \mathrm{rad}(\hat\nu, n)` with
:math:`\mathrm{rad}(\nu, n) = \sqrt{C\nu/n} + C/n` and :math:`C = \log(d m T)` times ``confidence``. Costs are scaled so
that all budgets equal the smallest, B; time costs B/T in every round, so that the denominator is never zero. Prices are
kept as logarithms.

*Guarantee* (stationary environment): regret :math:`\tilde O(\sqrt{m\,\mathrm{OPT}} + \mathrm{OPT}\sqrt{m/B})`, optimal
up to logarithms. It never forgets. O(md) per round, no LP. Late feedback is used when it arrives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.bounds import Constants
from driftsack.core.checks import LARGEST_SETTING, at_least_zero
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.numerics.exp3p import softmax
from driftsack.numerics.window import Window, add, check_not_negative, open_window
from driftsack.policies.parts.radius import rad
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """Sums of outcomes and the prices."""

    rewards: Window  # (m, 1) sums over all rounds
    costs: Window  # (m, d) sums
    log_prices: Floats  # (d + 1,) time last
    prices: Floats  # (d + 1,) normalised to sum 1
    scale: Constants  # (d,) B / B_j
    log_step: float  # log(1 + epsilon)
    radius: float  # C
    time_cost: float  # B / T
    reward: Floats  # (1,) scratch

    def check(self) -> None:
        """Raise if a sum of rewards or costs is negative."""
        check_not_negative(self.rewards, self.costs)


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Choose the open arm with the largest ratio of optimistic reward to priced costs, unobserved arms first."""
    softmax(state.log_prices, state.prices)
    # Find the open arm with the largest ratio.
    chosen = SKIP
    best = -1.0
    for a in range(mix.size):
        mix[a] = 0.0
        if not round.open[a]:
            continue
        efficiency = ratio(state, a) if state.rewards.pulls[a] > 0 else np.inf
        if efficiency > best:
            chosen, best = a, efficiency
    for j in range(prices.size):
        prices[j] = state.prices[j] * state.scale[j]
    # Multiplicative update of the prices by the lower cost bounds of the chosen arm.
    if chosen != SKIP:
        mix[chosen] = 1.0
        for j in range(prices.size):
            state.log_prices[j] += state.log_step * lower_cost(state, chosen, j)
    state.log_prices[prices.size] += state.log_step * state.time_cost
    return chosen


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Add an outcome to the sums."""
    t, arm = outcome.t, outcome.arm
    if arm != SKIP:
        state.reward[0] = outcome.reward
        add(state.rewards, t, t, arm, state.reward)
        add(state.costs, t, t, arm, outcome.costs)


@kernel
def ratio(state: State, a: int) -> float:
    """Return the upper bound of the reward divided by the priced lower bounds of the costs."""
    n = state.rewards.pulls[a]
    mean = state.rewards.sums[a, 0] / (state.rewards.grid[0] * n)
    upper = min(mean + rad(state.radius, mean, n), 1.0)
    price = state.prices[state.scale.size] * state.time_cost
    for j in range(state.scale.size):
        price += state.prices[j] * lower_cost(state, a, j)
    return float(upper / price)


@kernel
def lower_cost(state: State, a: int, j: int) -> float:
    """Return the lower bound of a scaled cost, in [0, 1]; 0 for an arm without observations."""
    n = state.costs.pulls[a]
    if n == 0:
        return 0.0
    mean = state.costs.sums[a, j] / (state.costs.grid[0] * n)
    return float(max(mean - rad(state.radius, mean, n), 0.0) * state.scale[j])


@dataclass(frozen=True)
class PrimalDualBwK(Policy):
    """PrimalDualBwK: optimistic reward per priced cost.

    Attributes:
        confidence: Factor on the constant C inside the radius; 1 in the theory. Unlike ``scale`` of the UCB policies
            it does not multiply the radius.

    >>> PrimalDualBwK(confidence=0.1).to_spec()
    {'policy': 'PrimalDualBwK', 'confidence': 0.1}
    """

    confidence: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence", at_least_zero(self.confidence, "confidence", LARGEST_SETTING))

    def new_state(self, problem: Problem) -> State:
        """Return the state without observations and with equal prices."""
        horizon, arms, resources = problem.horizon, problem.arms, problem.resources
        budget = max(float(problem.unit_budget.min()), 1e-9)
        return State(
            rewards=open_window(horizon, horizon, arms, outcomes=1),
            costs=open_window(horizon, horizon, arms, outcomes=resources),
            log_prices=np.zeros(resources + 1),
            prices=np.full(resources + 1, 1 / (resources + 1)),
            scale=budget / np.maximum(problem.unit_budget, budget),
            log_step=math.log1p(math.sqrt(math.log(resources + 1) / max(budget, 1.0))),
            radius=self.confidence * math.log(max(resources * arms * horizon, 2)),
            time_cost=min(budget / horizon, 1.0),
            reward=np.zeros(1),
        )
