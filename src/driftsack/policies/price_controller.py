r"""A price controller on discounted means: a baseline in the style of ad pacing.

*Estimates* are discounted means: before round t an outcome of round s has the weight :math:`\gamma^{t-s}`.

*Choice.* Each resource has a price :math:`\lambda_j`, in reward per unit of the remaining rate :math:`\rho_j` (the
remaining budget per remaining round). The arm with the largest

.. math:: \hat\mu_i - \sum_j \lambda_j \hat c_{j,i} / \rho_j

is chosen, or the round is skipped if none is above 0; with probability ε any arm is pulled.

*Control.* The price rises when the chosen arm is expected to spend more than the remaining rate, and falls otherwise:

.. math:: \lambda_j \leftarrow \lambda_j \exp\bigl(\eta \min(\hat c_{j,a} / \rho_j - 1, 3)\bigr),

with a cost of 0 for a skipped round. It starts at the largest estimated reward divided by d, and stays within a
factor of 1,000 of the largest reward. Because the mean cost enters instead of the observed one, a rare huge cost moves
the price only through :math:`\rho`.

Costs enter only relative to the budget, so the scale of ``cost_max`` does not matter. No guarantee. O(md) per round,
no LP. Late feedback is added with the weight of its round at the time of arrival.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.bounds import Counts, NonNegative, within
from driftsack.core.checks import LARGEST_FLOAT, LARGEST_SETTING, above_zero, share
from driftsack.core.decision import SKIP
from driftsack.core.errors import OutOfRangeError
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.policies.parts.exploration import try_untried
from driftsack.policies.parts.means import DiscountedMeans, discount_arm, discounted_means, observe_discounted
from driftsack.policies.parts.open_arms import explore_open
from driftsack.policies.policy import Policy

LARGEST_EXCESS: Final = 3.0
RANGE: Final = 1e3
TINY: Final = 1e-12


class State(NamedTuple):
    """Discounted means and the prices."""

    means: DiscountedMeans
    pulls: Counts  # (m,) outcomes so far, without discount
    estimates: Floats  # (m, 1 + d) discounted means, rewards first
    rate: Annotated[Floats, within(TINY, LARGEST_FLOAT)]  # (d,) remaining budget per remaining round
    price: NonNegative  # (d,) lambda; 0 before every arm is tried
    epsilon: float
    gain: float  # eta


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Choose the arm with the largest reward net of priced costs, and update the prices."""
    mix[:] = 0.0
    prices[:] = 0.0
    # Discount once per round.
    if round.t > state.means.latest[0]:
        state.means.latest[0] = round.t
        for i in range(mix.size):
            discount_arm(state.means, i)
    # After every arm was tried: best response, control of the prices, exploration.
    if not try_untried(round, state.pulls, mix):
        best = best_response(state, round)
        if best != SKIP:
            mix[best] = 1.0
        control(state, best)
        explore_open(round, mix, state.epsilon)
        for j in range(prices.size):
            prices[j] = state.price[j] / state.rate[j]
    return draw(mix, rng.random())


@kernel
def best_response(state: State, round: Round) -> int:
    """Update the estimates and the rates, and return the best arm at the current prices, or SKIP."""
    ledger, means = round.ledger, state.means
    for j in range(state.rate.size):
        left = max(ledger.budget[j] - ledger.spent[j], 0.0)
        state.rate[j] = max(left / round.rounds_left, TINY)
    best, arm = -np.inf if round.must else 0.0, SKIP
    for i in range(state.pulls.size):
        for k in range(state.estimates.shape[1]):
            if means.pulls[i] > TINY:  # otherwise keep the last estimate, since the weights have vanished
                state.estimates[i, k] = means.sums[i, k] / means.pulls[i]
        value = state.estimates[i, 0]
        for j in range(state.rate.size):
            value -= state.price[j] * state.estimates[i, 1 + j] / state.rate[j]
        if round.open[i] and value > best:
            best, arm = value, i
    return arm


@kernel
def control(state: State, arm: int) -> None:
    """Raise the prices of resources that the arm overspends, and lower the others."""
    largest = TINY
    for i in range(state.pulls.size):
        largest = max(largest, state.estimates[i, 0])
    for j in range(state.price.size):
        if state.price[j] == 0.0:
            state.price[j] = largest / state.price.size
        used = state.estimates[arm, 1 + j] / state.rate[j] if arm != SKIP else 0.0
        price = state.price[j] * math.exp(state.gain * min(used - 1.0, LARGEST_EXCESS))
        state.price[j] = min(max(price, largest / RANGE), largest * RANGE)


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Add the outcome with its discounted weight."""
    if outcome.arm != SKIP:
        state.pulls[outcome.arm] += 1
        observe_discounted(state.means, outcome)


@dataclass(frozen=True)
class PriceController(Policy):
    """Price controller on discounted means.

    Attributes:
        discount: The factor γ in (0, 1); 1 - 1/w remembers about w rounds.
        epsilon: The probability of a uniformly random arm.
        gain: The step size η of the logarithm of the prices.

    >>> PriceController(discount=0.99).to_spec()["discount"]
    0.99
    """

    discount: float = 0.995
    epsilon: float = 0.02
    gain: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "discount", share(self.discount, "discount"))
        if self.discount in (0.0, 1.0):
            raise OutOfRangeError(f"discount must lie between 0 and 1, got {self.discount:g}.")
        object.__setattr__(self, "epsilon", share(self.epsilon, "epsilon"))
        object.__setattr__(self, "gain", above_zero(self.gain, "gain", LARGEST_SETTING))

    @property
    def forgets(self) -> bool:
        """True: the weight of an observation decays with its age."""
        return True

    @property
    def bounded(self) -> bool:
        """False: only ratios of rewards and of costs matter."""
        return False

    def new_state(self, problem: Problem) -> State:
        """Return the state without observations and with prices of 0."""
        arms, resources = problem.arms, problem.resources
        return State(
            means=discounted_means(problem, self.discount),
            pulls=np.zeros(arms, dtype=np.int64),
            estimates=np.zeros((arms, 1 + resources)),
            rate=np.ones(resources),
            price=np.zeros(resources),
            epsilon=self.epsilon,
            gain=self.gain,
        )
