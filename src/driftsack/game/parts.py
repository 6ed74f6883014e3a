"""The parts of an outcome that arrive apart: the costs before the reward, or the reward before the costs.

A bill is often known at once and the reward only later. Costs that are told alone are charged exactly and replace the
reservation, and the decision stays pending for its reward; a reward that is told alone is kept until the costs arrive.
The policy learns one outcome when both are known (:func:`driftsack.game.steps.settle`), and nothing from one part: it
paces with the costs, because they are part of the spending.

A decision whose costs were told is charged nothing more when it is forfeited or cancelled.
"""

from __future__ import annotations

from driftsack.game.desk import PENDING, DecisionDesk
from driftsack.game.expected_costs import note_costs
from driftsack.game.ledger import Ledger
from driftsack.game.records import Terms
from driftsack.game.steps import OVERRAN, SETTLED, charge_decision, count_unpaid, read_costs
from driftsack.numerics.compiled import kernel


@kernel
def pay(ledger: Ledger, terms: Terms, desk: DecisionDesk, slot: int) -> int:
    """Charge the costs in ``desk.given`` of a decision whose reward has not arrived, and release its reservation.

    Args:
        ledger: The ledger of the season that the decision belongs to.
        terms: The terms.
        desk: The desk.
        slot: The slot of the decision, pending or forfeited, whose costs were not told before.

    Returns:
        ``SETTLED``; ``OVERRAN`` if it cost more than was reserved; ``INVALID`` and ``TOO_LARGE`` change nothing.
    """
    status, awaited = read_costs(ledger, desk, slot), desk.awaited
    if status != SETTLED:
        return status
    overran = charge_decision(ledger, terms, desk, slot)
    note_costs(terms.costs, awaited.arm[slot], desk.given, desk.cost_unit)
    if awaited.status[slot] == PENDING and awaited.season[slot] == desk.season[0]:
        count_unpaid(terms, awaited, slot, -1)
    for j in range(desk.given.size):
        awaited.costs[slot, j] = desk.given[j]
    return OVERRAN if overran else SETTLED
