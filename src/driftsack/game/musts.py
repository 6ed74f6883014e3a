r"""Requests that must be served, and the money that a plan holds back for them.

A request may have to be served although others may be skipped (``ask(must=True)``). With :math:`\hat p` the
share of such requests (:func:`driftsack.game.records.note_request`), :math:`c` their mean cost, which a pacer estimates
at its prices, and n rounds left at a rate :math:`\rho`, the other requests may spend on average

.. math:: \Bigl(\rho - \hat p c - c \sqrt{\hat p (2 - \hat p) / n}\Bigr)^+ \Big/ (1 - \hat p) .

The last term holds back one standard deviation of the cost of future musts, if the standard deviation of a single cost
is about its mean.
"""

from __future__ import annotations

import math
from typing import Final

from driftsack.game.records import Round
from driftsack.numerics.compiled import kernel

MOST_MUSTS: Final = 0.95
"""The largest share of requests that must be served for which a plan is made."""


@kernel
def optional_rate(round: Round, rate: float, cost: float) -> float:
    """The rate of the requests that may be skipped.

    Args:
        rate: The rate of all requests.
        cost: The mean cost of a request that must be served, in the same units.
    """
    share = min(round.must_share, MOST_MUSTS)
    held = share * cost + cost * math.sqrt(share * (2.0 - share) / round.rounds_left)
    return float(max(rate - held, 0.0) / (1.0 - share))
