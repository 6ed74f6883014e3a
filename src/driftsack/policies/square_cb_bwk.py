r"""SquareCBwK: inverse gap weighting on the Lagrangian of a regression (Foster and Rakhlin 2020; Han et al. 2022).

With the estimates :math:`\hat y` of a bank of linear models and prices q, the value of an arm is
:math:`v_i = \hat y_{i0} - q^\top \hat y_{i,1..d}`, and skipping has value 0. With :math:`v^*` the largest value, every
other action has the probability

.. math:: p_i = \frac{1}{m + 1 + \gamma \sqrt t\, (v^* - v_i)/g},

where g is the mean reward, and the best action has the remaining probability. At the chosen prices this randomised
policy would have spent the remaining rate on its latest rounds (:mod:`driftsack.policies.parts.replayed_price`). Its
probabilities are known, as off-policy evaluation requires.

*Guarantee* (theirs, for a dual step in place of the replayed prices): regret :math:`O(\sqrt{m T\, \mathrm{Reg}_{sq}})`
in a stationary environment whose means the regression can represent. A round costs :math:`O(m n^2)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats
from driftsack.core.checks import LARGEST_SETTING, above_zero
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round, usual_skip_cost
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.policies.contextual import ContextualPolicy
from driftsack.policies.parts.linear_bank import (
    LinearBank,
    checked_forgetting,
    estimate,
    learn_levels_again,
    list_estimates,
    mean_reward,
    new_bank,
    observe_context,
)
from driftsack.policies.parts.linear_choice import untried
from driftsack.policies.parts.open_arms import uniform_over_open
from driftsack.policies.parts.replayed_price import (
    ReplayedPrice,
    keep_round,
    kept_rounds,
    move_price,
    new_replayed_price,
    price_musts,
    replay,
    show_prices,
)
from driftsack.policies.parts.standardiser import Standardiser, new_standardiser, note_context, standardise


class Weighting(NamedTuple):
    """The belief and the prices."""

    bank: LinearBank
    price: ReplayedPrice
    chances: Floats  # (m,) scratch
    learning_rate: float  # gamma


class State(NamedTuple):
    """The standardised features, and the belief and prices."""

    features: Standardiser
    choice: Weighting


@kernel
def choose(state: State, round: Round, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Weight the arms by inverse gaps and draw one."""
    if note_context(state.features, round.context):
        learn_levels_again(state.choice.bank)
    standardise(state.features, round.context)
    choice, bank = state.choice, state.choice.bank
    # First pull untried arms, then choose uniformly until there is a reward.
    arm = untried(bank, round)
    if arm != SKIP:
        for i in range(mix.size):
            mix[i] = 0.0
        mix[arm] = 1.0
    elif bank.overall[0] == 0.0:
        uniform_over_open(round, mix)
        arm = draw(mix, rng.random())
    else:
        # Estimate at the context, correct the prices when it is due, and draw by inverse gaps.
        estimate(bank, state.features.x)
        list_estimates(bank, round)
        steps = keep_round(choice.price, bank, round, state.features.x, bank.mean, bank.mean)
        if steps > 0:
            replay(choice.price, bank)
            price_musts(choice.price, round)
            solve_spending(choice, round, steps)
        weigh_by_gap(choice, round, bank.mean, False, mix)
        arm = draw(mix, rng.random())
    show_prices(choice.price, prices)
    if arm != SKIP:
        bank.last[arm] = round.t
    return arm


@kernel
def weigh_by_gap(choice: Weighting, round: Round, values: Floats, any_arm: bool, mix: Floats) -> None:
    """Write the probabilities of the open arms, or of all, at estimates (m, 1 + d)."""
    # Values of the arms, and the best action.
    skip_cost = usual_skip_cost(round) if any_arm else round.skip_cost
    best, top, price = SKIP, -skip_cost, choice.price.price
    for i in range(mix.size):
        value = values[i, 0]
        for j in range(price.size):
            value -= price[j] * values[i, 1 + j]
        mix[i] = value
        if (any_arm or round.open[i]) and value > top:
            best, top = i, value
    # Inverse gap weights; the best action has the remaining probability.
    rate = choice.learning_rate * math.sqrt(round.t + 1.0) / mean_reward(choice.bank)
    total = 0.0 if best == SKIP else 1.0 / (mix.size + 1.0 + rate * (top + skip_cost))
    for i in range(mix.size):
        mix[i] = 1.0 / (mix.size + 1.0 + rate * (top - mix[i])) if (any_arm or round.open[i]) and i != best else 0.0
        total += mix[i]
    if best != SKIP:
        mix[best] = 1.0 - total


@kernel
def solve_spending(choice: Weighting, round: Round, steps: int) -> None:
    """Correct the prices by the spending of the randomised policy on the kept rounds."""
    replayed = choice.price
    for _ in range(steps):
        for j in range(replayed.used.size):
            replayed.used[j] = 0.0
        for s in range(kept_rounds(replayed)):
            weigh_by_gap(choice, round, replayed.rounds[s], True, choice.chances)
            for i in range(choice.chances.size):
                for j in range(replayed.used.size):
                    replayed.used[j] += choice.chances[i] * max(replayed.rounds[s, i, 1 + j], 0.0)
        move_price(replayed, choice.bank, round, mean_reward(choice.bank))


@kernel
def learn(state: State, outcome: Outcome) -> None:
    """Update the belief about the arm."""
    if outcome.arm != SKIP:
        standardise(state.features, outcome.context)
        observe_context(state.choice.bank, outcome, state.features.x)


@dataclass(frozen=True)
class SquareCBwK(ContextualPolicy):
    """Inverse gap weighting under budgets, on a bank of linear models.

    Attributes:
        learning_rate: The factor γ; the larger it is, the less often arms with larger gaps are chosen.
        forgetting: As in ``LinearBwK``.

    >>> SquareCBwK(learning_rate=50).to_spec()
    {'policy': 'SquareCBwK', 'learning_rate': 50.0, 'forgetting': None}
    """

    learning_rate: float = 30.0
    forgetting: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "learning_rate", above_zero(self.learning_rate, "learning_rate", LARGEST_SETTING))
        object.__setattr__(self, "forgetting", checked_forgetting(self.forgetting))

    def new_state(self, problem: Problem) -> State:
        """Return the state without observations."""
        self.check_features(problem)
        bank = new_bank(problem, problem.features + 1, self.forgetting)
        choice = Weighting(
            bank,
            new_replayed_price(problem, problem.features + 1, bank.unit),
            np.zeros(problem.arms),
            self.learning_rate,
        )
        return State(new_standardiser(problem.features), choice)
