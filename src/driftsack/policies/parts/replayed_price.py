r"""Prices at which the *randomised* policy would spend the remaining rate: on all contexts, and not too fast now.

Rounds are kept with their contexts and the noise that was drawn for them (:mod:`driftsack.policies.parts.kept_rounds`).
Every few rounds, and at once after a cost that lowers the remaining rate by a tenth, the current estimates at these
contexts are computed, the noise is added, and a price takes a few steps of

.. math:: q_j \leftarrow q_j \exp\Bigl(\eta_j \log \frac{\kappa_j\, \text{spending}_j(q)}{\theta \rho_j}\Bigr), \qquad
          \rho_j = \frac{\text{remaining budget } j - \text{pending}_j}{\text{remaining rounds}},

where :math:`\text{pending}_j = f \sum_i n_i \hat c_{ij}` is the expected cost of the :math:`n_i` decisions of each arm
that have not been charged, from its recent mean cost and the share f of them that are expected to be
(:func:`~driftsack.game.records.share_to_pay`): without it, late outcomes look like savings, and the price falls until
they arrive. The spending is the mean cost of the policy's choices in those rounds at prices q, among the arms that
were open then. The step :math:`\eta_j` grows while the price keeps its direction and halves when it reverses, because
spending jumps where the best arm changes. A price that ignores the noise spends too much, because the noise favours
arms whose costs are drawn too small. After an announced change of costs the prices are solved again before each of the
next decisions: at the old prices, a cheap arm that becomes expensive could exhaust the budget within a few rounds.

*Two speeds.* The *long-run price* (:math:`\theta = 1`) spends the rate on a sample of all rounds so far, so that
requests of a good hour get more than those of a bad one. The other price allows at most :math:`\theta = 2` times the
rate on the latest 128 rounds. Decisions use the larger of both, for each resource. The prices are corrected in turn, so
that a round takes no longer than with one of them. A sample of 128 rounds may happen to be cheap or expensive, and
would stay so: its spending is multiplied by the ratio of two moving averages over an eighth of the rounds, of what new
rounds would spend at the long-run price and of what the sample does. In the last 128 rounds the latest ones spend
at the even pace, because they say more about those to come: otherwise a bad hour at the end would leave budget unspent.

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
from driftsack.core.bounds import Constants, Counts, within
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.musts import optional_rate
from driftsack.game.records import Round, share_to_pay
from driftsack.game.two_speed import best_above, best_response
from driftsack.numerics.compiled import kernel
from driftsack.policies.parts.kept_rounds import (
    KEPT,
    LARGEST_DRAW,
    KeptRounds,
    keep_latest,
    keep_sample,
    new_kept_rounds,
    replay,
)
from driftsack.policies.parts.linear_bank import LARGEST_ESTIMATE, LATELY, LinearBank, mix_coefficients

SPEED: Final = 2.0  # maximum spending on the latest rounds, relative to the even pace
EARLY: Final = 64  # prices are corrected in each of the first and of the last rounds
SOON: Final = 2048  # first rounds in which corrections are frequent
OFTEN: Final = 25  # rounds between two corrections at first
LATER: Final = 50  # rounds between two corrections later
MOVED: Final = 0.1  # relative change of a remaining rate after which prices are corrected at once
MEMORY: Final = 200.0  # rounds of the moving averages of spending
LONG: Final = 8.0  # the part of all rounds that the averages of the long-run spending remember is 1 / LONG
STEPS: Final = 5  # steps per correction
MANY_STEPS: Final = 200  # steps per correction after an announcement
ANNOUNCED: Final = 10  # rounds with many steps after an announcement, because some rounds may offer few arms
LARGEST_STEP: Final = 0.5
SMALLEST_STEP: Final = 1e-3
GROWTH: Final = 1.3  # factor on a step that keeps its direction
SHRINK: Final = 0.5  # factor on a step that reverses
RANGE: Final = 1e3  # prices, per budget rate, stay within this factor of the mean reward
LITTLE: Final = 1e-3
LATEST: Final = 0  # the two prices
ALL: Final = 1

Price = Annotated[Floats, within(0.0, RANGE * LARGEST_ESTIMATE)]


class ReplayedPrice(NamedTuple):
    """The kept rounds and the prices."""

    latest: KeptRounds
    sample: KeptRounds  # of all rounds
    held: Counts  # (1,) rounds so far
    corrected: Counts  # (1,) corrections so far
    price: Price  # (d,) the larger of both prices, in reward per budget rate; 0 before the first
    both: Price  # (2, d) the price at which the latest rounds spend SPEED times the pace, and the long-run price
    step: Annotated[
        Floats, within(-LARGEST_STEP, LARGEST_STEP)
    ]  # (2, d) the size of the next step; negative if the last one lowered the price
    announced: Annotated[
        Ints, within(0, ANNOUNCED)
    ]  # (1,) rounds left in which the prices are solved again, after costs were announced
    rate: Annotated[Floats, within(0.0, LARGEST_ESTIMATE)]  # (d,) the remaining rates at the last correction
    drawn: Annotated[Floats, within(0.0, LARGEST_DRAW)]  # (d,) moving average of the spending of the draws
    pulls: Annotated[Floats, within(0.0, 1.0)]  # (1,) moving average of the share of rounds with a pull
    paid: Annotated[Floats, within(0.0, LARGEST_ESTIMATE)]  # (d,) moving average of the cost of a pull
    modelled: Annotated[Floats, within(0.0, LARGEST_DRAW)]  # (d,) spending of the sample at the long-run price
    fresh: Annotated[
        Floats, within(0.0, LARGEST_DRAW)
    ]  # (2, d) long averages: of that, and of the spending of each new round at the long-run price
    must_cost: Annotated[Floats, within(0.0, LARGEST_DRAW)]  # (d,) mean cost of a request that must be served
    used: Floats  # (d,) scratch: spending over the kept rounds
    unit: Constants  # (d,) the budget rate

    def check(self) -> None:
        """Raise unless there are kept rounds once there are rounds; spending is divided by their number."""
        if self.held[0] > 0 and not (self.latest.filled[0] > 0 and self.sample.filled[0] > 0):
            raise ValueError("the number of kept rounds does not fit the number of rounds")


def new_replayed_price(problem: Problem, size: int, unit: Floats) -> ReplayedPrice:
    """Create the state without rounds and prices."""
    resources = problem.resources
    return ReplayedPrice(
        latest=new_kept_rounds(problem.arms, resources, size),
        sample=new_kept_rounds(problem.arms, resources, size),
        held=np.zeros(1, dtype=np.int64),
        corrected=np.zeros(1, dtype=np.int64),
        price=np.zeros(resources),
        both=np.zeros((2, resources)),
        step=np.full((2, resources), LARGEST_STEP),
        announced=np.zeros(1, dtype=np.int64),
        rate=np.zeros(resources),
        drawn=np.zeros(resources),
        pulls=np.zeros(1),
        paid=np.zeros(resources),
        modelled=np.zeros(resources),
        fresh=np.zeros((2, resources)),
        must_cost=np.zeros(resources),
        used=np.zeros(resources),
        unit=unit.copy(),
    )


@kernel
def keep_round(replayed: ReplayedPrice, bank: LinearBank, round: Round, x: Floats, means: Floats, drawn: Floats) -> int:
    """Keep the context and the noise (m, 1 + d) of a round; return the number of price steps that are due."""
    number = replayed.held[0]
    keep_latest(replayed.latest, number, round, x, means, drawn)
    keep_sample(replayed.sample, number, round, x, means, drawn)
    replayed.held[0] += 1
    held = replayed.held[0]
    if replayed.announced[0] > 0:
        replayed.announced[0] -= 1
        return MANY_STEPS
    always = held < EARLY or round.rounds_left < EARLY or rate_moved(replayed, bank, round)
    return STEPS if always or held % (OFTEN if held < SOON else LATER) == 0 else 0


@kernel
def next_price(replayed: ReplayedPrice, steps: int) -> tuple[int, int]:
    """Return the first and the last of the prices to correct: both after an announcement, else they take turns."""
    replayed.corrected[0] += 1
    if steps == MANY_STEPS or replayed.held[0] < EARLY:
        return LATEST, ALL
    turn = int(replayed.corrected[0] % 2)
    return turn, turn


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
def price_musts(replayed: ReplayedPrice, round: Round) -> None:
    """Estimate the mean cost of requests that must be served, at the present prices in the latest rounds."""
    if round.must_share == 0.0:
        return
    replayed.must_cost[:] = 0.0
    count = replayed.latest.filled[0]
    for s in range(count):
        arm = best_above(replayed.latest.values[s], replayed.price, round, True, -0.5 * LARGEST_DRAW)
        if arm >= 0:
            for j in range(replayed.used.size):
                replayed.must_cost[j] += min(replayed.latest.values[s, arm, 1 + j] / count, LARGEST_DRAW / count)


@kernel
def correct_prices(replayed: ReplayedPrice, bank: LinearBank, round: Round, reward: float, steps: int) -> None:
    """Correct the prices for a policy that chooses the best arm in each kept round; ``reward`` is the mean reward."""
    mix_coefficients(bank)
    first, last = next_price(replayed, steps)
    for one in range(first, last + 1):
        kept = replayed.latest if one == LATEST else replayed.sample
        replay(kept, bank)
        if one == LATEST:
            price_musts(replayed, round)
        for _ in range(steps):
            use_best_arms(replayed, kept, replayed.both[one], round)
            move_price(replayed, bank, round, reward, one)


@kernel
def use_best_arms(replayed: ReplayedPrice, kept: KeptRounds, price: Floats, round: Round) -> None:
    """Write what the best arms at a price would use in the kept rounds."""
    for j in range(replayed.used.size):
        replayed.used[j] = 0.0
    for s in range(kept.filled[0]):
        arm = best_response(kept.values[s], price, round, True)
        if arm >= 0:
            for j in range(replayed.used.size):
                replayed.used[j] += kept.values[s, arm, 1 + j]


@kernel
def show_prices(replayed: ReplayedPrice, prices: Floats) -> None:
    """Write the prices of a decision, per unit of each resource."""
    for j in range(prices.size):
        prices[j] = replayed.price[j] / replayed.unit[j]


@kernel
def move_price(replayed: ReplayedPrice, bank: LinearBank, round: Round, reward: float, one: int) -> None:
    """Make one step of one of the prices, which stay within a factor of the mean reward."""
    count = replayed.latest.filled[0] if one == LATEST else replayed.sample.filled[0]
    for j in range(replayed.price.size):
        left = rate_left(replayed, bank, round, j)
        replayed.rate[j] = min(left, LARGEST_ESTIMATE)
        spending = replayed.used[j] / count
        if one == ALL:
            replayed.modelled[j] = min(spending, LARGEST_DRAW)
            spending *= fresh_share(replayed, j)
        target = SPEED * left if one == LATEST and round.rounds_left > KEPT else left
        excess = math.log(max(actual_share(replayed, j) * spending / max(target, LITTLE), LITTLE))
        price = replayed.both[one, j] if replayed.both[one, j] > 0.0 else reward
        # The step grows in the same direction and shrinks when it reverses.
        size = abs(replayed.step[one, j])
        size *= GROWTH if (excess > 0.0) == (replayed.step[one, j] > 0.0) else SHRINK
        size = min(max(size, SMALLEST_STEP), LARGEST_STEP)
        replayed.step[one, j] = size if excess > 0.0 else -size
        price *= math.exp(size * min(max(excess, -1.0), 1.0))
        replayed.both[one, j] = min(max(price, reward / RANGE), reward * RANGE)
        replayed.price[j] = replayed.both[LATEST, j]
        if round.rounds_left > KEPT:
            replayed.price[j] = max(replayed.price[j], replayed.both[ALL, j])


@kernel
def fresh_share(replayed: ReplayedPrice, j: int) -> float:
    """Return the ratio of the spending of new rounds to that of the sample, both at the long-run price."""
    return float((1.0 + replayed.fresh[1, j]) / (1.0 + replayed.fresh[0, j]))


@kernel
def note_fresh(replayed: ReplayedPrice, round: Round, estimates: Floats) -> None:
    """Record what the best arm of a new round would cost at the long-run price, and what the sample would."""
    arm = best_response(estimates, replayed.both[ALL], round)
    memory = min(float(replayed.held[0]), max((round.t + round.rounds_left) / LONG, MEMORY))
    for j in range(replayed.used.size):
        cost = estimates[arm, 1 + j] if arm >= 0 else 0.0
        replayed.fresh[0, j] += (replayed.modelled[j] - replayed.fresh[0, j]) / memory
        replayed.fresh[1, j] += (cost - replayed.fresh[1, j]) / memory


@kernel
def actual_share(replayed: ReplayedPrice, j: int) -> float:
    """Return the factor of resource ``j`` from the spending of the draws to actual spending, at most 1."""
    return float(min((1.0 + replayed.pulls[0] * replayed.paid[j]) / (1.0 + replayed.drawn[j]), 1.0))


@kernel
def note_choice(replayed: ReplayedPrice, estimates: Floats, wanted: int, chosen: int) -> None:
    """Record the arm that the draws ``estimates`` (m, 1 + d) wanted and the arm that was chosen, relative to a list."""
    row = (replayed.held[0] - 1) % KEPT
    for j in range(replayed.drawn.size):
        factor = max(replayed.latest.factors[row, wanted, j], LITTLE)
        cost = estimates[wanted, 1 + j] / factor if wanted != SKIP else 0.0
        replayed.drawn[j] += (cost - replayed.drawn[j]) / MEMORY
    replayed.pulls[0] += ((0.0 if chosen == SKIP else 1.0) - replayed.pulls[0]) / MEMORY


@kernel
def note_costs(replayed: ReplayedPrice, outcome: Floats, count: float) -> None:
    """Record the costs in an ``outcome`` (1 + d,), the ``count``-th one, relative to a list."""
    for j in range(replayed.paid.size):
        replayed.paid[j] += (outcome[1 + j] - replayed.paid[j]) / min(count, MEMORY)


def announce_costs(replayed: ReplayedPrice, arm: int, factors: Floats) -> None:
    """Scale the noise of an arm's costs by ``factors`` (d,), and solve the prices again in the next rounds."""
    for kept in (replayed.latest, replayed.sample):
        kept.factors[:, arm] = np.minimum(kept.factors[:, arm] * factors, LARGEST_DRAW)
        kept.noise[:, arm, 1:] = np.clip(kept.noise[:, arm, 1:] * factors, -LARGEST_DRAW, LARGEST_DRAW)
    replayed.step[:] = LARGEST_STEP
    replayed.announced[0] = ANNOUNCED
