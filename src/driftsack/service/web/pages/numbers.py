"""Numbers, times and intervals, formatted for display."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from driftsack.service.domain import messages as ms
from driftsack.service.projections.drift import Sample
from driftsack.service.projections.progress import WIDE

THOUSAND: Final = 1000


def number(value: float | str | Decimal, digits: int = 3) -> str:
    """Format a number for display: a few significant digits, thousands separated.

    >>> number(1234.5), number(0.0123456), number(0), number(12), number("3.14159"), number(0.000085, 2)
    ('1,234', '0.0123', '0', '12', '3.14', '0.000085')
    """
    amount = float(value)
    if amount == 0:
        return "0"
    if abs(amount) >= THOUSAND:
        return f"{amount:,.0f}"
    text = f"{amount:.{digits}g}"
    return f"{Decimal(text):f}" if abs(amount) > 1e-9 else text


def when(at: int) -> str:
    """Format a time in milliseconds since 1970, in UTC."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def interval(sample: Sample) -> str:
    """Format a sample mean with its 95% interval.

    >>> interval(Sample(100, 0.5, 0.05)), interval(Sample(0, 0.0, 0.0))
    ('0.5 ± 0.098', 'no outcome yet')
    """
    if sample.size == 0:
        return "no outcome yet"
    return number(sample.mean) if sample.error == 0 else f"{number(sample.mean)} ± {number(WIDE * sample.error, 2)}"


def span(mean: ms.Interval | None) -> str:
    """Format an estimate with its 95% interval.

    >>> span(ms.Interval(0.5, 0.4, 0.6)), span(ms.Interval(1e-17, 1e-17, 1e-17)), span(None)
    ('0.5 ± 0.1', '0', '')
    """
    if mean is None:
        return ""
    if mean.low == mean.high:
        return number(round(mean.mean, 12))
    return f"{number(mean.mean)} ± {number(mean.high - mean.mean, 2)}"


def named_costs(costs: Sequence[float], resources: Sequence[str]) -> str:
    """Format costs with the names of their resources.

    >>> named_costs([0.004, 1.5], ["usd", "seconds"])
    '0.004 usd, 1.5 seconds'
    """
    return ", ".join(f"{cost:g} {name}" for cost, name in zip(costs, resources, strict=True))
