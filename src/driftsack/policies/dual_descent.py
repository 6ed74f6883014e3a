r"""Dual descent, best of many worlds (Castiglioni, Celli and Kroer 2022): a bandit with shadow prices.

Prices q lie in :math:`\{q \ge 0, \|q\|_1 \le 1/b\}`, b the smallest rate. The primal, EXP3.P over the arms and SKIP,
minimises the loss :math:`-r_t + q_t^\top c_t`, and the dual takes a projected gradient step,

.. math:: q_{t+1} = \Pi\bigl(q_t - \eta\,(b - c_t)\bigr), \qquad \eta = \frac{\mathrm{step}}{b \sqrt{T}} .

Costs are scaled so that all rates equal b. The primal's payoff is :math:`(r - q^\top c + 1/b) / (1 + 1/b) \in [0, 1]`.
It skips when a remaining budget is below the maximum cost of a round, so with immediate feedback it never overspends.

*Guarantee* (their theorems, up to constants and logarithms): stationary regret is :math:`\tilde O(\sqrt{mT}/b)`,
and against an adversary the reward is a share :math:`\Omega(b)` of the optimum. The step constant is not theirs.
O(m + d) per round, no LP. Late feedback: importance weights use the probability of the decision, and prices are the
current ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.bounds import Constants
from driftsack.core.checks import LARGEST_SETTING, above_zero
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.ledger import can_pay
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.numerics.exp3p import Exp3P, new_exp3p, update_probabilities, update_weights
from driftsack.numerics.projections import onto_capped_orthant
from driftsack.numerics.sampling import draw
from driftsack.policies.parts.open_arms import restrict_to_open
from driftsack.policies.policy import Policy


class State(NamedTuple):
    """The weights of the primal and the prices."""

    primal: Exp3P  # m arms, then SKIP
    prices: Floats  # (d,) of scaled resources
    scale: Constants  # (d,) b / b_j
    rate: float  # b
    round_rate: Floats  # (d,) the rate of each scaled resource in the last round chosen
    step: float  # eta


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Draw from the primal's probabilities, or skip if a budget does not cover the round."""
    update_probabilities(state.primal)
    uniform = rng.random()
    affordable = can_pay(round.ledger, 1) or round.must
    for i in range(mix.size):
        mix[i] = state.primal.probabilities[i] if affordable else 0.0
    restrict_to_open(round, mix)
    for j in range(prices.size):
        prices[j] = state.prices[j] * state.scale[j]
        state.round_rate[j] = round.rate[j] * state.scale[j]
    return draw(mix, uniform)


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Update the primal at the current prices, then the prices."""
    # Payoff of the primal, scaled to [0, 1].
    paid, most = 0.0, 1.0 / state.rate
    for j in range(outcome.costs.size):
        paid += state.prices[j] * (outcome.costs[j] * state.scale[j])
    payoff = (outcome.reward - paid + most) / (1.0 + most)
    action = state.primal.log_weights.size - 1 if outcome.arm == SKIP else outcome.arm
    update_weights(state.primal, action, max(outcome.probability, 1e-12), min(max(payoff, 0.0), 1.0))
    move_prices(state, outcome.costs)


@kernel
def restart_primal(state: State) -> None:
    """Give all actions equal weights again; the prices stay."""
    state.primal.log_weights[:] = 0.0


@kernel
def move_prices(state: State, costs: Floats) -> None:
    """Take a projected gradient step of the dual; ``costs`` (d,)."""
    for j in range(costs.size):
        state.prices[j] -= state.step * (state.round_rate[j] - costs[j] * state.scale[j])
    onto_capped_orthant(state.prices, 1.0 / state.rate)


@dataclass(frozen=True)
class DualDescent(Policy):
    """Dual descent: EXP3.P on priced rewards, and projected gradient steps on the prices.

    Attributes:
        step: Factor on the dual's step size 1/(b sqrt(T)).
        delta: The failure probability of EXP3.P; None for 1/T.

    >>> DualDescent(step=0.5).to_spec()
    {'policy': 'DualDescent', 'step': 0.5, 'delta': None}
    """

    step: float = 1.0
    delta: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", above_zero(self.step, "step", LARGEST_SETTING))
        if self.delta is not None:
            object.__setattr__(self, "delta", above_zero(self.delta, "delta"))

    @property
    def forgets(self) -> bool:
        """True: the bonus of EXP3.P bounds the lead of any action, so old outcomes lose their effect."""
        return True

    def new_state(self, problem: Problem) -> State:
        """Return the state with equal weights and zero prices."""
        horizon = problem.horizon
        rate = min(max(float(problem.rate.min()), 1e-9), 1.0)
        return State(
            primal=new_exp3p(problem.arms + 1, horizon, self.delta or 1 / horizon),
            prices=np.zeros(problem.resources),
            scale=rate / np.maximum(problem.rate, rate),
            rate=rate,
            round_rate=np.full(problem.resources, rate),
            step=self.step / (rate * math.sqrt(horizon)),
        )
