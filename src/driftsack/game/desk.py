"""The desk: the decisions that a learner has made, from the moment they are made until they are settled.

A decision is *pending* until its outcome is told or it is cancelled. It may be *forfeited*: then what was reserved for
it counts as spent, and if its outcome arrives after all, the difference is given back and the outcome is learnt.

Each step is one kernel. A signal handler runs between two instructions of Python, and a kernel is a single one, so a
step is taken wholly or not at all: choosing and reserving, or learning, charging and releasing. Everything that these
steps change is in arrays, from which a learner can be rebuilt at any time.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.decision import SKIP
from driftsack.core.problem import Problem
from driftsack.game.admission import admit, serve, skip_probability
from driftsack.game.amounts import MOST_UNITS, cost_units
from driftsack.game.ledger import Ledger, add_cost, set_spending
from driftsack.game.protocol import STUCK, choose, learn
from driftsack.game.records import Terms, new_outcome, open_round, set_context
from driftsack.numerics.compiled import kernel

FREE: Final = 0
PENDING: Final = 1
FORFEITED: Final = 2

TOLD: Final = 1
CANCELLED: Final = 2

CLIPPED: Final = -1  # what ``settle`` returns
SETTLED: Final = 0
OVERRAN: Final = 1
INVALID: Final = 2
TOO_LARGE: Final = 3

NO_SUCH_ARM: Final = -3  # what ``begin`` returns, besides an arm, SKIP and STUCK
HORIZON: Final = -4
EXHAUSTED: Final = -5

REMEMBERED: Final = 512  # settled decisions whose content is kept, to recognise a repeated tell
FIRST_CAPACITY: Final = 16
MOST_EPOCHS: Final = 2**32


class Awaited(NamedTuple):
    """The decisions that are not settled, one in each slot."""

    status: Ints  # (n,) FREE, PENDING or FORFEITED
    number: Ints  # (n,) the round of the decision, from 1
    t: Ints  # (n,) the round on the policy's clock, from 0
    arm: Ints  # (n,)
    season: Ints  # (n,) the season whose budgets the decision is charged to
    epoch: Ints  # (n,) the life of the learner in which the decision was made
    probability: Floats  # (n,) of the arm when it was chosen
    at: Floats  # (n,) the time of the request in seconds; NaN if it was not given
    reserved: Ints  # (n, d) in grid units; -1 where the most that the arm may cost is not known
    mixes: Floats  # (n, m)
    prices: Floats  # (n, d) normalised
    contexts: Floats  # (n, f) of the requests
    free: Ints  # (n,) the free slots come first
    left: Ints  # (1,) number of free slots


class Settled(NamedTuple):
    """The latest decisions that were settled, to recognise a repeated call."""

    number: Ints  # (REMEMBERED,) 0 where there is none
    epoch: Ints  # (REMEMBERED,) as in ``Awaited``
    kind: Ints  # (REMEMBERED,) TOLD or CANCELLED
    outcome: Floats  # (REMEMBERED, 1 + d) reward and costs as they were given
    total: Ints  # (1,) number of decisions settled so far


class Overruns(NamedTuple):
    """Costs above what was reserved, rewards out of range, and costs above what a policy can learn."""

    decisions: Ints  # (1,) decisions that cost more than was reserved
    excess: Ints  # (d,) by how much, in grid units
    clipped: Ints  # (1,) rewards below 0 or above ``reward_max``
    costs: Ints  # (1,) outcomes with a cost that was clipped when it was learnt


class Desk(NamedTuple):
    """All that a learner keeps about its decisions, and the buffers of the kernels."""

    begun: Ints  # (1,) rounds that have begun, and the number of the latest decision
    clock: Ints  # (1,) rounds of the policy's clock; rounds that were taught count too
    season: Ints  # (1,)
    epoch: Ints  # (1,) the present life of the learner; one that is loaded or forked begins a new life
    last: Ints  # (1,) the last round; -1 if there is none
    slot: Ints  # (1,) written: the slot of the latest decision, or an arm that does not exist
    mix: Floats  # (m,) written
    prices: Floats  # (d,) written
    given: Floats  # (d,) costs of the outcome to be settled, in the problem's units
    units: Ints  # (d,) scratch
    learnt: Floats  # (d,) scratch
    cost_unit: Floats  # (d,) the cost that is normalised to 1
    scale: Floats  # (2,) the reward that is normalised to 1; the largest normalised outcome that may be learnt
    awaited: Awaited
    settled: Settled
    overruns: Overruns


def new_awaited(capacity: int, arms: int, resources: int, features: int) -> Awaited:
    """A table of free slots."""

    def zeros() -> Ints:
        return np.zeros(capacity, dtype=np.int64)

    return Awaited(
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
        contexts=np.zeros((capacity, features)),
        free=np.arange(capacity)[::-1].copy(),
        left=np.array([capacity]),
    )


def new_desk(problem: Problem, arms: int, ceiling: float, capacity: int = FIRST_CAPACITY) -> Desk:
    """The desk of a learner before its first round.

    Args:
        problem: The problem.
        arms: The number of slots for arms.
        ceiling: The largest normalised outcome that the policy may learn from.
        capacity: The number of decisions that it has room for.

    Returns:
        The desk.
    """
    d = problem.resources
    return Desk(
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
        settled=Settled(
            number=np.zeros(REMEMBERED, dtype=np.int64),
            epoch=np.zeros(REMEMBERED, dtype=np.int64),
            kind=np.zeros(REMEMBERED, dtype=np.int64),
            outcome=np.zeros((REMEMBERED, 1 + d)),
            total=np.zeros(1, dtype=np.int64),
        ),
        overruns=Overruns(*(np.zeros(size, dtype=np.int64) for size in (1, d, 1, 1))),
    )


def with_capacity(desk: Desk, capacity: int, arms: int) -> Desk:
    """The same desk with room for more decisions, or for decisions between more arms.

    Args:
        desk: The desk.
        capacity: The number of decisions, at least as many as before.
        arms: The number of slots for arms, at least as many as before.

    Returns:
        The larger desk, in which every decision keeps its slot; arrays whose size does not change are shared.
    """
    old = desk.awaited
    new = new_awaited(capacity, arms, desk.prices.size, old.contexts.shape[1])
    size, free = old.status.size, int(old.left[0])
    for name in Awaited._fields[:-2]:
        source, target = getattr(old, name), getattr(new, name)
        target[tuple(slice(length) for length in source.shape)] = source
    new.free[:free] = old.free[:free]
    new.free[free : free + capacity - size] = np.arange(size, capacity)
    new.left[0] = free + capacity - size
    return desk._replace(mix=np.zeros(arms), awaited=new)


@kernel
def begin(state: Any, ledger: Ledger, terms: Terms, desk: Desk, rng: Generator, safe: bool, at: float) -> int:
    """Begin a round: choose an arm, reserve the most that it may cost, and keep the decision.

    Args:
        state: The policy's state.
        ledger: The ledger of the present season.
        terms: The terms of the round.
        desk: The desk, with a free slot; ``mix``, ``prices`` and ``slot`` are written.
        rng: The policy's randomness.
        safe: Whether an arm is open only if every budget covers it.
        at: The time of the request, NaN if it is not known.

    Returns:
        The arm, ``SKIP``, or one of ``STUCK``, ``NO_SUCH_ARM``, ``HORIZON`` and ``EXHAUSTED``, which change nothing.
    """
    if desk.last[0] >= 0 and desk.begun[0] >= desk.last[0]:
        return HORIZON
    for j in range(ledger.granted.size):
        if ledger.charged[j] > ledger.granted[j]:
            return EXHAUSTED
    t = desk.clock[0]
    admit(ledger, terms, t, safe)
    arm = choose(state, open_round(t, ledger, terms), rng, desk.mix, desk.prices)
    if arm == STUCK:
        return STUCK
    if arm < SKIP or arm >= desk.mix.size:
        desk.slot[0] = arm  # for the error
        return NO_SUCH_ARM
    arm = serve(terms, arm, desk.mix)
    desk.begun[0] += 1
    desk.clock[0] = t + 1
    if arm == SKIP:
        desk.learnt[:] = 0.0
        learn(state, new_outcome(terms, t, SKIP, skip_probability(desk.mix), 0.0, desk.learnt))
    else:
        keep(ledger, terms, desk, t, arm, at)
    return arm


@kernel
def keep(ledger: Ledger, terms: Terms, desk: Desk, t: int, arm: int, at: float) -> None:
    """Put a decision into a free slot and reserve the most that its arm may cost."""
    awaited = desk.awaited
    left = awaited.left[0] - 1
    slot = awaited.free[left]
    awaited.left[0] = left
    awaited.number[slot] = desk.begun[0]
    awaited.t[slot] = t
    awaited.arm[slot] = arm
    awaited.season[slot] = desk.season[0]
    awaited.epoch[slot] = desk.epoch[0]
    awaited.probability[slot] = desk.mix[arm]
    awaited.at[slot] = at
    for i in range(desk.mix.size):
        awaited.mixes[slot, i] = desk.mix[i]
    for j in range(desk.prices.size):
        awaited.prices[slot, j] = desk.prices[j]
        awaited.reserved[slot, j] = terms.worst[j, arm]
        ledger.reserved[j] += max(terms.worst[j, arm], 0)
    for f in range(terms.context.size):
        awaited.contexts[slot, f] = terms.context[f]
    awaited.status[slot] = PENDING
    desk.slot[0] = slot


@kernel
def settle(state: Any, ledger: Ledger, terms: Terms, desk: Desk, slot: int, reward: float, told: bool) -> int:
    """Settle a decision whose costs are in ``desk.given``: learn, charge and release.

    Args:
        state: The policy's state.
        ledger: The ledger of the season that the decision belongs to.
        terms: The terms.
        desk: The desk.
        slot: The slot of the decision, pending or forfeited.
        reward: The reward, in the problem's units.
        told: Whether the policy learns the outcome; otherwise the decision is cancelled.

    Returns:
        ``SETTLED``; ``OVERRAN`` if it cost more than was reserved; ``CLIPPED`` if it did not, but its reward was out of
        range or a cost was clipped; ``INVALID`` and ``TOO_LARGE`` change nothing.
    """
    if not math.isfinite(reward):
        return INVALID
    beyond, clipped = False, False
    for j in range(desk.given.size):
        cost = desk.given[j]
        if not (cost >= 0.0 and math.isfinite(cost)):
            return INVALID
        others = ledger.charged[j] + ledger.reserved[j] - max(desk.awaited.reserved[slot, j], 0)
        if cost * ledger.fine[j] / ledger.coarse[j] + others > MOST_UNITS:
            return TOO_LARGE
        desk.units[j] = cost_units(cost, ledger.fine[j], ledger.coarse[j])
        desk.learnt[j] = min(cost / desk.cost_unit[j], desk.scale[1])
        beyond |= cost / desk.cost_unit[j] > desk.scale[1]
    overran = charge_decision(ledger, desk, slot)
    awaited = desk.awaited
    if told:
        gain = reward / desk.scale[0]
        clipped = gain < 0.0 or gain > 1.0
        desk.overruns.clipped[0] += clipped
        desk.overruns.costs[0] += beyond
        clipped |= beyond
        gain = min(max(gain, 0.0), desk.scale[1])
        set_context(terms, awaited.contexts[slot])
        outcome = new_outcome(terms, awaited.t[slot], awaited.arm[slot], awaited.probability[slot], gain, desk.learnt)
        learn(state, outcome)
    remember(desk, slot, reward, TOLD if told else CANCELLED)
    release_slot(awaited, slot)
    if overran:
        return OVERRAN
    return CLIPPED if clipped else SETTLED


@kernel
def charge_decision(ledger: Ledger, desk: Desk, slot: int) -> bool:
    """Replace what was reserved for a decision, or charged when it was forfeited, by its costs in ``desk.units``."""
    reserved, overran = desk.awaited.reserved, False
    for j in range(desk.units.size):
        kept = max(reserved[slot, j], 0)
        if desk.awaited.status[slot] == FORFEITED:
            set_spending(ledger, j, ledger.charged[j] - kept)
        else:
            ledger.reserved[j] -= kept
        add_cost(ledger, j, desk.units[j], desk.given[j] / ledger.cost_max[j])
        if 0 <= reserved[slot, j] < desk.units[j]:
            overran = True
            desk.overruns.excess[j] += desk.units[j] - kept
    desk.overruns.decisions[0] += overran
    return overran


@kernel
def forfeit(ledger: Ledger, desk: Desk, slot: int) -> None:
    """Charge what was reserved for a pending decision, which may still be told.

    Args:
        ledger: The ledger of the season that the decision belongs to.
        desk: The desk.
        slot: The slot of the decision.
    """
    for j in range(desk.units.size):
        kept = max(desk.awaited.reserved[slot, j], 0)
        ledger.reserved[j] -= kept
        set_spending(ledger, j, ledger.charged[j] + kept)
    desk.awaited.status[slot] = FORFEITED


@kernel
def remember(desk: Desk, slot: int, reward: float, kind: int) -> None:
    """Keep the content of a settled decision."""
    settled = desk.settled
    row = settled.total[0] % settled.number.size
    settled.total[0] += 1
    settled.number[row] = desk.awaited.number[slot]
    settled.epoch[row] = desk.awaited.epoch[slot]
    settled.kind[row] = kind
    settled.outcome[row, 0] = reward
    for j in range(desk.given.size):
        settled.outcome[row, 1 + j] = desk.given[j]


@kernel
def release_slot(awaited: Awaited, slot: int) -> None:
    """Free a slot."""
    awaited.status[slot] = FREE
    awaited.free[awaited.left[0]] = slot
    awaited.left[0] += 1


class Batch(NamedTuple):
    """The decisions of one call, in arrays."""

    arms: Ints  # (n,)
    slots: Ints  # (n,) -1 where a round is skipped
    mixes: Floats  # (n, m)
    prices: Floats  # (n, d) normalised
    contexts: Floats  # (n, f) of the requests; given


def new_batch(contexts: Floats, arms: int, resources: int) -> Batch:
    """Room for decisions on requests with these contexts (n, f)."""
    size = len(contexts)
    slots = np.full(size, -1, dtype=np.int64)
    return Batch(np.zeros(size, dtype=np.int64), slots, np.zeros((size, arms)), np.zeros((size, resources)), contexts)


@kernel
def begin_many(
    state: Any,
    ledger: Ledger,
    terms: Terms,
    desk: Desk,
    rng: Generator,
    batch: Batch,
    first: int,
    safe: bool,
    at: float,
) -> int:
    """Begin rounds one after the other, from the ``first`` of a batch on.

    Args:
        state: The policy's state.
        ledger: The ledger of the present season.
        terms: The terms of all these rounds.
        desk: The desk, with enough free slots.
        rng: The policy's randomness.
        batch: Written.
        first: The position in the batch to begin with.
        safe: Whether an arm is open only if every budget covers it.
        at: The time of the requests, NaN if it is not known.

    Returns:
        The number of positions that are filled; the next round returned a code instead of an arm if there are fewer.
    """
    for k in range(first, batch.arms.size):
        set_context(terms, batch.contexts[k])
        arm = begin(state, ledger, terms, desk, rng, safe, at)
        batch.arms[k] = arm
        if arm < SKIP:
            return k
        if arm != SKIP:
            batch.slots[k] = desk.slot[0]
        for i in range(desk.mix.size):
            batch.mixes[k, i] = desk.mix[i]
        for j in range(desk.prices.size):
            batch.prices[k, j] = desk.prices[j]
    return batch.arms.size


@kernel
def settle_many(
    state: Any, ledger: Ledger, terms: Terms, desk: Desk, slots: Ints, rewards: Floats, costs: Floats
) -> int:
    """Settle decisions of the present season one after the other; the outcomes have been checked.

    Args:
        state: The policy's state.
        ledger: The ledger of the present season.
        terms: The terms.
        desk: The desk.
        slots: (n,) the slots of the decisions.
        rewards: (n,) in the problem's units.
        costs: (n, d) in the problem's units.

    Returns:
        The number of decisions that cost more than was reserved; -1 if an outcome was invalid after all.
    """
    overran = 0
    for k in range(slots.size):
        for j in range(desk.given.size):
            desk.given[j] = costs[k, j]
        status = settle(state, ledger, terms, desk, slots[k], rewards[k], True)
        if status > OVERRAN:
            return -1
        overran += status == OVERRAN
    return overran


@kernel
def teach_round(
    state: Any,
    ledger: Ledger,
    terms: Terms,
    desk: Desk,
    rng: Generator,
    arm: int,
    probability: float,
    reward: float,
) -> int:
    """Let the policy learn the outcome of a round of the past, as if it had made that pull; nothing is charged.

    Only the arm of that round is open while the policy chooses, so that everything that a policy does in a round, such
    as forgetting, is done.

    Args:
        state: The policy's state.
        ledger: The ledger, which the policy may read.
        terms: The terms; ``open`` and ``version`` are written.
        desk: The desk; ``given`` has the costs in the problem's units.
        rng: The policy's randomness.
        arm: The arm, or ``SKIP``.
        probability: The probability of the arm when it was chosen.
        reward: The reward, in the problem's units.

    Returns:
        ``STUCK`` if a linear program has to be solved first, otherwise 0.
    """
    for i in range(terms.open.size):
        if terms.open[i] != (i == arm):
            terms.open[i] = i == arm
            terms.version[0] += 1
    t = desk.clock[0]
    if choose(state, open_round(t, ledger, terms), rng, desk.mix, desk.prices) == STUCK:
        return STUCK
    for j in range(desk.given.size):
        desk.learnt[j] = min(desk.given[j] / desk.cost_unit[j], desk.scale[1]) if arm != SKIP else 0.0
    gain = min(max(reward / desk.scale[0], 0.0), desk.scale[1]) if arm != SKIP else 0.0
    learn(state, new_outcome(terms, t, arm, probability, gain, desk.learnt))
    desk.clock[0] = t + 1
    terms.end[0] += 1.0
    return 0
