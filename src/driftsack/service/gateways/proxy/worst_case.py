r"""The worst case of a request: the most that it may cost at an upstream, computed before anything is reserved or sent.

A prompt has at most as many tokens as its text has bytes, since every tokeniser in use falls back to bytes. An answer
has at most as many tokens as its limit, for each of the answers that are asked for. So the request costs at most

.. math:: r + s \cdot p_{in} + (a \cdot \ell + e) \cdot p_{out}

with the price r of a request, s bytes, a answers of at most ℓ tokens, e further tokens of output that the request
itself contains (a *prediction*), and the largest price of a token in each direction. What has no bound in bytes, such
as an image or a file by its id, reserves the arm's maximum cost, and only its output is bounded.
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal
from typing import Final, NamedTuple

from driftsack.service.gateways.proxy.prices import FINEST, Prices

FEWEST: Final = 16  # tokens: a lower limit than this is no answer, unless the caller asked for it
TOOLS: Final = 1024  # tokens by which an upstream may extend a prompt with tools


class Demand(NamedTuple):
    """What a request asks for.

    Attributes:
        size: The bytes of the request.
        limit: The limit of each answer, in tokens, that the caller set; None without one.
        answers: The number of answers; 0 for an embedding, which has no output.
        extra: Further tokens of output.
        bounded: Whether bytes bound the tokens of the prompt.
        writes_cache: Whether the prompt is written to a cache.
    """

    size: int
    limit: int | None
    answers: int = 1
    extra: int = 0
    bounded: bool = True
    writes_cache: bool = False

    def asked(self, most: int) -> int:
        """Return the limit of an answer at an upstream that writes at most ``most`` tokens."""
        return most if self.limit is None else min(self.limit, most)


def worst_case(demand: Demand, prices: Prices, limit: int) -> Decimal:
    """Return the maximum cost of a request whose answers have at most ``limit`` tokens, rounded up to a billionth.

    >>> worst_case(Demand(size=100, limit=None, answers=2), Prices("1", "10"), 50)
    Decimal('0.001200000')
    """
    into, out = prices.largest(demand.writes_cache, not demand.bounded)
    prompt = demand.size * demand.answers if demand.answers else demand.size
    tokens = (prompt if demand.bounded else 0) * into + (demand.answers * limit + demand.extra) * out
    return (Decimal(prices.request) + tokens).quantize(FINEST, rounding="ROUND_CEILING")


def fitting_limit(demand: Demand, prices: Prices, limit: int, most: Decimal) -> int | None:
    """Return the largest limit up to ``limit`` with which a request costs at most ``most``; None if there is none.

    >>> fitting_limit(Demand(size=100, limit=None), Prices("1", "10"), 10**6, Decimal("0.0101"))
    1000
    >>> fitting_limit(Demand(size=10**6, limit=None), Prices("1", "10"), 10**6, Decimal("0.01")) is None
    True
    """
    if worst_case(demand, prices, limit) <= most:
        return limit
    _, out = prices.largest(demand.writes_cache, not demand.bounded)
    left = most - worst_case(demand, prices, 0)
    if left < 0 or not demand.answers or not out:
        return None
    found = int((left / (demand.answers * out)).to_integral_value(rounding=ROUND_FLOOR))
    return found if found >= min(limit, FEWEST) else None
