"""Admission: the arms that are open in a round, and the arm that serves a request which must not be skipped.

An arm is *offered* unless the driver withholds it: it was retired, or the request cannot use it. With ``safe`` an
offered arm is *open* only if every budget can pay

- all spending and reservations (with ``safe="statistical"`` those of :mod:`driftsack.game.expected_costs`),
- the maximum cost of the arm in this round, and
- if every request must be answered, the maximum cost of the fallback arm in each of the rounds after this one,
  unless it is the fallback arm itself.

Without ``safe`` it is open unless its reservation is larger than a ledger can hold.

If several fallback arms are listed, the fallback of a round is the first that is offered and that every budget can pay
for, and if none is offered, the offered arm with the smallest maximum cost; later rounds are assumed to use the first.

So the fallback arm is open as long as every budget can pay for it once. If the number of rounds is known and no cost
exceeds what was reserved for it, that is until the last round, since the other arms leave what the fallback needs. If
more requests come than were expected, the fallback answers them until the money is gone.

A request that *must* be served, in a problem without a fallback, is served even if that overspends: if no arm is open,
all arms that are offered are opened (:func:`open_for_must`), and the learner counts it.
"""

from __future__ import annotations

import math

import numpy as np

from driftsack.core.arrays import Bools, Floats
from driftsack.core.decision import SKIP
from driftsack.game.amounts import MOST_UNITS
from driftsack.game.expected_costs import set_reserve
from driftsack.game.ledger import Ledger
from driftsack.game.records import Terms
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import clip_to_distribution, draw


@kernel
def admit(ledger: Ledger, terms: Terms, t: int, safe: bool) -> int:
    """Open the arms that may be chosen in round ``t`` and return their number.

    Args:
        ledger: The ledger.
        terms: The terms; ``open`` is written, and ``version`` changes if ``open`` does.
        t: The round, from 0.
        safe: Whether an arm must be covered by every budget.

    Returns:
        The number of open arms.
    """
    set_reserve(terms.costs, ledger, terms.unpaid)
    after, fallback = rounds_after(terms, t), fallback_arm(ledger, terms, safe)
    count, changed = 0, False
    for i in range(terms.open.size):
        later = 0 if i == fallback else after
        opens = terms.offered[i] and (fits(ledger, terms, i, later) if safe else holds(ledger, terms, i))
        changed = changed or opens != terms.open[i]
        terms.open[i] = opens
        count += opens
    if changed:
        terms.version[0] += 1
    return count


@kernel
def fallback_arm(ledger: Ledger, terms: Terms, safe: bool) -> int:
    """The arm that answers this round's request if the policy skips it, or ``SKIP`` without a fallback."""
    if terms.fallback[0] == SKIP:
        return SKIP
    listed = SKIP
    for arm in terms.fallback:
        if terms.offered[arm]:
            if not safe or fits(ledger, terms, arm, 0):
                return int(arm)
            listed = int(arm)
    return listed if listed != SKIP else cheapest(terms, terms.offered)


@kernel
def cheapest(terms: Terms, arms: Bools) -> int:
    """The arm among those of a mask with the smallest sum of maximum costs, or ``SKIP`` if there is none."""
    found, least = SKIP, np.inf
    for i in range(arms.size):
        cost = 0.0
        for j in range(terms.cost_most.shape[0]):
            cost += terms.cost_most[j, i]
        if arms[i] and cost < least:
            found, least = i, cost
    return found


@kernel
def open_for_must(ledger: Ledger, terms: Terms) -> int:
    """Open every offered arm for a request that must be served although no budget covers one; return their number."""
    count = 0
    for i in range(terms.open.size):
        terms.open[i] = terms.offered[i] and holds(ledger, terms, i)
        count += terms.open[i]
    terms.version[0] += count > 0
    return count


@kernel
def admits_all(ledger: Ledger, terms: Terms, t: int) -> bool:
    """Whether every budget covers the most expensive arm; then all arms that are offered are open.

    Args:
        ledger: The ledger.
        terms: The terms.
        t: The round, from 0.

    Returns:
        Whether they do; O(d) instead of O(md).
    """
    after = rounds_after(terms, t)
    for j in range(ledger.granted.size):
        if not covers(ledger, terms, j, ledger.most[j], after):
            return False
    return True


@kernel
def rounds_after(terms: Terms, t: int) -> int:
    """The rounds after round ``t``, rounded up."""
    return int(max(math.ceil(terms.end[0]) - t - 1, 0))


@kernel
def covers(ledger: Ledger, terms: Terms, j: int, cost: int, after: int) -> bool:
    """Whether a budget covers all reservations, a cost, and the fallback arm in the rounds after this one.

    Args:
        ledger: The ledger.
        terms: The terms.
        j: The resource.
        cost: The cost in grid units.
        after: The number of rounds after this one.

    Returns:
        Whether it does. Nothing is multiplied, so that no number overflows.
    """
    held = ledger.reserved[j] - terms.costs.spared[j]
    return lasts(terms, j, ledger.granted[j] - ledger.charged[j] - held - cost, after)


@kernel
def lasts(terms: Terms, j: int, room: int, after: int) -> bool:
    """Whether an amount is not negative and pays for the fallback arm in the rounds after this one."""
    later = terms.fallback_worst[j]
    if room < 0 or later <= 0:
        return bool(room >= 0)
    return bool(after <= room // later)


@kernel
def is_blocked(ledger: Ledger, terms: Terms, t: int) -> bool:
    """Whether an arm would be open in round ``t``, in which all are closed, if nothing were reserved for decisions.

    Args:
        ledger: The ledger.
        terms: The terms.
        t: The round, from 0.
    """
    after, fallback = rounds_after(terms, t), terms.fallback[0]
    for i in range(terms.offered.size):
        payable = terms.offered[i]
        for j in range(ledger.granted.size):
            room = ledger.granted[j] - ledger.charged[j] - max(terms.worst[j, i], 0)
            payable = payable and lasts(terms, j, room, 0 if i == fallback else after)
        if payable:
            return True
    return False


@kernel
def holds(ledger: Ledger, terms: Terms, arm: int) -> bool:
    """Whether the ledger can hold a reservation for an arm, whatever the budgets: sums must not overflow."""
    for j in range(ledger.granted.size):
        if ledger.charged[j] + ledger.reserved[j] > MOST_UNITS - max(terms.worst[j, arm], 0):
            return False
    return True


@kernel
def serve(terms: Terms, arm: int, mix: Floats) -> int:
    """Skip instead of a closed arm, and give the probability of skipping to the fallback arm, if there is one.

    The mix is a distribution afterwards, whatever the policy's rounding errors.

    Args:
        terms: The terms.
        arm: The arm that was drawn, or ``SKIP``.
        mix: (m,) the probabilities, which may be changed.

    Returns:
        The arm, or the fallback in place of ``SKIP``.
    """
    clip_to_distribution(mix)
    if terms.fallback[0] == SKIP and (arm == SKIP or terms.open[arm]):
        return arm
    fallback = first_open(terms)
    if arm != SKIP and not terms.open[arm]:  # a policy that ignores which arms are open
        for i in range(mix.size):
            mix[i] = 0.0
        arm = SKIP
    if fallback == SKIP:
        return arm
    mix[fallback] = min(mix[fallback] + max(skip_probability(mix), 0.0), 1.0)
    return fallback if arm == SKIP else arm


@kernel
def first_open(terms: Terms) -> int:
    """The first open arm among the fallback arms; if they are all withheld, the cheapest open arm; or ``SKIP``."""
    if terms.fallback[0] == SKIP:
        return SKIP
    withheld = True
    for arm in terms.fallback:
        if terms.open[arm]:
            return int(arm)
        withheld = withheld and not terms.offered[arm]
    return cheapest(terms, terms.open) if withheld else SKIP


@kernel
def serve_must(terms: Terms, arm: int, mix: Floats, uniform: float) -> int:
    """Serve a request that must not be skipped: draw from the open arms of the mix, or take the cheapest open one.

    Args:
        terms: The terms; some arm is open.
        arm: The arm that was drawn, or ``SKIP``.
        mix: (m,) the probabilities, which are conditioned on the open arms.
        uniform: A uniform random number, which draws the arm if the policy skipped or chose a closed one.

    Returns:
        The arm.
    """
    if terms.fallback[0] != SKIP:
        arm = serve(terms, arm, mix)
    total = 0.0
    for i in range(mix.size):
        mix[i] = mix[i] if terms.open[i] else 0.0
        total += mix[i]
    if total <= 0.0:
        arm = cheapest(terms, terms.open)
        mix[arm] = 1.0
        return arm
    for i in range(mix.size):
        mix[i] = min(mix[i] / total, 1.0)
    if arm != SKIP and terms.open[arm]:
        return arm
    arm = draw(mix, uniform)
    if arm == SKIP:  # the probabilities may sum to slightly less than 1
        for i in range(mix.size):
            arm = i if mix[i] > 0.0 else arm
    return arm


@kernel
def skip_probability(mix: Floats) -> float:
    """Return the probability of ``SKIP``: 1 minus the sum of the others."""
    total = 0.0
    for i in range(mix.size):
        total += mix[i]
    return 1.0 - total


@kernel
def fits(ledger: Ledger, terms: Terms, arm: int, after: int) -> bool:
    """Whether every budget covers an arm, all reservations, and the fallback arm in the rounds after this one."""
    for j in range(ledger.granted.size):
        if not covers(ledger, terms, j, max(terms.worst[j, arm], 0), after):
            return False
    return True
