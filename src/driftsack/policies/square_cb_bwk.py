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
from driftsack.policies.parts.kept_rounds import KeptRounds, replay
from driftsack.policies.parts.linear_bank import (
    LinearBank,
    checked_forgetting,
    estimate,
    learn_levels_again,
    list_estimates,
    mean_reward,
    mix_coefficients,
    new_bank,
    observe_context,
)
from driftsack.policies.parts.linear_choice import untried
from driftsack.policies.parts.open_arms import uniform_over_open
from driftsack.policies.parts.replayed_price import (
    LATEST,
    ReplayedPrice,
    keep_round,
    move_price,
    new_replayed_price,
    next_price,
    price_musts,
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
            correct_mixes(choice, round, steps)
        weigh_by_gap(choice, round, bank.mean, choice.price.price, False, mix)
        arm = draw(mix, rng.random())
    show_prices(choice.price, prices)
    if arm != SKIP:
        bank.last[arm] = round.t
    return arm


@kernel
def weigh_by_gap(choice: Weighting, round: Round, values: Floats, price: Floats, any_arm: bool, mix: Floats) -> None:
    """Write the probabilities of the open arms, or of all, at estimates (m, 1 + d) and a price."""
    # Values of the arms, and the best action.
    skip_cost = usual_skip_cost(round) if any_arm else round.skip_cost
    best, top = SKIP, -skip_cost
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
def correct_mixes(choice: Weighting, round: Round, steps: int) -> None:
    """Correct the prices by the spending of the randomised policy on the kept rounds."""
    replayed, reward = choice.price, mean_reward(choice.bank)
    mix_coefficients(choice.bank)
    first, last = next_price(replayed, steps)
    for one in range(first, last + 1):
        kept = replayed.latest if one == LATEST else replayed.sample
        replay(kept, choice.bank)
        if one == LATEST:
            price_musts(replayed, round)
        for _ in range(steps):
            use_mixes(choice, kept, replayed.both[one], round)
            move_price(replayed, choice.bank, round, reward, one)


@kernel
def use_mixes(choice: Weighting, kept: KeptRounds, price: Floats, round: Round) -> None:
    """Write what the probabilities at a price would use in the kept rounds."""
    used = choice.price.used
    for j in range(used.size):
        used[j] = 0.0
    for s in range(kept.filled[0]):
        weigh_by_gap(choice, round, kept.values[s], price, True, choice.chances)
        for i in range(choice.chances.size):
            for j in range(used.size):
                used[j] += choice.chances[i] * max(kept.values[s, i, 1 + j], 0.0)


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
        return State(new_standardiser(problem.features, follows=False), choice)
