"""Amounts with their units, as a sentence says them: ``$5.10``, ``12 seconds``, ``one more dollar``, ``9 answers``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from driftsack.core.text import number

CURRENCIES: Final = {
    "usd": ("$", "dollar"),
    "dollars": ("$", "dollar"),
    "eur": ("€", "euro"),
    "euros": ("€", "euro"),
    "gbp": ("£", "pound"),
}
SINGULAR: Final = {"s": "second", "sec": "second", "ms": "millisecond", "h": "hour"}
SOLVER_PRECISION: Final = 1e-10  # amounts below this are those of the solver
WORTH_SAYING: Final = 0.95  # of the reward, which one more unit should earn; otherwise ten, a hundred, ... are stated


def amount(value: float) -> str:
    """Format a number for the text, with three significant digits; values below the precision of the solver are 0.

    >>> amount(-7.28e-12), amount(14.93)
    ('0', '14.9')
    """
    return number(value, digits=3) if abs(value) > SOLVER_PRECISION else "0"


def enumeration(items: Sequence[str]) -> str:
    """Join items with commas and a final "and".

    >>> enumeration(["501", "900", "1,200"])
    '501, 900 and 1,200'
    """
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def plain_name(resource: str) -> str:
    """Return the name of a resource without the prefix ``cost_``, unless a number is left.

    >>> plain_name("cost_usd"), plain_name("cost_0")
    ('usd', 'cost_0')
    """
    rest = resource.removeprefix("cost_")
    return resource if rest.isdigit() or not rest else rest


def of_resource(value: float, resource: str) -> str:
    """Format an amount of a resource.

    >>> of_resource(5.1, "cost_usd"), of_resource(1234.0, "seconds"), of_resource(0.5, "Price")
    ('$5.10', '1,234 seconds', '0.5 of Price')
    """
    name = plain_name(resource)
    if name.lower() in CURRENCIES:
        sign = CURRENCIES[name.lower()][0]
        return f"{sign}{value:,.2f}" if abs(value) >= 0.1 or value == 0 else f"{sign}{amount(value)}"
    return f"{amount(value)} {name}" if name.endswith("s") and len(name) > 2 else f"{amount(value)} of {name}"


def of_reward(value: float, name: str, more: bool = False) -> str:
    """Format an amount of reward; the name ``reward`` goes without saying.

    >>> of_reward(9.0, "answers"), of_reward(9.0, "reward"), of_reward(9.0, "ok", more=True)
    ('9 answers', '9', '9 more of ok')
    """
    words = [amount(value)] + ["more"] * more
    if name != "reward":
        words += [name] if name.endswith("s") else [f"of {name}"]
    return " ".join(words)


def worth_of_units(price: float, resource: str, reward: str) -> str:
    """Say what one more unit earns, or ten, a hundred, ... if one earns less than one.

    >>> worth_of_units(9.1, "usd", "answers"), worth_of_units(0.0032, "seconds", "reward")
    ('one more dollar would earn about 9.1 more answers', '1,000 more seconds would earn about 3.2 more')
    """
    units = 1
    while 0 < price * units < WORTH_SAYING and units < 10**6:
        units *= 10
    name = plain_name(resource)
    sign, single = CURRENCIES.get(name.lower(), ("", SINGULAR.get(name, name[:-1] if name.endswith("s") else "")))
    if units == 1:
        what = f"one more {single}" if single else f"one more unit of {name}"
    elif sign:
        what = f"{sign}{units:,} more"
    else:
        what = f"{units:,} more {name}" if single else f"{units:,} more units of {name}"
    return f"{what} would earn about {of_reward(price * units, reward, more=True)}"
