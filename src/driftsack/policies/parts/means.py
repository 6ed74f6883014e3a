r"""Estimators of mean rewards and costs: over all rounds, over a window, or with a discount.

*Window*: the rounds :math:`[t-w_1, t-1]` count for rewards and :math:`[t-w_2, t-1]` for costs; a window of T rounds or
more never forgets. Only arms that were observed or left a window since the last round have new estimates. These arms
are kept in a set, which has at most three members if feedback is immediate.

*Discount*: before round t an outcome of round s has the weight :math:`\rho^{t-s}`. All estimates change in each round.

With ``squares``, further columns hold the sums of the squared outcomes, for radii that need variances.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.bounds import NonNegative, RoundNumbers
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.records import Outcome, Round
from driftsack.game.state_growth import grow
from driftsack.numerics.compiled import interpreted, kernel
from driftsack.numerics.index_set import IndexSet, full_set, insert
from driftsack.numerics.powers import power
from driftsack.numerics.window import Window, add, expire, open_window


class WindowedMeans(NamedTuple):
    """Sums of outcomes per arm over the last rounds.

    Attributes:
        rewards: Ring of w1 rounds and per-arm sums of rewards.
        costs: Ring of w2 rounds and per-arm sums of costs.
        stale: Arms whose estimates have changed since they were last used.
        latest: (1,) the latest round chosen, from 0.
        version: (1,) the version of the open arms in the latest round; see ``Round``.
        reward: (1,) scratch; (2,) with squares.
        cost: (d,) scratch; (2d,) with squares.
    """

    rewards: Window
    costs: Window
    stale: IndexSet
    latest: RoundNumbers
    version: Ints
    reward: Floats
    cost: Floats

    def grow_from(self, old: WindowedMeans) -> None:
        """Keep the outcomes in the windows, whose lengths may depend on the number of arms.

        Args:
            old: The estimator before the arm was added.
        """
        self.latest[0] = old.latest[0]
        for window, before in ((self.rewards, old.rewards), (self.costs, old.costs)):
            length, now = int(before.length[0]), int(old.latest[0])
            if length == window.length[0]:
                grow(window, before)
                continue
            # A window of another length is filled again, round by round.
            for t in range(max(now - length + 1, 0), now + 1):
                if before.arms[t % length] != SKIP:
                    outcomes = before.outcomes[t % length] / before.grid[0]
                    interpreted(add)(window, now, t, int(before.arms[t % length]), outcomes)


class DiscountedMeans(NamedTuple):
    """Discounted sums of outcomes per arm.

    Attributes:
        sums: (m, 1 + d) discounted sums, rewards first; (m, 2 + 2d) with squares, which come last.
        pulls: (m,) discounted pulls.
        latest: (1,) the latest round chosen, from 0.
        discount: The discount ρ per round.
    """

    sums: NonNegative
    pulls: NonNegative
    latest: RoundNumbers
    discount: float


def windowed_means(problem: Problem, lengths: tuple[int, int], squares: bool = False) -> WindowedMeans:
    """Create windows for rewards and costs without observations.

    Args:
        problem: The problem to play.
        lengths: The windows for rewards and costs, in rounds.
        squares: Whether to sum squared outcomes as well.
    """
    horizon, arms, kinds = problem.horizon, problem.arms, 2 if squares else 1
    return WindowedMeans(
        rewards=open_window(lengths[0], horizon, arms, outcomes=kinds),
        costs=open_window(lengths[1], horizon, arms, outcomes=kinds * problem.resources),
        stale=full_set(arms),
        latest=np.full(1, -1, dtype=np.int64),
        version=np.full(1, -1, dtype=np.int64),
        reward=np.zeros(kinds),
        cost=np.zeros(kinds * problem.resources),
    )


def discounted_means(problem: Problem, discount: float, squares: bool = False) -> DiscountedMeans:
    """Create discounted sums without observations.

    Args:
        problem: The problem to play.
        discount: The discount ρ per round.
        squares: Whether to sum squared outcomes as well.
    """
    sums, pulls = np.zeros((problem.arms, (1 + problem.resources) * (2 if squares else 1))), np.zeros(problem.arms)
    return DiscountedMeans(sums, pulls, np.full(1, -1, dtype=np.int64), discount)


@kernel
def observe(means: WindowedMeans, t: int, arm: int, reward: float, costs: Floats) -> None:
    """Add the outcome of round ``t``; a window that the round has left ignores it.

    Args:
        means: The estimator; updated.
        t: The round of the outcome, from 0.
        arm: The arm that was pulled.
        reward: The normalised reward.
        costs: (d,) the normalised costs.
    """
    means.reward[0] = reward
    for j in range(costs.size):
        means.cost[j] = costs[j]
    if means.reward.size > 1:
        means.reward[1] = reward * reward
        for j in range(costs.size):
            means.cost[costs.size + j] = costs[j] * costs[j]
    now = means.latest[0]
    if add(means.rewards, now, t, arm, means.reward):
        insert(means.stale, arm)
    if add(means.costs, now, t, arm, means.cost):
        insert(means.stale, arm)


@kernel
def begin_round(means: WindowedMeans, round: Round) -> None:
    """Start a round; if the set of open arms has changed, mark all estimates as stale.

    Args:
        means: The estimator; updated.
        round: The current round.
    """
    means.latest[0] = round.t
    if means.version[0] != round.version:
        means.version[0] = round.version
        for i in range(round.open.size):
            insert(means.stale, i)


@kernel
def make_room(means: WindowedMeans, t: int) -> None:
    """Drop the rounds that leave the windows in round ``t``.

    Args:
        means: The estimator; updated.
        t: The current round, from 0.
    """
    insert(means.stale, expire(means.rewards, t))
    insert(means.stale, expire(means.costs, t))


@kernel
def set_windows(means: WindowedMeans, length: int) -> None:
    """Set the length of both empty windows, at most that of their rings; 0 for infinite windows."""
    means.rewards.length[0] = length
    means.costs.length[0] = length


@kernel
def discount_arm(means: DiscountedMeans, arm: int) -> None:
    """Discount all observations of an arm by one round.

    Args:
        means: The estimator; updated.
        arm: The arm.
    """
    means.pulls[arm] *= means.discount
    for k in range(means.sums.shape[1]):
        means.sums[arm, k] *= means.discount


@kernel
def observe_discounted(means: DiscountedMeans, outcome: Outcome) -> None:
    """Add an outcome with the discounted weight of its round.

    Args:
        means: The estimator; updated.
        outcome: The outcome; its arm must not be ``SKIP``.
    """
    weight = power(means.discount, means.latest[0] - outcome.t)
    means.pulls[outcome.arm] += weight
    means.sums[outcome.arm, 0] += weight * outcome.reward
    for j in range(outcome.costs.size):
        means.sums[outcome.arm, 1 + j] += weight * outcome.costs[j]
    kinds = 1 + outcome.costs.size
    if means.sums.shape[1] > kinds:
        means.sums[outcome.arm, kinds] += weight * outcome.reward * outcome.reward
        for j in range(outcome.costs.size):
            means.sums[outcome.arm, kinds + 1 + j] += weight * outcome.costs[j] * outcome.costs[j]


@kernel
def discounted_variance(means: DiscountedMeans, arm: int, k: int) -> float:
    """Return the variance of the discounted outcomes of column ``k`` and one outcome of 0.

    Args:
        means: The estimator, with squares.
        arm: The arm.
        k: 0 for rewards, 1 + j for the costs of resource j.
    """
    n = means.pulls[arm] + 1.0
    mean = means.sums[arm, k] / n
    return float(max(means.sums[arm, means.sums.shape[1] // 2 + k] / n - mean * mean, 0.0))
