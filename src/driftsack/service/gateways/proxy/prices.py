"""``Prices``: what the tokens of a model cost, and ``Usage``: how many of them an upstream counted."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Annotated, Any, Final, NamedTuple

import msgspec

MILLION: Final = Decimal(10**6)
FINEST: Final = Decimal("0.000000001")  # dollars; charges are rounded up to it
MOST_TOKENS: Final = 10**12
Price = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})?$(?!\n)")]


class Usage(NamedTuple):
    """The tokens of a request, as an upstream counted them; no token is counted in two fields.

    Attributes:
        input: Tokens of the prompt that are in no other field.
        output: Tokens of the answer that are in no other field.
        cached: Tokens of the prompt that were read from a cache.
        written: Tokens of the prompt that were written to a cache.
        reasoning: Tokens of the answer that only the model has seen.
        audio_in: Tokens of audio in the prompt.
        audio_out: Tokens of audio in the answer.
    """

    input: int
    output: int
    cached: int = 0
    written: int = 0
    reasoning: int = 0
    audio_in: int = 0
    audio_out: int = 0


class Prices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The prices of a model, in dollars per million tokens.

    Attributes:
        input: The price of the prompt.
        output: The price of the answer.
        cached_input: The price of what was read from a cache; that of ``input`` if omitted.
        cache_write: The price of what was written to a cache; twice that of ``input`` if omitted.
        reasoning: The price of reasoning; that of ``output`` if omitted.
        audio_input: The price of audio in the prompt; that of ``input`` if omitted.
        audio_output: The price of audio in the answer; that of ``output`` if omitted.
        request: Dollars for each request, besides its tokens.
        since: The day, in UTC, from which these prices are valid; omitted for those that were always valid.
    """

    input: Price
    output: Price = "0"
    cached_input: Price | None = None
    cache_write: Price | None = None
    reasoning: Price | None = None
    audio_input: Price | None = None
    audio_output: Price | None = None
    request: Price = "0"
    since: datetime.date | None = None

    def each(self) -> tuple[Decimal, ...]:
        """Return the price of a million tokens of each field of ``Usage``."""
        into, out = Decimal(self.input), Decimal(self.output)
        return (
            into,
            out,
            _or(self.cached_input, into),
            _or(self.cache_write, 2 * into),
            _or(self.reasoning, out),
            _or(self.audio_input, into),
            _or(self.audio_output, out),
        )

    def cost(self, usage: Usage) -> Decimal:
        """Return the cost of a request in dollars, rounded up to a billionth.

        >>> Prices("1", "2", cached_input="0.5").cost(Usage(10, 5, cached=100))
        Decimal('0.000070000')
        """
        tokens = sum((count * price for count, price in zip(usage, self.each(), strict=True)), Decimal(0))
        return (Decimal(self.request) + tokens / MILLION).quantize(FINEST, rounding="ROUND_CEILING")

    def largest(self, writes_cache: bool, speaks: bool = False) -> tuple[Decimal, Decimal]:
        """Return the largest prices of a token of text, of a prompt and of an answer, in dollars.

        Args:
            writes_cache: Whether the prompt is written to a cache.
            speaks: Whether the answer may have audio.
        """
        into, out, cached, written, reasoning, _, spoken = self.each()
        most = max(out, reasoning, spoken if speaks else out)
        return max(into, cached, written if writes_cache else into) / MILLION, most / MILLION


def _or(price: str | None, otherwise: Decimal) -> Decimal:
    return otherwise if price is None else Decimal(price)


def prices_on(given: tuple[Prices, ...], day: datetime.date) -> Prices:
    """Return the prices that are valid on a day: the latest that began by then, or else the first."""
    begun = [prices for prices in given if prices.since is None or prices.since <= day]
    return max(begun or given[:1], key=lambda prices: prices.since or datetime.date.min)


def count(found: Any) -> int | None:
    """Return a number of tokens; None if it is not one.

    >>> count(5), count(None), count(-5), count(1.5), count(True)
    (5, 0, None, None, None)
    """
    if found is None:
        return 0
    whole = isinstance(found, int) and not isinstance(found, bool)
    return found if whole and 0 <= found < MOST_TOKENS else None


def usage_of(total_in: Any, total_out: Any, parts: dict[str, Any]) -> Usage | None:
    """Return a usage whose totals include its parts; None if the numbers contradict each other.

    Args:
        total_in: All tokens of the prompt.
        total_out: All tokens of the answer.
        parts: Fields of ``Usage`` that the totals include.

    >>> usage_of(10, 5, {"cached": 4, "reasoning": 2})
    Usage(input=6, output=3, cached=4, written=0, reasoning=2, audio_in=0, audio_out=0)
    >>> usage_of(10, 5, {"cached": 11}) is None
    True
    """
    if total_in is None:
        return None
    totals = [count(total_in), count(total_out)]
    counted = {name: count(value) for name, value in parts.items()}
    if None in totals or None in counted.values():
        return None
    known = {name: value or 0 for name, value in counted.items()}
    into = (totals[0] or 0) - sum(known.get(name, 0) for name in ("cached", "written", "audio_in"))
    out = (totals[1] or 0) - sum(known.get(name, 0) for name in ("reasoning", "audio_out"))
    return Usage(into, out, **known) if into >= 0 and out >= 0 else None
