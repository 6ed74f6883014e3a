r"""Prices at which the *randomised* policy would spend what a round may spend on the latest contexts.

The last 128 contexts are kept with the noise that was drawn at them. Every few rounds the present estimates at these
contexts are computed, the noise is added, and the prices take some steps of

.. math:: q_j \leftarrow q_j \exp\Bigl(\eta_j \log \frac{\text{spending}_j(q)}{\rho_j}\Bigr), \qquad
          \rho_j = \frac{\text{what is left of budget } j}{\text{rounds left}},

where the spending is what the policy would spend on those rounds at the prices q. The step :math:`\eta_j` grows
while the price moves on and halves when it turns back, since spending jumps at the price of an arm that is alone. A
price that is solved without the noise spends too much, because noise makes arms look better than they are whose costs
look small. After an announced change of costs the prices are solved again before each of the next decisions: at the old
ones a cheap arm that becomes expensive could use up the budget within a few rounds.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.checks import LARGEST_INT, Ranges
from driftsack.core.problem import Problem
from driftsack.game.records import Round
from driftsack.numerics.compiled import kernel
from driftsack.policies.parts.linear_bank import LARGEST_ESTIMATE, LinearBank, mix_coefficients
from driftsack.policies.parts.ridge import combine_rows
from driftsack.policies.parts.standardiser import LARGEST
from driftsack.policies.parts.two_speed import best_response

KEPT: Final = 128  # rounds
EARLY: Final = 64  # rounds in which the prices are corrected each time
SOON: Final = 2048  # rounds in which they are corrected often
OFTEN: Final = 25  # rounds between two corrections
LATER: Final = 50
STEPS: Final = 5  # of a correction
MANY_STEPS: Final = 200  # after an announcement
ANNOUNCED: Final = 10  # rounds for which that holds; some of them may offer few arms
LARGEST_STEP: Final = 0.5
SMALLEST_STEP: Final = 1e-3
GROWTH: Final = 1.3  # of a step that goes on
SHRINK: Final = 0.5  # of a step that turns back
RANGE: Final = 1e3  # of a price in units of the budget rate, over the mean reward
LITTLE: Final = 1e-3
LARGEST_DRAW: Final = 1e90  # of an estimate and what is added to it


class ReplayedPrice(NamedTuple):
    """The latest rounds and the prices."""

    contexts: Floats  # (KEPT, p) the latest vectors
    noise: Floats  # (KEPT, m, 1 + d) what was added to the estimates
    rounds: Floats  # (KEPT, m, 1 + d) written: rewards and costs, in units of the budget rate
    held: Ints  # (1,) rounds so far
    price: Floats  # (d,) reward per budget rate; 0 before the first
    step: Floats  # (d,) the size of the next step; negative if the last one lowered the price
    announced: Ints  # (1,) rounds left in which the prices are solved again, after costs were announced
    used: Floats  # (d,) scratch: spending over the kept rounds
    unit: Floats  # (d,) the budget rate

    def ranges(self, rounds: int) -> Ranges:  # noqa: ARG002
        """What the fields may hold after some rounds."""
        return {
            "contexts": (-LARGEST, LARGEST),
            "noise": (-LARGEST_DRAW, LARGEST_DRAW),
            "held": (0, LARGEST_INT),
            "price": (0.0, RANGE * LARGEST_ESTIMATE),
            "step": (-LARGEST_STEP, LARGEST_STEP),
            "announced": (0, ANNOUNCED),
            "unit": (self.unit, self.unit),
            "rounds": None,
        }


def new_replayed_price(problem: Problem, size: int, unit: Floats) -> ReplayedPrice:
    """No rounds so far."""
    resources = problem.resources
    return ReplayedPrice(
        contexts=np.zeros((KEPT, size)),
        noise=np.zeros((KEPT, problem.arms, 1 + resources)),
        rounds=np.zeros((KEPT, problem.arms, 1 + resources)),
        held=np.zeros(1, dtype=np.int64),
        price=np.zeros(resources),
        step=np.full(resources, LARGEST_STEP),
        announced=np.zeros(1, dtype=np.int64),
        used=np.zeros(resources),
        unit=unit.copy(),
    )


@kernel
def keep_round(replayed: ReplayedPrice, x: Floats, means: Floats, drawn: Floats) -> int:
    """Keep the context of a round and what was added to its estimates (m, 1 + d); return the steps of prices due."""
    row = replayed.held[0] % replayed.rounds.shape[0]
    for f in range(x.size):
        replayed.contexts[row, f] = x[f]
    for i in range(means.shape[0]):
        for k in range(means.shape[1]):
            replayed.noise[row, i, k] = drawn[i, k] - means[i, k]
    replayed.held[0] += 1
    held = replayed.held[0]
    if replayed.announced[0] > 0:
        replayed.announced[0] -= 1
        return MANY_STEPS
    return STEPS if held < EARLY or held % (OFTEN if held < SOON else LATER) == 0 else 0


@kernel
def kept_rounds(replayed: ReplayedPrice) -> int:
    """The number of rounds that are kept."""
    return int(min(replayed.held[0], replayed.rounds.shape[0]))


@kernel
def replay(replayed: ReplayedPrice, bank: LinearBank) -> None:
    """Write the present estimates at the kept contexts, with the noise of their rounds."""
    mix_coefficients(bank)
    for s in range(kept_rounds(replayed)):
        values, noise = replayed.rounds[s].reshape(bank.mixed.shape[1]), replayed.noise[s]
        combine_rows(bank.mixed, replayed.contexts[s], 0, values.size, values)
        for i in range(noise.shape[0]):
            first = i * noise.shape[1]
            values[first] += noise[i, 0]
            for k in range(1, noise.shape[1]):
                values[first + k] = max(values[first + k] + noise[i, k], 0.0)


@kernel
def solve_price(replayed: ReplayedPrice, round: Round, reward: float, steps: int) -> None:
    """Correct the prices for a policy that takes the best arm of each kept round; ``reward`` is the mean reward."""
    for _ in range(steps):
        for j in range(replayed.used.size):
            replayed.used[j] = 0.0
        for s in range(kept_rounds(replayed)):
            arm = best_response(replayed.rounds[s], replayed.price, round)
            if arm >= 0:
                for j in range(replayed.used.size):
                    replayed.used[j] += replayed.rounds[s, arm, 1 + j]
        move_price(replayed, round, reward)


@kernel
def show_prices(replayed: ReplayedPrice, prices: Floats) -> None:
    """Write the prices of a decision."""
    for j in range(prices.size):
        prices[j] = replayed.price[j] / replayed.unit[j]


@kernel
def move_price(replayed: ReplayedPrice, round: Round, reward: float) -> None:
    """One step of the prices, which stay within a factor of the mean reward."""
    ledger, count = round.ledger, kept_rounds(replayed)
    for j in range(replayed.price.size):
        left = max(ledger.budget[j] - ledger.spent[j], 0.0) / (round.rounds_left * replayed.unit[j])
        excess = math.log(max(replayed.used[j] / (count * max(left, LITTLE)), LITTLE))
        price = replayed.price[j] if replayed.price[j] > 0.0 else reward
        size = abs(replayed.step[j])
        size *= GROWTH if (excess > 0.0) == (replayed.step[j] > 0.0) else SHRINK
        size = min(max(size, SMALLEST_STEP), LARGEST_STEP)
        replayed.step[j] = size if excess > 0.0 else -size
        price *= math.exp(size * min(max(excess, -1.0), 1.0))
        replayed.price[j] = min(max(price, reward / RANGE), reward * RANGE)


def announce_costs(replayed: ReplayedPrice, arm: int, factors: Floats) -> None:
    """Let the prices be solved again, since the costs of an arm change.

    Args:
        replayed: The rounds and prices; changed in place.
        arm: The arm.
        factors: (d,) the factor of each resource.
    """
    replayed.noise[:, arm, 1:] = np.clip(replayed.noise[:, arm, 1:] * factors, -LARGEST_DRAW, LARGEST_DRAW)
    replayed.step[:] = LARGEST_STEP
    replayed.announced[0] = ANNOUNCED
