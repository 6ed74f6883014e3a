"""The desk: the decisions of a learner from the moment they are made until they are settled.

A decision is *pending* until its outcome is told or it is cancelled. It may be *forfeited*: then its reservation counts
as spent, and if its outcome arrives after all, the difference is given back and the outcome is learnt. The reward and
the costs of an outcome may arrive apart (:mod:`driftsack.game.parts`).

Everything is in arrays, from which a learner can be rebuilt at any time. :mod:`driftsack.game.steps` changes them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats, Ints
from driftsack.core.problem import Problem

FREE: Final = 0
PENDING: Final = 1
FORFEITED: Final = 2

TOLD: Final = 1
CANCELLED: Final = 2

SETTLED_KEPT: Final = 512  # settled decisions whose outcome is kept, to recognise a repeated call
FIRST_CAPACITY: Final = 16
MOST_EPOCHS: Final = 2**32


class AwaitedTable(NamedTuple):
    """The decisions that are not settled, one in each slot."""

    status: Ints  # (n,) FREE, PENDING or FORFEITED
    number: Ints  # (n,) the round of the decision, from 1
    t: Ints  # (n,) the round on the policy's clock, from 0
    arm: Ints  # (n,)
    season: Ints  # (n,) the season whose budgets the decision is charged to
    epoch: Ints  # (n,) the epoch of the learner in which the decision was made
    probability: Floats  # (n,) of the arm when it was chosen
    at: Floats  # (n,) the time of the request in seconds; NaN if it was not given
    reserved: Ints  # (n, d) in grid units; -1 where the maximum cost is not known
    mixes: Floats  # (n, m)
    prices: Floats  # (n, d) normalised
    must: Ints  # (n,) whether the request had to be served
    factors: Floats  # (n, d) the factors at which the arm was listed; 1 without a list
    contexts: Floats  # (n, f) of the requests
    reward: Floats  # (n,) told before the costs, in the problem's units; NaN if it was not
    costs: Floats  # (n, d) told and charged before the reward, in the problem's units; NaN if they were not
    free: Ints  # (n,) the free slots come first
    left: Ints  # (1,) number of free slots


class SettledTable(NamedTuple):
    """The latest decisions that were settled, to recognise a repeated call."""

    number: Ints  # (SETTLED_KEPT,) 0 where there is none
    epoch: Ints  # (SETTLED_KEPT,) as in ``AwaitedTable``
    kind: Ints  # (SETTLED_KEPT,) TOLD or CANCELLED
    outcome: Floats  # (SETTLED_KEPT, 1 + d) reward and costs as they were given
    total: Ints  # (1,) number of decisions settled so far


class OverrunCounts(NamedTuple):
    """Costs above what was reserved, rewards out of range, and costs above what a policy can learn."""

    decisions: Ints  # (1,) decisions that cost more than was reserved
    excess: Ints  # (d,) by how much, in grid units
    clipped: Ints  # (1,) rewards below 0 or above ``reward_max``
    costs: Ints  # (1,) outcomes with a cost that was clipped when it was learnt
    forced: Ints  # (1,) requests that had to be served although a budget did not cover an arm
    outside: Ints  # (d,) by how much spending outside the learner exceeded what was free, in grid units


class DecisionDesk(NamedTuple):
    """The decisions of a learner, and the buffers of the kernels."""

    begun: Ints  # (1,) rounds that have begun, and the number of the latest decision
    clock: Ints  # (1,) rounds of the policy's clock; rounds that were taught count too
    season: Ints  # (1,)
    epoch: Ints  # (1,) the present epoch; a learner that is loaded or forked starts a new one
    last: Ints  # (1,) the last round; -1 if there is none
    slot: Ints  # (1,) written: the slot of the latest decision, or an arm that does not exist
    mix: Floats  # (m,) written
    prices: Floats  # (d,) written
    given: Floats  # (d,) costs of the outcome to be settled, in the problem's units
    units: Ints  # (d,) scratch
    learnt: Floats  # (d,) scratch
    cost_unit: Floats  # (d,) the cost that is normalised to 1
    scale: Floats  # (2,) the reward that is normalised to 1; the largest normalised outcome that may be learnt
    awaited: AwaitedTable
    settled: SettledTable
    overruns: OverrunCounts
    blocked: Ints  # (1,) rounds in which reservations alone closed every arm


def new_awaited(capacity: int, arms: int, resources: int, features: int) -> AwaitedTable:
    """A table of free slots."""

    def zeros() -> Ints:
        return np.zeros(capacity, dtype=np.int64)

    return AwaitedTable(
        status=zeros(),
        number=zeros(),
        t=zeros(),
        arm=zeros(),
        season=zeros(),
        epoch=zeros(),
        probability=np.zeros(capacity),
        at=np.zeros(capacity),
        reserved=np.zeros((capacity, resources), dtype=np.int64),
        mixes=np.zeros((capacity, arms)),
        prices=np.zeros((capacity, resources)),
        must=zeros(),
        factors=np.ones((capacity, resources)),
        contexts=np.zeros((capacity, features)),
        reward=np.full(capacity, np.nan),
        costs=np.full((capacity, resources), np.nan),
        free=np.arange(capacity)[::-1].copy(),
        left=np.array([capacity]),
    )


def new_desk(problem: Problem, arms: int, ceiling: float, capacity: int = FIRST_CAPACITY) -> DecisionDesk:
    """Return the desk of a learner before its first round.

    Args:
        arms: The number of slots for arms.
        ceiling: The largest normalised outcome that the policy may learn from.
        capacity: The number of slots for decisions.
    """
    d = problem.resources
    return DecisionDesk(
        begun=np.zeros(1, dtype=np.int64),
        clock=np.zeros(1, dtype=np.int64),
        season=np.zeros(1, dtype=np.int64),
        epoch=np.zeros(1, dtype=np.int64),
        last=np.array([problem.horizon if problem.period is None else -1]),
        slot=np.zeros(1, dtype=np.int64),
        mix=np.zeros(arms),
        prices=np.zeros(d),
        given=np.zeros(d),
        units=np.zeros(d, dtype=np.int64),
        learnt=np.zeros(d),
        cost_unit=np.array(problem.cost_max),
        scale=np.array([problem.reward_max, ceiling]),
        awaited=new_awaited(capacity, arms, d, problem.features),
        settled=SettledTable(
            number=np.zeros(SETTLED_KEPT, dtype=np.int64),
            epoch=np.zeros(SETTLED_KEPT, dtype=np.int64),
            kind=np.zeros(SETTLED_KEPT, dtype=np.int64),
            outcome=np.zeros((SETTLED_KEPT, 1 + d)),
            total=np.zeros(1, dtype=np.int64),
        ),
        overruns=OverrunCounts(*(np.zeros(size, dtype=np.int64) for size in (1, d, 1, 1, 1, d))),
        blocked=np.zeros(1, dtype=np.int64),
    )


def with_capacity(desk: DecisionDesk, capacity: int, arms: int) -> DecisionDesk:
    """Return a desk with more slots for decisions or arms; decisions keep their slots, other arrays are shared."""
    old = desk.awaited
    new = new_awaited(capacity, arms, desk.prices.size, old.contexts.shape[1])
    size, free = old.status.size, int(old.left[0])
    for name in AwaitedTable._fields[:-2]:
        source, target = getattr(old, name), getattr(new, name)
        target[tuple(slice(length) for length in source.shape)] = source
    new.free[:free] = old.free[:free]
    new.free[free : free + capacity - size] = np.arange(size, capacity)
    new.left[0] = free + capacity - size
    return desk._replace(mix=np.zeros(arms), awaited=new)
