"""The steps of a decision: a round begins, its outcome is settled, or its reservation is forfeited.

Each step is one kernel. A signal handler runs between two instructions of Python, and a kernel is a single one, so a
step is atomic: choosing and reserving, or learning, charging and releasing. All that these steps change is in the
arrays of the desk (:mod:`driftsack.game.desk`), the ledger, the terms and the policy's state.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.random import Generator

from driftsack.core.arrays import Floats, Ints
from driftsack.core.decision import SKIP
from driftsack.game.admission import admit, is_blocked, open_for_must, serve, serve_must, skip_probability
from driftsack.game.amounts import MOST_UNITS, cost_units
from driftsack.game.desk import CANCELLED, FORFEITED, FREE, PENDING, TOLD, AwaitedTable, DecisionDesk
from driftsack.game.expected_costs import lost_units, note_costs
from driftsack.game.floors import note_answer
from driftsack.game.ledger import Ledger, add_cost, is_broken, set_spending
from driftsack.game.listed_costs import relative_cost, set_factors
from driftsack.game.protocol import STUCK, choose, learn
from driftsack.game.records import (
    Terms,
    new_outcome,
    note_delay,
    note_request,
    open_round,
    set_context,
    set_rate,
)
from driftsack.numerics.compiled import kernel

CLIPPED: Final = -1  # return codes of ``settle``
SETTLED: Final = 0
OVERRAN: Final = 1
INVALID: Final = 2
TOO_LARGE: Final = 3
DIFFERS: Final = 4

NO_SUCH_ARM: Final = -3  # return codes of ``begin``, besides an arm, SKIP and STUCK
HORIZON: Final = -4
EXHAUSTED: Final = -5
NO_ARM: Final = -6


@kernel
def begin(
    state: Any, ledger: Ledger, terms: Terms, desk: DecisionDesk, rng: Generator, safe: bool, at: float, rounds: float
) -> int:
    """Begin a round: choose an arm, reserve its maximum cost, and keep the decision.

    Args:
        state: The policy's state.
        ledger: The ledger of the present season.
        terms: The terms of the round.
        desk: The desk, with a free slot; ``mix``, ``prices`` and ``slot`` are written.
        rng: The policy's randomness.
        safe: Whether an arm is open only if every budget covers it.
        at: The time of the request, NaN if it is not known.
        rounds: Expected remaining rounds, including this one; NaN keeps the previous estimate.

    Returns:
        The arm, ``SKIP``, or one of ``STUCK``, ``NO_SUCH_ARM``, ``HORIZON``, ``EXHAUSTED`` and ``NO_ARM``; then no
        round begins.
    """
    if desk.last[0] >= 0 and desk.begun[0] >= desk.last[0]:
        return HORIZON
    must, overspent = terms.must[0], is_broken(ledger)
    if overspent and not must:
        return EXHAUSTED
    # Plan for the expected rounds, and choose.
    t = desk.clock[0]
    if not math.isnan(rounds):
        terms.end[0] = t + rounds
        set_rate(terms, ledger, t)
    covered = admit(ledger, terms, t, safe) > 0
    if must and not covered and open_for_must(ledger, terms) == 0:
        return NO_ARM
    set_factors(terms.prices, t, desk.scale[1] == 1.0)
    arm = choose(state, open_round(t, ledger, terms), rng, desk.mix, desk.prices)
    if arm == STUCK:
        return STUCK
    if arm < SKIP or arm >= desk.mix.size:
        desk.slot[0] = arm  # for the error
        return NO_SUCH_ARM
    # Count the round and keep the decision; a skip is learnt at once.
    if safe and not covered:
        desk.blocked[0] += is_blocked(ledger, terms, t)
    if must:
        arm = serve_must(terms, arm, desk.mix, rng.random())
        desk.overruns.forced[0] += overspent or not covered
    else:
        arm = serve(terms, arm, desk.mix)
    note_request(terms, t)
    desk.begun[0] += 1
    desk.clock[0] = t + 1
    if arm == SKIP:
        desk.learnt[:] = 0.0
        learn(state, new_outcome(terms, t, SKIP, skip_probability(desk.mix), 0.0, desk.learnt))
    else:
        keep(ledger, terms, desk, t, arm, at)
    return arm


@kernel
def keep(ledger: Ledger, terms: Terms, desk: DecisionDesk, t: int, arm: int, at: float) -> None:
    """Put a decision into a free slot and reserve the maximum cost of its arm."""
    awaited = desk.awaited
    # Take a free slot, and write what the outcome will be learnt with.
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
    for f in range(terms.context.size):
        awaited.contexts[slot, f] = terms.context[f]
    # Reserve the maximum cost; neither part of the outcome has been told.
    for j in range(desk.prices.size):
        awaited.prices[slot, j] = desk.prices[j]
        awaited.reserved[slot, j] = terms.worst[j, arm]
        awaited.factors[slot, j] = terms.prices.factors[j, arm]
        ledger.reserved[j] += max(terms.worst[j, arm], 0)
        awaited.costs[slot, j] = np.nan
    awaited.reward[slot] = np.nan
    awaited.must[slot] = terms.must[0]
    awaited.status[slot] = PENDING
    # From here on policies see one more pending decision.
    terms.pending[arm] += 1.0
    count_unpaid(terms, awaited, slot, 1)
    desk.slot[0] = slot


@kernel
def settle(state: Any, ledger: Ledger, terms: Terms, desk: DecisionDesk, slot: int, reward: float, told: bool) -> int:
    """Settle a decision whose costs are in ``desk.given``: learn, charge and release.

    A part of the outcome that was told before (:mod:`driftsack.game.parts`) must be repeated unchanged, and is not
    charged again. A cancelled decision keeps the costs that were told, even if the costs given now are 0.

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
        range or a cost was clipped; ``INVALID``, ``TOO_LARGE`` and ``DIFFERS`` change nothing.
    """
    awaited, overran, beyond, clipped = desk.awaited, False, False, False
    if not math.isfinite(reward):
        return INVALID
    if differs(desk, slot, reward, told):
        return DIFFERS
    # Charge the costs unless they were told before.
    if not is_paid(awaited, slot):
        status = read_costs(ledger, desk, slot)
        if status != SETTLED:
            return status
        overran = charge_decision(ledger, terms, desk, slot)
        if told or is_anything(desk.given):
            note_costs(terms.costs, awaited.arm[slot], desk.given, desk.cost_unit)
    # Let the policy learn.
    stop_waiting(terms, desk, slot)
    if told:
        for j in range(desk.given.size):
            factor, cost = awaited.factors[slot, j], desk.given[j] / desk.cost_unit[j]
            relative = relative_cost(terms.prices, j, awaited.arm[slot], cost, factor)
            desk.learnt[j] = min(relative, desk.scale[1])
            beyond |= relative > desk.scale[1]
        note_delay(terms, desk.clock[0] - 1 - awaited.t[slot])
        gain = reward / desk.scale[0]
        clipped = gain < 0.0 or gain > 1.0
        desk.overruns.clipped[0] += clipped
        desk.overruns.costs[0] += beyond
        clipped |= beyond
        gain = min(max(gain, 0.0), desk.scale[1])
        if awaited.season[slot] == desk.season[0]:
            note_answer(terms.floors, awaited.arm[slot], gain)
        set_context(terms, awaited.contexts[slot])
        outcome = new_outcome(terms, awaited.t[slot], awaited.arm[slot], awaited.probability[slot], gain, desk.learnt)
        learn(state, outcome)
    remember(desk, slot, reward, TOLD if told else CANCELLED)
    release_slot(awaited, slot)
    if overran:
        return OVERRAN
    return CLIPPED if clipped else SETTLED


@kernel
def is_anything(costs: Floats) -> bool:
    """Whether any cost is positive; a decision that is cancelled without costs is no evidence about its arm's costs."""
    for j in range(costs.size):
        if costs[j] > 0.0:
            return True
    return False


@kernel
def is_paid(awaited: AwaitedTable, slot: int) -> bool:
    """Whether the costs of a decision were told before its reward."""
    return not math.isnan(awaited.costs[slot, 0])


@kernel
def read_costs(ledger: Ledger, desk: DecisionDesk, slot: int) -> int:
    """Check the costs in ``desk.given`` and write them to ``desk.units``; return ``SETTLED`` or an error code."""
    for j in range(desk.given.size):
        cost = desk.given[j]
        if not (cost >= 0.0 and math.isfinite(cost)):
            return INVALID
        others = ledger.charged[j] + ledger.reserved[j] - max(desk.awaited.reserved[slot, j], 0)
        if cost * ledger.fine[j] / ledger.coarse[j] + others > MOST_UNITS:
            return TOO_LARGE
        desk.units[j] = cost_units(cost, ledger.fine[j], ledger.coarse[j])
    return SETTLED


@kernel
def differs(desk: DecisionDesk, slot: int, reward: float, told: bool) -> bool:
    """Whether an outcome, with the costs in ``desk.given``, differs from the part that was told before."""
    awaited = desk.awaited
    if told and not math.isnan(awaited.reward[slot]) and awaited.reward[slot] != reward:
        return True
    if not is_paid(awaited, slot):
        return False
    other, nothing = False, not told
    for j in range(desk.given.size):
        other |= awaited.costs[slot, j] != desk.given[j]
        nothing &= desk.given[j] == 0.0
    return bool(other and not nothing)


@kernel
def stop_waiting(terms: Terms, desk: DecisionDesk, slot: int) -> None:
    """Count a pending decision of the present season as no longer pending."""
    awaited = desk.awaited
    if awaited.status[slot] == PENDING and awaited.season[slot] == desk.season[0]:
        terms.pending[awaited.arm[slot]] -= 1.0
        if not is_paid(awaited, slot):
            count_unpaid(terms, awaited, slot, -1)


@kernel
def count_unpaid(terms: Terms, awaited: AwaitedTable, slot: int, change: int) -> None:
    """Count a decision of the present season whose costs have not arrived, or no longer."""
    arm = awaited.arm[slot]
    terms.unpaid[arm] += change
    for j in range(awaited.reserved.shape[1] if terms.costs.on[0] else 0):
        terms.costs.owed[j, arm] += change * max(awaited.reserved[slot, j], 0)


@kernel
def charge_decision(ledger: Ledger, terms: Terms, desk: DecisionDesk, slot: int) -> bool:
    """Replace the reservation of a decision, or its charge if it was forfeited, by its costs in ``desk.units``."""
    reserved, overran = desk.awaited.reserved, False
    estimated = desk.awaited.status[slot] == FORFEITED and terms.costs.on[0]  # the charge was no maximum
    for j in range(desk.units.size):
        kept = max(reserved[slot, j], 0)
        if desk.awaited.status[slot] == FORFEITED:
            set_spending(ledger, j, ledger.charged[j] - kept)
        else:
            ledger.reserved[j] -= kept
        add_cost(ledger, j, desk.units[j], desk.given[j] / ledger.cost_max[j])
        if 0 <= reserved[slot, j] < desk.units[j] and not estimated:
            overran = True
            desk.overruns.excess[j] += desk.units[j] - kept
    desk.overruns.decisions[0] += overran
    return overran


@kernel
def forfeit(ledger: Ledger, terms: Terms, desk: DecisionDesk, slot: int) -> None:
    """Charge a pending decision whose outcome is lost, unless its costs were told; its outcome may still arrive.

    The charge is the reservation, which is its maximum cost; in statistical mode it is the mean cost of its arm. It
    replaces the reservation in the slot.

    Args:
        ledger: The ledger of the season that the decision belongs to.
        terms: The terms.
        desk: The desk.
        slot: The slot of the decision.
    """
    stop_waiting(terms, desk, slot)
    reserved, arm = desk.awaited.reserved, desk.awaited.arm[slot]
    for j in range(0 if is_paid(desk.awaited, slot) else desk.units.size):
        kept = max(reserved[slot, j], 0)
        ledger.reserved[j] -= kept
        reserved[slot, j] = lost_units(terms.costs, ledger, arm, j, kept)
        set_spending(ledger, j, ledger.charged[j] + reserved[slot, j])
    desk.awaited.status[slot] = FORFEITED


@kernel
def remember(desk: DecisionDesk, slot: int, reward: float, kind: int) -> None:
    """Store the outcome of a settled decision, with which a repeated call is compared."""
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
def release_slot(awaited: AwaitedTable, slot: int) -> None:
    """Free a slot."""
    awaited.status[slot] = FREE
    awaited.free[awaited.left[0]] = slot
    awaited.left[0] += 1


class AskedBatch(NamedTuple):
    """The decisions of one call, in arrays."""

    arms: Ints  # (n,)
    slots: Ints  # (n,) -1 where a round is skipped
    mixes: Floats  # (n, m)
    prices: Floats  # (n, d) normalised
    contexts: Floats  # (n, f) of the requests; given


def new_batch(contexts: Floats, arms: int, resources: int) -> AskedBatch:
    """An empty batch for requests with these contexts (n, f)."""
    size = len(contexts)
    slots = np.full(size, -1, dtype=np.int64)
    return AskedBatch(
        np.zeros(size, dtype=np.int64), slots, np.zeros((size, arms)), np.zeros((size, resources)), contexts
    )


@kernel
def begin_many(
    state: Any,
    ledger: Ledger,
    terms: Terms,
    desk: DecisionDesk,
    rng: Generator,
    batch: AskedBatch,
    first: int,
    stop: int,
    safe: bool,
    at: float,
    rounds: float,
) -> int:
    """Begin rounds one after the other, from the ``first`` of a batch until ``stop``.

    Args:
        state: The policy's state.
        ledger: The ledger of the present season.
        terms: The terms of all these rounds.
        desk: The desk, with enough free slots.
        rng: The policy's randomness.
        batch: Written.
        first: The position in the batch to begin with.
        stop: The position in the batch to stop at.
        safe: Whether an arm is open only if every budget covers it.
        at: The time of the requests, NaN if it is not known.
        rounds: Expected remaining rounds, including this one, for each of them; NaN keeps the previous estimate.

    Returns:
        The end of the filled part of the batch; before ``stop`` if a round returned a code instead of an arm.
    """
    for k in range(first, stop):
        set_context(terms, batch.contexts[k])
        arm = begin(state, ledger, terms, desk, rng, safe, at, rounds)
        batch.arms[k] = arm
        if arm < SKIP:
            return k
        if arm != SKIP:
            batch.slots[k] = desk.slot[0]
        for i in range(desk.mix.size):
            batch.mixes[k, i] = desk.mix[i]
        for j in range(desk.prices.size):
            batch.prices[k, j] = desk.prices[j]
    return stop


@kernel
def settle_many(
    state: Any, ledger: Ledger, terms: Terms, desk: DecisionDesk, slots: Ints, rewards: Floats, costs: Floats
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
        The number of decisions that cost more than was reserved; -1 if an outcome was invalid.
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
    desk: DecisionDesk,
    rng: Generator,
    arm: int,
    probability: float,
    reward: float,
) -> int:
    """Let the policy learn a past outcome as if it had pulled that arm; nothing is charged.

    The policy chooses first, with only that arm open, so that it does everything that it does in each round, such as
    forgetting.

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
    set_factors(terms.prices, t, desk.scale[1] == 1.0)
    if choose(state, open_round(t, ledger, terms), rng, desk.mix, desk.prices) == STUCK:
        return STUCK
    for j in range(desk.given.size):
        desk.learnt[j] = 0.0
        if arm != SKIP:
            cost, factor = desk.given[j] / desk.cost_unit[j], terms.prices.factors[j, arm]
            desk.learnt[j] = min(relative_cost(terms.prices, j, arm, cost, factor), desk.scale[1])
    if arm != SKIP:
        note_costs(terms.costs, arm, desk.given, desk.cost_unit)
    gain = min(max(reward / desk.scale[0], 0.0), desk.scale[1]) if arm != SKIP else 0.0
    learn(state, new_outcome(terms, t, arm, probability, gain, desk.learnt))
    desk.clock[0] = t + 1
    terms.end[0] += 1.0
    return 0
