r"""Two-speed pacing: spend less than the even pace when rewards per cost are low, and more when they are high.

Costs are in units of the budget rate. With :math:`\rho` the remaining budget, less the expected costs of
pending decisions that have not been charged, per remaining round, a *long-run price*
:math:`\lambda` of each resource, :math:`\theta` the maximum spending of a round in units of the even pace, and a
margin :math:`\epsilon = 0.15`, the mix solves

.. math:: \max_{x, u} \; \mu^\top x - (1 - \epsilon) \lambda^\top C x - 2 \epsilon \lambda^\top u \quad
          \text{s.t. } C x - u \le \rho,\; 0 \le u \le (\theta - 1) \rho,\; x \in \Delta_m .

The first :math:`\rho` units cost :math:`(1 - \epsilon) \lambda`, so they are saved if the current price is lower; the
next ones cost :math:`(1 + \epsilon) \lambda`, so they are spent if it is higher. No round plans to spend more than
:math:`\theta \rho`.

*Long-run price.* In the first :math:`2\sqrt T` rounds the pace is even, and :math:`\lambda` is the mean of the LP's
prices. Up to 32 *snapshots* :math:`(\mu^s, C^s)` of the means that the policy plans with are kept, evenly
spaced over all rounds so far; an arm that was closed in a snapshot is not chosen in it. Every 8 rounds,
with :math:`a_s` the best response to :math:`\lambda` in snapshot s,

.. math:: \lambda_j \leftarrow \lambda_j \exp\Bigl(\eta_t \min\Bigl(
          \frac{1}{\rho_j S} \sum_s C^s_{j a_s} - 1,\; 3\Bigr)\Bigr), \qquad \eta_t = \min(12/\sqrt t,\, 0.4),

so that :math:`\lambda` tends to the price at which choices as in the past would exactly exhaust the budget. If a policy
samples its means, the snapshots contain the samples: at a price computed from the estimates, a randomised policy would
not spend at the planned rate.

*The end.* The long-run price is that of all rounds so far, which say little about the last ones: if times have become
worse for good, it is too high, and what is saved is never spent. With ``ending`` :math:`c > 0` the margin grows with
the number n of rounds left of T, :math:`\epsilon = \max(0.15, \exp(-n/(cT)))`, so that the pace becomes even.

*Musts.* If some requests must be served, the plan holds back money for them (:mod:`driftsack.game.musts`); their mean
cost is that of the best arms at :math:`\lambda` in all snapshots, without skipping.

Any policy that plans with a linear program can use this part; ``Adaptive`` and ``ThompsonBwK`` do, and so does the
benchmark :func:`driftsack.benchmarks.present`. In each round it calls :func:`follow` with its means, writes them into
an LP of :func:`new_tiered_lp`, calls :func:`set_tiers`, solves, and calls :func:`draw_from_tiers`. O(Smd/8) per round
for S snapshots; memory O(Smd).
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import Constants, Counts, NonNegative, Scratch, Shares, within
from driftsack.core.checks import LARGEST_INT
from driftsack.core.problem import Problem
from driftsack.game.musts import optional_rate
from driftsack.game.records import Round, share_to_pay, usual_skip_cost
from driftsack.lp.step import LOOSE
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import draw
from driftsack.numerics.simplex import Simplex, new_simplex

SNAPSHOTS: Final = 32
MARGIN: Final = 0.15  # epsilon before the end
EVERY: Final = 8  # rounds between two steps of the long-run price
STEP: Final = 12.0  # of the price, divided by the square root of the number of rounds
FIRST_STEP: Final = 0.4  # the largest step
LARGEST_EXCESS: Final = 3.0
RANGE: Final = 1e3  # prices stay within this factor of the mean reward
LARGEST_REWARD: Final = 1e12  # above every reward and every cost of skipping
NEVER_SKIP: Final = -0.5 * LARGEST_REWARD  # below the value of every arm that was open
TINY: Final = 1e-100


class TwoSpeed(NamedTuple):
    """The long-run price and the snapshots from which it is computed."""

    price: Floats  # (d,) lambda, in reward per unit of the budget rate
    pace: Floats  # (d,) rho of the present round, in units of the budget rate
    snapshots: Floats  # (S, m, 1 + d) means, rewards first
    kept: Annotated[Ints, within(0, SNAPSHOTS)]  # (1,) snapshots in use
    gap: Annotated[Ints, within(1, LARGEST_INT)]  # (1,) rounds between two snapshots
    rounds: Counts  # (1,) rounds with means so far
    used: Scratch  # (d,) scratch: the resource use of the best responses
    must_cost: NonNegative  # (d,) the mean cost of a request that must be served, in units of the budget rate
    margin: Shares  # (1,) epsilon of the present round
    committed: Scratch  # (d,) scratch: the expected costs of pending decisions, in units of the budget rate
    unit: Constants  # (d,) the budget rate
    warm_up: int  # rounds at the even pace before the first step of the price
    speed: float  # theta
    remaining: bool  # pace by the remaining budget instead of the round's rate
    ending: float  # c; 0 for the same margin until the end

    def grow_from(self, old: TwoSpeed) -> None:
        """Keep the price and the snapshots of ``old``; a new arm is never a best response in them."""
        arms = old.snapshots.shape[1]
        self.snapshots[:, :arms] = old.snapshots
        self.snapshots[:, arms:, 0] = -LARGEST_REWARD
        for name in ("price", "pace", "kept", "gap", "rounds", "must_cost", "margin"):
            getattr(self, name)[:] = getattr(old, name)

    def check(self) -> None:
        """Raise unless there are snapshots once there are rounds."""
        if (self.kept[0] > 0) != (self.rounds[0] > 0):
            raise ValueError("the number of snapshots does not fit the number of rounds")


def new_two_speed(problem: Problem, speed: float = 2.0, remaining: bool = True, ending: float = 0.0) -> TwoSpeed:
    """Create a pacer without a price; ``remaining`` paces by the remaining budget instead of the round's rate."""
    arms, resources = problem.arms, problem.resources
    return TwoSpeed(
        price=np.zeros(resources),
        pace=np.ones(resources),
        snapshots=np.zeros((SNAPSHOTS, arms, 1 + resources)),
        kept=np.zeros(1, dtype=np.int64),
        gap=np.ones(1, dtype=np.int64),
        rounds=np.zeros(1, dtype=np.int64),
        used=np.zeros(resources),
        must_cost=np.zeros(resources),
        margin=np.full(1, MARGIN),
        committed=np.zeros(resources),
        unit=np.maximum(problem.planning_unit, TINY),
        warm_up=warm_up_rounds(problem.horizon),
        speed=speed,
        remaining=remaining,
        ending=ending,
    )


def warm_up_rounds(horizon: int) -> int:
    """Return the number of rounds at the even pace, before the first step of the price."""
    return math.ceil(2.0 * math.sqrt(horizon))


def new_tiered_lp(arms: int, resources: int) -> Simplex:
    """Create the LP above: columns of the arms, then of u; rows of the resources, the mix, and the bounds on u."""
    lp = new_simplex(2 * resources + 1, arms + resources)
    for j in range(resources):
        lp.columns[j, arms + j] = -1.0
        lp.columns[resources + 1 + j, arms + j] = 1.0
    lp.columns[resources, :arms] = 1.0
    lp.rhs[resources] = 1.0
    return lp


@kernel
def follow(pacer: TwoSpeed, round: Round, means: Floats, expected: Floats, reward: float) -> None:
    """Set the pace of a new round, keep its means ``(m, 1 + d)`` if a snapshot is due, and update the long-run price.

    Costs are in units of the budget rate. ``means`` are those that the policy plans with, perhaps sampled, ``expected``
    its estimates, and ``reward`` is the mean reward, which sets the scale of the price.
    """
    commit(pacer, round, expected)
    if round.must_share > 0.0:
        price_musts(pacer, round)
    set_pace(pacer, round)
    keep_snapshot(pacer, round, means)
    if not is_even(pacer):
        update_price(pacer, round, reward)
        set_margin(pacer, round)


@kernel
def set_margin(pacer: TwoSpeed, round: Round) -> None:
    """Write the margin of the round, which grows at the end."""
    if pacer.ending > 0.0:
        season = round.t + round.rounds_left
        pacer.margin[0] = max(MARGIN, math.exp(-round.rounds_left / (pacer.ending * season)))


@kernel
def commit(pacer: TwoSpeed, round: Round, expected: Floats) -> None:
    """Estimate the costs of unpaid decisions, which the pace deducts; reservations only decide admission."""
    share = share_to_pay(round)
    for j in range(pacer.committed.size):
        pacer.committed[j] = 0.0
        if share > 0.0:
            for i in range(expected.shape[0]):
                pacer.committed[j] += share * round.unpaid[i] * expected[i, 1 + j] * round.usual_factors[j, i]


@kernel
def set_pace(pacer: TwoSpeed, round: Round) -> None:
    """Write the even pace of the round, in units of the budget rate."""
    ledger = round.ledger
    for j in range(pacer.pace.size):
        rate = round.rate[j]
        if pacer.remaining:
            left = ledger.budget[j] - ledger.spent[j] - pacer.committed[j] * pacer.unit[j] - round.margin[j]
            rate = max(left, 0.0) / round.rounds_left
        pacer.pace[j] = rate / pacer.unit[j]
        if round.must_share > 0.0:
            pacer.pace[j] = optional_rate(round, pacer.pace[j], pacer.must_cost[j])


@kernel
def price_musts(pacer: TwoSpeed, round: Round) -> None:
    """Estimate the mean cost of requests that must be served, at the long-run price in all snapshots."""
    kept = pacer.kept[0]
    if kept == 0 or pacer.rounds[0] % EVERY != 0:
        return
    pacer.must_cost[:] = 0.0
    for s in range(kept):
        arm = best_above(pacer.snapshots[s], pacer.price, round, True, NEVER_SKIP)
        if arm >= 0:
            for j in range(pacer.price.size):
                pacer.must_cost[j] += pacer.snapshots[s, arm, 1 + j] / kept


@kernel
def is_even(pacer: TwoSpeed) -> bool:
    """Return whether the pace is even: always, or until the long-run price is known."""
    return pacer.speed <= 1.0 or pacer.rounds[0] <= pacer.warm_up


@kernel
def average_price(pacer: TwoSpeed, j: int, price: float) -> None:
    """Update the long-run price at the even pace, the mean of the LP's prices so far."""
    pacer.price[j] += (price - pacer.price[j]) / pacer.rounds[0]


@kernel
def update_price(pacer: TwoSpeed, round: Round, reward: float) -> None:
    """Make a step of the long-run price, every few rounds; it stays within a factor of the mean reward."""
    if pacer.rounds[0] % EVERY != 0:
        return
    # Spending of the best responses in all snapshots at the current price.
    kept, step = pacer.kept[0], min(STEP / math.sqrt(pacer.rounds[0]), FIRST_STEP)
    for j in range(pacer.price.size):
        pacer.used[j] = 0.0
    for s in range(kept):
        arm = best_response(pacer.snapshots[s], pacer.price, round, True)
        if arm >= 0:
            for j in range(pacer.price.size):
                pacer.used[j] += pacer.snapshots[s, arm, 1 + j]
    for j in range(pacer.price.size):
        # Multiplicative step, with a bounded excess.
        excess = pacer.used[j] / (kept * max(pacer.pace[j], TINY)) - 1.0
        price = pacer.price[j] * math.exp(step * min(excess, LARGEST_EXCESS))
        pacer.price[j] = min(max(price, reward / RANGE), reward * RANGE)


@kernel
def best_response(estimates: Floats, price: Floats, round: Round, any_arm: bool = False) -> int:
    """Return the open arm, or any, with the largest reward minus priced costs, or -1 if skipping is better."""
    skip_cost = usual_skip_cost(round) if any_arm else round.skip_cost
    return best_above(estimates, price, round, any_arm, -skip_cost)


@kernel
def best_above(estimates: Floats, price: Floats, round: Round, any_arm: bool, least: float) -> int:
    """Return the open arm, or any, with the largest reward minus priced costs above ``least``, or -1."""
    best, arm = least, -1
    for i in range(estimates.shape[0]):
        if not (any_arm or round.open[i]):
            continue
        value = estimates[i, 0]
        for j in range(price.size):
            value -= price[j] * estimates[i, 1 + j]
        if value > best:
            best, arm = value, i
    return arm


@kernel
def keep_snapshot(pacer: TwoSpeed, round: Round, means: Floats) -> None:
    """Count a round and keep its means if a snapshot is due; when full, thin out to every second snapshot.

    An arm that is closed in the round is no best response in its snapshot, whatever is open later.
    """
    number, snapshots = pacer.rounds[0], pacer.snapshots
    pacer.rounds[0] = number + 1
    if number % pacer.gap[0] != 0:
        return
    if pacer.kept[0] == snapshots.shape[0]:
        pacer.kept[0] //= 2
        pacer.gap[0] *= 2
        for s in range(pacer.kept[0]):
            copy_means(snapshots[2 * s], snapshots[s])
    copy_means(means, snapshots[pacer.kept[0]])
    for i in range(means.shape[0]):
        if not round.open[i]:
            snapshots[pacer.kept[0], i, 0] = -LARGEST_REWARD
    pacer.kept[0] += 1


@kernel
def copy_means(source: Floats, into: Floats) -> None:
    """Copy the means of all arms."""
    for i in range(source.shape[0]):
        for k in range(source.shape[1]):
            into[i, k] = source[i, k]


@kernel
def set_tiers(pacer: TwoSpeed, lp: Simplex, largest: Floats) -> None:
    """Turn the rewards in the objective into those of the two-speed LP, and write the costs of u and the bounds.

    A reward of 1 in the LP is ``largest[0]`` for the pacer, and a cost of 1 is ``largest[1 + j]``.
    """
    resources = pacer.pace.size
    arms = lp.solution.size - resources
    even = is_even(pacer)
    for j in range(resources):
        price = charge(pacer, largest, j)
        for i in range(arms):
            lp.objective[i] -= price * lp.columns[j, i]
        pace = min(pacer.pace[j] / largest[1 + j], LOOSE)
        lp.rhs[j] = pace
        lp.rhs[resources + 1 + j] = 0.0 if even else (pacer.speed - 1.0) * pace
        lp.objective[arms + j] = -2.0 * pacer.margin[0] * pacer.price[j] * largest[1 + j] / largest[0]


@kernel
def charge(pacer: TwoSpeed, largest: Floats, j: int) -> float:
    """Return the price of resource ``j`` below the even pace, in units of the LP; 0 while the pace is even."""
    if is_even(pacer):
        return 0.0
    return float((1.0 - pacer.margin[0]) * pacer.price[j] * largest[1 + j] / largest[0])


@kernel
def draw_from_tiers(pacer: TwoSpeed, lp: Simplex, largest: Floats, rng: Generator, mix: Floats, prices: Floats) -> int:
    """Read the solved LP with :func:`read_tiers`, and draw an arm or SKIP."""
    read_tiers(pacer, lp, largest, mix, prices)
    return draw(mix, rng.random())


@kernel
def read_tiers(pacer: TwoSpeed, lp: Simplex, largest: Floats, mix: Floats, prices: Floats) -> None:
    """Write the mix and the prices of the solved LP, and average the prices at the even pace."""
    for i in range(mix.size):
        mix[i] = lp.solution[i]
    for j in range(prices.size):
        price = (lp.duals[j] + charge(pacer, largest, j)) * largest[0] / largest[1 + j]
        if is_even(pacer):
            average_price(pacer, j, price)
        prices[j] = price / pacer.unit[j]
