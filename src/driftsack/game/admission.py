"""Admission: the arms that are open in a round, and the fallback arm in place of a skip.

An arm is *offered* unless the driver withholds it: it was retired, or the request cannot use it. With ``safe`` an
offered arm is *open* only if every budget can pay

- all spending and reservations,
- the maximum cost of the arm in this round, and
- if every request must be answered, the maximum cost of the fallback arm in each of the rounds after this one,
  unless it is the fallback arm itself.

Without ``safe`` it is open unless its reservation is larger than a ledger can hold.

So the fallback arm is open as long as every budget can pay for it once. If the number of rounds is known and no cost
exceeds what was reserved for it, that is until the last round, since the other arms leave what the fallback needs. If
more requests come than were expected, the fallback answers them until the money is gone.
"""

from __future__ import annotations

import math

from driftsack.core.arrays import Floats
from driftsack.core.decision import SKIP
from driftsack.game.amounts import MOST_UNITS
from driftsack.game.ledger import Ledger
from driftsack.game.records import Terms
from driftsack.numerics.compiled import kernel
from driftsack.numerics.sampling import clip_to_distribution


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
    after, fallback = rounds_after(terms, t), terms.fallback[0]
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
    room = ledger.granted[j] - ledger.charged[j] - ledger.reserved[j] - cost
    later = terms.fallback_worst[j]
    if room < 0 or later <= 0:
        return bool(room >= 0)
    return bool(after <= room // later)


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
    fallback = terms.fallback[0]
    if fallback == SKIP and (arm == SKIP or terms.open[arm]):
        return arm
    if arm != SKIP and not terms.open[arm]:  # a policy that ignores which arms are open
        for i in range(mix.size):
            mix[i] = 0.0
        arm = SKIP
    if fallback == SKIP or not terms.open[fallback]:
        return arm
    mix[fallback] = min(mix[fallback] + max(skip_probability(mix), 0.0), 1.0)
    return fallback if arm == SKIP else arm


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
