"""Which column of a log is what; and what is wrong with a file before its first row.

A log has one row a round: ``time``, ``arm`` (empty: the round was skipped), ``reward``, one column for each resource
(those that begin with ``cost``, or those that are named), and, if it is known, ``propensity``: the probability with
which the arm was chosen. A full-information table says what *every* arm would have given: ``reward:ARM`` and
``RESOURCE:ARM`` for each arm. A file may be both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from driftsack.core.arrays import Floats
from driftsack.core.checks import above_zero, vector
from driftsack.core.errors import LogError, OutOfRangeError, SettingError

TIME: Final = "time"
ARM: Final = "arm"
REWARD: Final = "reward"
PROPENSITY: Final = "propensity"
COST: Final = "cost"
OF_ARM: Final = ":"
SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


class Wanted(NamedTuple):
    """What the reader was told about a log."""

    resources: Sequence[str] | None = None  # their columns; None: those that begin with "cost"
    arms: Sequence[str] | None = None  # None: those that occur
    reward_max: float = 1.0
    cost_max: Sequence[float] | float = 1.0


class Layout(NamedTuple):
    """The columns of one file, and the most that a value may be."""

    resources: tuple[str, ...]
    arms: tuple[str, ...] | None  # None: those that occur, found while reading
    played: bool  # there are arm and reward: somebody chose
    propensity: bool
    table: bool  # there is what every arm would have given
    reward_max: float
    cost_max: Floats  # (d,)

    @property
    def columns(self) -> list[str]:
        """Every column that is read, time first."""
        names = [TIME]
        if self.played:
            names += [ARM, REWARD, *self.resources]
        if self.propensity:
            names.append(PROPENSITY)
        if self.table and self.arms is not None:
            names += [f"{part}{OF_ARM}{arm}" for arm in self.arms for part in (REWARD, *self.resources)]
        return names


def find_layout(columns: Sequence[str], wanted: Wanted, name: str, separator: str = ",") -> Layout:
    """Settle what each column is, or say what is missing.

    >>> find_layout(["time", "arm", "reward", "cost_money"], Wanted(), "log.csv").resources
    ('cost_money',)
    """
    check_separator(columns, name, separator)
    resources = _resources(columns, wanted, name)
    parts = [column.split(OF_ARM, 1) for column in columns if OF_ARM in column]
    tabled = tuple(dict.fromkeys(arm for part, arm in parts if part in (REWARD, *resources)))
    arms = _names(wanted.arms, "arms") or tabled or None
    amounts = vector(for_each(wanted.cost_max, "cost_max", resources), "cost_max", len(resources))
    if (amounts <= 0).any():
        raise OutOfRangeError(f"cost_max must be above 0, got {amounts.min():g}.")
    played = ARM in columns or not tabled
    layout = Layout(
        resources=resources,
        arms=arms,
        played=played,
        propensity=PROPENSITY in columns and played,
        table=bool(tabled),
        reward_max=above_zero(wanted.reward_max, "reward_max"),
        cost_max=amounts,
    )
    _check_present(layout.columns, columns, name)
    return layout


def check_separator(columns: Sequence[str], name: str, separator: str) -> None:
    """Raise if the header was not cut because its fields are separated by something else."""
    if len(columns) != 1:
        return
    expected = SEPARATORS.get(separator, repr(separator))
    for other, spelled in SEPARATORS.items():
        if other in columns[0] and other != separator:
            raise LogError(
                f"{name} must be separated by {expected}, but its header {columns[0]!r:.60} is separated by {spelled}; "
                f"pass separator={other!r} (--separator) or save it with {expected}."
            )


def _check_present(needed: Sequence[str], columns: Sequence[str], name: str) -> None:
    """Raise if a column is missing; one that differs only by case or spaces is pointed at."""
    missing = [column for column in needed if column not in columns]
    if not missing:
        return
    alike = {column.strip().lower(): column for column in columns}
    near = "".join(f" {alike[column.lower()]!r} must be spelled {column!r}." for column in missing if column in alike)
    raise LogError(
        f"{name} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}; "
        f"it has {', '.join(columns)}. Rename or add what is missing.{near}"
    )


def for_each(values: Any, setting: str, resources: Sequence[str]) -> Any:
    """``values`` as they came, if they are a number for all resources or one for each."""
    if np.ndim(values) == 1 and len(values) != len(resources):
        count = f"{len(resources)} resource{'s' * (len(resources) > 1)} ({', '.join(resources)})"
        raise SettingError(f"{setting} must be given once for each of the log's {count}, got {len(values)}.")
    return values


def _names(given: Sequence[str] | None, setting: str) -> tuple[str, ...]:
    """Names that were passed; none if nothing was."""
    if given is None:
        return ()
    if isinstance(given, str):
        raise SettingError(f"{setting} must be a list of names, got the text {given!r}; pass [{given!r}].")
    names = tuple(str(one) for one in given)
    if not names:
        raise SettingError(
            f"{setting} must name at least one, got an empty list; leave it out to take what the log has."
        )
    if len(set(names)) != len(names):
        raise SettingError(f"{setting} must differ from each other, got {', '.join(names)}.")
    return names


def _resources(columns: Sequence[str], wanted: Wanted, name: str) -> tuple[str, ...]:
    """The resources' columns: those that were named, or those whose names begin with ``cost``."""
    named = _names(wanted.resources, "resources")
    plain = dict.fromkeys(column.split(OF_ARM, 1)[0] for column in columns)
    found = named or tuple(column for column in plain if column.strip().lower().startswith(COST))
    taken = [column for column in found if column in (TIME, ARM, REWARD, PROPENSITY)]
    if taken:
        raise SettingError(f"resources must not be {', '.join(taken)}, which every log has for something else.")
    if not found:
        _check_present([TIME, *([] if any(OF_ARM in column for column in columns) else [ARM, REWARD])], columns, name)
        raise LogError(
            f"{name} lacks a column for each resource: their names begin with {COST!r}, such as cost_money, or are "
            f"passed as resources=[...] (--resource); it has {', '.join(columns)}."
        )
    return found
