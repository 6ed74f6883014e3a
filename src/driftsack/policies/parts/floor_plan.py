r"""The plan for floors: the price of the minimised resource, and the rows of floors in a step LP.

To minimise a cost c subject to a mean reward of at least f is to maximise :math:`\mu^\top x - \kappa\, c^\top x` at the
*price* :math:`\kappa` of the resource at which the reward just reaches f; :math:`1/\kappa` is the cost of one more unit
of reward. So a policy that plans with the two-speed pacer (:mod:`driftsack.game.two_speed`) can keep floors: the floor
sets the price of the minimised resource, as a budget does that of another one.

*Step LP.* With :math:`n` the mean reward that is needed from now on (:func:`driftsack.game.floors.needed`, with what
pending decisions are expected to earn) and a credit y for the reward up to n, the mix solves

.. math:: \max_{x, y} \; (1 - \epsilon)\, \mu^\top x - \kappa\, c^\top x + 2 \epsilon\, y \quad
          \text{s.t. } y - \mu^\top x \le 0,\; y \le n,\; \textstyle\sum_i x_i = 1

with :math:`\epsilon = 0.15`. This is a packing program, whose slack basis is feasible. Reward below n is worth up to
30% more than reward above it, so the mix reaches n at the usual price, less if reward is expensive at present, and more
if it is cheap. While the pace is even the mix reaches n at any price up to a cap P,

.. math:: \max_{x, y} \; y - \frac1P c^\top x, \qquad P = 1000 .

Rewards are divided by the largest reward and costs by the largest mean cost of an arm, so P is the price of the whole
range of rewards in these costs. A minimum share of an arm has a credit of its own, bounded by the share that is needed,
which is worth more than every reward. Budgets stay as they are. The sum of the mix is 1 because skipping costs more
than everything else.

*Price.* A base price :math:`\kappa_0` is computed from the pacer's snapshots, in each of which the arm that is best at
a price is worth the mean reward that was expected of it at that time. (The snapshots themselves have the draws that the
policy planned with, and the best of several draws promises too much.) Let q be the mean reward of these arms at
:math:`\kappa_0`, and :math:`q^+` and :math:`q^-` those at the lowest and at the highest price. After :math:`2\sqrt T`
rounds :math:`\kappa_0` is the price at which q = n, and from then on, every 8 rounds,

.. math:: \kappa_0 \leftarrow \kappa_0 \exp\Bigl(\eta_t \frac{q - n}{q^+ - q^-}\Bigr), \qquad
          \eta_t = \min(12/\sqrt t, 0.4),

with n clipped to what some price reaches. The price of a round follows what is missing at once, so that less of it is
left for the last rounds:

.. math:: \kappa = \kappa_0 \exp\Bigl(-10\, \frac{n - f}{q^+ - q^-}\Bigr) .

Without a budget for the minimised resource its price is :math:`\kappa`; with one, it is the larger of :math:`\kappa`
and the price at which the budget lasts.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import NonNegative, Scratch, within
from driftsack.core.floors import QUALITY
from driftsack.core.problem import Problem
from driftsack.game.floors import needed, towards
from driftsack.game.records import Round, share_to_come, usual_skip_cost
from driftsack.game.two_speed import (
    EVERY,
    FIRST_STEP,
    NEVER_SKIP,
    SNAPSHOTS,
    STEP,
    TINY,
    TwoSpeed,
    average_price,
    best_above,
    charge,
    is_even,
)
from driftsack.numerics.compiled import kernel
from driftsack.numerics.simplex import STALE, Simplex, column_changed, new_simplex

MARGIN: Final = 0.15  # epsilon
CAP: Final = 1e3  # P
SHARE_WORTH: Final = 10.0  # of a minimum share, in largest rewards
LOWEST: Final = 1e-4  # the range of the price, in largest rewards per largest cost
HIGHEST: Final = 1e6
HALVINGS: Final = 50  # of the logarithm of the range, for the first price
GAIN: Final = 10.0  # by which the logarithm of the price follows what is missing at once
EDGE: Final = 0.02  # of the range of mean rewards, within which the price reaches them


class FloorPlan(NamedTuple):
    """The price of the minimised resource, and what the floors need; symbols as above."""

    price: NonNegative  # (1,) kappa_0, in reward per unit of the pacer; 0 until it is known
    paid: NonNegative  # (1,) kappa
    reach: NonNegative  # (1,) q+ - q-
    expected: NonNegative  # (S, m) the estimated mean rewards in each snapshot of the pacer
    kept: Annotated[Ints, within(0, SNAPSHOTS)]  # (1,) the snapshots of the pacer in the latest round
    needs: Scratch  # (k,) the mean reward and the shares that are needed from now on
    weight: Scratch  # (1,) scratch: the unit of the objective, so that its largest coefficient is about 1


def new_floor_plan(problem: Problem) -> FloorPlan:
    """Create a plan without a price."""
    return FloorPlan(
        price=np.zeros(1),
        paid=np.zeros(1),
        reach=np.zeros(1),
        expected=np.zeros((SNAPSHOTS, problem.arms)),
        kept=np.zeros(1, dtype=np.int64),
        needs=np.zeros(len(problem.floor)),
        weight=np.zeros(1),
    )


def new_floor_lp(arms: int, resources: int, floors: int) -> Simplex:
    """Create the LP of the two-speed pacer with the credits of floors.

    The columns are those of the arms, of the credits and of the pacer's u; two rows for each floor come last. Their
    coefficients are written by :func:`write_floors`, so that a checked file cannot contain others.
    """
    rows = 2 * resources + 1
    lp = new_simplex(rows + 2 * floors, arms + floors + resources)
    for j in range(resources):
        lp.columns[j, arms + floors + j] = -1.0
        lp.columns[resources + 1 + j, arms + floors + j] = 1.0
    lp.columns[resources, :arms] = 1.0
    lp.rhs[resources] = 1.0
    return lp


@kernel
def follow_floors(plan: FloorPlan, pacer: TwoSpeed, round: Round, expected: Floats, largest: Floats) -> None:
    """Write what the floors need, and update the price of the minimised resource.

    Args:
        plan: The plan.
        pacer: The pacer, after ``follow`` of this round; the price of the minimised resource is written.
        round: The round.
        expected: (m, 1 + d) the estimated means, which pending decisions are assumed to have.
        largest: (1 + d,) the largest outcomes.
    """
    account = round.floors
    share = share_to_come(round)
    for f in range(plan.needs.size):
        gained, counted = 0.0, 0.0
        for i in range(expected.shape[0] if share > 0.0 else 0):
            counted += share * round.pending[i]
            gained += share * round.pending[i] * towards(account, f, i, expected[i, 0])
        plan.needs[f] = needed(account, f, gained, counted, round.rounds_left)
    keep_expected(plan, pacer, expected)
    if is_even(pacer):
        return
    unit = largest[0] / largest[1 + account.minimised]
    if plan.price[0] == 0.0:
        find_price(plan, pacer, round, unit)
    elif pacer.rounds[0] % EVERY == 0:
        step_price(plan, pacer, round, unit)
    missing = (quality_needed(plan, round) - quality_floor(round)) / max(plan.reach[0], TINY)
    plan.paid[0] = plan.price[0] * math.exp(-GAIN * min(max(missing, -1.0), 1.0))
    j = account.minimised
    limited = pacer.pace[j] * pacer.unit[j] < 1.0
    pacer.price[j] = max(plan.paid[0], pacer.price[j]) if limited else plan.paid[0]


@kernel
def keep_expected(plan: FloorPlan, pacer: TwoSpeed, expected: Floats) -> None:
    """Keep the estimated rewards if the pacer has kept a snapshot, and thin out as it does."""
    before, now = plan.kept[0], pacer.kept[0]
    plan.kept[0] = now
    if now == before:
        return
    for s in range(now - 1 if now < before else 0):
        for i in range(expected.shape[0]):
            plan.expected[s, i] = plan.expected[2 * s, i]
    for i in range(expected.shape[0]):
        plan.expected[now - 1, i] = expected[i, 0]


@kernel
def find_price(plan: FloorPlan, pacer: TwoSpeed, round: Round, unit: float) -> None:
    """Find the price at which the best responses in all snapshots just have the planned mean reward."""
    low, high = math.log(LOWEST * unit), math.log(HIGHEST * unit)
    most = planned_reward(plan, pacer, round, LOWEST * unit)
    least = planned_reward(plan, pacer, round, HIGHEST * unit)
    target = reachable(quality_needed(plan, round), least, most)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if planned_reward(plan, pacer, round, math.exp(middle)) >= target:
            low = middle
        else:
            high = middle
    plan.price[0], plan.reach[0] = math.exp(low), max(most - least, 0.0)


@kernel
def step_price(plan: FloorPlan, pacer: TwoSpeed, round: Round, unit: float) -> None:
    """Raise the price if more is planned than needed, and lower it otherwise."""
    step = min(STEP / math.sqrt(pacer.rounds[0]), FIRST_STEP)
    most = planned_reward(plan, pacer, round, LOWEST * unit)
    least = planned_reward(plan, pacer, round, HIGHEST * unit)
    excess = planned_reward(plan, pacer, round, plan.price[0]) - reachable(quality_needed(plan, round), least, most)
    price = plan.price[0] * math.exp(step * excess / max(most - least, TINY))
    plan.price[0], plan.reach[0] = min(max(price, LOWEST * unit), HIGHEST * unit), max(most - least, 0.0)


@kernel
def reachable(need: float, least: float, most: float) -> float:
    """The mean reward that is planned: what is needed, but within what some price reaches.

    Otherwise the price would move on as long as it misses a mean reward that none reaches, and return late.
    """
    edge = EDGE * (most - least)
    return float(min(max(need, least + edge), most - edge))


@kernel
def quality_needed(plan: FloorPlan, round: Round) -> float:
    """The mean reward that is needed from now on; 0 if there is no floor on it."""
    for f in range(plan.needs.size):
        if round.floors.arm[f] == QUALITY:
            return float(plan.needs[f])
    return 0.0


@kernel
def quality_floor(round: Round) -> float:
    """The floor of the mean reward; 0 if there is none."""
    for f in range(round.floors.least.size):
        if round.floors.arm[f] == QUALITY:
            return float(round.floors.least[f])
    return 0.0


@kernel
def planned_reward(plan: FloorPlan, pacer: TwoSpeed, round: Round, price: float) -> float:
    """The mean reward that is expected of the best responses in all snapshots at a price of the minimised resource.

    The snapshots have the means that a policy planned with. If these are draws, the best of them promise more than the
    estimates. Arms with a minimum share answer that share of the requests.
    """
    j, kept, total = round.floors.minimised, pacer.kept[0], 0.0
    before = pacer.price[j]
    pacer.price[j] = price
    for s in range(kept):
        free = 1.0
        for f in range(plan.needs.size):
            arm = round.floors.arm[f]
            if arm != QUALITY:
                share = min(max(plan.needs[f], 0.0), free)
                free -= share
                total += share * plan.expected[s, arm]
        best = best_above(pacer.snapshots[s], pacer.price, round, True, NEVER_SKIP)
        if best >= 0:
            total += free * plan.expected[s, best]
    pacer.price[j] = before
    return float(total / kept)


@kernel
def write_floors(plan: FloorPlan, pacer: TwoSpeed, round: Round, lp: Simplex, means: Floats, largest: Floats) -> None:
    """Write the floors into an LP whose rewards, costs and tiers have been written for the usual goal.

    Args:
        plan: The plan, after :func:`follow_floors` of this round.
        pacer: The pacer.
        round: The round.
        lp: The LP of :func:`new_floor_lp`.
        means: (m, 1 + d) the means of the plan, at the listed costs of the round.
        largest: (1 + d,) the outcomes that are 1 in the LP.
    """
    arms, floors, resources = means.shape[0], plan.needs.size, pacer.pace.size
    write_credits(plan, round, lp, means, largest)
    # The unit of the objective, in which the largest cost is worth at most the largest reward.
    j, dearest = round.floors.minimised, TINY
    for i in range(arms):
        dearest = max(dearest, lp.columns[j, i])
    price = 1.0 / (CAP * dearest) if is_even(pacer) else plan.paid[0] * largest[1 + j] / largest[0]
    plan.weight[0] = 1.0 / max(1.0, price * dearest)
    # The objective of the arms, which has the rewards and the charges of the pacer.
    kept, skip = 0.0 if is_even(pacer) else 1.0 - MARGIN, usual_skip_cost(round)
    for i in range(arms):
        if round.open[i]:
            value = lp.objective[i] - skip - (price - charge(pacer, largest, j)) * lp.columns[j, i]
            value -= (1.0 - kept) * means[i, 0] / largest[0]
            lp.objective[i] = skip + plan.weight[0] * value
    # The objective of the credits and of what is spent above the even pace.
    for f in range(floors):
        worth = 1.0 if is_even(pacer) else 2.0 * MARGIN
        lp.objective[arms + f] = worth * plan.weight[0] if round.floors.arm[f] == QUALITY else SHARE_WORTH
    for k in range(resources):
        lp.objective[arms + floors + k] *= plan.weight[0]


@kernel
def write_credits(plan: FloorPlan, round: Round, lp: Simplex, means: Floats, largest: Floats) -> None:
    """Write the two rows of each floor: its credit is at most what the mix earns, and at most what is needed."""
    arms, first = means.shape[0], lp.rhs.size - 2 * plan.needs.size
    for f in range(plan.needs.size):
        row, credit = first + 2 * f, arms + f
        if lp.columns[row, credit] != 1.0 or lp.columns[row + 1, credit] != 1.0:
            lp.columns[row, credit] = lp.columns[row + 1, credit] = 1.0
            lp.counts[STALE] = 1
        unit = largest[0] if round.floors.arm[f] == QUALITY else 1.0
        lp.rhs[row + 1] = max(plan.needs[f], 0.0) / unit
        for i in range(arms):
            entry = -towards(round.floors, f, i, means[i, 0]) / unit
            if lp.columns[row, i] != entry:
                lp.columns[row, i] = entry
                column_changed(lp, i)


@kernel
def read_floors(plan: FloorPlan, pacer: TwoSpeed, round: Round, lp: Simplex, largest: Floats, prices: Floats) -> None:
    """Write the prices of the solved LP, and average those of budgets at the even pace.

    That of the minimised resource is the reward that one more unit of it buys, so its inverse is the cost of one more
    unit of reward.
    """
    for j in range(prices.size):
        price = (lp.duals[j] / plan.weight[0] + charge(pacer, largest, j)) * largest[0] / largest[1 + j]
        if j == round.floors.minimised:
            price = marginal_price(plan, pacer, round, lp, largest)
        elif is_even(pacer):
            average_price(pacer, j, price)
        prices[j] = price / pacer.unit[j]


@kernel
def marginal_price(plan: FloorPlan, pacer: TwoSpeed, round: Round, lp: Simplex, largest: Floats) -> float:
    """The price of the minimised resource: that of the plan, or at the even pace that of the LP."""
    j, unit, first = round.floors.minimised, largest[0], lp.rhs.size - 2 * plan.needs.size
    unit /= largest[1 + j]
    if not is_even(pacer):
        return float(plan.paid[0])
    arms, dearest, credit = round.open.size, TINY, 0.0
    for i in range(arms):
        dearest = max(dearest, lp.columns[j, i])
    for f in range(plan.needs.size):
        if round.floors.arm[f] == QUALITY:
            credit = lp.duals[first + 2 * f]
    return float(min(1.0 / (CAP * dearest * max(credit, TINY)), HIGHEST) * unit)
