"""Number formatting for tables, pages, figures and sentences."""

from __future__ import annotations

WHOLE_PERCENT = 0.01  # from this share on, percentages are printed without decimals


def number(value: float, digits: int = 4) -> str:
    """Format a number to ``digits`` significant digits, without decimals if its integer part has at least that many.

    An ``int`` is printed in full. Commas separate thousands.

    >>> number(1071.32), number(0.41421), number(12), number(0.41421, digits=3)
    ('1,071', '0.4142', '12', '0.414')
    """
    if isinstance(value, int) or abs(value) >= 10.0 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:,.{digits}g}"


def percent(share: float) -> str:
    """Format a share (1 is 100%) as a percentage, with one decimal below 1%.

    >>> percent(0.974), percent(0.0042)
    ('97%', '0.4%')
    """
    return f"{share:.0%}" if share == 0 or abs(share) >= WHOLE_PERCENT else f"{share:.1%}"
