"""Names of arms, resources and features, by which amounts, tables and forecasts are matched in any order.

Arms without names are called ``"0"``, ``"1"``, ... and resources without names ``"cost_0"``, ``"cost_1"``, ..., so a
problem without names and a log gathered on it agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import floats, vector
from driftsack.core.errors import NamesError

Amounts = Mapping[str, float] | Sequence[float] | Floats | float
"""One number for each resource, by name or in order, or a single number for all of them."""
ArmAmounts = Amounts | Mapping[str, Mapping[str, float]] | Mapping[str, Sequence[float]] | Sequence[Sequence[float]]
"""As ``Amounts``; or one number for each resource and arm, by name or in order."""
MAX_LISTED: Final = 10  # names in an error message


def default_arm_names(count: int) -> tuple[str, ...]:
    """Return the default names of arms."""
    return tuple(str(i) for i in range(count))


def default_resource_names(count: int) -> tuple[str, ...]:
    """Return the default names of resources."""
    return tuple(f"cost_{j}" for j in range(count))


def default_feature_names(count: int) -> tuple[str, ...]:
    """Return the default names of features in a log."""
    return tuple(str(k) for k in range(count))


def checked_names(given: Any, setting: str, count: int | None = None) -> tuple[str, ...]:
    """Return names as a tuple after checking that they are distinct, non-empty strings, ``count`` of them if given.

    >>> checked_names(["small", "large"], "arms")
    ('small', 'large')
    """
    if isinstance(given, (str, bytes)):
        raise NamesError(f"{setting} must be a list of names, got the string {given!r}; pass [{given!r}].")
    if not isinstance(given, Iterable) or isinstance(given, (set, frozenset)):
        raise NamesError(f"{setting} must be a list of names, in order, got {given!r:.80}; pass a list.")
    names = tuple(given)
    if not names:
        raise NamesError(f"{setting} must name at least one, got an empty list; omit it if there are no names to give.")
    for name in names:
        if not isinstance(name, str) or not name or name != name.strip():
            raise NamesError(
                f"{setting} must be non-empty strings without leading or trailing spaces, got {name!r:.80}; rename it."
            )
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        raise NamesError(
            f"{setting} must differ from each other, got {_listed(repeated)} more than once; rename the others."
        )
    if count is not None and len(names) != count:
        raise NamesError(f"{setting} must be {count} names, got {len(names)}: {_listed(names)}.")
    return tuple(str(name) for name in names)  # str instead of numpy.str_


def by_name(values: Any, names: Sequence[str], setting: str, kind: str = "resources") -> Any:
    """Return the values of a mapping in the order of ``names``; anything but a mapping is returned unchanged.

    >>> by_name({"seconds": 3.5, "usd": 0.02}, ("usd", "seconds"), "costs")
    [0.02, 3.5]
    """
    if isinstance(values, (np.ndarray, list, tuple, float)) or not isinstance(values, Mapping):  # the first is fast
        return values
    missing = [name for name in names if name not in values]
    unknown = [name for name in values if name not in names]
    if missing or unknown:
        parts = [f"{_listed(part)} {what}" for part, what in ((missing, "missing"), (unknown, "unknown")) if part]
        raise NamesError(
            f"{setting} must have one entry for each of the {kind} {_listed(names)}, got {_listed(values) or 'none'} "
            f"({', '.join(parts)}); use exactly these names."
        )
    return [values[name] for name in names]


def by_resource_and_arm(values: Any, resources: Sequence[str], arms: Sequence[str], setting: str) -> Floats:
    """Return amounts as (d,), one for each resource, or as (d, m) if some are given by arm.

    >>> by_resource_and_arm({"usd": {"small": 0.1, "large": 0.5}}, ("usd",), ("small", "large"), "cost_max")
    array([[0.1, 0.5]])
    """
    rows = by_name(values, resources, setting)
    if isinstance(rows, np.ndarray) and rows.ndim == 2:
        return floats(rows, setting, (len(resources), len(arms)))
    many = (list, tuple, Mapping, np.ndarray)
    if isinstance(rows, (list, tuple)) and len(rows) == len(resources) and any(isinstance(row, many) for row in rows):
        labels = [f"{setting} of {name!r}" for name in resources]
        given = [by_name(row, arms, label, "arms") for row, label in zip(rows, labels, strict=True)]
        return np.stack([vector(row, label, len(arms)) for row, label in zip(given, labels, strict=True)])
    return vector(rows, setting, len(resources))


def position(name: str, names: Sequence[str], setting: str) -> int:
    """Return the position of a name.

    >>> position("large", ("small", "large"), "arm")
    1
    """
    if name not in names:
        raise NamesError(f"{setting} must be one of {_listed(names)}, got {name!r:.80}; use one of these names.")
    return list(names).index(name)


def positions(given: Sequence[str], wanted: Sequence[str], default: Sequence[str], what: str) -> list[int]:
    """Return the position in ``given`` of each name in ``wanted``; raise if the two sets of names differ.

    A single name matches any other one if one of the two is the default, because there is only one order.
    ``what`` is the subject of error messages, such as ``"the arms of the forecast and of the problem"``.
    """
    if set(given) == set(wanted):
        place = {name: k for k, name in enumerate(given)}
        return [place[name] for name in wanted]
    if len(given) == len(wanted) == 1 and tuple(default) in (tuple(given), tuple(wanted)):
        return [0]
    raise NamesError(
        f"{what} must have the same names, so that they can be matched, got {_described(given, default)} and "
        f"{_described(wanted, default)}; give both the same names, such as "
        'Problem(arms=["small", "large"], budget={"usd": 200, "seconds": 50_000}).'
    )


def _described(names: Sequence[str], default: Sequence[str]) -> str:
    return f"no names ({_listed(names)})" if tuple(names) == tuple(default) else _listed(names)


def _listed(names: Iterable[Any]) -> str:
    """Return the names in quotes, at most ``MAX_LISTED`` of them."""
    quoted = [f"{name!r:.40}" for name in names]
    more = [f"... ({len(quoted)} in all)"] if len(quoted) > MAX_LISTED else []
    return ", ".join(quoted[:MAX_LISTED] + more)
