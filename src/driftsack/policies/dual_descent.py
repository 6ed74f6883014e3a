r"""Dual descent, best of many worlds (Castiglioni, Celli and Kroer 2022): a bandit pays prices, prices follow use.

With prices q in :math:`\{q \ge 0, \|q\|_1 \le 1/b\}`, b the least rate, the primal, EXP3.P over the arms and SKIP,
plays on the loss :math:`-r_t + q_t^\top c_t`, and the dual takes a projected gradient step,

.. math:: q_{t+1} = \Pi\bigl(q_t - \eta\,(b - c_t)\bigr), \qquad \eta = \frac{\mathrm{step}}{b \sqrt{T}} .

Costs are scaled so that all rates equal b. The primal's payoff is :math:`(r - q^\top c + 1/b) / (1 + 1/b) \in [0, 1]`.
When a remaining budget is below one round's highest cost it skips: fed back at once, it never overspends.

*Guarantee* (theirs, up to constants and logarithms): in a stationary world regret :math:`\tilde O(\sqrt{mT}/b)`, and
against an adversary a share of order b of the optimum. The step's constant is ours. Cost: O(m + d) a round, no LP.
Late feedback: importance weights use the probability of the decision, prices are those of the day.
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
from driftsack.core.problem import Problem
from driftsack.game.ledger import Ledger, affordable
from driftsack.numerics.compiled import kernel
from driftsack.numerics.exp3p import Exp3P, new_exp3p, pay, refresh
from driftsack.numerics.projections import onto_capped_orthant
from driftsack.numerics.sampling import draw
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """All that changes as the learner plays."""

    primal: Exp3P  # m arms, then SKIP
    prices: Floats  # (d,) of scaled resources
    scale: Floats  # (d,) b / b_j
    rate: float  # b
    today: Floats  # (d,) what a round may use of each scaled resource, at the last choice
    step: float  # eta


@kernel
def choose(state: State, ledger: Ledger, t: int, rng: Generator, mix: Floats, prices: Floats) -> int:  # noqa: ARG001
    """Draw from the primal's probabilities, unless a budget could not bear the round."""
    refresh(state.primal)
    uniform = rng.random()
    playable = affordable(ledger, 1)
    for i in range(mix.size):
        mix[i] = state.primal.chances[i] if playable else 0.0
    for j in range(prices.size):
        prices[j] = state.prices[j] * state.scale[j]
        state.today[j] = ledger.rate[j] * state.scale[j]
    return draw(mix, uniform)


@kernel
def learn(state: State, t: int, arm: int, chance: float, reward: float, costs: Floats) -> None:  # noqa: ARG001
    """Pay the primal at today's prices, then move the prices."""
    paid = 0.0
    for j in range(costs.size):
        used = costs[j] * state.scale[j]
        paid += state.prices[j] * used
        state.prices[j] -= state.step * (state.today[j] - used)
    most = 1.0 / state.rate
    payoff = (reward - paid + most) / (1.0 + most)
    action = state.primal.logs.size - 1 if arm == SKIP else arm
    pay(state.primal, action, max(chance, 1e-12), min(max(payoff, 0.0), 1.0))
    onto_capped_orthant(state.prices, most)


@dataclass(frozen=True)
class DualDescent(Policy):
    """Recipe: ``step`` multiplies the dual's step 1/(b sqrt(T)).

    >>> DualDescent(step=0.5).to_spec()
    {'policy': 'DualDescent', 'step': 0.5, 'delta': None}
    """

    step: float = 1.0
    delta: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", above_zero(self.step, "step"))
        if self.delta is not None:
            object.__setattr__(self, "delta", above_zero(self.delta, "delta"))

    @property
    def forgets(self) -> bool:
        """In effect: EXP3.P's bonus bounds the lead of any action."""
        return True

    def new_state(self, problem: Problem) -> State:
        """Equal weights, prices zero."""
        horizon = problem.horizon
        rate = min(max(float(problem.rate.min()), 1e-9), 1.0)
        return State(
            primal=new_exp3p(problem.arms + 1, horizon, self.delta or 1 / horizon),
            prices=np.zeros(problem.resources),
            scale=rate / np.maximum(problem.rate, rate),
            rate=rate,
            today=np.full(problem.resources, rate),
            step=self.step / (rate * math.sqrt(horizon)),
        )
