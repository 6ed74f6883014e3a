r"""Prices at which the *randomised* policy would spend the remaining rate on the latest contexts.

The last 128 contexts are kept with the noise that was drawn for them. Every few rounds, and at once after a cost that
lowers the remaining rate by a tenth, the current estimates at these contexts are computed, the noise is added, and the
prices take a few steps of

.. math:: q_j \leftarrow q_j \exp\Bigl(\eta_j \log \frac{\kappa_j\, \text{spending}_j(q)}{\rho_j}\Bigr), \qquad
          \rho_j = \frac{\text{remaining budget } j - \text{pending}_j}{\text{remaining rounds}},

where :math:`\text{pending}_j = f \sum_i n_i \hat c_{ij}` is the expected cost of the :math:`n_i` decisions of each arm
that have not been charged, from its recent mean cost and the share f of them that are expected to be
(:func:`~driftsack.game.records.share_to_pay`): without it, late outcomes look like savings, and the price falls until
they arrive. The spending is the mean cost of the policy's choices on those contexts at prices q, among the arms that
were open then. The step :math:`\eta_j` grows while the price keeps its direction and halves when it reverses, because
spending jumps where the best arm changes. A price that ignores the noise spends too much, because the noise favours
arms whose costs are drawn too small. After an announced change of costs the prices are solved again before each of the
next decisions: at the old prices, a cheap arm that becomes expensive could exhaust the budget within a few rounds.

*Actual spending.* The policy may spend less than its draws say, because probes are withheld or costs are overestimated,
and a price that trusts the draws would leave budget unspent. With moving averages over 200 rounds of what the draws
would have spent and of what was spent, both in units of the budget rate,

.. math:: \kappa_j = \min\Bigl(1, \frac{1 + \text{spent}_j}{1 + \text{drawn}_j}\Bigr).

What was spent is the share of rounds with a pull times the mean cost of an observed pull, so that late outcomes do not
count as savings. Spending above the draws needs no correction: it lowers :math:`\rho_j`, and a single absurd bill must
not raise the price twice.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import Constants, Counts, Scratch, within
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.musts import optional_rate
from driftsack.game.records import Round, share_to_pay
from driftsack.game.two_speed import best_above, best_response
from driftsack.numerics.compiled import kernel
from driftsack.policies.parts.linear_bank import LARGEST_ESTIMATE, LATELY, LinearBank, mix_coefficients
from driftsack.policies.parts.ridge import combine_rows
from driftsack.policies.parts.standardiser import LARGEST

KEPT: Final = 128  # rounds that are replayed
EARLY: Final = 64  # prices are corrected in each of the first and of the last rounds
SOON: Final = 2048  # first rounds in which corrections are frequent
OFTEN: Final = 25  # rounds between two corrections at first
LATER: Final = 50  # rounds between two corrections later
MOVED: Final = 0.1  # relative change of a remaining rate after which prices are corrected at once
MEMORY: Final = 200.0  # rounds of the moving averages of spending
STEPS: Final = 5  # steps per correction
MANY_STEPS: Final = 200  # steps per correction after an announcement
ANNOUNCED: Final = 10  # rounds with many steps after an announcement, because some rounds may offer few arms
LARGEST_STEP: Final = 0.5
SMALLEST_STEP: Final = 1e-3
GROWTH: Final = 1.3  # factor on a step that keeps its direction
SHRINK: Final = 0.5  # factor on a step that reverses
RANGE: Final = 1e3  # prices, per budget rate, stay within this factor of the mean reward
LITTLE: Final = 1e-3
LARGEST_DRAW: Final = 1e90  # of an estimate plus its noise


class ReplayedPrice(NamedTuple):
    """The latest rounds and the prices."""

    contexts: Annotated[Floats, within(-LARGEST, LARGEST)]  # (KEPT, p) the latest vectors
    noise: Annotated[Floats, within(-LARGEST_DRAW, LARGEST_DRAW)]  # (KEPT, m, 1 + d) what was added to the estimates
    factors: Annotated[Floats, within(0.0, LARGEST_DRAW)]  # (KEPT, m, d) of the price lists of these rounds; 1 without
    rounds: Scratch  # (KEPT, m, 1 + d) written: rewards and costs, in units of the budget rate
    held: Counts  # (1,) rounds so far
    price: Annotated[Floats, within(0.0, RANGE * LARGEST_ESTIMATE)]  # (d,) reward per budget rate; 0 before the first
    step: Annotated[
        Floats, within(-LARGEST_STEP, LARGEST_STEP)
    ]  # (d,) the size of the next step; negative if the last one lowered the price
    announced: Annotated[
        Ints, within(0, ANNOUNCED)
    ]  # (1,) rounds left in which the prices are solved again, after costs were announced
    rate: Annotated[Floats, within(0.0, LARGEST_ESTIMATE)]  # (d,) the remaining rates at the last correction
    drawn: Annotated[Floats, within(0.0, LARGEST_DRAW)]  # (d,) moving average of the spending of the draws
    pulls: Annotated[Floats, within(0.0, 1.0)]  # (1,) moving average of the share of rounds with a pull
    paid: Annotated[Floats, within(0.0, LARGEST_ESTIMATE)]  # (d,) moving average of the cost of a pull
    must_cost: Annotated[Floats, within(0.0, LARGEST_DRAW)]  # (d,) mean cost of a request that must be served
    used: Floats  # (d,) scratch: spending over the kept rounds
    unit: Constants  # (d,) the budget rate


def new_replayed_price(problem: Problem, size: int, unit: Floats) -> ReplayedPrice:
    """Create the state without rounds and prices."""
    resources = problem.resources
    return ReplayedPrice(
        contexts=np.zeros((KEPT, size)),
        noise=np.zeros((KEPT, problem.arms, 1 + resources)),
        factors=np.ones((KEPT, problem.arms, resources)),
        rounds=np.zeros((KEPT, problem.arms, 1 + resources)),
        held=np.zeros(1, dtype=np.int64),
        price=np.zeros(resources),
        step=np.full(resources, LARGEST_STEP),
        announced=np.zeros(1, dtype=np.int64),
        rate=np.zeros(resources),
        drawn=np.zeros(resources),
        pulls=np.zeros(1),
        paid=np.zeros(resources),
        must_cost=np.zeros(resources),
        used=np.zeros(resources),
        unit=unit.copy(),
    )


@kernel
def keep_round(replayed: ReplayedPrice, bank: LinearBank, round: Round, x: Floats, means: Floats, drawn: Floats) -> int:
    """Keep the context and the noise (m, 1 + d) of a round; return the number of price steps that are due.

    An arm that is closed in the round is no best response in its replay, whatever is open later.
    """
    row = replayed.held[0] % replayed.rounds.shape[0]
    for f in range(x.size):
        replayed.contexts[row, f] = x[f]
    for i in range(means.shape[0]):
        for k in range(means.shape[1]):
            replayed.noise[row, i, k] = drawn[i, k] - means[i, k]
        if not round.open[i]:
            replayed.noise[row, i, 0] = -LARGEST_DRAW
        for j in range(round.factors.shape[0]):
            replayed.factors[row, i, j] = round.factors[j, i]
    replayed.held[0] += 1
    held = replayed.held[0]
    if replayed.announced[0] > 0:
        replayed.announced[0] -= 1
        return MANY_STEPS
    always = held < EARLY or round.rounds_left < EARLY or rate_moved(replayed, bank, round)
    return STEPS if always or held % (OFTEN if held < SOON else LATER) == 0 else 0


@kernel
def committed(round: Round, bank: LinearBank, j: int) -> float:
    """Return what pending decisions will cost, from the recent costs of their arms, in units of the budget rate."""
    share, total = share_to_pay(round), 0.0
    if share > 0.0:
        for i in range(round.unpaid.size):
            total += share * round.unpaid[i] * bank.levels[i, LATELY, 1 + j] * round.usual_factors[j, i]
    return total


@kernel
def rate_left(replayed: ReplayedPrice, bank: LinearBank, round: Round, j: int) -> float:
    """Return the budget ``j`` that remains after pending decisions per remaining round, in units of the budget rate."""
    free = round.ledger.budget[j] - round.ledger.spent[j] - round.margin[j]
    left = free / replayed.unit[j] - committed(round, bank, j)
    rate = max(left, 0.0) / round.rounds_left
    return optional_rate(round, rate, replayed.must_cost[j]) if round.must_share > 0.0 else float(rate)


@kernel
def rate_moved(replayed: ReplayedPrice, bank: LinearBank, round: Round) -> bool:
    """Return whether a remaining rate is another one than at the last correction, for example after a large cost."""
    moved = False
    for j in range(replayed.rate.size):
        moved = moved or abs(rate_left(replayed, bank, round, j) - replayed.rate[j]) > MOVED * replayed.rate[j]
    return moved


@kernel
def kept_rounds(replayed: ReplayedPrice) -> int:
    """Return the number of kept rounds."""
    return int(min(replayed.held[0], replayed.rounds.shape[0]))


@kernel
def replay(replayed: ReplayedPrice, bank: LinearBank) -> None:
    """Write the current estimates at the kept contexts, plus the noise of their rounds."""
    mix_coefficients(bank)
    for s in range(kept_rounds(replayed)):
        values, noise = replayed.rounds[s].reshape(bank.mixed.shape[1]), replayed.noise[s]
        combine_rows(bank.mixed, replayed.contexts[s], 0, values.size, values)
        for i in range(noise.shape[0]):
            first = i * noise.shape[1]
            values[first] += noise[i, 0]
            for k in range(1, noise.shape[1]):
                values[first + k] = max(values[first + k] * replayed.factors[s, i, k - 1] + noise[i, k], 0.0)


@kernel
def price_musts(replayed: ReplayedPrice, round: Round) -> None:
    """Estimate the mean cost of requests that must be served, at the present prices in the kept rounds."""
    if round.must_share == 0.0:
        return
    replayed.must_cost[:] = 0.0
    count = kept_rounds(replayed)
    for s in range(count):
        arm = best_above(replayed.rounds[s], replayed.price, round, True, -0.5 * LARGEST_DRAW)
        if arm >= 0:
            for j in range(replayed.used.size):
                replayed.must_cost[j] += min(replayed.rounds[s, arm, 1 + j] / count, LARGEST_DRAW / count)


@kernel
def solve_price(replayed: ReplayedPrice, bank: LinearBank, round: Round, reward: float, steps: int) -> None:
    """Correct the prices for a policy that chooses the best arm in each kept round; ``reward`` is the mean reward."""
    for _ in range(steps):
        for j in range(replayed.used.size):
            replayed.used[j] = 0.0
        for s in range(kept_rounds(replayed)):
            arm = best_response(replayed.rounds[s], replayed.price, round, True)
            if arm >= 0:
                for j in range(replayed.used.size):
                    replayed.used[j] += replayed.rounds[s, arm, 1 + j]
        move_price(replayed, bank, round, reward)


@kernel
def show_prices(replayed: ReplayedPrice, prices: Floats) -> None:
    """Write the prices of a decision, per unit of each resource."""
    for j in range(prices.size):
        prices[j] = replayed.price[j] / replayed.unit[j]


@kernel
def move_price(replayed: ReplayedPrice, bank: LinearBank, round: Round, reward: float) -> None:
    """Make one step of the prices, which stay within a factor of the mean reward."""
    count = kept_rounds(replayed)
    for j in range(replayed.price.size):
        left = rate_left(replayed, bank, round, j)
        replayed.rate[j] = min(left, LARGEST_ESTIMATE)
        spending = actual_share(replayed, j) * replayed.used[j] / count
        excess = math.log(max(spending / max(left, LITTLE), LITTLE))
        price = replayed.price[j] if replayed.price[j] > 0.0 else reward
        # The step grows in the same direction and shrinks when it reverses.
        size = abs(replayed.step[j])
        size *= GROWTH if (excess > 0.0) == (replayed.step[j] > 0.0) else SHRINK
        size = min(max(size, SMALLEST_STEP), LARGEST_STEP)
        replayed.step[j] = size if excess > 0.0 else -size
        price *= math.exp(size * min(max(excess, -1.0), 1.0))
        replayed.price[j] = min(max(price, reward / RANGE), reward * RANGE)


@kernel
def actual_share(replayed: ReplayedPrice, j: int) -> float:
    """Return the factor of resource ``j`` from the spending of the draws to actual spending, at most 1."""
    return float(min((1.0 + replayed.pulls[0] * replayed.paid[j]) / (1.0 + replayed.drawn[j]), 1.0))


@kernel
def note_choice(replayed: ReplayedPrice, estimates: Floats, wanted: int, chosen: int) -> None:
    """Record the arm that the draws ``estimates`` (m, 1 + d) wanted and the arm that was chosen, relative to a list."""
    row = (replayed.held[0] - 1) % replayed.rounds.shape[0]
    for j in range(replayed.drawn.size):
        cost = estimates[wanted, 1 + j] / max(replayed.factors[row, wanted, j], LITTLE) if wanted != SKIP else 0.0
        replayed.drawn[j] += (cost - replayed.drawn[j]) / MEMORY
    replayed.pulls[0] += ((0.0 if chosen == SKIP else 1.0) - replayed.pulls[0]) / MEMORY


@kernel
def note_costs(replayed: ReplayedPrice, outcome: Floats, count: float) -> None:
    """Record the costs in an ``outcome`` (1 + d,), the ``count``-th one, relative to a list."""
    for j in range(replayed.paid.size):
        replayed.paid[j] += (outcome[1 + j] - replayed.paid[j]) / min(count, MEMORY)


def announce_costs(replayed: ReplayedPrice, arm: int, factors: Floats) -> None:
    """Scale the noise of an arm's costs by ``factors`` (d,), and solve the prices again in the next rounds."""
    replayed.factors[:, arm] = np.minimum(replayed.factors[:, arm] * factors, LARGEST_DRAW)
    replayed.noise[:, arm, 1:] = np.clip(replayed.noise[:, arm, 1:] * factors, -LARGEST_DRAW, LARGEST_DRAW)
    replayed.step[:] = LARGEST_STEP
    replayed.announced[0] = ANNOUNCED
