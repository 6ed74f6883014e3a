"""Amounts in messages: decimal strings, or integers of whole units as in Python; never floats.

An amount has at most 15 significant digits. The nearest float has that number as its shortest decimal form, so it
represents the amount exactly (:mod:`driftsack.game.amounts`), and the ledgers of learner and campaign agree in every
unit.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Final

import msgspec

from driftsack.service.domain.refusals import Refusal

MOST_DIGITS: Final = 15
LARGEST: Final = Decimal(10) ** 15
FINEST: Final = 15  # digits after the point
PATTERN: Final = r"^[0-9]{1,16}(\.[0-9]{1,15})?$(?!\n)"  # in Python, $ also matches before a last line break
_WRITTEN: Final = re.compile(PATTERN)

DecimalText = Annotated[
    str, msgspec.Meta(pattern=PATTERN, max_length=32, description="A decimal number with at most 15 digits.")
]
WholeUnits = Annotated[int, msgspec.Meta(ge=0, le=10**15, description='An integer: 200 is the amount "200".')]
Amount = DecimalText | WholeUnits


@lru_cache(maxsize=4096)
def amount_of(given: str | int, what: str = "an amount") -> float:
    """Return the float that represents an amount.

    Args:
        given: A decimal string, or an integer of whole units.
        what: The name of the amount in error messages.

    Returns:
        The float whose shortest decimal form is the amount.

    Raises:
        Refusal: The amount is negative, too large, too long or not a number.

    >>> amount_of("0.02"), amount_of(200)
    (0.02, 200.0)
    """
    if not _WRITTEN.match(str(given)):
        raise Refusal.invalid(f"{what} must be a decimal number such as '0.02', 0 or more, got {given!r:.60}.")
    value = Decimal(given)
    if value > LARGEST or len(value.normalize().as_tuple().digits) > MOST_DIGITS:
        raise Refusal.invalid(f"{what} must be at most 1e15 and have at most {MOST_DIGITS} digits, got {given}.")
    return float(value)


@lru_cache(maxsize=4096)
def text_of(units: int, exponent: int) -> str:
    """Return an amount in grid units as an exact decimal string without trailing zeros.

    Args:
        units: The number of grid units.
        exponent: The exponent k: a grid unit is 10^-k of the problem's unit.

    >>> text_of(20_000_000_000, 12), text_of(-5, 0), text_of(7, -2)
    ('0.02', '-5', '700')
    """
    text = f"{Decimal(units).scaleb(-exponent):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def decimal_text(given: str | int, micros: bool = False) -> str:
    """Return an amount as a decimal string.

    Args:
        given: A decimal string, which is returned unchanged, or an integer.
        micros: Whether an integer counts millionths; only stored settings of releases before 0.2 have such integers.

    >>> decimal_text("0.20"), decimal_text(200), decimal_text(200, micros=True)
    ('0.20', '200', '0.0002')
    """
    return given if isinstance(given, str) else text_of(given, 6 if micros else 0)
